"""A thousand clients on a circle, of which two arcs are told different survivors: counts of the real rules.

Each arc drops clients of its own, away from the borders. The sum over all that nobody drops is determined if the
secrets of every honest client are open: the mask key of the dropped ones, the self mask of the others, those near the
borders too. A client that asks its neighbours for signatures lacks them near a border only; a certificate counts all
signers.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from foltr.secagg import rules
from foltr.secagg.certificate import needed
from foltr.secagg.graph import GraphShape
from foltr.secagg.guarantee import Guarantee


class Circle(NamedTuple):
    shape: GraphShape
    corrupt: np.ndarray  # [members] bool, by place


class Outcome(NamedTuple):
    in_sum: int  # honest clients whose self mask is open
    covered: int  # of whom neither secret is open: their masks spoil every sum around them
    dropped: int  # whose mask key is open


Convinced: TypeAlias = Callable[[Circle, np.ndarray], np.ndarray]  # who opens shares, if these places signed


def placed(members: int, colluders: int, near_borders: int, degree: int) -> np.ndarray:
    """So many colluders around each of the two borders, at places 0 and members / 2, the others spread evenly."""
    corrupt, half = np.zeros(members, bool), degree // 2
    for border in (0, members // 2):
        corrupt[(border + np.round(np.linspace(3 - half, half - 3, near_borders)).astype(int)) % members] = True
    places = np.arange(members) % (members // 2)
    free = np.flatnonzero(~corrupt & (np.minimum(places, members // 2 - places) > half))
    corrupt[free[np.linspace(0, len(free) - 1, colluders - int(corrupt.sum())).astype(int)]] = True
    return corrupt


def by_neighbours(circle: Circle, signed: np.ndarray) -> np.ndarray:
    """The mutant: who has the signatures of a threshold of its neighbours. [members]"""
    return _holds(rules.enough_signers, _around(circle, signed), circle.shape.threshold)


def by_certificate(sizes: Guarantee, circle: Circle, signed: np.ndarray) -> np.ndarray:
    """Everybody, or nobody. [members]"""
    return np.full(len(signed), rules.enough_signers(int(signed.sum()), needed(sizes)))


def told_apart(circle: Circle, min_clients: int, convinced: Convinced, margin: int, step: float) -> Outcome:
    """Both arcs drop every `step`-th honest client from `margin` places off the borders on."""
    members, threshold = len(circle.corrupt), circle.shape.threshold
    arcs = [np.arange(members) < members // 2, np.arange(members) >= members // 2]
    opening, dropping = [], []
    for arc, start in zip(arcs, (0, members // 2), strict=True):
        chosen = start + np.arange(margin, members // 2 - margin, step).astype(int)
        dropped = np.zeros(members, bool)
        dropped[chosen[~circle.corrupt[chosen]][: members - min_clients]] = True
        assert rules.enough_survivors(int((~dropped).sum()), min_clients)
        around = _around(circle, ~dropped)
        signs = arc & ~circle.corrupt & ~dropped & _holds(rules.enough_surviving_neighbours, around, threshold)
        opening.append(signs & convinced(circle, signs | circle.corrupt))
        dropping.append(dropped)
    corrupt = _around(circle, circle.corrupt)
    shares = [
        corrupt
        + sum(_around(circle, opens) * (dropped == key) for opens, dropped in zip(opening, dropping, strict=True))
        for key in (False, True)
    ]
    seeds, keys = ((count >= threshold) & ~circle.corrupt for count in shares)
    return Outcome(int(seeds.sum()), int((~circle.corrupt & ~seeds & ~keys).sum()), int(keys.sum()))


def _around(circle: Circle, flags: np.ndarray) -> np.ndarray:
    """How many neighbours of each place are in a set. [members]"""
    half = circle.shape.degree // 2
    total = np.concatenate([[0], np.cumsum(np.concatenate([flags[-half:], flags, flags[:half]]))])
    return total[2 * half + 1 :] - total[: len(flags)] - flags


def _holds(rule, counts: np.ndarray, wanted: int) -> np.ndarray:
    accepted = np.array([rule(count, wanted) for count in range(int(counts.max()) + 1)])
    return accepted[counts]
