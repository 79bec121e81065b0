"""PDGD in machine code: local training of many clients in one call, and the twins of `pdgd` that it is made of.

For every client: draw a query from its pool, show a Plackett-Luce list, simulate clicks, step. The numbers of an
interaction have fixed addresses in the client's streams, so the result does not depend on threads or order.
"""

import math

from foltr._kernels.clicks import click_list
from foltr._kernels.cohort import Cohort, Collection, first_click, first_query, list_ndcg, next_query, user_at
from foltr._kernels.compile import kernel
from foltr._kernels.mlp import add_mlp_gradient
from foltr._kernels.plackett_luce import draw_list
from foltr._kernels.prefetching import ahead, fetch
from foltr._kernels.rng import CLICKS, QUERIES, RANKING, address
from foltr._kernels.scoring import score_list
from foltr._kernels.simd.lanes import LANES
from foltr._kernels.simd.pairs import weigh
from foltr._kernels.simd.products import add_rows
from foltr._kernels.simd.race import HEAT, PLACES
from foltr._kernels.workspace import Workspace
from foltr.types import Array

DRAWS = PLACES + 1  # numbers set aside for drawing one list, one for each document


@kernel
def train_clients(
    data: Collection, cohort: Cohort, click: Array, stop: Array, seed: int, round: int, first_step: int,
    starts: Array, hidden: int, relu: bool, rate: float, all_shown: bool, pull: float, clip: float, summed: bool,
    room: Workspace, out: Array, ndcg: Array, max_rr: Array,
) -> None:  # fmt: skip
    """Fills out [clients, P] with each client's parameters, and the online measures of each interaction.

    `starts` [clients, P]: what each begins with; one row if it is the same for all.
    `first_step`: how many interactions of these streams were done before.
    `summed`: every gradient is taken at the start parameters and added up, instead of one step an interaction.
    `pull` > 0: each step also goes back by rate * pull times the way from the start (FedProx).
    `clip` > 0: after each step the parameters are scaled back to that L2 norm.
    """
    shown = click.shape[1]
    coming = first_query(cohort, 0, first_step, seed, round)
    for c in range(cohort.clients.size):
        begun = starts[min(c, starts.shape[0] - 1)]
        own = room.own
        for p in range(begun.size):
            own[p] = begun[p]
        theta = begun if summed else own
        queries_at = address(seed, round, cohort.clients[c], QUERIES)
        ranking_at = address(seed, round, cohort.clients[c], RANKING)
        clicks_at = address(seed, round, cohort.clients[c], CLICKS)
        for step in range(cohort.steps[c]):
            query = coming
            coming = next_query(cohort, c, step, first_step, seed, round, queries_at[0], queries_at[1])
            first = data.offsets[query]
            count = data.offsets[query + 1] - first
            length = min(shown, count)
            after = ahead(data.features, data.offsets[coming], data.offsets[coming + 1])
            score_list(data.features, first, count, theta, hidden, relu, room)
            user = user_at(cohort, c, first_step + step, click.shape[0], seed, round)
            draw_list(count, length, ranking_at[0], ranking_at[1], (first_step + step) * DRAWS, room, after)
            click_list(
                data.labels, first, room.ranking, length, click[user], stop[user],
                clicks_at[0], clicks_at[1], 2 * (first_step + step) * shown, room.clicks,
            )  # fmt: skip
            portion = (count + HEAT - 1) // HEAT + 1  # drawing has asked for those before
            fetch(after, portion)
            slot = cohort.slots[c] + step
            ndcg[slot] = list_ndcg(data, query, room.ranking, length)
            max_rr[slot] = first_click(room.clicks, length)
            if pull > 0.0:
                for p in range(begun.size):
                    room.drift[p] = own[p] - begun[p]
            fetch(after, portion + 1)
            weighed = pair_weights(length, all_shown, room)
            fetch(after, portion + 2)
            if weighed > 0:
                add_gradient(data.features, first, weighed, theta, hidden, relu, rate, room, own)
            if pull > 0.0:
                for p in range(begun.size):
                    own[p] -= rate * pull * room.drift[p]
            if clip > 0.0:
                scale_back(own, clip)
        for p in range(own.size):
            out[c, p] = own[p]


