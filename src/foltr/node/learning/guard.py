"""The guard of new weights: replay on texts that they were not fitted to, then interleaving, for large harm only.

Replay: reciprocal ranks of what was opened, under old and new weights, over the logged candidates. Weights rank the log
well that they were fitted to, whatever they do to other searches. So the typed texts are divided into five folds, and
each fold is replayed with weights that were fitted to the other four. Weights that lose clearly are refused.

Interleaving (team draft; Radlinski, Kurup and Joachims 2008): the list takes documents from both orders in the order of
coins, and an opened document is a point for the order that brought it. Where both orders would bring the same document
nobody gets a point, so that equal orders give the list unchanged. Coins follow from the query and the two versions: the
same query gives the same list. A list with unequal points is decisive; equal queries under one version count once.

Sequential test (Wald 1945) of decisive lists: the new version loses half of them, against 65 of 100. A version that is
no worse is sent back with chance at most `ALARM`, one that loses 65 of 100 stays with chance at most `MISS`; it takes
about 75 decisive lists then, 45 where both are equal. A person's clicks cannot show less: 55:45 would need about 780.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from foltr.rng import Stream, stream
from foltr.types import Array, Interaction

OLD, NEW, BOTH = 0, 1, 2  # teams
ALARM, MISS, HARM = 0.02, 0.1, 0.65
FOLDS = 5  # of typed texts
CLEAR_LOSS, ERRORS = 0.005, 2.0  # of mean reciprocal rank in a replay, and standard errors that a loss must exceed
INTERLEAVED = 10  # places; below, the new order
NEAR_TIE = 0.05  # logits
FIXED_PLACES = 3  # that exploration never touches
_COINS = (INTERLEAVED + 1) // 2  # a coin is followed by a document of the other order
_RETURN, _TRUST = math.log((1 - MISS) / ALARM), math.log(MISS / (1 - ALARM))

D = TypeVar("D")


class Replay(NamedTuple):
    """Mean reciprocal rank of what was opened, over a log."""

    old: float
    new: float
    error: float  # standard error of the difference
    interactions: int

    @property
    def clearly_worse(self) -> bool:
        return self.interactions > 1 and self.old - self.new > max(CLEAR_LOSS, ERRORS * self.error)


def replay(interactions: Sequence[Interaction], old: Array, new: Array) -> Replay:
    """Both linear rankers on a log, each [P], or [n, P] with weights for every list; documents of equal scores share
    their ranks."""
    if not interactions:
        return Replay(0.0, 0.0, 0.0, 0)
    width = np.shape(interactions[0].features)[1]
    by_list = [np.broadcast_to(weights, (len(interactions), width)) for weights in (old, new)]
    pairs = np.array(
        [[reciprocal_rank(one, weights[place]) for weights in by_list] for place, one in enumerate(interactions)]
    )
    differences = pairs[:, 1] - pairs[:, 0]
    error = float(differences.std(ddof=1) / math.sqrt(len(pairs))) if len(pairs) > 1 else 0.0
    return Replay(float(pairs[:, 0].mean()), float(pairs[:, 1].mean()), error, len(pairs))


def held_out(
    interactions: Sequence[Interaction], fit: Callable[[Sequence[Interaction]], Array], *, first: int | None = None
) -> Array:
    """[n, P] for every list the weights that are fitted to the lists of other folds; `first`: of the first lists only.

    Each list has a typed text of its own (`teaching`), so that folds of lists are folds of texts.
    """
    known = list(enumerate(interactions[:first]))
    fits = [fit([one for place, one in known if place % FOLDS != fold]) for fold in range(FOLDS)]
    return np.stack([fits[place % FOLDS] for place in range(len(interactions))])


def reciprocal_rank(interaction: Interaction, weights: Array) -> float:
    """1 / rank of the highest document that was opened; 0 without one, or where a score is no number."""
    scores = np.asarray(interaction.features, dtype=np.float64) @ weights
    opened = interaction.ranking[np.asarray(interaction.clicks, dtype=bool)]
    if not len(opened) or not np.isfinite(scores).all():
        return 0.0
    best = scores[opened].max()
    return float(1 / (1 + (scores > best).sum() + ((scores == best).sum() - 1) / 2))


class Interleaved(NamedTuple):
    order: list[Any]
    teams: Array  # [n] OLD, NEW or BOTH
    propensities: Array  # [n] chance of the document at its place


def interleave(old: Sequence[D], new: Sequence[D], draws: Stream) -> Interleaved:
    """Team draft of two orders of the same documents over the first ten places; below them the new order."""
    if list(old[:INTERLEAVED]) == list(new[:INTERLEAVED]):
        return Interleaved(list(new), np.full(len(new), BOTH), np.ones(len(new)))
    coins = (draws.uniform(_COINS) < 0.5).tolist()
    order, teams = draft(old, new, coins)
    drafts = [draft(old, new, other)[0] for other in product((False, True), repeat=_COINS)]  # all equally likely
    alike = [sum(other[place] == one for other in drafts) for place, one in enumerate(order)]
    return Interleaved(order, teams, np.array(alike) / len(drafts))


def draft(old: Sequence[D], new: Sequence[D], coins: Sequence[bool]) -> tuple[list[D], Array]:
    """The list for given coins, and who brought each document. A coin decides where both brought equally many."""
    order: list[D] = []
    teams, brought, left, placed = np.full(len(new), BOTH), [0, 0], iter(coins), set[D]()
    while len(order) < min(INTERLEAVED, len(new)):
        tops = [next((one for one in source if one not in placed), None) for source in (old, new)]
        team = BOTH if tops[OLD] in (None, tops[NEW]) else NEW
        if team != BOTH and (brought[OLD] < brought[NEW] or (brought[OLD] == brought[NEW] and next(left))):
            team = OLD
        if team != BOTH:
            brought[team] += 1
        teams[len(order)] = team
        chosen = tops[OLD if team == OLD else NEW]
        order.append(chosen)  # type: ignore[arg-type]  # the new order is not used up
        placed.add(order[-1])
    return order + [one for one in new if one not in placed], teams


def coins_of(query: str, versions: tuple[int, int]) -> Stream:
    """The coins of a query under two versions."""
    return _stream_of(query, *versions)


def _stream_of(query: str, round: int, client: int = 0) -> Stream:
    seed = int.from_bytes(hashlib.sha256(query.encode("utf-8", "replace")).digest()[:8], "little")
    return stream(seed, round=round, client=client, purpose="ranking")


def points(teams: Array, clicks: Array) -> int:
    """Of an interleaved list: 1 where the new order brought more of what was opened, -1 where the old one did."""
    opened = np.asarray(teams)[np.asarray(clicks, dtype=bool)]
    return int(np.sign((opened == NEW).sum() - (opened == OLD).sum()))


class Comparison(NamedTuple):
    """Decisive lists so far."""

    won: int
    lost: int

    @property
    def evidence(self) -> float:
        """Log likelihood ratio of large harm against none."""
        return self.lost * math.log(HARM / 0.5) + self.won * math.log((1 - HARM) / 0.5)


def compared(lists: Iterable[int]) -> Comparison:
    """From the points of lists."""
    won = lost = 0
    for one in lists:
        won, lost = won + (one > 0), lost + (one < 0)
    return Comparison(won, lost)


def verdict(lists: Iterable[int]) -> Literal["return", "trust", "open"]:
    """Verdict of the points of lists, read in their order: the first bound that is reached decides."""
    evidence = 0.0
    for one in lists:
        evidence += compared([one]).evidence
        if evidence >= _RETURN:
            return "return"
        if evidence <= _TRUST:
            return "trust"
    return "open"


class Explored(NamedTuple):
    order: list[Any]
    propensities: Array  # [n]


def explore(order: Sequence[D], scores: Array, *, query: str, day: int, remembered: bool = False) -> Explored:
    """Swaps neighbours with nearly equal scores below the third place by coins that follow from query and day.

    `scores` belong to `order`, falling. Pairs do not overlap, so that a document of a pair has chance 1/2 at its place.
    A query that memory knows is left as it is. A node explores only where the person allows it.
    """
    explored, propensities = list(order), np.ones(len(order))
    coins = _stream_of(query, day).uniform(max(1, len(order)))
    place = FIXED_PLACES
    while not remembered and place + 1 < len(order):
        if not abs(float(scores[place]) - float(scores[place + 1])) < NEAR_TIE:
            place += 1
            continue
        propensities[place : place + 2] = 0.5
        if coins[place] < 0.5:
            explored[place], explored[place + 1] = explored[place + 1], explored[place]
        place += 2
    return Explored(explored, propensities)
