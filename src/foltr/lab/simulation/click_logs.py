"""Engines over a click log: one that trains and records the interactions, one that learns from the record.

Both run the same compiled steps, so that learning from a log repeats the training to the bit: a difference in the last
digit would grow into another ranker within some thousand rounds. Their steps differ from the compiled engine's in the
last digits.
"""

from typing import NamedTuple

import numpy as np

from foltr._kernels.cohort import Address, ClickTables, Cohort, Collection, collection_of
from foltr._kernels.pdgd import LoggedTraining, PdgdStep, train_logged
from foltr._kernels.rankers import hidden_units, ranker_record
from foltr._kernels.workspace import Workspace, workspace_for
from foltr.errors import SpecError
from foltr.federation.round import Release
from foltr.federation.schedule import Members
from foltr.lab.simulation.task import ClientPools, Task, click_tables, everything, federated
from foltr.learners.pdgd import Pdgd
from foltr.types import Array, OnlineMetrics, Updates
from foltr.unlearning.logs import Log, rounds_of

LONGEST = np.iinfo(np.int16).max  # documents of a query that a log can number


class Recorder(NamedTuple):
    """An engine (see `federation.engine.Engine`) on one thread, and what it recorded."""

    task: Task
    data: Collection
    users: ClickTables
    held: ClientPools
    workspace: Workspace
    recorded: list[Log]

    def prepare(self, members: Members) -> Cohort:
        clients, steps = members.clients, members.interactions
        slots = np.concatenate([[0], np.cumsum(steps)[:-1]])
        held = self.held
        start, stop, users = (of_all[clients] for of_all in (held.start, held.stop, held.users))
        return Cohort(clients, steps, slots, users, held.pools, start, stop)

    def local_updates(
        self, models: Array, cohort: Cohort, round: int, release: Release | None  # noqa: ARG002
    ) -> tuple[Updates, OnlineMetrics]:  # fmt: skip
        rows = int(cohort.steps.sum())
        out, online = np.empty((len(cohort.clients), len(models))), OnlineMetrics(np.empty(rows), np.empty(rows))
        log = _blank(round, np.repeat(cohort.clients, cohort.steps), self.task.k)
        logged = LoggedTraining(True, models, out, *online, log.queries, log.rankings, log.clicks)
        _train(self.task, self.data, cohort, self.users, round, logged, self.workspace)
        self.recorded.append(log)
        return _updates(out, models, cohort, round), online


class LogEngine(NamedTuple):
    """An engine that learns from a log; its cohorts are those who logged something in a round."""

    task: Task
    log: Log
    data: Collection
    users: ClickTables
    workspace: Workspace
    starts: dict[int, Array]  # where the rows of each client of a round start [n + 1]

    def prepare(self, members: Members) -> Members:
        return members

    def local_updates(
        self, models: Array, cohort: Members, round: int, release: Release | None  # noqa: ARG002
    ) -> tuple[Updates, OnlineMetrics]:  # fmt: skip
        clients, steps, log = cohort.clients, cohort.interactions, self.log
        out, nothing = np.empty((len(clients), len(models))), np.empty(0)
        rows = Cohort(clients, steps, self.starts[round][:-1], clients, clients, clients, clients)  # nothing is drawn
        logged = LoggedTraining(False, models, out, nothing, nothing, log.queries, log.rankings, log.clicks)
        _train(self.task, self.data, rows, self.users, round, logged, self.workspace)
        return _updates(out, models, rows, round), OnlineMetrics(nothing, nothing)


def recorder(task: Task) -> Recorder:
    federation = federated(task.federation)
    users = ClickTables(*click_tables(task))
    clients, queries = np.arange(federation.clients), len(task.train.offsets) - 1
    held = task.pools or everything(clients, queries=queries, click_models=len(users.click))
    return Recorder(task, collection_of(task.train, task.grades), users, held, workspace_of(task), [])


def log_engine(task: Task, log: Log) -> LogEngine:
    users = ClickTables(*click_tables(task))
    starts = {round: rows for round, _, rows in rounds_of(log)}
    return LogEngine(task, log, collection_of(task.train, task.grades), users, workspace_of(task), starts)


def log_of(recorder: Recorder) -> Log:
    """Everything that was recorded."""
    if not recorder.recorded:
        raise SpecError("nothing was recorded yet; train with the recorder first")
    whole = Log(*(np.concatenate(column) for column in zip(*recorder.recorded, strict=True)))
    order = np.lexsort((whole.clients, whole.rounds))  # keeps the order of a client's steps
    return Log(*(column[order] for column in whole))


def _train(
    task: Task, data: Collection, cohort: Cohort, users: ClickTables, round: int, logged: LoggedTraining,
    workspace: Workspace,
) -> None:  # fmt: skip
    ranker = ranker_record(task.ranker, task.train.features.shape[1])
    train_logged(data, cohort, users, Address(task.seed, round), ranker, step_of(task), logged, workspace)


def step_of(task: Task) -> PdgdStep:
    learner = task.learner
    if not isinstance(learner, Pdgd):
        raise SpecError("click logs work with PDGD; use learner kind = 'pdgd'")
    if learner.prox_mu:
        raise SpecError(f"prox_mu = {learner.prox_mu:g}: click logs work with plain PDGD steps; use prox_mu = 0")
    return PdgdStep(learner.learning_rate, learner.negatives == "all-shown")


def workspace_of(task: Task) -> Workspace:
    step_of(task)  # refuses learners that a log does not support
    longest, width = int(np.diff(task.train.offsets).max()), task.train.features.shape[1]
    if longest > LONGEST:
        raise SpecError(f"a log numbers at most {LONGEST} documents a query; the longest list has {longest}")
    return workspace_for(longest, task.k, hidden_units(ranker_record(task.ranker, width)), task.ranker.size(width))


def _updates(out: Array, models: Array, cohort: Cohort, round: int) -> Updates:
    out -= models
    return Updates(out, cohort.steps, cohort.clients, np.full(len(cohort.clients), round - 1))


def _blank(round: int, clients: Array, k: int) -> Log:
    rows = len(clients)
    return Log(
        np.full(rows, round, np.int32),
        clients.astype(np.int32),
        np.empty(rows, np.int32),
        np.full((rows, k), -1, np.int16),
        np.zeros((rows, k), dtype=bool),
    )
