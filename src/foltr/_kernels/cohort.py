"""Who trains on what in one round, as arrays that kernels take, and what kernels of all learners share."""

from typing import NamedTuple

import numpy as np

from foltr._kernels.compile import kernel
from foltr._kernels.metrics import ideal_dcg
from foltr._kernels.rng import QUERIES, USERS, address, uniform_at
from foltr.metrics import gain_table
from foltr.types import DRAWN, Array, Dataset


class Collection(NamedTuple):
    features: Array  # [documents, d] float32
    labels: Array  # [documents] int8
    offsets: Array  # [queries + 1]
    ideal: Array  # [queries] best DCG@10, 0 where nothing is relevant
    gains: Array  # [grades, 10] (2^grade - 1) / log2(rank + 1)


def collection_of(train: Dataset, grades: int) -> Collection:
    """A data set with what online measures need. Views that cannot be written: all data shares one compiled kernel."""
    features, labels, offsets = (array.view() for array in (train.features, train.labels, train.offsets))
    for view in (features, labels, offsets):
        view.flags.writeable = False
    return Collection(features, labels, offsets, ideal_dcg(labels, offsets, grades), gain_table(grades))


class Cohort(NamedTuple):
    clients: Array  # [n] whose random streams are used
    steps: Array  # [n] interactions of each
    slots: Array  # [n] where each one's interactions start in the online measures
    users: Array  # [n] which click behaviour, or DRAWN
    pools: Array  # queries, pool after pool
    pool_start: Array  # [n]
    pool_stop: Array  # [n]


@kernel
def drawn_query(cohort: Cohort, c: int, start: np.uint64, stride: np.uint64, index: int) -> int:
    """The query that a number of a stream draws from a client's pool."""
    size = cohort.pool_stop[c] - cohort.pool_start[c]
    query: int = cohort.pools[cohort.pool_start[c] + int(uniform_at(start, stride, index) * size)]
    return query


@kernel
def first_query(cohort: Cohort, c: int, first_step: int, seed: int, round: int) -> int:
    """The query of a client's first step."""
    at = address(seed, round, cohort.clients[c], QUERIES)
    return drawn_query(cohort, c, at[0], at[1], first_step)


@kernel
def next_query(
    cohort: Cohort, c: int, step: int, first_step: int, seed: int, round: int, start: np.uint64, stride: np.uint64
) -> int:
    """The query after this one: the client's next, or the first of the next client who has one."""
    if step + 1 < cohort.steps[c]:
        return drawn_query(cohort, c, start, stride, first_step + step + 1)
    following = c + 1
    while following < cohort.clients.size and cohort.steps[following] == 0:
        following += 1
    return first_query(cohort, following if following < cohort.clients.size else c, first_step, seed, round)


@kernel
def user_at(cohort: Cohort, c: int, step: int, behaviours: int, seed: int, round: int) -> int:
    """Who searches in a client's step."""
    user: int = cohort.users[c]
    if user == DRAWN:
        at = address(seed, round, cohort.clients[c], USERS)
        user = int(uniform_at(at[0], at[1], step) * behaviours)
    return user


@kernel
def list_ndcg(data: Collection, query: int, ranking: Array, shown: int) -> float:
    """nDCG@10 of a shown list; 0 where nothing is relevant."""
    if data.ideal[query] == 0.0:
        return 0.0
    first = data.offsets[query]
    total = 0.0
    for rank in range(min(shown, data.gains.shape[1])):
        total += data.gains[data.labels[first + ranking[rank]], rank]
    return total / data.ideal[query]


@kernel
def first_click(clicks: Array, shown: int) -> float:
    """MaxRR: 1 / rank of the first click within 10, 0 without one."""
    first = np.inf
    for rank in range(min(shown, 10) - 1, -1, -1):  # from below, because where it is cannot be foreseen
        first = rank + 1.0 if clicks[rank] else first
    return 1.0 / first
