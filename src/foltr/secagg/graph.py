"""Who masks with whom: a random graph of few neighbours each, as sparse as the stated odds allow.

Source: Bell et al. 2020: clients stand in a circle in random order, each is a neighbour of the degree / 2
next ones on either side. Among few, everybody is everybody's neighbour. Neighbours hold shares of a client's secrets.

Of k neighbours at most c are corrupt and d drop out, except with the odds given to `degree_for`. Those who remain must
meet the threshold, t <= k - d; and no honest neighbour opens two secrets of one client, so the server cannot have t
shares of both if 2 t > k + c. Hence k > 2 d + c. Both c and d are hypergeometric tails, computed exactly.

Differs from the paper: exact tails in place of bounds; the order comes from a hash of all keys of the round, so that a
server cannot prepare an order that surrounds one client with its friends.
"""

from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.secagg.crypto import hkdf, masks
from foltr.types import Array

FEWEST = 3  # two would read each other's vector off the sum
COMPLETE = 100  # up to here everybody is everybody's neighbour: it costs little and no cut can be made


class Shape(NamedTuple):
    degree: int  # neighbours of each client
    threshold: int  # of them, whose shares give a secret back
    corrupt: int  # of them, at most, that work for the server

    @property
    def together(self) -> int:
        """Fewest honest clients in any sum that a server can obtain, whatever it does."""
        return self.threshold - self.corrupt + 1


@lru_cache(maxsize=256)
def degree_for(
    clients: int, *, dropouts: float, corrupt: float, failure: float = 2**-40, stall: float = 2**-20
) -> Shape:
    """The sparsest graph. `failure`: odds that anybody's vector is less hidden than promised; `stall`: that there is
    no sum although no more than the share `dropouts` of the clients, whoever they are, fell away."""
    for name, share in (("dropouts", dropouts), ("corrupt", corrupt)):
        if not 0 <= share < 1:
            raise SpecError(f"{name}={share}; use a share from 0 to below 1")
    if clients < FEWEST:
        raise SpecError(f"{clients} clients; a sum hides nobody among fewer than {FEWEST}")
    bad, gone = at_most(corrupt, clients), at_most(dropouts, clients)
    for degree in range(2, clients - 1 if clients > COMPLETE else 0, 2):
        shape = _sparse(clients, bad, gone, degree, Fraction(failure), Fraction(stall))
        if shape is not None:
            return shape
    return _complete(clients, bad, gone)


def at_most(share: float, clients: int) -> int:
    return int(share * clients + 1e-9)  # a third of 9 is 3, whatever the last binary digit says


def _sparse(clients: int, bad: int, gone: int, degree: int, failure: Fraction, stall: Fraction) -> Shape | None:
    if clients * _run(clients, bad + gone, degree // 2) > failure / 2:
        return None
    c = most_drawn(clients - 1, bad, degree, failure / (2 * clients))
    d = most_drawn(clients - 1, gone, degree, stall / clients)
    threshold = (degree + c) // 2 + 1
    return Shape(degree, threshold, c) if threshold <= degree - d else None


def _complete(clients: int, bad: int, gone: int) -> Shape:
    degree = clients - 1
    c, d = min(bad, degree), min(gone, degree)
    threshold = (degree + c) // 2 + 1
    if threshold > degree - d:
        raise SpecError(
            f"{clients} clients cannot stand {gone} dropouts and {bad} corrupt ones; "
            f"use more clients than 2 x dropouts + corrupt + 1 = {2 * gone + bad + 1}, or lower shares"
        )
    return Shape(degree, threshold, c)


def most_drawn(population: int, marked: int, drawn: int, odds: Fraction) -> int:
    """The smallest number that the marked ones among `drawn` exceed with at most these odds."""
    allowed, beyond = odds * comb(population, drawn), 0
    for found in range(min(marked, drawn), 0, -1):
        beyond += comb(marked, found) * comb(population - marked, drawn - found)
        if beyond > allowed:
            return found
    return 0


def _run(clients: int, marked: int, length: int) -> Fraction:
    """Odds that all clients at `length` given places are marked: only such a gap can cut the circle."""
    return Fraction(comb(marked, length), comb(clients, length))


@lru_cache(maxsize=64)
def circle(seed: bytes, clients: int) -> tuple[Array, Array]:
    """The random order of the clients, and each one's place in it, [clients] both."""
    order = np.argsort(masks([hkdf(seed, info=b"circle")], clients, 64)[0], kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(clients)
    return order, places


def neighbours(seed: bytes, clients: int, degree: int, client: int) -> list[int]:
    """Of one client, all as numbers from 0 to clients - 1, sorted."""
    if degree >= clients - 1:
        return [other for other in range(clients) if other != client]
    order, places = circle(seed, clients)
    steps = np.arange(1, degree // 2 + 1)
    around = (places[client] + np.concatenate([-steps, steps])) % clients
    return sorted(order[around].tolist())
