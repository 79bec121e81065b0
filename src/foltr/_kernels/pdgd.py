"""PDGD: local training of many clients in one call; as `learners.pdgd` computes it.

For every client: draw a query from its pool, display a Plackett-Luce list, simulate clicks, step. The numbers of an
interaction have fixed addresses in the client's streams, so the result does not depend on threads or order.

`train_logged` writes a log of the searches or reads them from one. It is a kernel of its own beside `train_clients`:
pair weights come from the scores of the stored list, not from the masses of the draw, because a log has no draw, and
they differ in the last digits. Recording and reading are one kernel with a flag and not two types, because only the
same machine code repeats a training to the bit: fast floating-point sums of two specialisations need not agree, and a
last digit that differs becomes another ranker within some thousand rounds.
"""

import math
from typing import NamedTuple

from foltr._kernels.cohort import (
    Address,
    Candidates,
    ClickTables,
    Cohort,
    Collection,
    candidates_of,
    click_list,
    drawn_query,
    first_click,
    first_query,
    list_ndcg,
    next_query,
    user_at,
)
from foltr._kernels.compile import ZERO, callee, kernel
from foltr._kernels.lists import draw_list, weigh_list
from foltr._kernels.rankers import RankerRecord, add_gradient, score_list
from foltr._kernels.rng import CLICKS, QUERIES, RANKING, address
from foltr._kernels.simd import weigh_pairs as weigh_lanes
from foltr._kernels.simd.lanes import BLOCK, LANES, PLACE_BITS
from foltr._kernels.workspace import Workspace, ahead, fetch
from foltr.types import Array

DRAWS = PLACE_BITS + 1  # numbers set aside for drawing one list, one for each document


class PdgdStep(NamedTuple):
    learning_rate: float
    all_shown: bool  # every displayed document without a click is a negative
    prox_mu: float = 0.0  # FedProx: a step also goes back by learning_rate * prox_mu times the way from the start
    clip: float = 0.0  # above 0: after each step the parameters are scaled back to that L2 norm
    summed: bool = False  # gradients are taken at the start and added up, instead of one step an interaction


class Training(NamedTuple):
    """Arrays that a training call starts from and fills."""

    starts: Array  # [clients, P] parameters at the start; one row if they are the same for all
    trained: Array  # [clients, P] each client's parameters at the end
    ndcg: Array  # [interactions]
    max_rr: Array  # [interactions]


@kernel
def train_clients(
    data: Collection, cohort: Cohort, users: ClickTables, where: Address, ranker: RankerRecord, learner: PdgdStep,
    training: Training, workspace: Workspace,
) -> None:  # fmt: skip
    """Fills the clients' parameters after their local steps, and the online metrics of each interaction."""
    own, k = workspace.own, users.click.shape[1]
    coming = first_query(cohort, ZERO, where)
    for c in range(cohort.clients.size):
        begun = training.starts[min(c, training.starts.shape[0] - 1)]
        for p in range(begun.size):
            own[p] = begun[p]
        theta = begun if learner.summed else own
        queries_at = address(where.seed, where.round, cohort.clients[c], QUERIES)
        ranking_at = address(where.seed, where.round, cohort.clients[c], RANKING)
        clicks_at = address(where.seed, where.round, cohort.clients[c], CLICKS)
        for step in range(cohort.steps[c]):
            listed = candidates_of(data, coming, k)
            coming = next_query(cohort, c, step, where, queries_at)
            number = where.first_step + step
            after = ahead(data.features, data.offsets[coming], data.offsets[coming + 1])
            score_list(data.features, listed.first, listed.documents, theta, ranker, workspace)
            user = user_at(cohort, c, number, users, where)
            draw_list(listed.documents, listed.k, ranking_at, number * DRAWS, workspace, after)
            click_list(data.labels, listed, users, user, clicks_at, 2 * number * k, workspace)
            portion = (listed.documents + BLOCK - 1) // BLOCK + 1  # drawing has asked for those before
            fetch(after, portion)
            slot = cohort.slots[c] + step
            training.ndcg[slot] = list_ndcg(data, listed, workspace.ranking)
            training.max_rr[slot] = first_click(workspace.clicks, listed.k)
            if learner.prox_mu > 0.0:
                for p in range(begun.size):
                    workspace.drift[p] = own[p] - begun[p]
            fetch(after, portion + 1)
            reach = pair_weights(listed.k, learner.all_shown, workspace)
            fetch(after, portion + 2)
            if reach > 0:
                scale_weights(data, listed, reach, learner.learning_rate, workspace)
                add_gradient(data.features, reach, theta, ranker, workspace, own)
            if learner.prox_mu > 0.0:
                for p in range(begun.size):
                    own[p] -= learner.learning_rate * learner.prox_mu * workspace.drift[p]
            if learner.clip > 0.0:
                scale_back(own, learner.clip)
        for p in range(own.size):
            training.trained[c, p] = own[p]


