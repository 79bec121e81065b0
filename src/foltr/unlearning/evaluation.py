"""Evaluation by poisoning: a client that poisons the ranker is unlearned; quality and residual afterwards.

Source: S2 sections 6.1.4 and 6.3. 10H-0M: all honest. 9H-1M: the client sends -z times its model. 9H-0M: trained
without the client. U(9H-1M): calibrated replay of the history of 9H-1M.

Differs from the paper: quality does not prove unlearning: a linear ranker ranks by the direction of its parameters,
while the client mostly changed their norm. So the history of 10H-0M is replayed too; the residual is the distance of
the two results. All runs share their seeds. S2 has no
exact method except retraining; the three exact ones are compared with training from scratch on the remaining logs.
"""

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from foltr.federation.engine import Transform
from foltr.federation.round import RoundResult
from foltr.types import Array, Dataset
from foltr.unlearning import shards as shard
from foltr.unlearning import statistics
from foltr.unlearning.logs import Log, learn, size, without
from foltr.unlearning.replay import (
    NUMBER,
    Cost,
    FederationSetup,
    History,
    Walk,
    federate,
    history_of,
    negate,
    replay,
    walk,
)
from foltr.unlearning.shards import Logged


class Episode(NamedTuple):
    honest: Walk  # 10H-0M
    attacked: Walk  # 9H-1M
    retrained: Walk  # 9H-0M
    unlearned: Walk  # U(9H-1M)
    reference: Walk  # U(10H-0M)
    residual: float  # distance of the last two, relative to the norm of the last
    direction_residual: float  # distance of their directions, the part of it that can change a ranking
    saved: tuple[float, float]  # local steps and messages of retraining / of unlearning


class Request(NamedTuple):
    """The forgotten clients and the parameters of calibrated replay."""

    forget_clients: Sequence[int]
    z: float = 2.0
    keep_every: int = 10
    local_steps: int = 3


def episode(federation: FederationSetup, request: Request, *, every: int | None = None) -> Episode:
    """All models of the evaluation; `every`: rounds between the models that are stored for curves."""
    honest, honest_history = _trained(federation, None, request.keep_every, every)
    attack = negate(request.forget_clients, request.z)
    attacked, history = _trained(federation, attack, request.keep_every, every)
    retrained = walk(federate(federation, without=request.forget_clients), every=every)
    often = None if every is None else max(1, every // request.keep_every)
    unlearned, reference = (
        walk(
            replay(federation, stored, forget_clients=request.forget_clients, local_steps=request.local_steps),
            every=often, stored=stored.updates.nbytes,
        )
        for stored in (history, honest_history)
    )  # fmt: skip
    last = unlearned.parameters[-1], reference.parameters[-1]
    saved = _saved(retrained.cost, unlearned.cost)
    return Episode(honest, attacked, retrained, unlearned, reference, residual(*last), direction_residual(*last), saved)


def _trained(
    federation: FederationSetup, transform: Transform | None, keep_every: int, every: int | None
) -> tuple[Walk, History]:
    stored: list[RoundResult] = []

    def rounds() -> Iterator[RoundResult]:
        for done in federate(federation, transform=transform):
            updates = done.collected.updates
            if updates is not None and (done.round - 1) % keep_every == 0:
                single = updates._replace(values=updates.values.astype(np.float32))  # as it will be stored
                stored.append(done._replace(collected=done.collected._replace(updates=single)))
            yield done

    return walk(rounds(), every=every), history_of(stored)


def _saved(retrained: Cost, unlearned: Cost) -> tuple[float, float]:
    return retrained.local_steps / unlearned.local_steps, retrained.messages / unlearned.messages


def residual(unlearned: Array, reference: Array) -> float:
    """Distance of a model [P] from the one whose client was honest, relative to the norm of the honest one."""
    distance = float(np.linalg.norm(unlearned - reference))
    return distance / float(np.linalg.norm(reference)) if distance > 0 else 0.0


def direction_residual(unlearned: Array, reference: Array) -> float:
    """The part of the residual that can change a ranking: distance of the two directions, 0 .. 2."""
    return residual(_direction(unlearned), _direction(reference))


def _direction(model: Array) -> Array:
    norm = np.linalg.norm(model)
    return model / norm if norm > 0 else model


class Exact(NamedTuple):
    before: Array  # [P] with the client
    parameters: Array  # [P] without it
    residual: float  # distance from training from scratch on the remaining logs, relative to the norm of that
    cost: Cost


def by_logs(start: Array, attacked: Array, logged: Logged, forget_clients: Sequence[int]) -> Exact:
    """Retraining from the logs of the others, which is exact: the residual is 0."""
    rest = without(logged.log, forget_clients)
    done = walk(learn(start, rest, logged.engine(rest)), searching=False, stored=size(logged.log))
    return Exact(attacked, done.parameters[-1], 0.0, done.cost)


def by_shards(start: Array, before: list[shard.Shard], logged: Logged, forget_clients: Sequence[int]) -> Exact:
    after, cost = shard.forget(start, before, logged, forget_clients)
    scratch = [shard.learn_shard(start, logged, one.members) for one in after]
    result = shard.merged(after)
    cost = cost._replace(stored=size(logged.log))
    return Exact(shard.merged(before), result, residual(result, shard.merged(scratch)), cost)


def by_statistics(data: Dataset, log: Log, forget_clients: Sequence[int], ridge: float) -> Exact:
    clients = sorted(set(log.clients.tolist()))
    sums = statistics.collect(log, data, clients)
    whole = statistics.add(sums.values())
    began = time.perf_counter()
    rest = statistics.subtract(whole, statistics.add(sums[client] for client in forget_clients))
    result = statistics.solve(rest, ridge=ridge)
    seconds = time.perf_counter() - began
    scratch = statistics.solve(statistics.add(sums[c] for c in clients if c not in forget_clients), ridge=ridge)
    each = NUMBER * (whole.matrix.size + whole.vector.size)
    cost = Cost(0, 0, len(forget_clients), len(forget_clients) * each, len(clients) * each, seconds)
    return Exact(statistics.solve(whole, ridge=ridge), result, residual(result, scratch), cost)
