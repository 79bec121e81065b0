"""The contract of rankers (see `rankers.linear`), run on a class.

Features are single precision, as in a data set, and a ranker may compute in it: a gradient is compared with differences
of scores to about three digits. Where a unit switches on or off between two points, the gradient lies between the
differences on both sides.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from foltr.rng import stream
from foltr.testing.laws import array_of, copies, demand, demand_unchanged
from foltr.types import Array

_WIDTHS = (1, 5)  # features
_DOCUMENTS = (1, 4)
_SEEDS = (1, 2)
_STEP = 2.0**-7
_CLOSE, _SLOPE, _SINGLE = 1e-6, 2e-3, 1e-4


class Case(NamedTuple):
    parameters: Array  # [P]
    features: Array  # [n, d] float32
    weights: Array  # [n]


Law = Callable[[Any, Case], None]


def check_ranker(kind: type, **parameters: Any) -> None:
    """Raises AssertionError if `kind(**parameters)` breaks a law of rankers; says which, and with what."""
    ranker = kind(**parameters)
    for width in _WIDTHS:
        for seed in _SEEDS:
            _starts_from_a_seed(ranker, width, seed)
    for law in _LAWS:
        for case in _cases(ranker):
            law(ranker, case)
    for width in _WIDTHS:
        _declares_a_flat_start(ranker, width)


def _cases(ranker: Any) -> Iterator[Case]:
    """At the start, and away from it."""
    for width in _WIDTHS:
        for n in _DOCUMENTS:
            draws = stream(width, round=n, purpose="choice")
            features = draws.normal(n * width).reshape(n, width).astype(np.float32)
            start, weights = ranker.init(width, 1), draws.skip(100).normal(n)
            yield Case(start, features, weights)
            yield Case(start + 0.5 * draws.skip(200).normal(len(start)), features, weights)


def _starts_from_a_seed(ranker: Any, width: int, seed: int) -> None:
    size, given = ranker.size(width), {"features": width, "seed": seed}
    demand(isinstance(size, int) and size > 0, ranker, f"size({width}) = {size!r} is no positive int")
    once, again = (array_of(ranker.init(width, seed), (size,), "init", ranker, **given) for _ in range(2))
    demand(np.array_equal(once, again), ranker, "init gives two results from one seed", **given)
    demand(not np.shares_memory(once, again), ranker, "init returns the same array twice", **given)


def _declares_a_flat_start(ranker: Any, width: int) -> None:
    """Learners that follow the gradient never leave a start where it vanishes: specs refuse such a pair."""
    features = stream(width, purpose="data").normal(4 * width).reshape(4, width).astype(np.float32)
    gradient = ranker.gradient(ranker.init(width, 1), features, np.array([1.0, -2.0, 3.0, 0.5]))
    flat = bool(getattr(ranker, "flat_start", False))
    law = "the gradient vanishes at the start; declare flat_start = True"
    demand(flat or bool(np.any(gradient)), ranker, law, features=features)


def _inputs_stay(ranker: Any, case: Case) -> None:
    given = case._asdict()
    before = copies(given)
    _score(ranker, case)
    demand_unchanged(before, given, ranker, "score")
    _gradient(ranker, case)
    demand_unchanged(before, given, ranker, "gradient")


def _is_repeatable(ranker: Any, case: Case) -> None:
    for what, function in (("scores", _score), ("gradients", _gradient)):
        same = np.array_equal(function(ranker, case), function(ranker, case))
        demand(same, ranker, f"the same input gives two {what}", **case._asdict())


def _scores_documents_one_by_one(ranker: Any, case: Case) -> None:
    """A document's score does not depend on the others in the list."""
    scores = _score(ranker, case)
    chosen = np.arange(len(scores))[::-2]
    some = _score(ranker, case._replace(features=case.features[chosen], weights=case.weights[chosen]))
    law = "the scores of some documents are not those that they have among all"
    close = np.allclose(some, scores[chosen], rtol=_CLOSE, atol=_CLOSE)
    demand(close, ranker, law, among_some=some, among_all=scores[chosen], **case._asdict())


def _gradient_is_the_slope_of_scores(ranker: Any, case: Case) -> None:
    """Of sum(weights * score) with respect to every parameter."""
    gradient, here = _gradient(ranker, case), _weighted(ranker, case, case.parameters)
    moves = _STEP * np.eye(len(case.parameters))
    ahead = np.array([_weighted(ranker, case, case.parameters + move) for move in moves]) - here
    behind = here - np.array([_weighted(ranker, case, case.parameters - move) for move in moves])
    slopes = np.stack([ahead, behind]) / _STEP  # [2, P]
    slack = _SLOPE * max(1.0, float(np.abs(slopes).max()))
    inside = (gradient >= slopes.min(axis=0) - slack) & (gradient <= slopes.max(axis=0) + slack)
    law = "the gradient is not the slope of sum(weights * score)"
    demand(bool(inside.all()), ranker, law, gradient=gradient, slope=slopes.mean(axis=0), **case._asdict())


def _many_scores_are_the_scores(ranker: Any, case: Case) -> None:
    """`score_many` is optional: it may round differently and nothing else."""
    if not hasattr(ranker, "score_many"):
        return
    many, scores = ranker.score_many(case.parameters, case.features), _score(ranker, case)
    array_of(many, scores.shape, "score_many", ranker, **case._asdict())
    close = np.allclose(many, scores, rtol=_SINGLE, atol=_SINGLE)
    demand(close, ranker, "score_many is not score up to rounding", many=many, scores=scores, **case._asdict())


_LAWS: tuple[Law, ...] = (
    _inputs_stay,
    _is_repeatable,
    _scores_documents_one_by_one,
    _gradient_is_the_slope_of_scores,
    _many_scores_are_the_scores,
)


def _weighted(ranker: Any, case: Case, parameters: Array) -> float:
    return float(case.weights @ ranker.score(parameters, case.features))


def _score(ranker: Any, case: Case) -> Array:
    scores = ranker.score(case.parameters, case.features)
    return array_of(scores, (len(case.features),), "score", ranker, **case._asdict())


def _gradient(ranker: Any, case: Case) -> Array:
    return array_of(ranker.gradient(*case), case.parameters.shape, "gradient", ranker, **case._asdict())
