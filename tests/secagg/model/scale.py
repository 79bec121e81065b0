"""The protocol at its real sizes: counts instead of states, exact arithmetic instead of search.

Lemma. Let T be the honest clients whose sum a view determines. Each has its self mask open. A neighbour that opens the
self mask of i had i's proof that it masked with it, so the mask of the two is in i's vector; it is unknown unless the
neighbour's vector is in the same sum or the neighbour's mask key is open. Hence, as long as no client has both

    (1) its self mask and its mask key open, or its mask key open and a threshold of neighbours who agree that it survived,

every honest neighbour that opens i is in T, and every honest survivor that such a neighbour counts around itself is in T.
Where all are neighbours, T is therefore all honest survivors of a signed set: `min_clients` - colluders or more. On a
circle, T is that too unless dropouts and colluders

    (2) cut the circle: two runs of degree / 2 places, at the two ends of T, without an honest survivor. The client of T at
        the end of a run has at most degree / 2 neighbours in T, so threshold - degree / 2 of the run are colluders.

The server chooses who drops out after it has seen the circle; only the places of the colluders are left to chance, and it
may try as many circles as it can hash. Both probabilities are hypergeometric and computed exactly.
"""

from fractions import Fraction
from math import comb, log2

from foltr.secagg.graph import GraphShape


def tail(population: int, marked: int, drawn: int, least: int) -> Fraction:
    """Probability that `least` or more of the drawn are marked."""
    found = sum(
        comb(marked, k) * comb(population - marked, drawn - k) for k in range(max(least, 0), min(marked, drawn) + 1)
    )
    return Fraction(found, comb(population, drawn))


def both_tails(population: int, marked: int, run: int, least: int) -> Fraction:
    """Probability that each of two disjoint runs of places holds `least` or more of the marked."""
    outside, found = population - 2 * run, 0
    for first in range(least, min(run, marked) + 1):
        for second in range(least, min(run, marked - first) + 1):
            found += comb(run, first) * comb(run, second) * comb(outside, marked - first - second)
    return Fraction(found, comb(population, marked))


def opens_both(degree: int, threshold: int, corrupt: int) -> bool:
    """Whether some split of the honest neighbours, each opening one kind, opens both secrets of a client; by trial."""
    return any(
        seeds + corrupt >= threshold and degree - corrupt - seeds + corrupt >= threshold
        for seeds in range(degree - corrupt + 1)
    )


def fewest_that_open_both(shape: GraphShape) -> int:
    """The smallest number of corrupt neighbours with which both secrets of a client can be opened."""
    return next(c for c in range(shape.degree + 2) if c > shape.degree or opens_both(shape.degree, shape.threshold, c))


def crowded(members: int, colluders: int, shape: GraphShape) -> Fraction:
    """(1): a bound on the probability that some client has so many corrupt neighbours."""
    drawn = min(shape.degree, members - 1)
    return members * tail(members - 1, min(colluders, members - 1), drawn, fewest_that_open_both(shape))


def cut(members: int, colluders: int, shape: GraphShape) -> Fraction:
    """(2): a bound on the probability that the circle can be cut; zero where all are neighbours."""
    half = shape.degree // 2
    if shape.degree >= members - 1:
        return Fraction(0)
    if members < 2 * half + 2:
        return Fraction(0)  # no two runs with somebody between them on either side
    return Fraction(members**2, 2) * both_tails(members, min(colluders, members), half, max(shape.threshold - half, 0))


def exponent(probability: Fraction) -> float:
    return log2(probability.numerator) - log2(probability.denominator) if probability else float("-inf")
