"""Recorded training and its repetition: local PDGD steps that write a log, or read their searches from one.

A kernel of its own beside `pdgd.train_clients`: pair weights come from the scores of the stored list, not from the
masses of the draw, because a log has no draw, and they differ in the last digits. Recording and reading are one kernel
with a flag and not two types, because only the same machine code repeats a training to the bit: fast floating-point
sums of two specialisations need not agree, and a last digit that differs becomes another ranker within some thousand
rounds.
"""

from typing import NamedTuple

from foltr._kernels.clicks import click_list
from foltr._kernels.cohort import (
    Address,
    Candidates,
    ClickTables,
    Cohort,
    Collection,
    candidates_of,
    drawn_query,
    first_click,
    list_ndcg,
    user_at,
)
from foltr._kernels.compile import callee, kernel
from foltr._kernels.normalizers import weigh_list
from foltr._kernels.pdgd import DRAWS, PdgdStep, pair_weights, scale_weights
from foltr._kernels.plackett_luce import draw_list
from foltr._kernels.prefetching import ahead
from foltr._kernels.rankers import RankerRecord, add_gradient, score_list
from foltr._kernels.rng import CLICKS, QUERIES, RANKING, address
from foltr._kernels.workspace import Workspace
from foltr.types import Array


class LoggedTraining(NamedTuple):
    """What a call starts from and fills. The searches of client c are the rows slots[c] .. slots[c] + steps[c]."""

    recording: bool  # searches are simulated and written, with their online metrics; else they are read
    start: Array  # [P]
    trained: Array  # [clients, P]
    ndcg: Array  # [rows]
    max_rr: Array  # [rows]
    queries: Array  # [rows]
    rankings: Array  # [rows, k]
    clicks: Array  # [rows, k]


@kernel
def train_logged(
    data: Collection, cohort: Cohort, users: ClickTables, where: Address, ranker: RankerRecord, learner: PdgdStep,
    log: LoggedTraining, workspace: Workspace,
) -> None:  # fmt: skip
    """Fills the clients' parameters after a plain step an interaction: `prox_mu`, `clip` and `summed` are not used."""
    k = log.rankings.shape[1]
    for c in range(cohort.clients.size):
        for p in range(log.start.size):
            log.trained[c, p] = log.start[p]
        theta = log.trained[c]
        queries_at = address(where.seed, where.round, cohort.clients[c], QUERIES)
        for step in range(cohort.steps[c]):
            row = cohort.slots[c] + step
            if log.recording:
                log.queries[row] = drawn_query(cohort, c, queries_at, where.first_step + step)
            listed = candidates_of(data, log.queries[row], k)
            score_list(data.features, listed.first, listed.documents, theta, ranker, workspace)
            if log.recording:
                search(data, cohort, c, step, listed, users, where, workspace)
                log.ndcg[row] = list_ndcg(data, listed, workspace.ranking)
                log.max_rr[row] = first_click(workspace.clicks, listed.k)
                for rank in range(listed.k):
                    log.rankings[row, rank] = workspace.ranking[rank]
                    log.clicks[row, rank] = workspace.clicks[rank]
            for rank in range(listed.k):
                workspace.ranking[rank] = log.rankings[row, rank]
                workspace.clicks[rank] = log.clicks[row, rank]
            weigh_list(listed.documents, listed.k, workspace)
            reach = pair_weights(listed.k, learner.all_shown, workspace)
            if reach > 0:
                scale_weights(data, listed, reach, learner.learning_rate, workspace)
                add_gradient(data.features, reach, theta, ranker, workspace, theta)


@callee
def search(
    data: Collection, cohort: Cohort, c: int, step: int, listed: Candidates, users: ClickTables, where: Address,
    workspace: Workspace,
) -> None:  # fmt: skip
    """A client's list and clicks, from the same random numbers as in `train_clients`."""
    ranking_at = address(where.seed, where.round, cohort.clients[c], RANKING)
    clicks_at = address(where.seed, where.round, cohort.clients[c], CLICKS)
    number = where.first_step + step
    user = user_at(cohort, c, number, users, where)
    nothing = ahead(data.features, listed.first, listed.first)
    draw_list(listed.documents, listed.k, ranking_at, number * DRAWS, workspace, nothing)
    click_list(data.labels, listed, users, user, clicks_at, 2 * number * users.click.shape[1], workspace)
