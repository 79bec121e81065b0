"""Reports of a contract suite: an AssertionError that names the class, the law that it breaks, and the input."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from foltr.types import Array


def demand(holds: bool, subject: Any, law: str, **given: Any) -> None:
    """Raises AssertionError unless the law holds for the subject; `given` is the input it was tried with."""
    if not holds:
        _refuse(subject, law, given)


def attempt(subject: Any, law: str, call: Callable[[], Any], **given: Any) -> Any:
    """The result of a call; an exception inside it breaks the law."""
    try:
        return call()
    except Exception as problem:
        _refuse(subject, f"{law}: {type(problem).__name__}: {problem}", given, problem)


def array_of(value: Any, shape: tuple[int, ...], what: str, subject: Any, **given: Any) -> Array:
    """The value as an array, which must have this shape and be finite."""
    found = getattr(value, "shape", None)
    demand(found == shape, subject, f"{what} has the shape {found}, not {shape}", **given)
    array: Array = value
    demand(bool(np.isfinite(array).all()), subject, f"{what} is not finite: {array.tolist()}", **given)
    return array


def copies(arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {name: np.copy(array) for name, array in arrays.items()}


def demand_unchanged(before: Mapping[str, Array], after: Mapping[str, Array], subject: Any, by: str) -> None:
    """Inputs belong to the caller."""
    for name, array in before.items():
        same = np.array_equal(array, after[name])
        demand(same, subject, f"{by} changes the {name} it is given", before=array, after=after[name])


def _refuse(subject: Any, law: str, given: Mapping[str, Any], cause: Exception | None = None) -> NoReturn:
    lines = [f"{type(subject).__name__}: {law}"]
    lines += [f"{name} = {value.tolist() if isinstance(value, np.ndarray) else value}" for name, value in given.items()]
    raise AssertionError("\n".join(lines)) from cause
