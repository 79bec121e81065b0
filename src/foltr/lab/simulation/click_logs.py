"""Engines over a click log: one that trains and writes down what people see, one that learns from what was written.

Both run the same compiled steps, so that learning from a log repeats the training to the bit: a last digit that differs
would grow into another ranker within some thousand rounds. It differs from the compiled engine's in the last digits of
a step.
"""

from typing import NamedTuple

import numpy as np

from foltr._kernels.cohort import Cohort, Collection, collection_of
from foltr._kernels.logs import step_clients
from foltr._kernels.workspace import Workspace, scratch
from foltr.errors import SpecError
from foltr.federation.round import Release
from foltr.federation.schedule import Members
from foltr.lab.simulation.task import ClientPools, Federated, Task, everything
from foltr.learners.pdgd import Pdgd
from foltr.rankers import Mlp
from foltr.types import Array, OnlineMetrics, Updates
from foltr.unlearning.logs import Log, rounds_of

LONGEST = np.iinfo(np.int16).max  # documents of a query that a log can number


class Steps(NamedTuple):
    """What kernels know of a ranker and of PDGD."""

    hidden: int  # units, 0 for a linear ranker
    relu: bool
    learning_rate: float
    all_shown: bool  # every shown document without a click is a negative


class Recorder(NamedTuple):
    """An engine (see `federation.round.Engine`) on one thread, and what it recorded."""

    task: Task
    data: Collection
    click: Array  # [click models, k, grades]
    stop: Array  # [click models, grades]
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
        log = _blank(round, np.repeat(cohort.clients, cohort.steps), self.click.shape[1])
        step_clients(
            self.data, cohort, self.click, self.stop, self.task.seed, round, 0, True, models, *steps_of(self.task),
            self.workspace, out, online.ndcg, online.max_rr, log.queries, log.rankings, log.clicks,
        )  # fmt: skip
        self.recorded.append(log)
        return _updates(out, models, cohort, round), online


class LogEngine(NamedTuple):
    """An engine that learns from a log; its cohorts are those who logged something in a round."""

    task: Task
    log: Log
    data: Collection
    click: Array
    stop: Array
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
        step_clients(
            self.data, rows, self.click, self.stop, self.task.seed, round, 0, False, models, *steps_of(self.task),
            self.workspace, out, nothing, nothing, log.queries, log.rankings, log.clicks,
        )  # fmt: skip
        return _updates(out, models, rows, round), OnlineMetrics(nothing, nothing)


def recorder(task: Task) -> Recorder:
    federation = task.federation
    if not isinstance(federation, Federated):
        raise SpecError("a recorder follows a federation; use federation kind = 'federated'")
    click, stop = _click_tables(task)
    clients, queries = np.arange(federation.clients), len(task.train.offsets) - 1
    held = task.pools or everything(clients, queries=queries, click_models=len(click))
    return Recorder(task, collection_of(task.train, task.grades), click, stop, held, workspace_of(task), [])


def log_engine(task: Task, log: Log) -> LogEngine:
    click, stop = _click_tables(task)
    starts = {round: rows for round, _, rows in rounds_of(log)}
    return LogEngine(task, log, collection_of(task.train, task.grades), click, stop, workspace_of(task), starts)


def _click_tables(task: Task) -> tuple[Array, Array]:
    """[click models, k, grades] and [click models, grades]: what kernels take of the click models."""
    return np.stack([model.click for model in task.click_models]), np.stack([model.stop for model in task.click_models])


def log_of(recorder: Recorder) -> Log:
    """Everything that was recorded."""
    if not recorder.recorded:
        raise SpecError("nothing was recorded yet; train with the recorder first")
    whole = Log(*(np.concatenate(column) for column in zip(*recorder.recorded, strict=True)))
    order = np.lexsort((whole.clients, whole.rounds))  # keeps the order of a client's steps
    return Log(*(column[order] for column in whole))


def steps_of(task: Task) -> Steps:
    learner, ranker = task.learner, task.ranker
    if not isinstance(learner, Pdgd):
        raise SpecError("logs are recorded and learnt from by PDGD; use learner kind = 'pdgd'")
    if learner.prox_mu:
        raise SpecError(f"prox_mu = {learner.prox_mu:g}: logs are learnt from by plain steps; use prox_mu = 0")
    hidden, relu = (ranker.hidden, ranker.activation == "relu") if isinstance(ranker, Mlp) else (0, False)
    return Steps(hidden, relu, learner.learning_rate, learner.negatives == "all-shown")


def workspace_of(task: Task) -> Workspace:
    longest = int(np.diff(task.train.offsets).max())
    if longest > LONGEST:
        raise SpecError(f"a log numbers at most {LONGEST} documents a query; the longest list has {longest}")
    size = task.ranker.size(task.train.features.shape[1])
    return scratch(longest, task.k, steps_of(task).hidden, size)


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
