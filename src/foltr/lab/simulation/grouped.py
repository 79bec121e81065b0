"""An aggregator over the means of groups: what a coordinator computes where it sees one sum for each group.

Source: as `secagg.groups`, whose `assign` draws the groups of a deployed federation from a public seed. Here they
follow from the seed of the run and the round: new groups in every round.

Differs from the papers: nothing that `secagg.groups` does not say.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from foltr.rng import stream
from foltr.types import Array

Mean: TypeAlias = Callable[[Array, Array], Array]  # (deltas [n, P], weights [n]) -> [P]


def grouped(
    aggregator: Any, mean: Mean, groups: int, *, seed: int, num_byzantine: int
) -> Callable[[Array, Array, int], Array]:
    """(deltas [n, P], weights [n], version) -> [P]: the aggregator gets one mean and one weight for each group.

    Synchronous rounds: round r begins with version r - 1.
    """

    def combine(deltas: Array, weights: Array, version: int) -> Array:
        members = group_rows(len(deltas), groups, seed=seed, round=version + 1)
        means = np.stack([mean(deltas[rows], weights[rows]) for rows in members])  # [groups, P]
        found: Array = aggregator(means, np.array([weights[rows].sum() for rows in members]),
                                  num_byzantine=num_byzantine)  # fmt: skip
        return found

    return combine


def group_rows(rows: int, groups: int, *, seed: int, round: int) -> list[Array]:
    """The rows of each group, sorted; sizes differ by at most one."""
    order = stream(seed, round=round, purpose="choice").permutation(rows)
    return [np.sort(order[k::groups]) for k in range(groups)]
