"""Rounds: pick clients, let an engine train them, protect, combine, step. Yields after each round; stores nothing.

Sources: S0 Algorithms 2 and 3 (FedAvg), S1 section 3.1 (FOLtR-ES), S0 section 4 (centralised PDGD, batches summed).

Differs from the paper: nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, NamedTuple, Protocol

import msgspec
import numpy as np

from foltr._kernels.cohort import ClientPools
from foltr._kernels.metrics import mean_online
from foltr.clicks import ClickModel
from foltr.federation import detector, server
from foltr.federation import personalization as personal
from foltr.federation.aggregators import AGGREGATORS, weighted_sum
from foltr.federation.personalization import PersonalKind, Together
from foltr.federation.releases import Releases, planned, taking_part
from foltr.federation.schedule import interactions_of
from foltr.learners import foltr_es as evolution
from foltr.learners.foltr_es import FoltrEs
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import Fpdgd, Gaussian, Laplace, PrivacyKind, protect
from foltr.privacy.noise import add_gamma_shares
from foltr.rankers import RankerKind
from foltr.types import Array, Dataset, OnlineMetrics

Count = Annotated[int, msgspec.Meta(ge=1)]
# (models [n, P] after local training, their clients [n], the round's start [P], round) -> models [n, P] as sent
Transform = Callable[[Array, Array, Array, int], Array]
SUM_BLOCK = 64  # interactions of a batch that are summed together; fixed, so that threads cannot change a sum


class Federated(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="federated"):
    clients: Count = 1000
    interactions: Count | Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)] = 4
    rounds: Count = 1000
    cohort: Count | None = None
    round_robin: bool = False  # cohorts by turns, so that nobody takes part more often than others; else at random
    aggregator: str = "fedavg"
    num_byzantine: Annotated[int, msgspec.Meta(ge=0)] | None = (
        None  # attackers the rule reckons with; None: those there are
    )
    defend_on_detection: bool = False  # average until the detector sees an attack, and only then use the rule


class Central(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="central"):
    """No federation: one update an interaction, or the gradients of a batch summed for one step."""

    batch: Count = 1
    rounds: Count = 1000


class Task(NamedTuple):
    """One single run: everything that decides its numbers."""

    train: Dataset
    grades: int
    behaviours: tuple[ClickModel, ...]  # users[client % len] of a client
    ranker: RankerKind
    learner: Pdgd | FoltrEs
    federation: Federated | Central
    privacy: PrivacyKind
    seed: int
    pools: ClientPools | None = None  # None: everybody holds everything
    transform: Transform | None = None  # what attackers make of the updates before they are sent
    personal: PersonalKind = Together()
    warm_up: int = 0  # interactions of the server before the first round, as the client after the last


class RoundResult(NamedTuple):
    """The state after a round, and what users lived through since the state before."""

    round: int
    parameters: Array  # [P]
    ndcg: Array  # [rounds] mean nDCG@10 of the lists shown in each
    max_rr: Array  # [rounds]
    interactions: int
    personal: Array | None = None  # [clients, P] what each client searches with, where they differ


class Engine(Protocol):
    """Where clients run."""

    def prepare(self, clients: Array, steps: Array) -> Any:
        """A cohort for `train` or `measure`, once for all rounds: addresses of random streams, and interactions."""
        ...

    def train(
        self, parameters: Array, prepared: Any, *, round: int, first_step: int = 0, summed: bool = False
    ) -> tuple[Array, OnlineMetrics]:
        """PDGD: parameters [n, P] after the local steps, from `parameters` [P], or [n, P] where clients differ."""
        ...

    def measure(self, parameters: Array, prepared: Any, *, round: int) -> tuple[Array, Array, OnlineMetrics]:
        """FoltrEs: values [n, 2], the mean objective under +e and -e, and what the public seeds stand for [n, P]."""
        ...


def run(task: Task, engine: Engine, stops: Sequence[int] = ()) -> Iterator[RoundResult]:
    """All rounds of a task, one by one; a chain of single updates goes from stop to stop instead."""
    start = task.ranker.start(task.train.features.shape[1], task.seed)
    if isinstance(task.federation, Central):
        single = task.federation.batch == 1
        return _chain(task.federation, engine, start, stops) if single else _batches(task.federation, engine, start)
    if isinstance(task.learner, FoltrEs):
        return _evolve(task, task.federation, task.learner, engine, start)
    if not isinstance(task.personal, Together):
        return _personal(task, task.federation, engine, start)
    start = _warmed_up(task, task.federation, engine, start)
    if isinstance(task.privacy, Gaussian | Laplace):
        return _private(task, task.federation, engine, start)
    return _average(task, task.federation, engine, start)


def _warmed_up(task: Task, federation: Federated, engine: Engine, start: Array) -> Array:
    """What the server learns by itself, in the place of one client more."""
    if not task.warm_up:
        return start
    server_alone = engine.prepare(np.array([federation.clients]), np.array([task.warm_up]))
    return engine.train(start, server_alone, round=0)[0][0]


def _average(task: Task, federation: Federated, engine: Engine, start: Array) -> Iterator[RoundResult]:
    state = server.begin(start)
    watch = detector.begin(federation.clients, len(start)) if federation.defend_on_detection else None
    rule = "fedavg" if federation.defend_on_detection else federation.aggregator
    clients, steps = _taking_part(task, federation, 1)
    prepared = engine.prepare(clients, steps)
    for round in range(1, federation.rounds + 1):
        if federation.cohort is not None:
            clients, steps = _taking_part(task, federation, round)
            prepared = engine.prepare(clients, steps)
        updates, online = engine.train(state.parameters, prepared, round=round)
        if isinstance(task.privacy, Fpdgd):
            scale = task.privacy.sensitivity / task.privacy.epsilon
            add_gamma_shares(updates, clients, scale=scale, holders=len(clients), seed=task.seed, round=round)
        if task.transform is not None:
            updates = task.transform(updates, clients, state.parameters, round)
        if watch is not None and rule != federation.aggregator:
            watch, alarm = detector.observe(watch, updates, state.parameters)
            rule = federation.aggregator if alarm else rule
        combined = AGGREGATORS[rule](updates, steps, bad=federation.num_byzantine or 0, start=state.parameters)
        state = server.replace(state, combined)
        yield _progress(round, state.parameters, online)


def _private(task: Task, federation: Federated, engine: Engine, start: Array) -> Iterator[RoundResult]:
    """Clipped, noised, averaged with equal weights; a round that the budget forbids changes nothing."""
    assert isinstance(task.privacy, Gaussian | Laplace)
    state, clip = server.begin(start), task.privacy.clip
    plan = releases_of(task, federation)
    for round in range(1, federation.rounds + 1):
        clients, steps = _taking_part(task, federation, round)
        updates, online = engine.train(state.parameters, engine.prepare(clients, steps), round=round)
        if plan.admitted[round - 1]:
            clip = protect(
                task.privacy, updates, state.parameters, clients, plan.event, clip=clip, seed=task.seed, round=round
            )
            if task.transform is not None:
                updates = task.transform(updates, clients, state.parameters, round)
            mean = weighted_sum(updates, np.ones(len(clients))) / len(clients)
            state = server.replace(state, mean)
        yield _progress(round, state.parameters, online)


def releases_of(task: Task, federation: Federated) -> Releases:
    """What a task with an honest mechanism lets out."""
    assert isinstance(task.privacy, Gaussian | Laplace)
    parameters = len(task.ranker.start(task.train.features.shape[1], task.seed))
    return planned(
        task.privacy, clients=federation.clients, cohort=federation.cohort, turns=federation.round_robin,
        rounds=federation.rounds, parameters=parameters, seed=task.seed,
    )  # fmt: skip


def _taking_part(task: Task, federation: Federated, round: int) -> tuple[Array, Array]:
    """Clients of a round, and the interactions of each."""
    clients = taking_part(
        federation.clients, federation.cohort, turns=federation.round_robin, seed=task.seed, round=round
    )
    return clients, interactions_of(clients, federation.interactions)


def _personal(task: Task, federation: Federated, engine: Engine, start: Array) -> Iterator[RoundResult]:
    state = personal.begin(start, federation.clients)
    clients, steps = _taking_part(task, federation, 1)
    prepared = engine.prepare(clients, steps)
    for round in range(1, federation.rounds + 1):
        trained, online = engine.train(state.models, prepared, round=round)
        state = personal.absorb(task.personal, state, trained, steps, task.ranker)
        yield _progress(round, state.shared, online)._replace(personal=state.models)


def _evolve(task: Task, federation: Federated, learner: FoltrEs, engine: Engine, start: Array) -> Iterator[RoundResult]:
    state = server.begin(start)
    prepared = engine.prepare(*_taking_part(task, federation, 1))
    for round in range(1, federation.rounds + 1):
        if federation.cohort is not None:
            prepared = engine.prepare(*_taking_part(task, federation, round))
        values, perturbations, online = engine.measure(state.parameters, prepared, round=round)
        weights = evolution.gradient_weights(values, sigma=learner.sigma, antithetic=learner.antithetic)
        gradient = weighted_sum(perturbations, weights)
        state = server.adam_step(state, gradient, rate=learner.learning_rate)
        yield _progress(round, state.parameters, online)


def _batches(federation: Central, engine: Engine, start: Array) -> Iterator[RoundResult]:
    parameters = start
    blocks = np.arange(-(-federation.batch // SUM_BLOCK))
    steps = np.minimum(federation.batch - blocks * SUM_BLOCK, SUM_BLOCK)
    prepared = engine.prepare(blocks, steps)
    for round in range(1, federation.rounds + 1):
        moved, online = engine.train(parameters, prepared, round=round, summed=True)
        parameters = parameters + (moved - parameters).sum(axis=0)
        yield _progress(round, parameters, online)


def _chain(federation: Central, engine: Engine, start: Array, stops: Sequence[int]) -> Iterator[RoundResult]:
    """One update an interaction, every interaction a round. Where it stops does not change what it does."""
    parameters, done = start, 0
    for stop in sorted({*stops, federation.rounds}):
        steps = np.array([stop - done])
        prepared = engine.prepare(np.zeros(1, np.int64), steps)
        moved, online = engine.train(parameters, prepared, round=1, first_step=done)
        parameters, done = moved[0], stop
        yield RoundResult(done, parameters, online.ndcg, online.max_rr, int(steps[0]))


def _progress(round: int, parameters: Array, online: OnlineMetrics) -> RoundResult:
    means = np.empty((2, 1))
    mean_online(online.ndcg, online.max_rr, means)
    return RoundResult(round, parameters, means[0], means[1], len(online.ndcg))
