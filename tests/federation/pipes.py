"""Nodes as processes of their own, over pipes: a transport, and the program of a node."""

import subprocess
import sys
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector

import msgspec

LENGTH = 4  # bytes before every message; a node that refuses a message answers with an empty one


class Pipes:
    """See `foltr.secagg.deadlines.Transport`."""

    def __init__(self, programs):
        self.children = {
            client: subprocess.Popen(
                [sys.executable, __file__, argument], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
            for client, argument in programs.items()
        }
        self.selector = DefaultSelector()
        for client, child in self.children.items():
            self.selector.register(child.stdout, EVENT_READ, client)
        self.away = set()
        self.awaited = set()

    def send(self, requests):
        self._drain()
        for client, request in requests.items():
            if client not in self.away:
                self.children[client].stdin.write(len(request).to_bytes(LENGTH, "big") + request)
                self.awaited.add(client)

    def receive(self, seconds):
        while self.awaited and (ready := self.selector.select(seconds)):
            key, _ = ready[0]
            self.awaited.discard(key.data)
            message = read(key.fileobj)
            if message:
                return key.data, message
        return None

    def _drain(self):
        """Reads the answers to messages that nobody waits for any more."""
        while self.awaited:
            self.receive(60.0)

    def close(self):
        self._drain()
        for child in self.children.values():
            child.stdin.close()
            child.stdout.close()
            child.wait(timeout=60)
        self.selector.close()


def read(stream):
    """One message; b"" at the end of the stream."""
    size = int.from_bytes(_exactly(stream, LENGTH), "big")
    return _exactly(stream, size)


def _exactly(stream, size):
    pieces = b""
    while len(pieces) < size and (piece := stream.read(size - len(pieces))):
        pieces += piece
    return pieces


class Joining(msgspec.Struct):
    """What a node's process is told: its home and what it knows of its federation."""

    home: str
    client: int
    identity: bytes
    terms: bytes
    server: bytes
    keys: dict[int, bytes]
    operators: list[tuple[bytes, bytes]] | None


def main(argument):
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from foltr import node as foltr_node
    from foltr.errors import FoltrError
    from foltr.federation.member import respond
    from foltr.federation.membership import Member
    from foltr.node.learning import federated
    from foltr.secagg.terms import Terms, registry
    from foltr.secagg.two_servers import Aggregator

    told = msgspec.json.decode(argument, type=Joining)
    member = Member(
        told.client, Ed25519PrivateKey.from_private_bytes(told.identity),
        msgspec.msgpack.decode(told.terms, type=Terms), registry(told.server, told.keys),
    )  # fmt: skip
    operators = told.operators and tuple(Aggregator(*keys) for keys in told.operators)
    with foltr_node.open(Path(told.home)) as node:
        side = federated.side_of(node.places, node.log, member, delta=1e-5, budget=None, operators=operators)
        while message := read(sys.stdin.buffer):
            try:
                reply = respond(side, message) or b""
            except FoltrError:
                reply = b""
            sys.stdout.buffer.write(len(reply).to_bytes(LENGTH, "big") + reply)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1])
