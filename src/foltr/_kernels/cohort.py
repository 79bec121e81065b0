"""The clients and data of one round, as records that kernels take, and functions that all learners' kernels share.

Clicks on a displayed list come from the same uniform numbers as in `foltr.clicks.clicks_on`: rank r of an interaction
uses two, the first decides the click, the second whether the user stops after it.
"""

from typing import NamedTuple

import numpy as np

from foltr._kernels.compile import callee, inlined
from foltr._kernels.metrics import ideal_dcg
from foltr._kernels.rng import QUERIES, USERS, Stream, address, uniform_at
from foltr._kernels.workspace import Workspace
from foltr.metrics import gain_table
from foltr.types import DRAWN, Array, Dataset


class Collection(NamedTuple):
    features: Array  # [documents, d] float32
    labels: Array  # [documents] int8
    offsets: Array  # [queries + 1]
    ideal: Array  # [queries] best DCG@10, 0 where nothing is relevant
    gains: Array  # [grades, 10] (2^grade - 1) / log2(rank + 1)


def collection_of(train: Dataset, grades: int) -> Collection:
    """A data set with what online metrics need. Views that cannot be written: all data shares one compiled kernel."""
    features, labels, offsets = (array.view() for array in (train.features, train.labels, train.offsets))
    for view in (features, labels, offsets):
        view.flags.writeable = False
    return Collection(features, labels, offsets, ideal_dcg(labels, offsets, grades), gain_table(grades))


class ClickTables(NamedTuple):
    """Click probabilities of each kind of user."""

    click: Array  # [users, k, grades] probability of a click on what is read
    stop: Array  # [users, grades] probability of stopping after a click


class Cohort(NamedTuple):
    clients: Array  # [n] whose random streams are used
    steps: Array  # [n] interactions of each
    slots: Array  # [n] where each one's interactions start in the online metrics
    users: Array  # [n] which click model, or DRAWN
    pools: Array  # queries, pool after pool
    pool_start: Array  # [n]
    pool_stop: Array  # [n]


class Address(NamedTuple):
    """Which random streams a call reads, with the clients of its cohort."""

    seed: int
    round: int
    first_step: int = 0  # interactions of these streams that were done before


class Candidates(NamedTuple):
    """The documents of one search."""

    query: int
    first: int  # row of the first document
    documents: int
    k: int  # documents that are displayed


@inlined
def candidates_of(data: Collection, query: int, k: int) -> Candidates:
    first = data.offsets[query]
    count = data.offsets[query + 1] - first
    return Candidates(query, first, count, min(k, count))


@callee
def drawn_query(cohort: Cohort, c: int, stream: Stream, index: int) -> int:
    """The query that a number of a stream draws from a client's pool."""
    size = cohort.pool_stop[c] - cohort.pool_start[c]
    query: int = cohort.pools[cohort.pool_start[c] + int(uniform_at(stream[0], stream[1], index) * size)]
    return query


@callee
def first_query(cohort: Cohort, c: int, where: Address) -> int:
    """The query of a client's first step."""
    return drawn_query(cohort, c, address(where.seed, where.round, cohort.clients[c], QUERIES), where.first_step)


@callee
def next_query(cohort: Cohort, c: int, step: int, where: Address, stream: Stream) -> int:
    """The query after this one: the client's next, or the first of the next client who has one."""
    if step + 1 < cohort.steps[c]:
        return drawn_query(cohort, c, stream, where.first_step + step + 1)
    following = c + 1
    while following < cohort.clients.size and cohort.steps[following] == 0:
        following += 1
    return first_query(cohort, following if following < cohort.clients.size else c, where)


@callee
def user_at(cohort: Cohort, c: int, step: int, users: ClickTables, where: Address) -> int:
    """The user who searches in a client's step."""
    user: int = cohort.users[c]
    if user == DRAWN:
        at = address(where.seed, where.round, cohort.clients[c], USERS)
        user = int(uniform_at(at[0], at[1], step) * users.click.shape[0])
    return user


@callee
def list_ndcg(data: Collection, listed: Candidates, ranking: Array) -> float:
    """nDCG@10 of a displayed list; 0 where nothing is relevant."""
    if data.ideal[listed.query] == 0.0:
        return 0.0
    total = 0.0
    for rank in range(min(listed.k, data.gains.shape[1])):
        total += data.gains[data.labels[listed.first + ranking[rank]], rank]
    return total / data.ideal[listed.query]


@callee
def first_click(clicks: Array, k: int) -> float:
    """MaxRR: 1 / rank of the first click within 10, 0 without one."""
    first = np.inf
    for rank in range(min(k, 10) - 1, -1, -1):  # from below, because no processor predicts where it is
        first = rank + 1.0 if clicks[rank] else first
    return 1.0 / first


@callee
def click_list(
    labels: Array, listed: Candidates, users: ClickTables, user: int, stream: Stream, position: int,
    workspace: Workspace,
) -> None:  # fmt: skip
    """Fills the clicks of a user on the documents listed.first + ranking[0 .. k]."""
    click, stop = users.click[user], users.stop[user]
    looking = True
    for rank in range(listed.k):  # without a branch on the draws, which no processor predicts
        grade = labels[listed.first + workspace.ranking[rank]]
        clicked = looking & (uniform_at(stream[0], stream[1], position + 2 * rank) < click[rank, grade])
        workspace.clicks[rank] = clicked
        looking &= not (clicked & (uniform_at(stream[0], stream[1], position + 2 * rank + 1) < stop[grade]))