@callee
def pair_weights(k: int, all_shown: bool, workspace: Workspace) -> int:
    """Sum of pair weights for each displayed document; returns how many of them are in pairs, counted from the top."""
    clicks, weights, positives, negatives = (
        workspace.clicks,
        workspace.weights,
        workspace.positives,
        workspace.negatives,
    )
    last, won, lost = -1, ZERO, ZERO
    for rank in range(k):
        weights[rank] = 0.0
        last = rank if clicks[rank] else last
    reach = k if all_shown else min(last + 2, k)
    for rank in range(reach):  # without a branch on the clicks, which no processor predicts
        positives[won] = rank
        negatives[lost] = rank
        won += clicks[rank]
        lost += not clicks[rank]
        workspace.inverse[rank] = 1.0 / workspace.normalizers[rank]
    if last < 0 or lost == 0:
        return 0
    if workspace.shifts[0] == workspace.shifts[reach - 1]:
        weigh_pairs(won, lost, reach, workspace)
    else:
        weigh_pairs_across_scales(won, lost, workspace)
    at = 0
    for positive in positives[:won]:
        total = 0.0
        for negative in negatives[:lost]:
            weight = workspace.pair_weights[at]
            weights[negative] -= weight
            total += weight
            at += 1
        weights[positive] += total
    return reach


@callee
def weigh_pairs(won: int, lost: int, reach: int, workspace: Workspace) -> None:
    """rho * sigma' of every pair, several at a time."""
    pairs = workspace.pairs
    at = 0
    for positive in workspace.positives[:won]:
        for negative in workspace.negatives[:lost]:
            i, j = min(positive, negative), max(positive, negative)
            pairs[0, at], pairs[1, at] = i, j
            pairs[2, at], pairs[3, at] = workspace.chosen[i], workspace.chosen[j]
            at += 1
    for some in range(0, at, LANES):
        weigh_lanes(pairs, some, workspace.normalizers, workspace.inverse, reach, workspace.pair_weights)


@callee
def weigh_pairs_across_scales(won: int, lost: int, workspace: Workspace) -> None:
    at = 0
    for positive in workspace.positives[:won]:
        for negative in workspace.negatives[:lost]:
            weight = pair_weight_across_scales(min(positive, negative), max(positive, negative), workspace)
            workspace.pair_weights[at] = weight
            at += 1


@callee
def pair_weight_across_scales(i: int, j: int, workspace: Workspace) -> float:
    """rho * sigma' of the documents at ranks i < j from scores, where the shift changed somewhere in the list."""
    upper, lower = workspace.scores[workspace.ranking[i]], workspace.scores[workspace.ranking[j]]
    ratio = math.exp(-abs(upper - lower))
    odds = 1.0
    for rank in range(i + 1, j + 1):
        high, low = math.exp(upper - workspace.shifts[rank]), math.exp(lower - workspace.shifts[rank])
        odds *= (max(workspace.normalizers[rank] - low, 0.0) + high) / workspace.normalizers[rank]
    return ratio / ((1.0 + ratio) * (1.0 + ratio) * (1.0 + odds))


@callee
def scale_weights(data: Collection, listed: Candidates, reach: int, learning_rate: float, workspace: Workspace) -> None:
    """Fills the steps of the first ranks, and where their features begin."""
    for rank in range(reach):
        workspace.rows[rank] = (listed.first + workspace.ranking[rank]) * data.features.shape[1]
        workspace.steps[rank] = learning_rate * workspace.weights[rank]


@callee
def scale_back(parameters: Array, radius: float) -> None:
    """To an L2 norm of at most `radius`."""
    square = 0.0
    for p in range(parameters.size):
        square += parameters[p] * parameters[p]
    norm = math.sqrt(square)
    if norm > radius:
        for p in range(parameters.size):
            parameters[p] *= radius / norm


class LoggedTraining(NamedTuple):
    """Arrays that a call starts from and fills. Searches of client c are the rows slots[c] .. slots[c] + steps[c]."""

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
