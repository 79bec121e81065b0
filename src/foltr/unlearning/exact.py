"""The exact ways side by side, after a leaver that had poisoned the ranker.

Each way's result is compared with training from scratch on the remaining clients' logs as
they are; the distance is rounding or nothing.

Differs from the paper: S2 has no exact way but training again.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

from foltr.errors import SpecError
from foltr.federation.round import Task
from foltr.types import Array
from foltr.unlearning import shards, statistics
from foltr.unlearning.cost import NUMBER, Cost, walk
from foltr.unlearning.logs import Log, learn, size, without
from foltr.unlearning.recording import log_of, recorder
from foltr.unlearning.request import check_attack, check_learning, check_leavers
from foltr.unlearning.residual import residual
from foltr.unlearning.rounds import federate, negate


class Exact(NamedTuple):
    before: Array  # [P] with the leaver
    parameters: Array  # [P] without it
    residual: float  # distance from training from scratch on the remaining logs, relative to the norm of that
    cost: Cost


WAYS = ("logs", "shards", "statistics")


def exactly(
    way: str, task: Task, *, leavers: Sequence[int], z: float = 2.0, parts: int = 5, ridge: float = 10.0
) -> Exact:
    """Replay of logs or statistics after a federation, or shards, which are federations of their own."""
    check_learning(task)
    check_leavers(task, leavers)
    check_attack(task, leavers=leavers, z=z)
    if way not in WAYS:
        raise SpecError(f"no exact way {way!r}; there are {', '.join(WAYS)}")
    if way == "shards":
        return _by_shards(task, leavers, z, parts)
    engine = recorder(task)
    attacked = walk(federate(task, engine, transform=negate(leavers, z))).parameters[-1]
    log = log_of(engine)
    if way == "statistics":
        return _by_statistics(task, log, leavers, ridge)
    return _by_logs(task, attacked, log, leavers)


def _by_logs(task: Task, attacked: Array, log: Log, leavers: Sequence[int]) -> Exact:
    rest = without(log, leavers)
    done = walk(learn(task, rest), searching=False, kept=size(log))
    return Exact(attacked, done.parameters[-1], 0.0, done.cost)  # it is training from scratch on those logs


def _by_shards(task: Task, leavers: Sequence[int], z: float, parts: int) -> Exact:
    members = shards.assign(task, parts)
    for shard in members:
        attackers = [client for client in shard if client in leavers]
        if attackers:
            check_attack(task, leavers=attackers, z=z, together=len(shard))
    engine = recorder(task)
    before = shards.train(task, engine, members, negate(leavers, z))
    log = log_of(engine)
    after, cost = shards.forget(task, before, log, leavers)
    scratch = [shards.learn_shard(task, log, shard.members) for shard in after]
    result = shards.merged(after)
    cost = cost._replace(kept=size(log))
    return Exact(shards.merged(before), result, residual(result, shards.merged(scratch)), cost)


def _by_statistics(task: Task, log: Log, leavers: Sequence[int], ridge: float) -> Exact:
    clients = sorted(set(log.clients.tolist()))
    sums = statistics.collect(log, task.train, clients)
    whole = statistics.add(sums.values())
    began = time.perf_counter()
    rest = statistics.subtract(whole, statistics.add(sums[leaver] for leaver in leavers))
    result = statistics.solve(rest, ridge=ridge)
    seconds = time.perf_counter() - began
    scratch = statistics.solve(statistics.add(sums[c] for c in clients if c not in leavers), ridge=ridge)
    each = NUMBER * (whole.matrix.size + whole.vector.size)
    cost = Cost(0, 0, len(leavers), len(leavers) * each, len(clients) * each, seconds)
    return Exact(statistics.solve(whole, ridge=ridge), result, residual(result, scratch), cost)
