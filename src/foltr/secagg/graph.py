"""The masking graph: random, with as few neighbours each as the failure probabilities allow.

Source: Bell et al. 2020: clients stand in a circle in random order, each is a neighbour of the degree / 2
next ones on either side. Small rounds use the complete graph. Neighbours hold shares of a client's secrets.

The server is malicious. It has `colluders` among the members, and it chooses who drops out after it has seen the
graph. With k neighbours and threshold t,

1. nobody has t shares of both secrets of a client, because no honest neighbour opens both: 2 t > k + c, with c corrupt
   neighbours at most;
2. the sums of two parts of the circle cannot be opened apart, because all who open shares signed one set of survivors
   (`certificate`; signatures of neighbours would not show it in a sparse graph). Clients that open shares hold masks
   with all of their surviving neighbours, and t neighbours open each survivor. At both ends of a part that stood apart,
   the k / 2 + 1 places towards the other part would hold t - k / 2 corrupt clients or more: the two runs together
   2 t - k.

Both hold if no two runs of k / 2 + 1 places together hold more than c corrupt clients, with t = floor((k + c) / 2) + 1.
There are fewer than n^2 / 2 pairs of runs, each a hypergeometric tail that is computed exactly. Who drops out by chance
is the other side, t <= k - d, and decides only whether there is a sum. A complete graph has no parts; k = n - 1 and all
colluders are neighbours.

The order comes from a hash of all keys of the round: the root of a Merkle tree over the signed keys, in which every
client checks its own place (Merkle 1987, with leaves and nodes hashed apart as in RFC 6962; the last node of an odd
level moves up as it is). Whoever sends keys can try many orders offline, so `failure` is the work of an attacker and
not the luck of a round: 2^-80 means 2^80 tries.

Differs from the paper: exact tails in place of bounds; dropouts are the server's choice; the server does not choose
the order.
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
from foltr.secagg.guarantee import Guarantee, fewest_survivors
from foltr.types import Array

COMPLETE = 100  # up to here the graph is complete: cheap, and it cannot be cut


class GraphShape(NamedTuple):
    degree: int  # neighbours of each client
    threshold: int  # of them, whose shares give a secret back
    corrupt: int  # of them, at most, that work for the server


@lru_cache(maxsize=2048)
def degree_for(members: int, sizes: Guarantee, *, failure: float = 2**-80, stall: float = 2**-20) -> GraphShape:
    """The sparsest graph of so many members of a cohort. `failure`: probability that one try of an order lets fewer
    vectors be summed than promised; `stall`: probability that there is no sum although only so many drop out as the
    cohort tolerates, and at random."""
    if not sizes.min_clients <= members:
        raise SpecError(f"{members} members; this federation demands {sizes.min_clients} or more")
    for degree in range(2, members - 3 if members > COMPLETE else 0, 2):
        shape = _sparse(members, sizes, degree, Fraction(failure), Fraction(stall))
        if shape is not None:
            return shape
    return _complete(members, sizes)


def _sparse(members: int, sizes: Guarantee, degree: int, failure: Fraction, stall: Fraction) -> GraphShape | None:
    c = most_drawn(members, min(sizes.colluders, members), degree + 2, failure / members**2)
    d = most_drawn(members - 1, min(sizes.cohort - sizes.min_clients, members - 1), degree, stall / members)
    threshold = (degree + c) // 2 + 1
    return GraphShape(degree, threshold, c) if threshold <= degree - d else None


def _complete(members: int, sizes: Guarantee) -> GraphShape:
    corrupt, needed = min(sizes.colluders, members - 1), fewest_survivors(members, sizes.colluders)
    if needed > sizes.min_clients:
        raise SpecError(
            f"{members} clients cannot tolerate {members - sizes.min_clients} dropouts and {corrupt} corrupt ones; "
            f"{needed} must survive: use more clients, or lower shares"
        )
    return GraphShape(members - 1, needed - 1, corrupt)


def most_drawn(population: int, marked: int, drawn: int, odds: Fraction) -> int:
    """The smallest number that the marked ones among `drawn` exceed with at most this probability."""
    allowed, beyond = odds * comb(population, drawn), 0
    for found in range(min(marked, drawn), 0, -1):
        beyond += comb(marked, found) * comb(population - marked, drawn - found)
        if beyond > allowed:
            return found
    return 0


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
