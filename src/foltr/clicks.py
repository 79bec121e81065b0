"""Click models of simulated users.

Sources: S0 Table 1 (cascade), S2 chapter 4 (position-based).
Cascade: read from the top; click with P(click | grade); after a click stop with P(stop | grade); never stop at a
document that was not clicked. Position-based: click at rank r with P(click | grade) * (1 / r)^eta, never stop.

Differs from the paper: nothing. Tables for two grades come from the authors' programs.
"""

from collections.abc import Callable
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from foltr import registry
from foltr.errors import SpecError, did_you_mean
from foltr.types import Array

Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]


class ClickTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """P(click | grade) and P(stop | click, grade), one value a grade."""

    click: tuple[Probability, ...]
    stop: tuple[Probability, ...]

    def __post_init__(self) -> None:
        if len(self.click) != len(self.stop) or len(self.click) < 2:
            raise ValueError(
                f"a click table needs as many stop as click values, one a grade and at least two; "
                f"got {len(self.click)} click and {len(self.stop)} stop values"
            )


class Users(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The click model of the users, and the length k of the displayed lists."""

    clicks: str | ClickTable = "navigational"  # or { click = [...], stop = [...] } with a probability a grade
    model: str = "cascade"
    eta: Annotated[float, msgspec.Meta(ge=0)] = 1.0  # of the position model
    k: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10  # documents shown

    def __post_init__(self) -> None:
        known = (*USERS, *registry.names("click_model"))
        if isinstance(self.clicks, str) and self.clicks not in known:
            listed = f"{', '.join(known)}, or a table of your own"
            close = did_you_mean(self.clicks, known)
            raise ValueError(f"clicks: no users {self.clicks!r}; there are {listed}.{close}")
        if self.model not in MODELS:
            close = did_you_mean(self.model, MODELS)
            raise ValueError(f"model: no click model {self.model!r}; there are {', '.join(MODELS)}.{close}")


class ClickModel(NamedTuple):
    """A click model as numbers, which kernels take, or as a function, which runs on the plain engine."""

    click: Array  # [k, grades] P(click | rank, grade)
    stop: Array  # [grades] P(stop | click, grade)
    function: Callable[[Array, Array], Array] | None = None  # (grades of the list, uniforms [2 k]) -> clicks [k]


def click_model(users: Users, *, grades: int) -> ClickModel:
    """The click model of these users for a collection with this many grades."""
    if isinstance(users.clicks, str) and users.clicks not in USERS:
        model: ClickModel = registry.kind("click_model", users.clicks)().click_model(users.k, grades)
        return model
    table = users.clicks if isinstance(users.clicks, ClickTable) else named_table(users.clicks, grades)
    if len(table.click) < grades:
        raise SpecError(
            f"users.clicks: the table has {len(table.click)} grades, the collection {grades} "
            f"(labels up to {grades - 1}); give one click and one stop value for each grade"
        )
    click, stop = (np.array(values[:grades], dtype=np.float64) for values in (table.click, table.stop))
    ranks = np.arange(1, users.k + 1)
    if users.model == "position":
        return ClickModel(np.outer((1 / ranks) ** users.eta, click), np.zeros(grades))
    return ClickModel(np.tile(click, (users.k, 1)), stop)


def clicks_on(grades: Array, model: ClickModel, uniforms: Array) -> Array:
    """[k] bool: which of the displayed documents, given by their grades, are clicked; uniforms [2 k]."""
    if model.function is not None:
        return np.asarray(model.function(grades, uniforms), dtype=bool)
    clicks = np.zeros(len(grades), dtype=bool)
    for rank, grade in enumerate(grades):
        clicks[rank] = uniforms[2 * rank] < model.click[rank, grade]
        if clicks[rank] and uniforms[2 * rank + 1] < model.stop[grade]:
            break
    return clicks


def named_table(name: str, grades: int) -> ClickTable:
    """One of the published tables; they exist for two, three and five grades."""
    if grades not in USERS[name]:
        raise SpecError(
            f"users.clicks: {name!r} is defined for {', '.join(map(str, USERS[name]))} grades, the collection has "
            f"{grades}; give a table: clicks = {{ click = [...], stop = [...] }}"
        )
    click, stop = USERS[name][grades]
    return ClickTable(click, stop)


MODELS = ("cascade", "position")

# name -> number of grades -> P(click | grade), P(stop | grade)
USERS: dict[str, dict[int, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "perfect": {
        2: ((0, 1), (0, 0)),
        3: ((0, 0.5, 1), (0, 0, 0)),
        5: ((0, 0.2, 0.4, 0.8, 1), (0, 0, 0, 0, 0)),
    },
    "navigational": {
        2: ((0.05, 0.95), (0.2, 0.9)),
        3: ((0.05, 0.5, 0.95), (0.2, 0.5, 0.9)),
        5: ((0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9)),
    },
    "informational": {
        2: ((0.3, 0.7), (0.1, 0.5)),
        3: ((0.4, 0.7, 0.9), (0.1, 0.3, 0.5)),
        5: ((0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5)),
    },
    "poison": {
        2: ((1, 0), (0, 0)),
        3: ((1, 0.5, 0), (0, 0, 0)),
        5: ((1, 0.8, 0.4, 0.2, 0), (0, 0, 0, 0, 0)),
    },
}
