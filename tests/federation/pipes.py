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
        self.programs = programs
        self.children = {}
        self.selector = DefaultSelector()
        self.awaited = set()
        for client in programs:
            self.start(client)

    def start(self, client):
        """Starts the process of a node, also again."""
        command = [sys.executable, __file__, self.programs[client]]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.children[client] = child
        self.selector.register(child.stdout, EVENT_READ, client)

    def stop(self, client):
        """Ends the process of a node, as when its machine is switched off between two rounds."""
        child = self.children.pop(client)
        if client in self.awaited:
            self.awaited.discard(client)
            read(child.stdout)
        self.selector.unregister(child.stdout)
        child.stdin.close()
        child.stdout.close()
        assert child.wait(timeout=60) == 0

    def send(self, requests):
        for client, request in requests.items():
            if client in self.children:
                if client in self.awaited:  # the answer to a message that nobody waits for any more
                    read(self.children[client].stdout)
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

    def close(self):
        for client in list(self.children):
            self.stop(client)
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
    operators: list[bytes] | None


def main(argument):
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from foltr import node as foltr_node
    from foltr.errors import FoltrError
    from foltr.federation.member import respond
    from foltr.federation.membership import Member
    from foltr.node.learning import federated
    from foltr.secagg.terms import Terms, registry

    told = msgspec.json.decode(argument, type=Joining)
    member = Member(
        told.client, Ed25519PrivateKey.from_private_bytes(told.identity),
        msgspec.msgpack.decode(told.terms, type=Terms), registry(told.server, told.keys),
    )  # fmt: skip
    operators = told.operators and tuple(told.operators)
    with foltr_node.open(Path(told.home)) as node:
        side = federated.side_of(node.places, node.log, member, operators=operators)
        while message := read(sys.stdin.buffer):
            try:
                reply = respond(side, message) or b""
            except FoltrError:
                reply = b""
            sys.stdout.buffer.write(len(reply).to_bytes(LENGTH, "big") + reply)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1])
