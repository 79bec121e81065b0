"""From a task to its rounds: the pieces that `federation.round.run_rounds` takes, and centralised PDGD.

Sources: S0 Algorithms 2 and 3, section 4 (centralised PDGD, batches summed); S2 section 4.4.3 (warm-up).
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from foltr._kernels.aggregation import weighted_mean as kernel_mean
from foltr._kernels.metrics import mean_online
from foltr.federation import detector
from foltr.federation import personalization as personal
from foltr.federation.aggregators import aggregator_kind, weighted_mean
from foltr.federation.buffered import weigh_staleness
from foltr.federation.engine import Aggregate, EngineCollector, Transform
from foltr.federation.personalization import Shared
from foltr.federation.round import run_rounds
from foltr.federation.schedule import Members
from foltr.federation.server import init_state, server_optimizer
from foltr.lab.simulation.grouped import Mean, grouped
from foltr.lab.simulation.protection import server_noise
from foltr.lab.simulation.task import Central, Federated, Task, federated, init_parameters, protection_in, schedule_of
from foltr.types import Array, OnlineMetrics, Updates

SUM_BLOCK = 64  # interactions of a batch that are summed together; fixed, so that threads cannot change a sum


class RoundProgress(NamedTuple):
    """The state after a round, and the online metrics since the state before."""

    round: int
    parameters: Array  # [P]
    ndcg: Array  # [rounds] mean nDCG@10 of the displayed lists
    max_rr: Array  # [rounds]
    interactions: int
    personal: Array | None = None  # [clients, P] what each client searches with, where they differ


def run(task: Task, engine: Any, stops: Sequence[int] = ()) -> Iterator[RoundProgress]:
    """All rounds of a task, one by one; centralised PDGD with batch 1 yields at `stops` only."""
    if isinstance(task.federation, Central):
        start, single = init_parameters(task), task.federation.batch == 1
        return _chain(task.federation, engine, start, stops) if single else _batches(task.federation, engine, start)
    return _federated(task, task.federation, engine)


def _federated(task: Task, federation: Federated, engine: Any) -> Iterator[RoundProgress]:
    start = warmed_up(task, federation, engine)
    own = task.personal != Shared()
    state = init_state(
        start, mechanism_state=task.privacy.init_state(),
        personal=personal.init_state(start, federation.clients) if own else None,
    )  # fmt: skip
    protection = protection_in(task)
    noise = server_noise(protection, seed=task.seed, clients=federation.clients, groups=federation.groups)
    collector = EngineCollector(engine, None if own else aggregation(task, engine), _both(task.transform, noise))
    rounds = run_rounds(
        state, schedule_of(task), collector, protection=protection, server_optimizer=server_optimizer(task.learner),
        personalization=personal.personalization(task.personal, task.ranker) if own else None,
    )  # fmt: skip
    for done in rounds:
        yield _progress(done.round, done.parameters, done.collected.online, done.state.personal)


def _both(first: Transform | None, second: Transform | None) -> Transform | None:
    """One after the other."""
    if first is None or second is None:
        return first or second

    def transform(updates: Updates, model: Array, round: int) -> Updates:
        return second(first(updates, model, round), model, round)

    return transform


def warmed_up(task: Task, federation: Federated, engine: Any) -> Array:
    """The start after the server's warm-up, in which it acts as one more client."""
    start = init_parameters(task)
    if not task.warm_up:
        return start
    server = engine.prepare(Members(np.array([federation.clients]), np.array([task.warm_up])))
    trained: Array = engine.train(start, server, round=0)[0][0]
    return trained


def aggregation(task: Task, engine: Any) -> Aggregate:
    """Decoding and the aggregator of a task; where the mechanism executes secure aggregation, over the protocol."""
    federation = federated(task.federation)
    decode = getattr(engine, "decode", None)
    size = task.ranker.size(task.train.features.shape[1])
    combine = _combined(task, federation, size)

    def aggregate(updates: Updates, version: int) -> Array:
        if federation.mode == "buffered":
            updates = weigh_staleness(
                updates, version, kind=federation.staleness, exponent=federation.staleness_exponent
            )
        if task.learner.message == "delta":
            deltas = updates.values
        elif decode is not None:
            deltas = decode(updates)
        else:
            deltas = task.learner.decode(updates, seed=task.seed, parameters=size)
        return combine(deltas, _weights(task, updates), version)

    return aggregate


