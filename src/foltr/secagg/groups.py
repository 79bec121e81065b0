"""A secure sum in each of several groups, so that a robust aggregator can compare the groups' means.

Source: the idea of So, Güler and Avestimehr, "Byzantine-resilient secure federated learning" (2020), and of
He, Karimireddy and Jaggi, "Secure Byzantine-robust machine learning" (2020), in the simplest form: groups in the place
of clients. L liars spoil at most L groups, so a median or trimmed mean of 2 L + 1 or more groups stays within the
honest groups' range. Each client is in one group of a round, and the sum of its group is the only release about it.

`assign` is the public function from a seed to the groups: every party computes them itself. A seed that the
server or a client can choose lets it gather its colluders around a victim, so the seed follows from commitments that
were opened after the registry was closed: that of a `draw` in which all clients take part; two aggregators use coins.

`group_guarantee`: of c colluders among n registered clients at most so many are in one group, except with probability
`failure`: the exact hypergeometric tail, over all groups and all results of a draw (`sizes.results`). Each group
carries the noise of its own sum, so the mean of the groups' means has sqrt(groups) times the noise of one sum, and more
where a group has few honest members.

Differs from the papers: the server sees the groups' means in the clear; no aggregator runs under the masks.
"""

from collections.abc import Generator, Iterable
from fractions import Fraction
from typing import NamedTuple

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SpecError
from foltr.secagg.crypto import hkdf, masks
from foltr.secagg.graph import most_drawn
from foltr.secagg.guarantee import FEWEST, Guarantee, colluders_among, with_colluders
from foltr.secagg.lot.sizes import results
from foltr.secagg.post import Replies, Requests
from foltr.secagg.ring import Ring, decode
from foltr.secagg.server import Sum, aggregate
from foltr.secagg.terms import Registry, Terms, registry
from foltr.types import Array


class GroupMeans(NamedTuple):
    means: Array  # [groups, P]
    counts: Array  # [groups] clients in each mean
    sums: tuple[Sum, ...]


def assign(seed: bytes, clients: Iterable[int], groups: int) -> tuple[tuple[int, ...], ...]:
    """The clients of each group, sorted; sizes differ by at most one."""
    ordered = sorted(set(clients))
    if not 1 <= groups <= len(ordered) // FEWEST:
        raise SpecError(f"{groups} groups of {len(ordered)} clients; use 1 to {len(ordered) // FEWEST}")
    order = np.argsort(masks([hkdf(seed, info=b"groups")], len(ordered), 64)[0], kind="stable").tolist()
    return tuple(tuple(sorted(ordered[place] for place in order[k::groups])) for k in range(groups))


def group_guarantee(registered: int, groups: int, *, dropouts: float, corrupt: float, failure: float) -> Guarantee:
    """The guarantee of every client of every group, except with probability `failure`; refused where there is none."""
    size, largest, whole = registered // groups, -(-registered // groups), colluders_among(registered, corrupt)
    colluders = max(1, most_drawn(registered, whole, largest, Fraction(failure) / (groups * results(registered))))
    try:
        each = [with_colluders(clients, colluders, dropouts=dropouts) for clients in (size, largest)]
    except SpecError as problem:
        raise SpecError(
            f"{groups} groups of {registered} clients: up to {colluders} of {size} in a group may work for the server; "
            f"{problem}; or use two servers, whose noise does not come from clients"
        ) from None
    return min(each, key=lambda sizes: sizes.honest)


def group_terms(terms: Terms, registered: int, groups: int) -> Terms:
    """The terms of each group's sum: all of a group are asked, and the share of corrupt ones is that of the worst one.

    Rounded up, that share is the same number of clients in a group of one less.
    """
    sizes = group_guarantee(registered, groups, dropouts=terms.dropouts, corrupt=terms.corrupt, failure=terms.failure)
    largest = -(-registered // groups)
    return msgspec.structs.replace(terms, corrupt=sizes.colluders / largest, cohort=largest)


def within(known: Registry, group: Iterable[int]) -> Registry:
    """The registry of one group: its sizes are derived from the group alone."""
    return registry(known.server, {client: known.keys[client] for client in group})


def own_group(client: int, seed: bytes, known: Registry, groups: int) -> Registry:
    """The registry that a client takes part with: it computes its group itself."""
    mine = next((group for group in assign(seed, known.clients, groups) if client in group), None)
    if mine is None:
        raise SpecError(f"client {client} is not in the registry; register its public key first")
    return within(known, mine)


def group_means(
    groups: Iterable[Iterable[int]],
    *,
    ring: Ring,
    terms: Terms,
    known: Registry,
    identity: Ed25519PrivateKey,
    round: int,
    ranker: bytes,
) -> Generator[Requests, Replies, GroupMeans]:
    """All groups side by side, stage by stage; a failure in one stops all. `terms` are those of `group_terms`."""
    rounds = [
        aggregate(group, terms=terms, registry=within(known, group), identity=identity, round=round, ranker=ranker)
        for group in map(list, groups)
    ]
    sums = yield from _side_by_side(rounds)
    counts = np.array([len(one.included) for one in sums])
    totals = np.array([decode(one.total, ring) for one in sums])  # [groups, P]
    return GroupMeans(totals / counts[:, None], counts, sums)


def _side_by_side(rounds: list[Generator[Requests, Replies, Sum]]) -> Generator[Requests, Replies, tuple[Sum, ...]]:
    asked = [next(one) for one in rounds]
    while True:
        replies = yield {client: request for requests in asked for client, request in requests.items()}
        following, sums = [], []
        for one, requests in zip(rounds, asked, strict=True):
            try:
                following.append(one.send({client: replies[client] for client in requests if client in replies}))
            except StopIteration as finished:
                sums.append(finished.value)
        if sums:  # all have as many stages
            return tuple(sums)
        asked = following
