"""Timing on a machine that others use as well."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from foltr.types import Array


def timed(work: Callable[[], Any]) -> float:
    """Seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def in_turns(works: Sequence[Callable[[], Any]], turns: int) -> Array:
    """[works, turns] seconds; one turn before compiles and warms the caches and does not count."""
    return np.array([[timed(work) for work in works] for _ in range(turns + 1)][1:]).T
