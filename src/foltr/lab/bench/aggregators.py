"""How long aggregators take: one round of the thesis's size for each, and Krum over many large updates.

Synthetic updates; the best of several tries, since other programs share the machine. Memory is what the aggregator
takes beyond its input, as Python's own accounting sees it (NumPy reports its arrays there).
"""

import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

from foltr import registry
from foltr.federation.aggregators import aggregator_kind
from foltr.lab.bench.training import timed
from foltr.rng import stream
from foltr.types import Array

_CALLS = 200


def measure_aggregators(*, smoke: bool = False) -> dict[str, Any]:
    """Seconds and memory of Krum over 1,000 updates of 10,000 parameters; microseconds of each at 10 x 46."""
    clients, parameters = (200, 1000) if smoke else (1000, 10_000)
    return {
        f"krum_{clients}x{parameters}": _large_krum(clients, parameters, tries=2),
        "micro": {name: _microseconds(name, tries=2 if smoke else 10) for name in registry.names("aggregator")},
    }


def _large_krum(clients: int, parameters: int, tries: int) -> dict[str, float]:
    work = _round("krum", clients, parameters, num_byzantine=clients // 5)
    seconds = min(timed(work) for _ in range(tries))
    tracemalloc.start()
    try:
        work()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return {"seconds": seconds, "peak_mb": peak / 2**20}


def _microseconds(name: str, tries: int) -> float:
    work = _round(name, 10, 46, num_byzantine=1)
    work()  # compiles

    def many() -> None:
        for _ in range(_CALLS):
            work()

    return min(timed(many) for _ in range(tries)) / _CALLS * 1e6


def _round(name: str, clients: int, parameters: int, num_byzantine: int) -> Callable[[], Array]:
    draws = stream(1, purpose="choice")
    deltas = draws.skip(parameters).normal(clients * parameters).reshape(clients, parameters)
    weights = draws.integers(5, clients) + 1
    return partial(aggregator_kind(name)(), deltas, weights, num_byzantine=num_byzantine)
