"""A recorder: an engine that trains as the compiled one does and writes a log of the interactions.

Its arithmetic is that of learning from the log, which differs from the compiled engine's in the last digits of a step.
"""

from typing import NamedTuple

import numpy as np

from foltr._kernels.cohort import Address, ClickTables, ClientPools, Cohort, Collection, collection_of, everything
from foltr._kernels.logs import LoggedTraining, train_logged
from foltr._kernels.pdgd import PdgdStep
from foltr._kernels.rankers import RankerRecord
from foltr._kernels.workspace import Workspace
from foltr.errors import SpecError
from foltr.federation.round import Task
from foltr.types import Array, OnlineMetrics
from foltr.unlearning.logs import Log
from foltr.unlearning.rounds import federated
from foltr.unlearning.workplace import log_workspace, ranker_of, step_of


class Recorder(NamedTuple):
    """An engine (see `federation.round.Engine`) on one thread, and its log so far."""

    task: Task
    data: Collection
    users: ClickTables
    held: ClientPools
    ranker: RankerRecord
    step: PdgdStep
    workspace: Workspace
    notes: list[Log]

    def prepare(self, clients: Array, steps: Array) -> Cohort:
        slots = np.concatenate([[0], np.cumsum(steps)[:-1]])
        held = self.held
        start, stop, users = (of_all[clients] for of_all in (held.start, held.stop, held.users))
        return Cohort(clients, steps, slots, users, held.pools, start, stop)

    def train(
        self, parameters: Array, prepared: Cohort, *, round: int, first_step: int = 0, summed: bool = False
    ) -> tuple[Array, OnlineMetrics]:
        if summed:
            raise SpecError("a recorder writes down single steps; use federation kind = 'federated'")
        clients, rows = prepared.clients, int(prepared.steps.sum())
        trained, online = np.empty((len(clients), len(parameters))), OnlineMetrics(np.empty(rows), np.empty(rows))
        note = _blank(round, np.repeat(clients, prepared.steps), self.users.click.shape[1])
        logged = LoggedTraining(True, parameters, trained, *online, note.queries, note.rankings, note.clicks)
        train_logged(
            self.data, prepared, self.users, Address(self.task.seed, round, first_step), self.ranker, self.step,
            logged, self.workspace,
        )  # fmt: skip
        self.notes.append(note)
        return trained, online

    def measure(
        self, parameters: Array, prepared: Cohort, *, round: int  # noqa: ARG002
    ) -> tuple[Array, Array, OnlineMetrics]:  # fmt: skip
        raise SpecError("a recorder follows PDGD only; use learner kind = 'pdgd'")


def recorder(task: Task) -> Recorder:
    users = ClickTables(*(np.stack(part) for part in zip(*task.behaviours, strict=True)))
    clients, queries = np.arange(federated(task).clients), len(task.train.offsets) - 1
    held = task.pools or everything(clients, queries=queries, behaviours=len(users.click))
    data, ranker, step = collection_of(task.train, task.grades), ranker_of(task), step_of(task)
    return Recorder(task, data, users, held, ranker, step, log_workspace(task, users.click.shape[1]), [])


def log_of(recorder: Recorder) -> Log:
    """Everything that was recorded."""
    if not recorder.notes:
        raise SpecError("nothing was recorded yet; train with the recorder first")
    whole = Log(*(np.concatenate(column) for column in zip(*recorder.notes, strict=True)))
    order = np.lexsort((whole.clients, whole.rounds))  # keeps the order of a client's steps
    return Log(*(column[order] for column in whole))


def _blank(round: int, clients: Array, k: int) -> Log:
    rows = len(clients)
    return Log(
        np.full(rows, round, np.int32),
        clients.astype(np.int32),
        np.empty(rows, np.int32),
        np.full((rows, k), -1, np.int16),
        np.zeros((rows, k), dtype=bool),
    )
