"""Clients and both aggregators in one process: for tests, benchmarks and runs with `secagg.mode = "two-servers"`.

`two_server_sum` runs the whole protocol, keys and shares from the operating system, and returns the sum of the rows.
`run_round` runs two aggregators on given contributions.

Differs from the paper: all parties share one memory, so the process sees everything.
"""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg import crypto
from foltr.secagg.aggregator import Aggregating, Memory, Noise, Secrets, accept_all, agree, begin, half, listing
from foltr.secagg.deadlines import contributions as collected
from foltr.secagg.guarantee import FEWEST
from foltr.secagg.ring import Ring, decode, encode, largest
from foltr.secagg.terms import Terms, new_federation, registry
from foltr.secagg.two_servers import GroupSums, Pair, Window, combine, contribute, parts, two_servers
from foltr.types import Array

_NO_RANKER = bytes(32)  # the rows are no updates of a model
_DROPOUTS = 0.1  # share of the clients that a round tolerates to lose by default


class _Arrived(NamedTuple):
    """A transport that has received everything."""

    messages: deque[tuple[int, bytes]]

    def receive(self, _: float) -> tuple[int, bytes] | None:
        return self.messages.popleft() if self.messages else None


class Round(NamedTuple):
    sums: GroupSums
    memories: tuple[Memory, Memory]
    refused: tuple[dict[int, str], dict[int, str]]  # by each aggregator: clients, and what is wrong with their parts


def new_secrets() -> tuple[Secrets, Secrets]:
    """Fresh identities of two operators, with keys for one round."""
    return Secrets(crypto.new_identity(), crypto.new_secret()), Secrets(crypto.new_identity(), crypto.new_secret())


def identities_of(secrets: tuple[Secrets, Secrets]) -> Pair:
    first, second = (one.identity.public_key().public_bytes_raw() for one in secrets)
    return first, second


def keys_of(secrets: tuple[Secrets, Secrets]) -> Pair:
    """The public keys of the round."""
    first, second = (crypto.public_of(crypto.agreement_key(one.sealing)) for one in secrets)
    return first, second


def run_round(
    contributions: Mapping[int, bytes], secrets: tuple[Secrets, Secrets], *, window: Window,
    memories: tuple[Memory, Memory] | None = None, noise: Noise | None = None,
) -> Round:  # fmt: skip
    """The round of two honest aggregators; a contribution that no relay can divide is left out."""
    setup = window.setup
    arrived = _Arrived(deque(contributions.items()))
    before = memories or (Memory(setup.terms.federation), Memory(setup.terms.federation))
    inboxes: tuple[dict[int, bytes], dict[int, bytes]] = ({}, {})
    unreadable = {}
    for client, message in collected(arrived, setup=setup, round=window.round, clock=_no_time).items():
        try:
            inboxes[0][client], inboxes[1][client] = parts(message, setup=setup)
        except SecureAggregationError as problem:
            unreadable[client] = str(problem)
    begun = [begin(index, secrets[index], before[index], window=window) for index in (0, 1)]
    agreed = agree_on_clients((begun[0], begun[1]), inboxes)
    halves = [half(agreed.states[index], agreed.messages[1 - index], before[index], noise) for index in (0, 1)]
    sums = combine((halves[0][1], halves[1][1]), window=window)
    first, second = agreed.refused
    return Round(sums, (halves[0][0], halves[1][0]), (unreadable | first, unreadable | second))


class Agreed(NamedTuple):
    """Two aggregators that agree on the clients of a round."""

    states: tuple[Aggregating, Aggregating]
    messages: tuple[bytes, bytes]  # the signed agreement of each
    refused: tuple[dict[int, str], dict[int, str]]  # by each: clients, and what is wrong with their parts


def agree_on_clients(states: tuple[Aggregating, Aggregating], inboxes: Sequence[Mapping[int, bytes]]) -> Agreed:
    """Accepts the clients' parts at both aggregators, and exchanges their lists and agreements."""
    accepted = [accept_all(state, inbox) for state, inbox in zip(states, inboxes, strict=True)]
    listed = [listing(state) for state, _ in accepted]
    first, second = (agree(listed[index][0], listed[1 - index][1]) for index in (0, 1))
    return Agreed((first[0], second[0]), (first[1], second[1]), (accepted[0][1], accepted[1][1]))


def _no_time() -> float:
    return 0.0  # all messages are here; however long they take to read, none is late


def two_server_sum(
    rows: Array, *, bits: Literal[32, 64] = 64, fraction: int = 32, dropped: Collection[int] = ()
) -> Array:
    """The sum [V] of rows [n, V] by the protocol without noise, each value cut to a multiple of 2^-fraction.

    Client i holds row i; those in `dropped` send nothing.
    """
    clients, lost = len(rows), set(dropped)
    if clients - len(lost) < FEWEST or not lost <= set(range(clients)):
        raise SecureAggregationError(f"{clients} clients without {sorted(lost)}; {FEWEST} or more must send")
    try:
        found = _run(rows, Ring(clients, bits, fraction), lost)
    except SpecError as problem:  # a value that does not fit
        raise SecureAggregationError(f"secure aggregation of {clients} clients: {problem}") from None
    return decode(found.sums.totals[0], Ring(clients, bits, fraction))


def _run(rows: Array, ring: Ring, lost: set[int]) -> Round:
    """One round with fresh identities."""
    clients, length = rows.shape
    bound = largest(ring) / 2**ring.fraction
    if not (np.abs(rows) <= bound).all():  # NaN is not
        raise SpecError(f"a value is not finite or larger than {bound:g}; clip, lower fraction or use 64 bits")
    identities, server = [crypto.new_identity() for _ in rows], crypto.new_identity()
    known = registry(
        server.public_key().public_bytes_raw(),
        {client: one.public_key().public_bytes_raw() for client, one in enumerate(identities)},
    )
    terms = Terms(new_federation(), length, ring.bits, ring.fraction, clip=bound / 2,
                  dropouts=max(_DROPOUTS, len(lost) / clients))  # fmt: skip
    secrets = new_secrets()
    setup = two_servers(terms, known, identities_of(secrets))
    window = Window(setup, 1, _NO_RANKER, keys_of(secrets))
    vectors = encode(rows, ring)
    sent = {
        client: contribute(vectors[client], client, identities[client], window=window)
        for client in range(clients) if client not in lost
    }  # fmt: skip
    return run_round(sent, secrets, window=window)
