"""The contract of a transport, the way by which a coordinator's bytes reach nodes and theirs come back.

    from foltr.testing import check_transport

    def test_my_transport():
        check_transport(lambda nodes: MyTransport(nodes))

`connect` is given what every node does with a message, `client -> respond`, and returns a transport to these nodes
(`foltr.secagg.deadlines.Transport`). Nodes may run in threads or processes: a node's function returns its reply, or
None where it sends none. `close` ends what `connect` started.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from foltr.secagg.deadlines import Transport
from foltr.testing.laws import attempt, demand

Respond: TypeAlias = Callable[[bytes], bytes | None]
Connect: TypeAlias = Callable[[Mapping[int, Respond]], Transport]

_SECONDS = 10.0  # a transport that delivers nothing for so long has lost a message
_LARGE = 1_000_000  # bytes; a message of a round with 1,000 clients has 38 kB
_SILENT, _ABSENT = 4, 99  # a node that sends no reply, and a number that no node has


def check_transport(connect: Connect, close: Callable[[Transport], None] = lambda _transport: None) -> None:
    """Raises AssertionError with the law that a transport breaks."""
    nodes: dict[int, Respond] = {client: _echo(client) for client in range(_SILENT)}
    nodes[_SILENT] = lambda _message: None
    transport = attempt(connect, "connecting to nodes raises", lambda: connect(nodes))
    try:
        for check in (_bytes_arrive, _stages_do_not_mix, _replies_of_others_stay, _silence_is_no_error):
            check(transport)
    finally:
        close(transport)


def _echo(client: int) -> Respond:
    return lambda message: b"%d:" % client + message


def _bytes_arrive(transport: Transport) -> None:
    """Every byte of a message arrives, of any length, at its own client and comes back under that client's number."""
    requests = {0: b"", 1: bytes(range(256)), 2: b"\xff" * _LARGE, 3: b"\n\r\0"}
    replies = _exchange(transport, requests)
    law = "every client's reply has its own number, and all bytes in order"
    expected = {client: b"%d:" % client + request for client, request in requests.items()}
    demand(replies == expected, transport, law, clients=sorted(replies))


def _stages_do_not_mix(transport: Transport) -> None:
    """A client that was not sent a message sends none."""
    for stage in range(5):
        requests = dict.fromkeys((stage % 4, (stage + 1) % 4), b"stage %d" % stage)
        replies = _exchange(transport, requests)
        expected = {client: b"%d:" % client + request for client, request in requests.items()}
        demand(replies == expected, transport, "one reply to one request, of the clients that were asked", stage=stage)


def _replies_of_others_stay(transport: Transport) -> None:
    """Whoever is sent something while others are awaited costs the others nothing: nodes ask when they wake."""
    law = "a message to one client loses no reply of another"
    attempt(transport, law, lambda: transport.send({0: b"first", 1: b"first"}))
    received = attempt(transport, law, lambda: transport.receive(_SECONDS))
    demand(received is not None, transport, law, waiting_for=(0, 1))
    answered, other = received[0], 1 - received[0]
    attempt(transport, law, lambda: transport.send({answered: b"second"}))
    replies = dict(attempt(transport, law, lambda: transport.receive(_SECONDS)) or (None, b"") for _ in range(2))
    expected = {answered: b"%d:second" % answered, other: b"%d:first" % other}
    demand(replies == expected, transport, law, clients=sorted(map(str, replies)))


def _silence_is_no_error(transport: Transport) -> None:
    """A client that is silent or unknown delays nobody and ends no round; waiting ends with None."""
    law = "a client that is silent or absent is no error"
    attempt(transport, law, lambda: transport.send({_SILENT: b"?", _ABSENT: b"?", 1: b"!"}))
    received = attempt(transport, law, lambda: transport.receive(_SECONDS))
    demand(received == (1, b"1:!"), transport, "others are heard beside a silent client", received=received)
    last = attempt(transport, law, lambda: transport.receive(0.01))
    demand(last is None, transport, "waiting ends with None after so many seconds", received=last)


def _exchange(transport: Transport, requests: Mapping[int, bytes]) -> dict[int, bytes]:
    """One reply for each request, and then nothing more."""
    attempt(transport, "send hands over bytes", lambda: transport.send(requests))
    replies: dict[int, bytes] = {}
    for _ in requests:
        received = attempt(transport, "receive returns (client, bytes)", lambda: transport.receive(_SECONDS))
        demand(received is not None, transport, "a message that was sent arrives", waiting_for=sorted(requests))
        client, message = received
        demand(type(message) is bytes, transport, "messages are bytes", received=type(message).__name__)
        demand(client not in replies, transport, "a reply is delivered once", client=client)
        replies[client] = message
    return replies
