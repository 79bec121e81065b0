"""Recording and learning again, in machine code: local training that writes down what it sees, and its repetition."""

import math

import numpy as np

from foltr.clicks.simulate import click_list
from foltr.kernel import kernel
from foltr.learners.cohort import Cohort, Collection, drawn_query, first_click, list_ndcg, user_at
from foltr.learners.pdgd_kernel import DRAWS, add_gradient, pair_weights
from foltr.rankers.draw_kernel import draw_list
from foltr.rankers.kernels import ahead, exp_of_nonpositive, score_list
from foltr.rankers.scratch import Scratch
from foltr.rng import CLICKS, QUERIES, RANKING, address
from foltr.types import Array

_FADED = 1e-100  # of the largest mass: where a shown document has less, ranks get scales of their own


@kernel
def step_clients(
    data: Collection, cohort: Cohort, click: Array, stop: Array, seed: int, round: int, first_step: int,
    recording: bool, parameters: Array, hidden: int, relu: bool, rate: float, all_shown: bool,
    room: Scratch, listed: Array, out: Array, ndcg: Array, max_rr: Array,
    queries: Array, rankings: Array, clicks: Array,
) -> None:  # fmt: skip
    """Fills out [clients, P]. The searches of client c are the rows slots[c] .. slots[c] + steps[c] of the log.

    Recording, they are made here and written down with their online measures; else they are read. What follows is
    the same machine code, so that learning from a log repeats the training to the bit: a last digit that differs would
    grow into another ranker within some thousand rounds.
    """
    shown = rankings.shape[1]
    for c in range(cohort.clients.size):
        for p in range(parameters.size):
            out[c, p] = parameters[p]
        theta = out[c]
        queries_at = address(seed, round, cohort.clients[c], QUERIES)
        for step in range(cohort.steps[c]):
            row = cohort.slots[c] + step
            if recording:
                queries[row] = drawn_query(cohort, c, queries_at[0], queries_at[1], first_step + step)
            first = data.offsets[queries[row]]
            count = data.offsets[queries[row] + 1] - first
            length = min(shown, count)
            score_list(data.features, first, count, theta, hidden, relu, room, ahead(data.features, first, first, 0))
            if recording:
                user = user_at(cohort, c, first_step + step, click.shape[0], seed, round)
                search(data, first, count, length, click[user], stop[user], seed, round, cohort.clients[c],
                       first_step + step, room)  # fmt: skip
                ndcg[row] = list_ndcg(data, queries[row], room.ranking, length)
                max_rr[row] = first_click(room.clicks, length)
                for rank in range(length):
                    rankings[row, rank] = room.ranking[rank]
                    clicks[row, rank] = room.clicks[rank]
            for rank in range(length):
                room.ranking[rank] = rankings[row, rank]
                room.clicks[rank] = clicks[row, rank]
            weigh_list(count, length, room, listed)
            weighed = pair_weights(length, all_shown, room)
            if weighed > 0:
                add_gradient(data.features, first, weighed, theta, hidden, relu, rate, room, theta)


@kernel
def search(
    data: Collection, first: int, count: int, length: int, click: Array, stop: Array, seed: int, round: int,
    client: int, step: int, room: Scratch,
) -> None:  # fmt: skip
    """One person's list and clicks, from the same random numbers as in `train_clients`."""
    ranking_at = address(seed, round, client, RANKING)
    clicks_at = address(seed, round, client, CLICKS)
    draw_list(count, length, ranking_at[0], ranking_at[1], step * DRAWS, room, ahead(data.features, first, first, 0))
    position = 2 * step * click.shape[0]
    click_list(data.labels, first, room.ranking, length, click, stop, clicks_at[0], clicks_at[1], position, room.clicks)


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
