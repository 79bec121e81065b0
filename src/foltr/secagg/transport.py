"""Server and clients in one process: for tests, simulation and benchmarks. Faults can be put in.

Differs from the paper: nothing.
"""

from collections.abc import Callable, Collection, Generator, Mapping
from typing import TypeAlias, TypeVar

from foltr.secagg.client import answer
from foltr.secagg.messages import STAGES, Direction, Stage
from foltr.secagg.post import Replies, Requests
from foltr.secagg.state import Client

Mutation: TypeAlias = Callable[[Stage, Direction, int, bytes], bytes]
Result = TypeVar("Result")


def run_in_memory(
    server: Generator[Requests, Replies, Result],
    clients: Mapping[int, Client],
    *,
    drop: Mapping[Stage, Collection[int]] | None = None,
    mutate: Mutation | None = None,
) -> Result:
    """What the server's side returns. A client in `drop` is silent from that stage on; `mutate` changes messages."""
    states, gone, change = dict(clients), set[int](), mutate or _unchanged
    requests = next(server)
    for stage in STAGES:
        gone.update((drop or {}).get(stage, ()))
        replies = {}
        for client, request in requests.items():
            if client not in gone:
                states[client], reply = answer(states[client], change(stage, "request", client, request))
                replies[client] = change(stage, "reply", client, reply)
        try:
            requests = server.send(replies)
        except StopIteration as finished:
            return finished.value
    raise RuntimeError("the server asks for more stages than there are")


def _unchanged(_stage: Stage, _direction: Direction, _client: int, message: bytes) -> bytes:
    return message
