"""A recorder: an engine that trains as the compiled one does and writes down what people lived.

Its arithmetic is that of learning from the log, which differs from the compiled engine's in the last digits of a step.
"""

from typing import NamedTuple

import numpy as np

from foltr._kernels.cohort import ClientPools, Cohort, Collection, collection_of, everything
from foltr._kernels.logs import step_clients
from foltr._kernels.workspace import Workspace
from foltr.errors import SpecError
from foltr.federation.round import Task
from foltr.types import Array, OnlineMetrics
from foltr.unlearning.logs import Log
from foltr.unlearning.rounds import federated
from foltr.unlearning.workplace import learning_of, room_for


class Recorder(NamedTuple):
    """An engine (see `federation.rounds.Engine`) on one thread, and its notes."""

    task: Task
    data: Collection
    click: Array  # [behaviours, shown, grades]
    stop: Array  # [behaviours, grades]
    held: ClientPools
    room: Workspace
    notes: list[Log]

    def train(
        self, parameters: Array, clients: Array, steps: Array, *, round: int, first_step: int = 0, summed: bool = False
    ) -> tuple[Array, OnlineMetrics]:
        if summed:
            raise SpecError("a recorder writes down single steps; use federation kind = 'federated'")
        rows = int(steps.sum())
        out, online = np.empty((len(clients), len(parameters))), OnlineMetrics(np.empty(rows), np.empty(rows))
        note = _blank(round, np.repeat(clients, steps), self.click.shape[1])
        learning = learning_of(self.task)
        step_clients(
            self.data, self._cohort(clients, steps), self.click, self.stop, self.task.seed, round, first_step, True,
            parameters, *learning, self.room,
            out, online.ndcg, online.max_rr, note.queries, note.rankings, note.clicks,
        )  # fmt: skip
        self.notes.append(note)
        return out, online

    def measure(
        self, parameters: Array, clients: Array, steps: Array, *, round: int  # noqa: ARG002
    ) -> tuple[Array, Array, OnlineMetrics]:  # fmt: skip
        raise SpecError("a recorder follows PDGD only; use learner kind = 'pdgd'")

    def _cohort(self, clients: Array, steps: Array) -> Cohort:
        slots = np.concatenate([[0], np.cumsum(steps)[:-1]])
        held = self.held
        start, stop, users = (of_all[clients] for of_all in (held.start, held.stop, held.users))
        return Cohort(clients, steps, slots, users, held.pools, start, stop)


def recorder(task: Task) -> Recorder:
    click, stop = (np.stack(part) for part in zip(*task.behaviours, strict=True))
    clients, queries = np.arange(federated(task).clients), len(task.train.offsets) - 1
    held = task.pools or everything(clients, queries=queries, behaviours=len(click))
    room = room_for(task, click.shape[1])
    return Recorder(task, collection_of(task.train, task.grades), click, stop, held, room, [])


def log_of(recorder: Recorder) -> Log:
    """Everything that was recorded."""
    if not recorder.notes:
        raise SpecError("nothing was recorded yet; train with the recorder first")
    whole = Log(*(np.concatenate(column) for column in zip(*recorder.notes, strict=True)))
    order = np.lexsort((whole.clients, whole.rounds))  # keeps the order of a client's steps
    return Log(*(column[order] for column in whole))


def _blank(round: int, clients: Array, shown: int) -> Log:
    rows = len(clients)
    return Log(
        np.full(rows, round, np.int32),
        clients.astype(np.int32),
        np.empty(rows, np.int32),
        np.full((rows, shown), -1, np.int16),
        np.zeros((rows, shown), dtype=bool),
    )
