"""FOLtR-ES: what many clients measure of their perturbed rankers in one call, and the perturbations alone."""

from typing import NamedTuple

from foltr._kernels.cohort import (
    Address,
    ClickTables,
    Cohort,
    Collection,
    candidates_of,
    click_list,
    drawn_query,
    first_click,
    list_ndcg,
    user_at,
)
from foltr._kernels.compile import ZERO, callee, kernel
from foltr._kernels.lists import best_list
from foltr._kernels.rankers import RankerRecord, score_list
from foltr._kernels.rng import CLICKS, PERTURBATION, PRIVATISE, QUERIES, Stream, address, uniform_at
from foltr._kernels.simd import fill_normals
from foltr._kernels.simd.lanes import NORMALS
from foltr._kernels.workspace import Workspace, ahead, fetch
from foltr.types import Array


class Objective(NamedTuple):
    """Parameters of a client's perturbation and of its report."""

    sigma: float
    antithetic: bool  # the second half of the interactions is under -e; else all are under +e
    shared_rng: bool  # queries and clicks are read from the perturbation's stream
    by_pattern: bool  # an outcome is the pattern of clicks; else the rank of the first click
    p: float  # randomised response: probability of the true outcome
    outcomes: Array  # values of the outcomes


class Measurement(NamedTuple):
    """Arrays that a call starts from and fills."""

    parameters: Array  # [P]
    perturbations: Array  # [clients, P] e / sigma
    values: Array  # [clients, 2] mean objective under +e and -e
    ndcg: Array  # [interactions]
    max_rr: Array  # [interactions]


@kernel
def measure_clients(
    data: Collection, cohort: Cohort, users: ClickTables, where: Address, ranker: RankerRecord, learner: Objective,
    measured: Measurement, workspace: Workspace,
) -> None:  # fmt: skip
    """Fills the perturbations, the objectives, and the online metrics of each interaction."""
    theta, k = workspace.change, users.click.shape[1]
    numbers = 1 + 2 * k  # an interaction uses at most so many of a shared stream
    for c in range(cohort.clients.size):
        client = cohort.clients[c]
        perturbation, values = measured.perturbations[c], measured.values[c]
        perturbation_at = address(where.seed, where.round, client, PERTURBATION)
        fill_perturbation(perturbation_at, workspace.normals, perturbation)
        queries_at = address(where.seed, where.round, client, QUERIES)
        clicks_at = address(where.seed, where.round, client, CLICKS)
        privatise_at = address(where.seed, where.round, client, PRIVATISE)
        query_stride, click_stride, click_first = 1, 2 * k, 0
        if learner.shared_rng:
            queries_at, clicks_at = perturbation_at, perturbation_at
            query_stride, click_stride, click_first = numbers, numbers, 1
        steps = cohort.steps[c]
        half = (steps + 1) // 2 if learner.antithetic else steps
        values[0], values[1] = 0.0, 0.0
        coming = drawn_query(cohort, c, queries_at, ZERO)
        for step in range(steps):
            side = 0 if step < half else 1
            if step == 0 or step == half:
                for i in range(theta.size):
                    theta[i] = measured.parameters[i] + (1.0 - 2.0 * side) * learner.sigma * perturbation[i]
            listed = candidates_of(data, coming, k)
            coming = drawn_query(cohort, c, queries_at, (step + 1) * query_stride)
            after = ahead(data.features, data.offsets[coming], data.offsets[coming + 1])
            score_list(data.features, listed.first, listed.documents, theta, ranker, workspace)
            user = user_at(cohort, c, step, users, where)
            for portion in range(4):  # arrives while the list is sorted; the rest is read in order
                fetch(after, portion)
            best_list(listed.documents, listed.k, workspace)
            click_list(data.labels, listed, users, user, clicks_at, click_first + step * click_stride, workspace)
            slot = cohort.slots[c] + step
            measured.ndcg[slot] = list_ndcg(data, listed, workspace.ranking)
            measured.max_rr[slot] = first_click(workspace.clicks, listed.k)
            outcome = outcome_number(workspace.clicks, listed.k, learner.by_pattern)
            outcome = reported_outcome(outcome, learner, privatise_at, 2 * step)
            values[side] += learner.outcomes[outcome] / (half if side == 0 else steps - half)


@callee
def fill_perturbation(stream: Stream, normals: Array, perturbation: Array) -> None:
    """Standard normal numbers of a client's public stream; normals: a workspace of whole NORMALS."""
    fill_normals(stream[0], stream[1], (perturbation.size + NORMALS - 1) // NORMALS, normals)
    for i in range(perturbation.size):
        perturbation[i] = normals[i]


@callee
def reported_outcome(outcome: int, learner: Objective, stream: Stream, position: int) -> int:
    """Randomised response; see `learners.foltr_es.randomised`."""
    if uniform_at(stream[0], stream[1], position) < learner.p:
        return outcome
    other = int(uniform_at(stream[0], stream[1], position + 1) * (learner.outcomes.size - 1))
    return other + 1 if other >= outcome else other


@callee
def outcome_number(clicks: Array, k: int, by_pattern: bool) -> int:
    """See `learners.foltr_es.outcome_of`."""
    pattern = 0
    for rank in range(min(k, 10)):
        if clicks[rank]:
            if not by_pattern:
                return rank + 1
            pattern |= 1 << rank
    return pattern