@kernel
def pair_weights(shown: int, all_shown: bool, room: Workspace) -> int:
    """Sum of pair weights for each shown document; returns how many of them are in pairs, counted from the top."""
    clicks, weights, winners, losers = room.clicks, room.weights, room.winners, room.losers
    last, won, lost = -1, 0, 0
    for rank in range(shown):
        weights[rank] = 0.0
        last = rank if clicks[rank] else last
    reach = shown if all_shown else min(last + 2, shown)
    for rank in range(reach):  # without a branch on the clicks, which no processor can foresee
        winners[won] = rank
        losers[lost] = rank
        won += clicks[rank]
        lost += not clicks[rank]
        room.shares[rank] = 1.0 / room.masses[rank]
    if last < 0 or lost == 0:
        return 0
    if room.shifts[0] == room.shifts[reach - 1]:
        weigh_pairs(won, lost, reach, room)
    else:
        weigh_pairs_across_scales(won, lost, room)
    at = 0
    for winner in winners[:won]:
        total = 0.0
        for loser in losers[:lost]:
            weight = room.pair_weights[at]
            weights[loser] -= weight
            total += weight
            at += 1
        weights[winner] += total
    return reach


@kernel
def weigh_pairs(won: int, lost: int, reach: int, room: Workspace) -> None:
    """rho * sigma' of every pair, several at a time."""
    pairs = room.pairs
    at = 0
    for winner in room.winners[:won]:
        for loser in room.losers[:lost]:
            i, j = min(winner, loser), max(winner, loser)
            pairs[0, at], pairs[1, at] = i, j
            pairs[2, at], pairs[3, at] = room.chosen[i], room.chosen[j]
            at += 1
    for some in range(0, at, LANES):
        weigh(pairs, some, room.masses, room.shares, reach, room.pair_weights)


@kernel
def weigh_pairs_across_scales(won: int, lost: int, room: Workspace) -> None:
    at = 0
    for winner in room.winners[:won]:
        for loser in room.losers[:lost]:
            room.pair_weights[at] = pair_weight_across_scales(min(winner, loser), max(winner, loser), room)
            at += 1


@kernel
def pair_weight_across_scales(i: int, j: int, room: Workspace) -> float:
    """rho * sigma' of the documents at ranks i < j from scores, where the shift changed somewhere in the list."""
    upper, lower = room.scores[room.ranking[i]], room.scores[room.ranking[j]]
    ratio = math.exp(-abs(upper - lower))
    odds = 1.0
    for rank in range(i + 1, j + 1):
        high, low = math.exp(upper - room.shifts[rank]), math.exp(lower - room.shifts[rank])
        odds *= (max(room.masses[rank] - low, 0.0) + high) / room.masses[rank]
    return ratio / ((1.0 + ratio) * (1.0 + ratio) * (1.0 + odds))


@kernel
def add_gradient(
    features: Array, first: int, shown: int, theta: Array, hidden: int, relu: bool, rate: float, room: Workspace,
    out: Array,
) -> None:  # fmt: skip
    """out += rate * gradient of sum(weights * score) at theta, by which the list was scored."""
    for rank in range(shown):
        room.rows[rank] = (first + room.ranking[rank]) * features.shape[1]
        room.steps[rank] = rate * room.weights[rank]
    if hidden > 0:
        add_mlp_gradient(features, shown, theta, hidden, relu, room, out)
        return
    add_rows(features.reshape(-1), room.rows, room.steps, shown, out)


@kernel
def scale_back(parameters: Array, radius: float) -> None:
    """To an L2 norm of at most `radius`."""
    square = 0.0
    for p in range(parameters.size):
        square += parameters[p] * parameters[p]
    norm = math.sqrt(square)
    if norm > radius:
        for p in range(parameters.size):
            parameters[p] *= radius / norm
