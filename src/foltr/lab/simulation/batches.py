"""Local training of whole cohorts by kernels, spread over threads, equal to the bit for any number of them."""

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeAlias

import numpy as np

from foltr._kernels.cohort import Address, ClickTables, Cohort, Collection, collection_of
from foltr._kernels.foltr_es import Measurement, Objective, measure_clients
from foltr._kernels.pdgd import PdgdStep, Training, train_clients
from foltr._kernels.rankers import RankerRecord, hidden_units, ranker_record
from foltr._kernels.workspace import Workspace, workspace_for
from foltr.lab.simulation.task import ClientPools, Task, click_tables, everything
from foltr.learners.foltr_es import FoltrEs, outcomes
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import RandomizedResponse
from foltr.types import Array, OnlineMetrics

Job: TypeAlias = tuple[Cohort, slice]  # a unit of work of a thread: clients, and the rows of their results
_SHARE = 2000  # interactions per unit of work
_SHARES = 8  # units a thread at most: more than one, so that threads balance their load


class PreparedCohort(NamedTuple):
    """A cohort as kernels take it, divided among threads; valid for any round."""

    clients: Array  # [n]
    steps: Array  # [n]
    interactions: int
    jobs: list[Job]


class Batches(NamedTuple):
    """A task with the arrays and workspaces of its kernels."""

    task: Task
    data: Collection
    users: ClickTables
    ranker: RankerRecord
    step: PdgdStep
    workspaces: list[Workspace]  # one a thread
    threads: ThreadPoolExecutor | None

    def prepare(self, clients: Array, steps: Array) -> PreparedCohort:
        """Divides a cohort among threads; once for a cohort that takes part in every round."""
        clients, steps = np.asarray(clients, np.int64), np.asarray(steps, np.int64)
        return PreparedCohort(clients, steps, int(steps.sum()), list(self._divided(clients, steps)))

    def train(
        self, parameters: Array, prepared: PreparedCohort, *, round: int, first_step: int = 0, summed: bool = False
    ) -> tuple[Array, OnlineMetrics]:
        starts = parameters if parameters.ndim == 2 else parameters[None]  # [1 or clients, P]
        trained = np.empty((len(prepared.clients), starts.shape[1]))
        online = OnlineMetrics(*np.empty((2, prepared.interactions)))
        where = Address(self.task.seed, round, first_step)
        step = self.step._replace(summed=True) if summed else self.step

        def part(workspace: Workspace, cohort: Cohort, rows: slice) -> None:
            own = starts if len(starts) == 1 else starts[rows]
            training = Training(own, trained if len(prepared.jobs) == 1 else trained[rows], *online)
            train_clients(self.data, cohort, self.users, where, self.ranker, step, training, workspace)

        self._spread(part, prepared.jobs)
        return trained, online

    def measure(self, parameters: Array, prepared: PreparedCohort, *, round: int) -> tuple[Array, Array, OnlineMetrics]:
        task = self.task
        clients = len(prepared.clients)
        values, perturbations = np.empty((clients, 2)), np.empty((clients, len(parameters)))
        online = OnlineMetrics(*np.empty((2, prepared.interactions)))
        where, objective = Address(task.seed, round), _objective(task, self.users.click.shape[1])

        def part(workspace: Workspace, cohort: Cohort, rows: slice) -> None:
            measured = Measurement(parameters, perturbations[rows], values[rows], *online)
            measure_clients(self.data, cohort, self.users, where, self.ranker, objective, measured, workspace)

        self._spread(part, prepared.jobs)
        return values, perturbations, online

    def _spread(self, part: Callable[[Workspace, Cohort, slice], None], jobs: list[Job]) -> None:
        """Runs `part` on slices of the cohort, on as many threads as there are workspaces."""
        if self.threads is None:
            for job in jobs:
                part(self.workspaces[0], *job)
            return
        free = list(self.workspaces)

        def with_workspace(job: Job) -> None:
            workspace = free.pop()
            part(workspace, *job)
            free.append(workspace)

        list(self.threads.map(with_workspace, jobs))

    def _divided(self, clients: Array, steps: Array) -> Iterator[Job]:
        slots = np.concatenate([[0], np.cumsum(steps)[:-1]])
        threads = len(self.workspaces)
        shares = 1 if threads == 1 else threads * max(1, min(_SHARES, int(steps.sum()) // (threads * _SHARE)))
        cuts = np.linspace(0, len(clients), min(shares, len(clients)) + 1).astype(int)
        pools, start, stop, users = self._held(clients)
        for a, b in itertools.pairwise(cuts):
            rows = slice(int(a), int(b))
            own = (part[rows] for part in (start, stop))
            yield Cohort(clients[rows], steps[rows], slots[rows], users[rows], pools, *own), rows

    def _held(self, clients: Array) -> ClientPools:
        """The pools of these clients; by default every query."""
        held = self.task.pools
        if held is not None:
            return ClientPools(held.pools, *(of_all[clients] for of_all in held[1:]))
        return everything(clients, queries=len(self.data.offsets) - 1, click_models=len(self.users.click))


def batches(task: Task, threads: int = 1) -> Batches:
    """The kernels' view of a task."""
    train = task.train
    longest, width = int(np.diff(train.offsets).max()), train.features.shape[1]
    ranker = ranker_record(task.ranker, width)
    users = ClickTables(*click_tables(task))
    k, size = users.click.shape[1], task.ranker.size(width)
    return Batches(
        task,
        collection_of(train, task.grades),
        users,
        ranker,
        _step(task),
        [workspace_for(longest, k, hidden_units(ranker), size) for _ in range(threads)],
        ThreadPoolExecutor(threads) if threads > 1 else None,
    )


def _step(task: Task) -> PdgdStep:
    learner = task.learner if isinstance(task.learner, Pdgd) else Pdgd()  # others do not train by this kernel
    clip = getattr(task.privacy, "radius", 0.0)
    return PdgdStep(learner.learning_rate, learner.negatives == "all-shown", learner.prox_mu, clip)


def _objective(task: Task, k: int) -> Objective:
    learner = task.learner
    assert isinstance(learner, FoltrEs)
    p = task.privacy.p if isinstance(task.privacy, RandomizedResponse) else 1.0
    possible, shared = outcomes(learner.objective, k), learner.streams == "shared_rng"
    return Objective(learner.sigma, learner.antithetic, shared, learner.objective == "dcg", p, possible)
