"""Cohorts: which registered clients a round asks.

Up to 1,000 clients a cohort is the registry, above that its halves alternate; `Terms.cohort` asks for fewer. As long as
a cohort has three times as many clients as there are colluders, all colluders are counted into it and nothing has to be
random (`by_turns`). A smaller one is drawn by lot (`by_lot`; `secagg.lot` draws the seed and bounds the colluders).
"""

from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256

from foltr.secagg.crypto import label


def by_turns(digest: bytes, clients: tuple[int, ...], size: int, round: int) -> frozenset[int]:
    """The cohort of a round from public numbers. The order is that of a hash; it need not be unpredictable, because
    every colluder is counted into any cohort. An odd one out waits for one round."""
    if len(clients) <= size:
        return frozenset(clients)
    order, start = _order("halves", digest, clients), round * size
    return frozenset(order[(start + k) % len(order)] for k in range(size))


def by_lot(seed: bytes, clients: Iterable[int], size: int) -> frozenset[int]:
    """The cohort that a draw gives; `clients` are those who took part in it."""
    return frozenset(_order("cohort", seed, tuple(sorted(clients)))[:size])


@lru_cache(maxsize=8)
def _order(purpose: str, seed: bytes, clients: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(clients, key=lambda client: sha256(label(purpose, seed, client)).digest()))
