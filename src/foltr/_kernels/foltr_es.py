"""FOLtR-ES in machine code: what many clients measure of their perturbed rankers, in one call."""

from foltr._kernels.best_list import best_list
from foltr._kernels.clicks import click_list
from foltr._kernels.cohort import Cohort, Collection, drawn_query, first_click, list_ndcg, user_at
from foltr._kernels.compile import kernel
from foltr._kernels.prefetching import ahead, fetch
from foltr._kernels.rng import CLICKS, PERTURBATION, PRIVATISE, QUERIES, address, uniform_at
from foltr._kernels.scoring import score_list
from foltr._kernels.simd.normals import NORMALS, fill_normals
from foltr._kernels.workspace import Workspace
from foltr.types import Array


@kernel
def measure_clients(
    data: Collection, cohort: Cohort, click: Array, stop: Array, seed: int, round: int, parameters: Array,
    hidden: int, relu: bool, sigma: float, antithetic: bool, coupled: bool, by_pattern: bool, p: float,
    outcomes: Array, room: Workspace, perturbations: Array, values: Array, ndcg: Array, max_rr: Array,
) -> None:  # fmt: skip
    """Fills perturbations [clients, P] and values [clients, 2]: the mean objective under +e and -e.

    Without antithetic variates all interactions are under +e.
    """
    shown = click.shape[1]
    theta = room.change
    numbers = 1 + 2 * shown  # an interaction uses at most so many of a coupled stream
    for c in range(cohort.clients.size):
        perturbation_at = address(seed, round, cohort.clients[c], PERTURBATION)
        perturbation = perturbations[c]
        fill_normals(perturbation_at[0], perturbation_at[1], (perturbation.size + NORMALS - 1) // NORMALS, room.normals)
        for i in range(perturbation.size):
            perturbation[i] = room.normals[i]
        queries_at = address(seed, round, cohort.clients[c], QUERIES)
        clicks_at = address(seed, round, cohort.clients[c], CLICKS)
        privatise_at = address(seed, round, cohort.clients[c], PRIVATISE)
        query_stride, click_stride, click_first = 1, 2 * shown, 0
        if coupled:
            queries_at, clicks_at = perturbation_at, perturbation_at
            query_stride, click_stride, click_first = numbers, numbers, 1
        steps = cohort.steps[c]
        half = (steps + 1) // 2 if antithetic else steps
        values[c, 0], values[c, 1] = 0.0, 0.0
        coming = drawn_query(cohort, c, queries_at[0], queries_at[1], 0)
        for step in range(steps):
            side = 0 if step < half else 1
            if step == 0 or step == half:
                for i in range(parameters.size):
                    theta[i] = parameters[i] + (1.0 - 2.0 * side) * sigma * perturbation[i]
            query = coming
            coming = drawn_query(cohort, c, queries_at[0], queries_at[1], (step + 1) * query_stride)
            first = data.offsets[query]
            count = data.offsets[query + 1] - first
            length = min(shown, count)
            after = ahead(data.features, data.offsets[coming], data.offsets[coming + 1])
            score_list(data.features, first, count, theta, hidden, relu, room)
            user = user_at(cohort, c, step, click.shape[0], seed, round)
            for portion in range(4):  # what comes while the list is made; the rest is read in order
                fetch(after, portion)
            best_list(count, length, room)
            click_list(
                data.labels, first, room.ranking, length, click[user], stop[user],
                clicks_at[0], clicks_at[1], click_first + step * click_stride, room.clicks,
            )  # fmt: skip
            slot = cohort.slots[c] + step
            ndcg[slot] = list_ndcg(data, query, room.ranking, length)
            max_rr[slot] = first_click(room.clicks, length)
            outcome = outcome_number(room.clicks, length, by_pattern)
            if uniform_at(privatise_at[0], privatise_at[1], 2 * step) >= p:
                other = int(uniform_at(privatise_at[0], privatise_at[1], 2 * step + 1) * (outcomes.size - 1))
                outcome = other + 1 if other >= outcome else other
            values[c, side] += outcomes[outcome] / (half if side == 0 else steps - half)


@kernel
def outcome_number(clicks: Array, shown: int, by_pattern: bool) -> int:
    """Twin of `evolution.outcome_of`."""
    pattern = 0
    for rank in range(min(shown, 10)):
        if clicks[rank]:
            if not by_pattern:
                return rank + 1
            pattern |= 1 << rank
    return pattern
