"""The protocol at its real sizes: counts instead of states, exact arithmetic instead of search.

Lemma. Let T be the honest clients whose sum a view determines. Each has its self mask open. A neighbour that opens the
self mask of i had i's proof that it masked with it, so the mask of the two is in i's vector, and it is unknown unless
the neighbour's vector is in the same sum or the neighbour's mask key is open. Suppose that

    (1) no client has both secrets open, nor an open mask key while a threshold of its neighbours count it a survivor;
    (2) shares are opened for one claim (members, root, survivors) only: that of a majority of the honest.

Then every honest neighbour that opens i is in T, and so is every honest survivor around it. Where all are neighbours, T
is all honest survivors of the signed set: `min_clients` - colluders or more. On a circle, T is that too unless

    (3) two runs of degree / 2 places, at the two ends of T, have no honest survivor. The client of T beside a run
        has at most degree / 2 neighbours in T, so threshold - degree / 2 of the run are colluders.

The server chooses who drops out and who is told what after it has seen the graph; only the places of colluders and the
samples of certificates are left to chance, and it may try as many graphs and certificates as it can hash. (1) and (3)
are hypergeometric tails, computed exactly here and independently of `graph`. (2) is the proof of `certificate`; the
chance of one try is computed here signature by signature. No client opens a share for a claim of a minority, so the
openers of (3) have signed one claim, and only colluders can stand in its runs.
"""

from fractions import Fraction
from math import comb, log2

from foltr.secagg import rules
from foltr.secagg.graph import GraphShape


def fewest(rule, wanted: int, most: int) -> int:
    """The smallest count that a rule of the client accepts."""
    return next((count for count in range(most + 1) if rule(count, wanted)), most + 1)


def tail(population: int, marked: int, drawn: int, least: int) -> Fraction:
    """Probability that `least` or more of the drawn are marked."""
    counts = range(max(least, 0), min(marked, drawn) + 1)
    found = sum(comb(marked, count) * comb(population - marked, drawn - count) for count in counts)
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
    others = degree - corrupt
    return any(seeds + corrupt >= threshold <= others - seeds + corrupt for seeds in range(others + 1))


def fewest_that_open_both(shape: GraphShape) -> int:
    """The smallest number of corrupt neighbours with which both secrets of a client can be opened."""
    return next(c for c in range(shape.degree + 2) if c > shape.degree or opens_both(shape.degree, shape.threshold, c))


def crowded(members: int, colluders: int, shape: GraphShape) -> Fraction:
    """(1): a bound on the probability that some client has so many corrupt neighbours."""
    drawn = min(shape.degree, members - 1)
    return members * tail(members - 1, min(colluders, members - 1), drawn, fewest_that_open_both(shape))


def cut(members: int, colluders: int, shape: GraphShape) -> Fraction:
    """(3): a bound on the probability that the circle can be cut; zero where all are neighbours."""
    half = shape.degree // 2
    if shape.degree >= members - 1 or members < 2 * half + 2:
        return Fraction(0)
    survivors = fewest(rules.enough_surviving_neighbours, shape.threshold, shape.degree)
    needed = max(min(shape.threshold, survivors) - half, 0)
    return Fraction(members**2, 2) * both_tails(members, min(colluders, members), half, needed)


def forged(signers: int, valid: int, number: int) -> Fraction:
    """(2): the chance that all of the sampled signers are valid, or sign later with a tag that was guessed; by adding
    one sampled signer at a time."""
    chances = {0: Fraction(1)}  # by number of valid ones among the sampled: weighted by the luck of the others
    for drawn in range(number):
        following: dict[int, Fraction] = {}
        for found, weight in chances.items():
            left = signers - drawn
            good, other = Fraction(valid - found, left), Fraction(signers - valid - (drawn - found), left)
            following[found + 1] = following.get(found + 1, Fraction(0)) + weight * good
            following[found] = following.get(found, Fraction(0)) + weight * other / 256
        chances = following
    return sum(chances.values(), Fraction(0))


def exponent(probability: Fraction) -> float:
    return log2(probability.numerator) - log2(probability.denominator) if probability else float("-inf")
