"""Local training of whole cohorts by kernels, spread over threads, equal to the bit for any number of them."""

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from foltr._kernels.cohort import Cohort, Collection, collection_of
from foltr._kernels.foltr_es import measure_clients
from foltr._kernels.pdgd import train_clients
from foltr._kernels.workspace import Workspace, scratch
from foltr.lab.simulation.task import ClientPools, Task, everything
from foltr.learners.foltr_es import FoltrEs, outcomes
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import RandomizedResponse
from foltr.rankers import Mlp
from foltr.types import Array, OnlineMetrics

Job: TypeAlias = tuple[Cohort, slice]  # what a thread does at a time: for whom, into which rows
_SHARE = 2000  # interactions that are worth a call
_SHARES = 8  # of each thread at most: one that is held up leaves more to the others


class Batches(NamedTuple):
    """A task with what its kernels work in."""

    task: Task
    data: Collection
    click: Array  # [behaviours, shown, grades]
    stop: Array  # [behaviours, grades]
    rooms: list[Workspace]  # one a thread
    threads: ThreadPoolExecutor | None
    shape: tuple[int, bool]  # what kernels know of the ranker
    latest: list[Any]  # clients, steps, and what was made of them

    def train(
        self, parameters: Array, clients: Array, steps: Array, *, round: int, first_step: int = 0, summed: bool = False
    ) -> tuple[Array, OnlineMetrics]:
        learner, task = self.task.learner, self.task
        assert isinstance(learner, Pdgd)
        starts = parameters if parameters.ndim == 2 else parameters[None]  # [1 or clients, P]
        out = np.empty((len(clients), starts.shape[1]))
        jobs, online = self._begin(clients, steps)

        def part(room: Workspace, cohort: Cohort, rows: slice) -> None:
            train_clients(
                self.data, cohort, self.click, self.stop, task.seed, round, first_step,
                starts if len(starts) == 1 else starts[rows], *self.shape,
                learner.learning_rate, learner.negatives == "all-shown", learner.prox_mu,
                getattr(task.privacy, "radius", 0.0),
                summed, room,
                out[rows], online.ndcg, online.max_rr,
            )  # fmt: skip

        self._spread(part, jobs)
        return out, online

    def measure(
        self, parameters: Array, clients: Array, steps: Array, *, round: int
    ) -> tuple[Array, Array, OnlineMetrics]:
        learner, task = self.task.learner, self.task
        assert isinstance(learner, FoltrEs)
        values, perturbations = np.empty((len(clients), 2)), np.empty((len(clients), len(parameters)))
        jobs, online = self._begin(clients, steps)
        p = task.privacy.p if isinstance(task.privacy, RandomizedResponse) else 1.0
        possible = outcomes(learner.objective, self.click.shape[1])

        def part(room: Workspace, cohort: Cohort, rows: slice) -> None:
            measure_clients(
                self.data, cohort, self.click, self.stop, task.seed, round, parameters, *self.shape,
                learner.sigma, learner.antithetic, learner.streams == "shared_rng", learner.objective == "dcg", p,
                possible, room, perturbations[rows], values[rows], online.ndcg, online.max_rr,
            )  # fmt: skip

        self._spread(part, jobs)
        return values, perturbations, online

    def _begin(self, clients: Array, steps: Array) -> tuple[list[Job], OnlineMetrics]:
        """Who does what, made anew only when other clients come (with few of them this would be half of the time)."""
        if not (self.latest and self.latest[0] is clients and self.latest[1] is steps):
            self.latest[:] = clients, steps, list(self._divided(clients, steps)), int(steps.sum())
        _, _, jobs, interactions = self.latest
        return jobs, OnlineMetrics(*np.empty((2, interactions)))

    def _spread(self, part: Callable[[Workspace, Cohort, slice], None], jobs: list[Job]) -> None:
        """Runs `part` on runs of neighbouring clients, on as many threads as there are rooms."""
        if self.threads is None:
            for job in jobs:
                part(self.rooms[0], *job)
            return
        free = list(self.rooms)

        def in_a_room(job: Job) -> None:
            room = free.pop()
            part(room, *job)
            free.append(room)

        list(self.threads.map(in_a_room, jobs))

    def _divided(self, clients: Array, steps: Array) -> Iterator[Job]:
        slots = np.concatenate([[0], np.cumsum(steps)[:-1]])
        threads = len(self.rooms)
        shares = 1 if threads == 1 else threads * max(1, min(_SHARES, int(steps.sum()) // (threads * _SHARE)))
        cuts = np.linspace(0, len(clients), min(shares, len(clients)) + 1).astype(int)
        pools, start, stop, users = self._held(clients)
        for a, b in itertools.pairwise(cuts):
            rows = slice(int(a), int(b))
            own = (part[rows] for part in (start, stop))
            yield Cohort(clients[rows], steps[rows], slots[rows], users[rows], pools, *own), rows

    def _held(self, clients: Array) -> ClientPools:
        """What these clients hold; everybody everything, if nothing else was said."""
        held = self.task.pools
        if held is not None:
            return ClientPools(held.pools, *(of_all[clients] for of_all in held[1:]))
        return everything(clients, queries=len(self.data.offsets) - 1, click_models=len(self.click))


def batches(task: Task, threads: int = 1) -> Batches:
    """For one task."""
    train = task.train
    longest = int(np.diff(train.offsets).max())
    shape = _shape(task)
    size = task.ranker.size(train.features.shape[1])
    click = np.stack([b.click for b in task.click_models])
    rooms = [scratch(longest, click.shape[1], shape[0], size) for _ in range(threads)]
    return Batches(
        task,
        collection_of(train, task.grades),
        click,
        np.stack([b.stop for b in task.click_models]),
        rooms,
        ThreadPoolExecutor(threads) if threads > 1 else None,
        shape,
        [],
    )


def _shape(task: Task) -> tuple[int, bool]:
    """What kernels know of a ranker: hidden units (0 = linear), and whether they are ReLU."""
    if isinstance(task.ranker, Mlp):
        return task.ranker.hidden, task.ranker.activation == "relu"
    return 0, False
