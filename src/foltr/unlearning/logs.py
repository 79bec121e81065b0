"""Click logs, and federated learning from them.

Learning from a log takes PDGD steps (S0 Algorithm 1) at the current model for the recorded lists and clicks; pair
weights use the current model's scores (`pair_scores = "current"`), because a log stores none.
Exact unlearning of a client is learning without its rows: training from scratch on the others' logs.

Differs from the paper: S2 mentions retraining from clients' logs as expensive and does not evaluate it.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from foltr.federation.engine import Engine, EngineCollector
from foltr.federation.round import RoundResult, run_rounds
from foltr.federation.schedule import Members, Schedule
from foltr.federation.server import add, init_state, mean_delta
from foltr.types import Array


class Log(NamedTuple):
    """One row a search, in the order of rounds, clients and steps; each row is stored by its client."""

    rounds: Array  # [rows] int32
    clients: Array  # [rows] int32
    queries: Array  # [rows] int32
    rankings: Array  # [rows, k] int16 documents of the query, -1 below the end of a short list
    clicks: Array  # [rows, k] bool


def without(log: Log, clients: Collection[int]) -> Log:
    """The rows of everybody else."""
    stays = ~np.isin(log.clients, list(clients))
    return Log(*(column[stays] for column in log))


def only(log: Log, members: Collection[int]) -> Log:
    """The rows of these clients."""
    theirs = np.isin(log.clients, list(members))
    return Log(*(column[theirs] for column in log))


def size(log: Log) -> int:
    """Bytes, on all devices together."""
    return sum(column.nbytes for column in log)


def learn(start: Array, log: Log, engine: Engine) -> Iterator[RoundResult]:
    """Federated rounds over the searches in a log; a client's weight is its number of rows in the round."""
    rounds = {round: Members(clients, np.diff(starts)) for round, clients, starts in rounds_of(log)}
    schedule = Schedule(list(rounds), rounds.__getitem__, fixed=False)
    return run_rounds(init_state(start), schedule, EngineCollector(engine, mean_delta), server_optimizer=add)


def rounds_of(log: Log) -> Iterator[tuple[int, Array, Array]]:
    """Each round, its clients [n], and where the rows of each start [n + 1]."""
    changes = np.flatnonzero((np.diff(log.rounds) != 0) | (np.diff(log.clients) != 0)) + 1
    starts = np.unique(np.concatenate([[0], changes, [len(log.rounds)]]))  # 0 only once if there is no row
    rounds, first = np.unique(log.rounds[starts[:-1]], return_index=True)
    for round, a, b in zip(rounds.tolist(), first, np.append(first, len(starts) - 1)[1:], strict=True):
        yield round, log.clients[starts[a:b]].astype(np.int64), starts[a : b + 1]