def _weights(task: Task, updates: Updates) -> Array:
    """Interactions; equal where weights would leak information, and for gradient estimates."""
    equal = getattr(task.privacy, "equal_weights", False) or task.learner.message == "objective"
    return np.ones(len(updates.weights)) if equal else updates.weights


def _combined(task: Task, federation: Federated, size: int) -> Any:
    """(deltas [n, P], weights [n], version of the model) -> [P]"""
    num_byzantine = federation.num_byzantine or 0
    mean = _mean_of(task)
    if federation.groups > 1:
        return grouped(
            compiled_aggregator(federation.aggregator), mean, federation.groups, seed=task.seed,
            num_byzantine=num_byzantine,
        )  # fmt: skip
    if mean is not _weighted_mean:
        return lambda deltas, weights, _version: mean(deltas, weights)
    kind: Any = partial(compiled_aggregator(federation.aggregator), num_byzantine=num_byzantine)
    if federation.defend_on_detection:
        kind = detector.defended(
            compiled_aggregator(federation.aggregator), compiled_aggregator("fedavg"), (federation.clients, size),
            num_byzantine,
        )  # fmt: skip
    return lambda deltas, weights, _version: kind(deltas, weights)


def _mean_of(task: Task) -> Mean:
    """By the protocol of one server or of two where it is executed."""
    if getattr(task.privacy, "secure_aggregation", False) != "execute":
        return _weighted_mean
    return _two_servers_mean if task.secagg_mode == "two-servers" else _secure_mean


def _weighted_mean(deltas: Array, weights: Array) -> Array:
    return compiled_mean(deltas, weights, num_byzantine=0)


def _secure_mean(deltas: Array, weights: Array) -> Array:
    from foltr.secagg.in_process import secure_sum

    return secure_sum(deltas) / len(weights)


def _two_servers_mean(deltas: Array, weights: Array) -> Array:
    from foltr.secagg.two_in_process import two_server_sum

    return two_server_sum(deltas) / len(weights)


def compiled_aggregator(name: str) -> Any:
    """An aggregator as the lab runs it: weighted means by a kernel (a coordinator does without), others as they are."""
    kind = aggregator_kind(name)()
    return compiled_mean if getattr(kind, "is_weighted_mean", False) else kind


def compiled_mean(values: Array, weights: Array, *, num_byzantine: int) -> Array:  # noqa: ARG001
    mean = np.empty(values.shape[1])
    if kernel_mean(values, weights, mean):
        return mean
    return weighted_mean(values, weights)  # leaves out rows that are not finite


def _batches(federation: Central, engine: Any, start: Array) -> Iterator[RoundProgress]:
    parameters = start
    blocks = np.arange(-(-federation.batch // SUM_BLOCK))
    cohort = engine.prepare(Members(blocks, np.minimum(federation.batch - blocks * SUM_BLOCK, SUM_BLOCK)))
    for round in range(1, federation.rounds + 1):
        moved, online = engine.train(parameters, cohort, round=round, summed=True)
        parameters = parameters + (moved - parameters).sum(axis=0)
        yield _progress(round, parameters, online)


def _chain(federation: Central, engine: Any, start: Array, stops: Sequence[int]) -> Iterator[RoundProgress]:
    """One update an interaction; every interaction is a round. `stops` do not change the result."""
    parameters, done = start, 0
    for stop in sorted({*stops, federation.rounds}):
        cohort = engine.prepare(Members(np.zeros(1, np.int64), np.array([stop - done])))
        moved, online = engine.train(parameters, cohort, round=1, first_step=done)
        parameters, done = moved[0], stop
        yield RoundProgress(done, parameters, online.ndcg, online.max_rr, len(online.ndcg))


def _progress(round: int, parameters: Array, online: OnlineMetrics | None, own: Any = None) -> RoundProgress:
    means, interactions = np.zeros((2, 1)), 0 if online is None else len(online.ndcg)
    if online is not None and interactions:
        mean_online(online.ndcg, online.max_rr, means)
    return RoundProgress(round, parameters, means[0], means[1], interactions, None if own is None else own.models)
