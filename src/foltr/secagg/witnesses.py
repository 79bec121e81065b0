"""Whose signatures on the survivors a client demands before it opens a share: members drawn apart from the circle.

Neighbours on a circle are neighbours of each other. A server could tell two arcs of the circle different survivors;
only clients near the two borders would lack signatures, and with some colluders there even those could be opened. Each
arc then drops as many clients as a whole round may, and the sum has fewer vectors than promised. So the signatures come
from `number` members that a hash of the graph draws for each client, and `signatures` of them must cover the same graph
and survivors.

Claims (graph and survivors) that at most half of the h honest members signed can be put into three classes of at most
half of them each, since each of these members signs once. Besides them all c colluders sign everything. For one of the
claims of a class a client has enough signatures with probability at most

    p = P(hypergeometric(n - 1, c + h / 2, number) >= signatures).

A secret opens with t shares, x of them from colluders. The server chooses who is told which claim after it has seen all
draws, which makes at most 3^h classes, so one try of a graph opens a secret to it by claims without a majority, alone
or together, with probability at most

    n * sum over x of P(x colluders among the k neighbours) * 3^h * C(k - x, t - x) * p^(t - x).

All other secrets need shares that were opened for the one claim of a majority.

A client that lacks signatures by chance opens nothing, as if it dropped out; `signatures` leaves room for that to
happen once in eight rounds.

Where all are neighbours, the witnesses are the neighbours and the threshold is the same: 2 t > n - 1 + c.

Differs from the literature: Bell et al. 2020 let each client check its neighbours only, and promise less for it.
"""

from fractions import Fraction
from functools import lru_cache
from math import comb, log2
from typing import NamedTuple

import numpy as np

from foltr.secagg.crypto import hkdf, masks
from foltr.secagg.graph import GraphShape, most_drawn
from foltr.secagg.guarantee import Guarantee, fewest_survivors


class Quorum(NamedTuple):
    number: int  # of each client
    signatures: int  # of them, at least


@lru_cache(maxsize=2048)
def quorum_for(members: int, sizes: Guarantee, shape: GraphShape, *, failure: float) -> Quorum:
    """About as few as the probabilities of `graph.degree_for` allow."""
    if shape.degree >= members - 1:
        return Quorum(shape.degree, shape.threshold)
    dropouts = min(sizes.cohort - sizes.min_clients, members - 1)
    for number in range(shape.degree, members - 1, max(2, shape.degree // 64 * 2)):
        signatures = number - most_drawn(members - 1, dropouts, number, Fraction(1, 8 * members))
        if split(members, sizes.colluders, shape, Quorum(number, signatures)) <= log2(failure) - 1:
            return Quorum(number, signatures)
    return Quorum(members - 1, fewest_survivors(members, sizes.colluders) - 1)


def split(members: int, colluders: int, shape: GraphShape, drawn: Quorum) -> float:
    """The binary logarithm of the bound above."""
    colluders = min(colluders, members - 1)
    honest = members - colluders
    chance = _tail(members - 1, min(colluders + honest // 2, members - 1), drawn)
    if not chance:
        return float("-inf")
    each, terms = _log2(chance), []
    for found in range(min(colluders, shape.degree, shape.corrupt) + 1):
        placed = comb(colluders, found) * comb(members - 1 - colluders, shape.degree - found)
        if placed:
            needed = shape.threshold - found
            ways = log2(comb(shape.degree - found, needed)) + log2(placed) - log2(comb(members - 1, shape.degree))
            terms.append(log2(members) + honest * log2(3) + ways + needed * each)
    return max(terms) + log2(len(terms))


def _tail(population: int, marked: int, drawn: Quorum) -> Fraction:
    most = min(marked, drawn.number)
    ways = sum(comb(marked, k) * comb(population - marked, drawn.number - k) for k in range(drawn.signatures, most + 1))
    return Fraction(ways, comb(population, drawn.number))


def _log2(value: Fraction) -> float:
    return log2(value.numerator) - log2(value.denominator)


def draw(seed: bytes, members: int, number: int, member: int) -> list[int]:
    """Of one member, all as numbers from 0 to members - 1, sorted; `seed`: the digest of the graph."""
    if number >= members - 1:
        return [other for other in range(members) if other != member]
    key = hkdf(seed, info=b"witnesses" + member.to_bytes(8, "big"))
    order = np.argsort(masks([key], members, 64)[0], kind="stable")
    return sorted(order[order != member][:number].tolist())
