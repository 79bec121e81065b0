"""The contract of aggregators (see `federation.aggregators`), run on a class.

Inputs are normal numbers, so that clients tie by construction only: where the aggregator says so (`has_ties`), the
properties of order and translation are not required.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from foltr.rng import stream
from foltr.testing.laws import copies, demand, demand_unchanged
from foltr.types import Array

_CLIENTS = range(1, 13)
_SEEDS = range(2)
_FACTORS = (2.0**-30, 0.5, 4.0, 2.0**30)  # powers of two: scaling is exact
_CLOSE, _SCALED, _SAME = 1e-7, 1e-9, 1e-12  # iterative aggregators stop within the first


class Case(NamedTuple):
    values: Array  # [n, P]
    weights: Array  # [n]
    num_byzantine: int
    seed: int


Law = Callable[[Any, Case], None]


def check_aggregator(kind: type, **parameters: Any) -> None:
    """Raises AssertionError if `kind(**parameters)` violates a property of aggregators; names it and the input."""
    aggregator = kind(**parameters)
    _check_traits(aggregator)
    for law in _LAWS:
        for case in _cases(aggregator):
            law(aggregator, case)
    for n in range(9):
        for num_byzantine in range(n + 1):
            _is_total(aggregator, _case(n, num_byzantine, seed=3))


def _check_traits(aggregator: Any) -> None:
    sees = getattr(aggregator, "sees", None)
    assert sees in ("sum", "single"), f'{_name(aggregator)}: sees = {sees!r}; use "sum" or "single"'
    for n in _CLIENTS:
        limit = aggregator.max_byzantine(n)
        assert isinstance(limit, int), f"{_name(aggregator)}: max_byzantine({n}) = {limit!r} is no int"
        assert limit < n, f"{_name(aggregator)}: max_byzantine({n}) = {limit}: there must be an honest client"


def _cases(aggregator: Any) -> Iterator[Case]:
    """Every size that the aggregator allows."""
    for n in _CLIENTS:
        for num_byzantine in range(aggregator.max_byzantine(n) + 1):
            for seed in _SEEDS:
                yield _case(n, num_byzantine, seed)


def _case(n: int, num_byzantine: int, seed: int, width: int = 4) -> Case:
    draws = stream(seed, round=n, client=num_byzantine, purpose="choice")
    values = draws.normal(n * width).reshape(n, width)
    return Case(values, draws.skip(n * width).integers(9, n) + 1, num_byzantine, seed)


def _inputs_stay(aggregator: Any, case: Case) -> None:
    given = {"values": case.values, "weights": case.weights}
    before = copies(given)
    result = _apply(aggregator, case)
    demand_unchanged(before, given, aggregator, "the aggregator")
    _demand(not np.shares_memory(result, case.values), "the result is a view of the values given", aggregator, case)
    for array in before.values():
        array.flags.writeable = False
    _apply(aggregator, case._replace(values=before["values"], weights=before["weights"]))


def _is_repeatable(aggregator: Any, case: Case) -> None:
    once, again = _apply(aggregator, case), _apply(aggregator, case)
    _demand(np.array_equal(once, again), "the same updates give two results", aggregator, case, again, once)


def _ignores_order(aggregator: Any, case: Case) -> None:
    if _ties(aggregator, case):
        return
    order = stream(case.seed, purpose="cohort").permutation(len(case.values))
    moved = case._replace(values=case.values[order], weights=case.weights[order])
    words = f"the order of clients matters (order {order.tolist()})"
    _close(_apply(aggregator, moved), _apply(aggregator, case), _CLOSE, words, aggregator, case)


def _scales(aggregator: Any, case: Case) -> None:
    result = _apply(aggregator, case)
    for factor in _FACTORS:
        scaled = _apply(aggregator, case._replace(values=factor * case.values)) / factor
        _close(scaled, result, _SCALED, f"scaling all values by {factor:g} does not scale the result", aggregator, case)


def _translates(aggregator: Any, case: Case) -> None:
    if not getattr(aggregator, "translation_equivariant", False) or _ties(aggregator, case):
        return
    move = stream(case.seed, purpose="start").normal(case.values.shape[1])
    moved = _apply(aggregator, case._replace(values=case.values + move)) - move
    words = "translation_equivariant, but adding a vector to all values does not add it to the result"
    _close(moved, _apply(aggregator, case), _CLOSE, words, aggregator, case)


def _agrees_with_all(aggregator: Any, case: Case) -> None:
    same = case._replace(values=np.repeat(case.values[:1], len(case.values), axis=0))
    words = "identical updates do not give that update"
    _close(_apply(aggregator, same), case.values[0], _SAME, words, aggregator, same)


def _leaves_out_broken_rows(aggregator: Any, case: Case) -> None:
    """One row less, and one attacker less."""
    for broken in (np.nan, np.inf, -np.inf):
        values, rest = case.values.copy(), case.num_byzantine
        values[0, -1] = broken
        others = Case(case.values[1:], case.weights[1:], max(0, rest - 1), case.seed)
        words = f"a row with {broken} is not left out (as one client and one attacker less)"
        _close(
            _apply(aggregator, case._replace(values=values)), _apply(aggregator, others), _SAME, words, aggregator, case
        )
    nothing = _apply(aggregator, case._replace(values=np.full_like(case.values, np.nan)))
    _demand(not nothing.any(), "without any finite row the result is not zero", aggregator, case, nothing)


def _sees_a_sum_only(aggregator: Any, case: Case) -> None:
    """Where `sees` is "sum", two clients may be replaced by one with their weight and their mean."""
    if aggregator.sees != "sum" or len(case.values) < 2:
        return
    together = case.weights[:2].sum()
    merged = (case.weights[:2, None] * case.values[:2]).sum(axis=0) / together
    fewer = case._replace(
        values=np.vstack([merged, case.values[2:]]), weights=np.append(together, case.weights[2:]), num_byzantine=0
    )
    words = 'sees = "sum", but the result is no function of the weighted sum'
    _close(_apply(aggregator, fewer), _apply(aggregator, case), _SAME, words, aggregator, case)


def _is_the_mean(aggregator: Any, case: Case) -> None:
    """Where `is_weighted_mean` is declared, the lab computes the result by its own kernel."""
    if getattr(aggregator, "is_weighted_mean", False):
        expected = (case.weights[:, None] * case.values).sum(axis=0) / case.weights.sum()
        words = "is_weighted_mean, but the result is not the weighted mean"
        _close(_apply(aggregator, case), expected, _SAME, words, aggregator, case)


def _is_total(aggregator: Any, case: Case) -> None:
    """Also where max_byzantine is exceeded, and with integers in place of floats."""
    result = _apply(aggregator, case)
    _demand(bool(np.isfinite(result).all()), "the result is not finite", aggregator, case, result)
    whole = case._replace(values=np.round(10 * case.values).astype(np.int64))
    _apply(aggregator, whole)


_LAWS: tuple[Law, ...] = (
    _is_total,
    _inputs_stay,
    _is_repeatable,
    _agrees_with_all,
    _scales,
    _ignores_order,
    _translates,
    _leaves_out_broken_rows,
    _sees_a_sum_only,
    _is_the_mean,
)


def _apply(aggregator: Any, case: Case) -> Array:
    """The result, which must have the shape of one row."""
    result = aggregator(case.values, case.weights, num_byzantine=case.num_byzantine)
    shape, width = getattr(result, "shape", None), case.values.shape[1]
    _demand(shape == (width,), f"the result has the shape {shape}, not ({width},)", aggregator, case)
    array: Array = result
    return array


def _ties(aggregator: Any, case: Case) -> bool:
    asked = getattr(aggregator, "has_ties", None)
    return bool(asked and asked(len(case.values), case.num_byzantine))


def _name(aggregator: Any) -> str:
    return type(aggregator).__name__


def _close(result: Array, expected: Array, tolerance: float, words: str, aggregator: Any, case: Case) -> None:
    close = np.allclose(result, expected, rtol=tolerance, atol=tolerance)
    _demand(close, words, aggregator, case, result, expected)


def _demand(
    holds: bool, words: str, aggregator: Any, case: Case, result: Array | None = None, expected: Array | None = None
) -> None:
    compared = {"result": result, "expected": expected}
    given = {name: value for name, value in compared.items() if value is not None} | case._asdict()
    demand(holds, aggregator, words, n=len(case.values), **given)
