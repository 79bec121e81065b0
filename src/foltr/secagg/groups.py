"""A secure sum in each of several random groups, so that a robust aggregator can compare the groups' means.

Source: the idea of So, Güler and Avestimehr, "Byzantine-resilient secure federated learning" (2020), and of
He, Karimireddy and Jaggi, "Secure Byzantine-robust machine learning" (2020), in the simplest form: groups in the place
of clients. The server sees the means of groups; a smaller group hides less.

Differs from the papers: the server sees the groups' means in the clear; no aggregator runs under the masks.
"""

import secrets
from collections.abc import Generator, Iterable
from typing import NamedTuple

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SpecError
from foltr.secagg.guarantee import FEWEST
from foltr.secagg.messages import Registry, Terms, registry
from foltr.secagg.ring import Ring, decode
from foltr.secagg.server import Replies, Requests, Sum, aggregate
from foltr.types import Array


class GroupMeans(NamedTuple):
    means: Array  # [groups, P]
    counts: Array  # [groups] clients in each mean
    sums: tuple[Sum, ...]


def split(clients: Iterable[int], groups: int) -> list[list[int]]:
    """Random groups whose sizes differ by at most one; nobody can choose whom it is grouped with."""
    shuffled = sorted(set(clients))
    if not 1 <= groups <= len(shuffled) // FEWEST:
        raise SpecError(f"{groups} groups of {len(shuffled)} clients; use 1 to {len(shuffled) // FEWEST}")
    secrets.SystemRandom().shuffle(shuffled)
    return [sorted(shuffled[k::groups]) for k in range(groups)]


def within(known: Registry, group: Iterable[int]) -> Registry:
    """The registry of one group: its sizes are derived from the group alone."""
    return registry(known.server, {client: known.keys[client] for client in group})


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
    """All groups side by side, stage by stage; a failure in one stops all."""
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
