"""Server and clients in one process, over a transport in memory: for tests, benchmarks and small federations.

`secure_sum` runs the whole protocol, keys and masks from the operating system, and returns the sum of the rows: what
`privacy.secure_aggregation = "execute"` does in a run. `measured_sum` also counts the bytes of all messages.
`run_in_memory` runs any server against any clients, by the driver of a deployed server (`deadlines.conduct`); faults
can be injected.

Differs from the paper: all parties share one memory, so the process sees everything.
"""

import math
from collections import deque
from collections.abc import Callable, Collection, Generator, Mapping
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg.client import Client, answer, join
from foltr.secagg.crypto import new_identity
from foltr.secagg.deadlines import Result, conduct
from foltr.secagg.guarantee import FEWEST
from foltr.secagg.messages import STAGES, Direction, Stage
from foltr.secagg.post import Replies, Requests
from foltr.secagg.ring import Ring, decode, encode, largest
from foltr.secagg.server import Sum, aggregate
from foltr.secagg.terms import Terms, new_federation, registry
from foltr.types import Array

MAX_CLIENTS = 200  # a round of so many takes some seconds
_NO_RANKER = bytes(32)  # the rows are no updates of a model
_DROPOUTS = 0.1  # share of the clients that a round tolerates to lose by default
Mutation: TypeAlias = Callable[[Stage, Direction, int, bytes], bytes]


class MeasuredSum(NamedTuple):
    total: Array  # [V]
    up: dict[int, int]  # bytes that each client sent
    down: dict[int, int]  # bytes that each client was sent


def secure_sum(
    rows: Array, *, bits: Literal[32, 64] = 64, fraction: int = 32, dropped: Collection[int] = (), round: int = 1
) -> Array:
    """The sum [V] of rows [n, V] by the protocol, each value cut to a multiple of 2^-fraction.

    Client i holds row i. Those in `dropped` share their secrets and then drop out: the sum is that of the others.
    """
    return measured_sum(rows, bits=bits, fraction=fraction, dropped=dropped, round=round).total


def measured_sum(
    rows: Array, *, bits: Literal[32, 64] = 64, fraction: int = 32, dropped: Collection[int] = (), round: int = 1
) -> MeasuredSum:
    """Runs `secure_sum` and counts the bytes of all messages."""
    clients, lost = len(rows), set(dropped)
    if not FEWEST <= clients <= MAX_CLIENTS:
        raise SecureAggregationError(
            f"secure aggregation in one process is for {FEWEST} to {MAX_CLIENTS} clients, not {clients}; use fewer "
            f"clients or a smaller cohort, or simulate it"
        )
    if not lost <= set(range(clients)):
        raise SecureAggregationError(f"dropped = {sorted(lost)}; use numbers from 0 to {clients - 1}")
    try:
        found = _run(rows, Ring(clients, bits, fraction), lost, round)
    except SpecError as problem:  # more dropouts than a round can stand, or no such ring
        raise SecureAggregationError(f"secure aggregation of {clients} clients: {problem}") from None
    return MeasuredSum(decode(found.total, Ring(clients, bits, fraction)), found.up, found.down)


def _run(rows: Array, ring: Ring, lost: set[int], round: int) -> Sum:
    """One round with fresh identities."""
    clients, length = rows.shape
    _require_fit(rows, ring)
    dropouts, bound = max(_DROPOUTS, len(lost) / clients), largest(ring) / 2**ring.fraction
    terms = Terms(new_federation(), length, ring.bits, ring.fraction, clip=bound, dropouts=dropouts)
    identities, server = [new_identity() for _ in rows], new_identity()
    keys = {client: one.public_key().public_bytes_raw() for client, one in enumerate(identities)}
    known = registry(server.public_key().public_bytes_raw(), keys)
    vectors = encode(rows, ring)
    states = {
        client: join(client, one, vectors[client], terms=terms, registry=known, round=round, ranker=_NO_RANKER)
        for client, one in enumerate(identities)
    }
    asking = aggregate(range(clients), terms=terms, registry=known, identity=server, round=round, ranker=_NO_RANKER)
    return run_in_memory(asking, states, drop={"mask": lost})


def _require_fit(rows: Array, ring: Ring) -> None:
    """A deployed client sends what saturates; here nothing is hidden, and a cut row would be a silent fault."""
    if not np.isfinite(rows).all():
        raise SecureAggregationError("a value to add up is not finite; clip or drop it before encoding")
    bound = largest(ring) / 2**ring.fraction
    if (np.abs(rows) > bound).any():
        raise SecureAggregationError(
            f"a value of {np.abs(rows).max():g} is too large: {ring.clients} clients in {ring.bits} bits with "
            f"fraction={ring.fraction} allow {bound:g}; clip, lower fraction or use 64 bits"
        )


def run_in_memory(
    server: Generator[Requests, Replies, Result],
    clients: Mapping[int, Client],
    *,
    drop: Mapping[Stage, Collection[int]] | None = None,
    mutate: Mutation | None = None,
) -> Result:
    """Result of the server's side. A client in `drop` is silent from that stage on, and so is one that refuses a
    request; `mutate` changes messages. Nobody is late: whoever can answer has answered when the server looks."""
    transport = _InMemory(dict(clients), drop or {}, mutate or _unchanged)
    most_bytes = max(one.most_bytes for one in clients.values())
    return conduct(server, transport, seconds=math.inf, most_bytes=most_bytes)


class _InMemory:
    """A transport to clients that answer at once or never."""

    def __init__(self, clients: dict[int, Client], drop: Mapping[Stage, Collection[int]], mutate: Mutation) -> None:
        self.clients, self.drop, self.mutate = clients, drop, mutate
        self.stages, self.silent, self.replies = iter(STAGES), set[int](), deque[tuple[int, bytes]]()

    def send(self, requests: Mapping[int, bytes]) -> None:
        stage = next(self.stages)
        self.silent.update(self.drop.get(stage, ()))
        for client, request in requests.items():
            if client not in self.silent:
                self._answer(stage, client, request)

    def _answer(self, stage: Stage, client: int, request: bytes) -> None:
        try:
            changed = self.mutate(stage, "request", client, request)
            self.clients[client], reply = answer(self.clients[client], changed)
        except SecureAggregationError:
            self.silent.add(client)
        else:
            self.replies.append((client, self.mutate(stage, "reply", client, reply)))

    def receive(self, _: float) -> tuple[int, bytes] | None:
        return self.replies.popleft() if self.replies else None


def _unchanged(_stage: Stage, _direction: Direction, _client: int, message: bytes) -> bytes:
    return message
