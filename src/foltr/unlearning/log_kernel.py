"""Recording and learning again, in machine code: local training that writes down what it sees, and its repetition.

`record_clients` is `learners.pdgd_kernel.train_clients` with a notebook; `learn_clients` steps on what was written.
"""

import math

import numpy as np

from foltr.clicks.simulate import click_list
from foltr.kernel import kernel
from foltr.learners.cohort import Cohort, Collection, drawn_query, first_click, list_ndcg, user_at
from foltr.learners.pdgd_kernel import DRAWS, add_gradient, pair_weights
from foltr.rankers.kernels import Scratch, draw_list, exp_of_nonpositive, score_list
from foltr.rng import CLICKS, QUERIES, RANKING, address
from foltr.types import Array

_FADED = 1e-100  # of the largest mass: where a shown document has less, ranks get scales of their own


@kernel
def record_clients(
    data: Collection, cohort: Cohort, click: Array, stop: Array, seed: int, round: int, first_step: int,
    parameters: Array, hidden: int, relu: bool, rate: float, all_shown: bool, room: Scratch,
    out: Array, ndcg: Array, max_rr: Array, queries: Array, rankings: Array, clicks: Array,
) -> None:  # fmt: skip
    """Fills out [clients, P] and, for each interaction, its query, list, clicks and online measures."""
    shown = click.shape[1]
    for c in range(cohort.clients.size):
        for p in range(parameters.size):
            out[c, p] = parameters[p]
        theta = out[c]
        queries_at = address(seed, round, cohort.clients[c], QUERIES)
        ranking_at = address(seed, round, cohort.clients[c], RANKING)
        clicks_at = address(seed, round, cohort.clients[c], CLICKS)
        for step in range(cohort.steps[c]):
            query = drawn_query(cohort, c, queries_at[0], queries_at[1], first_step + step)
            first = data.offsets[query]
            count = data.offsets[query + 1] - first
            length = min(shown, count)
            score_list(data.features, first, count, theta, hidden, relu, room, first)
            user = user_at(cohort, c, first_step + step, click.shape[0], seed, round)
            draw_list(count, length, ranking_at[0], ranking_at[1], (first_step + step) * DRAWS, room)
            click_list(
                data.labels, first, room.ranking, length, click[user], stop[user],
                clicks_at[0], clicks_at[1], 2 * (first_step + step) * shown, room.clicks,
            )  # fmt: skip
            slot = cohort.slots[c] + step
            ndcg[slot] = list_ndcg(data, query, room.ranking, length)
            max_rr[slot] = first_click(room.clicks, length)
            queries[slot] = query
            for rank in range(length):
                rankings[slot, rank] = room.ranking[rank]
                clicks[slot, rank] = room.clicks[rank]
            if pair_weights(length, all_shown, room):
                add_gradient(data.features, first, length, theta, hidden, relu, rate, room, theta)


@kernel
def learn_clients(
    data: Collection, starts: Array, queries: Array, rankings: Array, clicks: Array, parameters: Array,
    hidden: int, relu: bool, rate: float, all_shown: bool, room: Scratch, listed: Array, out: Array,
) -> None:  # fmt: skip
    """Fills out [clients, P]; client c steps on the logged rows starts[c] .. starts[c + 1]."""
    shown = rankings.shape[1]
    for c in range(starts.size - 1):
        for p in range(parameters.size):
            out[c, p] = parameters[p]
        theta = out[c]
        for row in range(starts[c], starts[c + 1]):
            first = data.offsets[queries[row]]
            count = data.offsets[queries[row] + 1] - first
            length = min(shown, count)
            for rank in range(length):
                room.ranking[rank] = rankings[row, rank]
                room.clicks[rank] = clicks[row, rank]
            score_list(data.features, first, count, theta, hidden, relu, room, first)
            weigh_list(count, length, room, listed)
            if pair_weights(length, all_shown, room):
                add_gradient(data.features, first, length, theta, hidden, relu, rate, room, theta)


@kernel
def weigh_list(count: int, shown: int, room: Scratch, listed: Array) -> None:
    """What `draw_list` leaves for a drawn list, for one that is given: masses at each rank under the current scores.

    Summed from the last rank upwards, so that nothing is ever subtracted. `listed` [longest] is false between lists.
    """
    scores, ranking = room.scores, room.ranking
    for rank in range(shown):
        listed[ranking[rank]] = True
    top = -np.inf
    for i in range(count):
        top = max(top, scores[i])
    remaining = 0.0
    for i in range(count):
        mass = exp_of_nonpositive(scores[i] - top)
        remaining += 0.0 if listed[i] else mass
    faded = False
    for rank in range(shown - 1, -1, -1):
        room.chosen[rank] = exp_of_nonpositive(scores[ranking[rank]] - top)
        faded |= room.chosen[rank] < _FADED
        remaining += room.chosen[rank]
        room.masses[rank] = remaining
        room.shifts[rank] = top
    if faded:
        weigh_across_scales(count, shown, room, listed)
    for rank in range(shown):
        listed[ranking[rank]] = False


@kernel
def weigh_across_scales(count: int, shown: int, room: Scratch, listed: Array) -> None:
    """The same where a shown document has next to no mass beside the others: a list that was drawn once need not be
    likely now. A rank's shift is the best score that remains there, less the rank: no two are alike, so that
    `pair_weights` compares scores and not masses that have faded.
    """
    scores, ranking = room.scores, room.ranking
    top = scores[ranking[shown - 1]]
    for i in range(count):
        if not listed[i]:
            top = max(top, scores[i])
    remaining = 0.0
    for i in range(count):
        if not listed[i]:
            remaining += exp_of_nonpositive(scores[i] - top)
    for rank in range(shown - 1, -1, -1):
        score = scores[ranking[rank]]
        if score > top:
            remaining *= exp_of_nonpositive(top - score)
            top = score
        mass, stretch = exp_of_nonpositive(score - top), math.exp(rank)
        remaining += mass
        room.chosen[rank] = mass * stretch
        room.masses[rank] = remaining * stretch
        room.shifts[rank] = top - rank
