"""Rules that turn the updates of a round into one vector, and what each of them can bear.

A rule is a function `(updates [n, P], weights [n], *, bad, start [P]) -> [P]`: updates are the clients' parameters
after local training, weights their interactions, `bad` the number of attackers that the rule assumes, `start` the
parameters the round began with. Updates that are not finite are left out (see `taking_part`); when nothing is left,
the start is the result. Rules are total: what `check_aggregator` would refuse still gives a defined, weaker result.

Sources: McMahan et al. 2017 (FedAvg); `krum`, `centres` and `geometric` name theirs.

Sums run over the clients in their order, never in an order that depends on threads.

Differs from the paper: nothing.
"""

from typing import Protocol

import numpy as np

from foltr._kernels.aggregation import weighted_sum_rows
from foltr.errors import SpecError
from foltr.federation.centres import median, norm_bounding, trimmed_mean
from foltr.federation.geometric_median import geometric_median
from foltr.federation.krum import bulyan, krum, multi_krum
from foltr.federation.taking_part import taking_part
from foltr.types import Array


class Rule(Protocol):
    def __call__(self, updates: Array, weights: Array, *, bad: int, start: Array) -> Array: ...


def fedavg(updates: Array, weights: Array, *, bad: int = 0, start: Array | None = None) -> Array:
    """Mean of updates [n, P], weighted by the interactions behind each."""
    rows, weights, _ = taking_part(updates, weights, bad)
    if len(rows) == 0 and start is not None:
        return np.array(start, dtype=np.float64)
    total = np.empty(rows.shape[1])
    together = weighted_sum_rows(rows, np.asarray(weights), total)
    total /= together
    return total


def weighted_sum(rows: Array, weights: Array) -> Array:
    """[P] sum of weights * rows [n, P]."""
    total = np.empty(rows.shape[1])
    weighted_sum_rows(rows, np.asarray(weights), total)
    return total


AGGREGATORS: dict[str, Rule] = {
    "fedavg": fedavg,
    "krum": krum,
    "multi_krum": multi_krum,
    "trimmed_mean": trimmed_mean,
    "median": median,
    "bulyan": bulyan,
    "geometric_median": geometric_median,
    "norm_bounding": norm_bounding,
}


def max_byzantine(rule: str, clients: int) -> int:
    """The most attackers that a rule can assume among so many clients; below 0 where even none is too many."""
    minority = (clients - 1) // 2
    if rule in ("krum", "multi_krum"):
        return min(minority, clients - 3)  # n - m - 2 >= 1 neighbours
    if rule == "bulyan":
        return min(minority, (clients - 3) // 4)  # n >= 4 m + 3
    return minority


def check_aggregator(name: str, clients: int, bad: int) -> None:
    """Refuses what cannot be, before anything is computed."""
    if name not in AGGREGATORS:
        raise SpecError(f"no rule {name!r}; there are {', '.join(AGGREGATORS)}")
    most = max_byzantine(name, clients)
    if most < 0:
        raise SpecError(f"rule {name!r} cannot work with {clients} clients; use at least 3, or rule 'fedavg'")
    if not 0 <= bad <= most:
        why = {"bulyan": "it needs n >= 4 m + 3", "krum": "it needs n - m - 2 >= 1 and m < n / 2"}
        why["multi_krum"] = why["krum"]
        raise SpecError(
            f"rule {name!r} with {clients} clients cannot assume {bad} attackers "
            f"({why.get(name, 'it needs m < n / 2')}); use 0 to {most}, or more clients"
        )
