"""The compiled engine, the default: a cohort's updates by kernels, as one batch equal to the map of `local_update`."""

from typing import Any, NamedTuple

import numpy as np

from foltr.clicks import Users, click_model
from foltr.federation.round import Release
from foltr.federation.schedule import Members
from foltr.lab.simulation.batches import Batches, PreparedCohort, batches
from foltr.lab.simulation.protection import protect_rows
from foltr.lab.simulation.rounds import run
from foltr.lab.simulation.task import Federated, Task
from foltr.learners.foltr_es import FoltrEs, gradient_weights
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import NoPrivacy
from foltr.rankers import Linear
from foltr.types import Array, Dataset, OnlineMetrics, Updates


class Compiled(NamedTuple):
    """An engine; see `federation.engine.Engine`."""

    task: Task
    batches: Batches
    perturbations: list[Array]  # [n, P] of the latest round, which decoding needs again

    def prepare(self, members: Members) -> PreparedCohort:
        return self.batches.prepare(members.clients, members.interactions)

    def local_updates(
        self, models: Array, cohort: PreparedCohort, round: int, release: Release | None
    ) -> tuple[Updates, OnlineMetrics]:
        task, clients = self.task, cohort.clients
        if task.learner.message == "objective":
            values, perturbations, online = self.batches.measure(models, cohort, round=round)
            self.perturbations[:] = [perturbations]
        else:
            values, online = self.batches.train(models, cohort, round=round)
            values -= models
            if release is not None:
                values = protect_rows(task.privacy, values, clients, release, seed=task.seed, round=round)
        versions = np.empty(len(clients), np.int64)
        versions.fill(round - 1)
        return Updates(values, cohort.steps, clients, versions), online

    def decode(self, updates: Updates) -> Array:
        """`FoltrEs.decode` of the updates of the latest round, whose perturbations are at hand."""
        learner = self.task.learner
        weights = gradient_weights(updates.values, sigma=learner.sigma, antithetic=learner.antithetic)
        return weights[:, None] * self.perturbations[0]

    def train(self, parameters: Array, cohort: PreparedCohort, **how: Any) -> tuple[Array, OnlineMetrics]:
        """Local PDGD training, for centralised training; see `plain.Plain.train`."""
        return self.batches.train(parameters, cohort, **how)


def engine(task: Task, threads: int = 1) -> Compiled:
    return Compiled(task, batches(task, threads), [])


def warm_up() -> None:
    """Compiles the kernels (some seconds, once after an installation), so that timings exclude it."""
    data = Dataset(np.ones((4, 2), np.float32), np.array([0, 1, 0, 1], np.int8), np.array([0, 2, 4]), np.arange(2))
    users = (click_model(Users(k=2), grades=2),)
    for learner in (Pdgd(), FoltrEs()):
        task = Task(data, 2, users, Linear(), learner, Federated(2, 2, 1), NoPrivacy(), 1)
        for _ in run(task, engine(task)):
            pass
