"""The masking graph: random, with as few neighbours each as the failure probabilities allow.

Source: Bell et al. 2020: clients stand in a circle in random order, each is a neighbour of the degree / 2
next ones on either side. Small rounds use the complete graph. Neighbours hold shares of a client's secrets.

Of k neighbours at most c are corrupt and d drop out, except with the probability given to `degree_for`. Those who
remain must reach the threshold, t <= k - d; and no honest neighbour opens two secrets of one client, so nobody can have
t shares of both if 2 t > k + c. Hence k > 2 d + c. Both c and d are hypergeometric tails, computed exactly.

The order comes from a hash of all keys of the round: the root of a Merkle tree over the signed keys, in which every
client checks its own place (Merkle 1987, with leaves and nodes hashed apart as in RFC 6962; the last node of an odd
level moves up as it is).

Differs from the paper: exact tails in place of bounds; the server does not choose the order. The probabilities hold for
a server that follows the protocol.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from math import comb
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.secagg.crypto import hkdf, masks
from foltr.types import Array

FEWEST = 3  # of two, each would learn the other's vector from the sum
COMPLETE = 100  # up to here the graph is complete: cheap, and it cannot be cut


class GraphShape(NamedTuple):
    degree: int  # neighbours of each client
    threshold: int  # of them, whose shares give a secret back
    corrupt: int  # of them, at most, that work for the server


@lru_cache(maxsize=256)
def degree_for(
    clients: int, *, dropouts: float, corrupt: float, failure: float = 2**-40, stall: float = 2**-20
) -> GraphShape:
    """The sparsest graph. `failure`: probability that a vector is revealed; `stall`: probability that there is no sum
    although at most the share `dropouts` of the clients dropped out."""
    for name, share in (("dropouts", dropouts), ("corrupt", corrupt)):
        if not 0 <= share < 1:
            raise SpecError(f"{name}={share}; use a share from 0 to below 1")
    if clients < FEWEST:
        raise SpecError(f"{clients} clients; a sum needs at least {FEWEST}")
    num_corrupt, num_dropouts = max_clients(corrupt, clients), max_clients(dropouts, clients)
    for degree in range(2, clients - 1 if clients > COMPLETE else 0, 2):
        shape = _sparse(clients, num_corrupt, num_dropouts, degree, Fraction(failure), Fraction(stall))
        if shape is not None:
            return shape
    return _complete(clients, num_corrupt, num_dropouts)


def max_clients(share: float, clients: int) -> int:
    return int(share * clients + 1e-9)  # a third of 9 is 3 in spite of rounding


def _sparse(
    clients: int, num_corrupt: int, num_dropouts: int, degree: int, failure: Fraction, stall: Fraction
) -> GraphShape | None:
    if clients * _all_marked(clients, num_corrupt + num_dropouts, degree // 2) > failure / 2:
        return None
    c = most_drawn(clients - 1, num_corrupt, degree, failure / (2 * clients))
    d = most_drawn(clients - 1, num_dropouts, degree, stall / clients)
    threshold = (degree + c) // 2 + 1
    return GraphShape(degree, threshold, c) if threshold <= degree - d else None


def _complete(clients: int, num_corrupt: int, num_dropouts: int) -> GraphShape:
    degree = clients - 1
    c, d = min(num_corrupt, degree), min(num_dropouts, degree)
    threshold = (degree + c) // 2 + 1
    if threshold > degree - d:
        raise SpecError(
            f"{clients} clients cannot tolerate {num_dropouts} dropouts and {num_corrupt} corrupt ones; "
            f"use more clients than 2 x dropouts + corrupt + 1 = {2 * num_dropouts + num_corrupt + 1}, or lower shares"
        )
    return GraphShape(degree, threshold, c)


def most_drawn(population: int, marked: int, drawn: int, odds: Fraction) -> int:
    """The smallest number that the marked ones among `drawn` exceed with at most this probability."""
    allowed, beyond = odds * comb(population, drawn), 0
    for found in range(min(marked, drawn), 0, -1):
        beyond += comb(marked, found) * comb(population - marked, drawn - found)
        if beyond > allowed:
            return found
    return 0


def _all_marked(clients: int, marked: int, length: int) -> Fraction:
    """Probability that all clients at `length` given places are marked: only such a run can cut the circle."""
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


def merkle_leaf(content: bytes) -> bytes:
    return sha256(b"\x00" + content).digest()


def merkle_levels(leaves: Sequence[bytes]) -> list[list[bytes]]:
    """From the leaves to the root."""
    found = [list(leaves)]
    while len(found[-1]) > 1:
        below = found[-1]
        pairs = [_node(below[k], below[k + 1]) for k in range(0, len(below) - 1, 2)]
        found.append(pairs + below[len(below) & ~1 :])
    return found


def merkle_path(tree: Sequence[Sequence[bytes]], place: int) -> bytes:
    """The hashes beside the way from a leaf to the root, from below."""
    beside = []
    for level in tree[:-1]:
        if place ^ 1 < len(level):
            beside.append(level[place ^ 1])
        place //= 2
    return b"".join(beside)


def merkle_root(own: bytes, place: int, count: int, beside: bytes) -> bytes:
    """The root that a leaf at this place of `count` and its path lead to; anything wrong leads to another root."""
    steps = [beside[k : k + 32] for k in range(0, len(beside), 32)][::-1]
    while count > 1:
        if place ^ 1 < count:
            other = steps.pop() if steps else b""
            own = _node(other, own) if place & 1 else _node(own, other)
        place, count = place // 2, (count + 1) // 2
    return own if not steps else b""


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()
