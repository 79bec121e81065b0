"""Timing on a shared machine."""

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


def interleaved(works: Sequence[Callable[[], Any]], repetitions: int) -> Array:
    """[works, repetitions] seconds; one uncounted repetition first compiles and warms the caches."""
    return np.array([[timed(work) for work in works] for _ in range(repetitions + 1)][1:]).T
