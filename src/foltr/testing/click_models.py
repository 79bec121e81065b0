"""The contract of click models (see `clicks.ClickModel`), run on a class."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from foltr.clicks import ClickModel, clicks_on
from foltr.rng import stream
from foltr.testing.laws import array_of, attempt, copies, demand, demand_unchanged
from foltr.types import Array

_SHOWN = (1, 3, 10)  # documents that are displayed
_GRADES = (2, 3, 5)  # of the published data sets
_LISTS = 20


class Case(NamedTuple):
    grades: Array  # [n] of the displayed documents, in the order of the list; n <= k
    uniforms: Array  # [2 n]


def check_click_model(kind: type, **parameters: Any) -> None:
    """Raises AssertionError if `kind(**parameters)` breaks a law of click models; says which, and with what."""
    described = kind(**parameters)
    for k in _SHOWN:
        for grades in _GRADES:
            model = described.click_model(k, grades)
            demand(isinstance(model, ClickModel), described, f"click_model returns {type(model).__name__}", k=k)
            _has_tables(described, model, k, grades)
            _describes_the_same_twice(described, model, k, grades)
            for case in _cases(k, grades):
                _clicks_on_the_list_only(described, model, case)
                _is_repeatable(described, model, case)


def _cases(k: int, grades: int) -> Iterator[Case]:
    """Lists of every length up to k; a query may have fewer documents than are displayed."""
    for i in range(_LISTS):
        draws, n = stream(i, round=k, client=grades, purpose="clicks"), 1 + i % k
        yield Case(draws.integers(grades, n), draws.skip(n).uniform(2 * n))
    yield Case(np.zeros(k, np.int64), np.zeros(2 * k))
    yield Case(np.full(k, grades - 1), np.full(2 * k, np.nextafter(1.0, 0.0)))


def _has_tables(described: Any, model: ClickModel, k: int, grades: int) -> None:
    """Kernels read the tables; a function takes their place, and they then say only how many documents are shown."""
    for what, table, shape in (("click", model.click, (k, grades)), ("stop", model.stop, (grades,))):
        array = array_of(table, shape, f"the {what} table", described, k=k, grades=grades)
        law = f"the {what} table holds no probabilities: values in [0, 1]"
        demand(bool(((array >= 0) & (array <= 1)).all()), described, law, k=k, grades=grades, table=array)


def _describes_the_same_twice(described: Any, model: ClickModel, k: int, grades: int) -> None:
    again = described.click_model(k, grades)
    same = np.array_equal(model.click, again.click) and np.array_equal(model.stop, again.stop)
    demand(same, described, "click_model gives two tables for the same list length and grades", k=k, grades=grades)


def _clicks_on_the_list_only(described: Any, model: ClickModel, case: Case) -> None:
    before = copies(case._asdict())
    clicks = _clicks(described, model, case)
    demand_unchanged(before, case._asdict(), described, "the function")
    kind, shape = getattr(clicks, "dtype", type(clicks).__name__), getattr(clicks, "shape", None)
    demand(kind == np.bool_, described, f"clicks are {kind}, not bool", **case._asdict())
    law = f"a list of {len(case.grades)} documents gets clicks of the shape {shape}"
    demand(shape == case.grades.shape, described, law, **case._asdict())


def _is_repeatable(described: Any, model: ClickModel, case: Case) -> None:
    """All randomness comes from the uniforms."""
    same = np.array_equal(_clicks(described, model, case), _clicks(described, model, case))
    demand(same, described, "the same uniforms give two patterns of clicks", **case._asdict())


def _clicks(described: Any, model: ClickModel, case: Case) -> Any:
    """As the function returns them, where there is one."""
    if model.function is None:
        return clicks_on(case.grades, model, case.uniforms)
    function, law = model.function, "the function must do with a list's grades and two uniforms a document"
    return attempt(described, law, lambda: function(case.grades, case.uniforms), **case._asdict())
