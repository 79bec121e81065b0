"""Waiting for clients: the server's side of a round over any transport, with a deadline for every stage.

    Transport       what a network has to provide
    collect         the replies of one stage: ends when all have replied, at the latest at the deadline
    conduct         a whole round or draw: `server.aggregate`, `groups.group_means` or `draw_server.draw_cohort` over a
                    transport
    contributions   the only stage of a round with two aggregators

A stage takes `Terms.stage_seconds` at most; nothing that arrives extends it. Whoever is late has dropped out of the
round, and `Sum.dropped` says so: without that, an operator could not tell a slow federation from a broken one.

What a client can send is bounded before it is decoded. Whoever was not asked is not heard. Of a message that is too
long only its beginning stays. Of each client at most `_MOST_LOOKS` messages of a stage are decoded and at most one is
stored, so the server holds `asked` x `most_bytes` whatever is sent. The first message that claims to be the reply is
the reply: its signature and content are checked by the server, and a bad one drops its sender. Others do not take its
place, since a transport that delivers at least once repeats replies of earlier stages.

Differs from the papers: they leave the clock to the transport.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping
from typing import Protocol, TypeAlias, TypeVar

from foltr.secagg.messages import STAGES, header_of
from foltr.secagg.post import Replies, Requests
from foltr.secagg.two_servers import TwoServers, is_contribution, max_contribution

_MOST_LOOKS = 2 * len(STAGES)  # every earlier reply may come twice more
Clock: TypeAlias = Callable[[], float]  # seconds; never goes back
Fits: TypeAlias = Callable[[int, bytes], bool]  # whether a client's message claims to be its reply
Result = TypeVar("Result")


class Receiver(Protocol):
    def receive(self, seconds: float) -> tuple[int, bytes] | None:
        """The next message, and the client over whose connection it came; None: so many seconds have passed, or nobody
        can send any more.

        Connections are authenticated and take turns: otherwise somebody on the network can have a client dropped by
        replying in its name, and one that floods keeps the others waiting. A connection that breaks is a client that
        is silent; an exception, here or in `send`, ends the round for all.
        """


class Transport(Receiver, Protocol):
    def send(self, requests: Mapping[int, bytes]) -> None:
        """Hands over one request for each client; waits for nobody to read it. Replies of other clients stay."""


def collect(
    transport: Receiver,
    asked: Collection[int],
    *,
    seconds: float,
    most_bytes: int,
    fits: Fits,
    clock: Clock = time.monotonic,
) -> dict[int, bytes]:
    """The replies of a stage. Of a client that sent nothing that fits, the first message stands in for its reply, so
    that the server can say what is wrong with it."""
    deadline = clock() + seconds
    awaited, looks = set(asked), Counter[int]()  # whom the server still waits for; messages of each
    replies: dict[int, bytes] = {}
    while awaited and (left := deadline - clock()) > 0 and (received := transport.receive(left)) is not None:
        client, message = received[0], received[1][: most_bytes + 1]
        if client not in awaited:
            continue
        looks[client] += 1
        fitting = len(message) <= most_bytes and fits(client, message)
        if fitting or client not in replies:
            replies[client] = message
        if fitting or looks[client] == _MOST_LOOKS:
            awaited.remove(client)
    return replies


def conduct(
    server: Generator[Requests, Replies, Result],
    transport: Transport,
    *,
    seconds: float,
    most_bytes: int,
    clock: Clock = time.monotonic,
) -> Result:
    """Result of the server's side. `seconds`: `Terms.stage_seconds`, `most_bytes`: `terms.most_bytes`, of a draw
    `draw.most_bytes`."""
    requests = next(server)
    while True:
        transport.send(requests)
        replies = collect(
            transport, requests, seconds=seconds, most_bytes=most_bytes, fits=_replies_to(requests), clock=clock
        )
        try:
            requests = server.send(replies)
        except StopIteration as finished:
            return finished.value


def _replies_to(requests: Requests) -> Fits:
    """Whether a message claims the round, stage and client of the request; its signature is not checked here."""
    asked = {client: header_of(request) for client, request in requests.items()}
    expected = {client: one._replace(direction="reply") for client, one in asked.items() if one is not None}
    return lambda client, message: header_of(message) == expected[client]


def contributions(
    transport: Receiver, *, setup: TwoServers, round: int, clock: Clock = time.monotonic
) -> dict[int, bytes]:
    """Contributions that clients sent before the deadline, with two aggregators. Nobody is asked, so whoever
    sends nothing is not named."""
    return collect(
        transport,
        setup.registry.clients,
        seconds=setup.terms.stage_seconds,
        most_bytes=max_contribution(setup),
        fits=lambda client, message: is_contribution(message, client, setup=setup, round=round),
        clock=clock,
    )
