"""Logs: what each person was shown and clicked, and federated learning from it.

Learning from a log makes PDGD's steps (S0 Algorithm 1) at the current model for the recorded lists and clicks.
To forget a client exactly is to do that without its rows: training from scratch on the others' logs as they are.

Differs from the paper: S2 mentions learning again from clients' logs as the costly way, and does not try it.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from foltr._kernels.cohort import Address, ClickTables, Cohort, collection_of
from foltr._kernels.logs import LoggedTraining, train_logged
from foltr.federation.aggregators import fedavg
from foltr.federation.round import Task
from foltr.types import Array
from foltr.unlearning import storage
from foltr.unlearning.rounds import Round, begin
from foltr.unlearning.workplace import log_workspace, ranker_of, step_of

KIND = "log-1"  # of the file; changes with its layout


class Log(NamedTuple):
    """One row a search, in the order of rounds, clients and steps; a row lies with its client."""

    rounds: Array  # [rows] int32
    clients: Array  # [rows] int32
    queries: Array  # [rows] int32
    rankings: Array  # [rows, k] int16 documents of the query, -1 below the end of a short list
    clicks: Array  # [rows, k] bool


def without(log: Log, leavers: Collection[int]) -> Log:
    """The rows of everybody else."""
    stays = ~np.isin(log.clients, list(leavers))
    return Log(*(column[stays] for column in log))


def only(log: Log, members: Collection[int]) -> Log:
    """The rows of these clients."""
    theirs = np.isin(log.clients, list(members))
    return Log(*(column[theirs] for column in log))


def size(log: Log) -> int:
    """Bytes, on all devices together."""
    return sum(column.nbytes for column in log)


def save(path: Path, log: Log) -> int:
    """Writes the log; returns its size on disk in bytes."""
    return storage.write(path, KIND, log._asdict())


def load(path: Path) -> Log:
    """A log as it was saved; a damaged file is an error that says so."""
    log = Log(**storage.read(path, KIND, Log._fields))
    if len({len(column) for column in log}) != 1 or log.rankings.shape != log.clicks.shape:
        raise storage.damaged(path, "its columns do not fit together")
    return log


def learn(task: Task, log: Log) -> Iterator[Round]:
    """Federated rounds over the searches in a log; a client weighs as many as it logged in the round."""
    data, ranker, step = collection_of(task.train, task.grades), ranker_of(task), step_of(task)
    workspace = log_workspace(task, log.rankings.shape[1])
    parameters, nothing = begin(task), np.empty(0)
    users = ClickTables(*(np.stack(part) for part in zip(*task.behaviours, strict=True)))
    for round, clients, starts in _rounds(log):
        models, steps = np.empty((len(clients), len(parameters))), np.diff(starts)
        cohort = Cohort(clients, steps, starts[:-1], clients, clients, clients, clients)  # searches come from the log
        logged = LoggedTraining(False, parameters, models, nothing, nothing, log.queries, log.rankings, log.clicks)
        train_logged(data, cohort, users, Address(task.seed, round), ranker, step, logged, workspace)
        parameters = fedavg(models, steps)
        yield Round(round, parameters, clients, steps, None)


def _rounds(log: Log) -> Iterator[tuple[int, Array, Array]]:
    """Each round, its clients [n], and where the rows of each start [n + 1]."""
    turns = np.flatnonzero((np.diff(log.rounds) != 0) | (np.diff(log.clients) != 0)) + 1
    starts = np.unique(np.concatenate([[0], turns, [len(log.rounds)]]))  # 0 only once if there is no row
    rounds, first = np.unique(log.rounds[starts[:-1]], return_index=True)
    for round, a, b in zip(rounds.tolist(), first, np.append(first, len(starts) - 1)[1:], strict=True):
        yield round, log.clients[starts[a:b]].astype(np.int64), starts[a : b + 1]
