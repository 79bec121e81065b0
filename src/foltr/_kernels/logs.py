"""Recording and learning again, in machine code: local training that writes down what it sees, and its repetition."""

from foltr._kernels.clicks import click_list
from foltr._kernels.cohort import Cohort, Collection, drawn_query, first_click, list_ndcg, user_at
from foltr._kernels.compile import kernel
from foltr._kernels.normalizers import weigh_list
from foltr._kernels.pdgd import DRAWS, add_gradient, pair_weights
from foltr._kernels.plackett_luce import draw_list
from foltr._kernels.prefetching import ahead
from foltr._kernels.rng import CLICKS, QUERIES, RANKING, address
from foltr._kernels.scoring import score_list
from foltr._kernels.workspace import Workspace
from foltr.types import Array


@kernel
def step_clients(
    data: Collection, cohort: Cohort, click: Array, stop: Array, seed: int, round: int, first_step: int,
    recording: bool, parameters: Array, hidden: int, relu: bool, rate: float, all_shown: bool,
    room: Workspace, out: Array, ndcg: Array, max_rr: Array,
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
            score_list(data.features, first, count, theta, hidden, relu, room)
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
            weigh_list(count, length, room)
            weighed = pair_weights(length, all_shown, room)
            if weighed > 0:
                add_gradient(data.features, first, weighed, theta, hidden, relu, rate, room, theta)


@kernel
def search(
    data: Collection, first: int, count: int, length: int, click: Array, stop: Array, seed: int, round: int,
    client: int, step: int, room: Workspace,
) -> None:  # fmt: skip
    """One person's list and clicks, from the same random numbers as in `train_clients`."""
    ranking_at = address(seed, round, client, RANKING)
    clicks_at = address(seed, round, client, CLICKS)
    draw_list(count, length, ranking_at[0], ranking_at[1], step * DRAWS, room, ahead(data.features, first, first))
    position = 2 * step * click.shape[0]
    click_list(data.labels, first, room.ranking, length, click, stop, clicks_at[0], clicks_at[1], position, room.clicks)
