"""One simulated federation: all inputs of a single run."""

from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np

from foltr.clicks import ClickModel
from foltr.errors import SpecError
from foltr.federation.buffered import Arrivals, buffered
from foltr.federation.engine import Transform
from foltr.federation.personalization import Shared
from foltr.federation.releases import protection_of
from foltr.federation.round import Protection
from foltr.federation.schedule import Schedule, max_participation, synchronous
from foltr.learners.foltr_es import outcomes
from foltr.privacy.mechanisms import SecAggMode
from foltr.types import Array, Dataset

Count = Annotated[int, msgspec.Meta(ge=1)]


class Federated(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="federated"):
    clients: Count = 1000
    interactions: Count | Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)] = (
        4  # of a client a round, or a pattern
    )
    rounds: Count = 1000
    cohort: Count | None = None  # clients of a round; None: all
    round_robin: bool = False  # cohorts by round robin, so that clients take part equally often; else at random
    aggregator: str = "fedavg"
    num_byzantine: Annotated[int, msgspec.Meta(ge=0)] | None = (
        None  # that the aggregator tolerates; None: all attackers
    )
    groups: Count = 1  # sums of a round, each of other clients; the aggregator combines their means
    defend_on_detection: bool = False  # FedAvg until the detector raises an alarm, then the aggregator
    mode: Literal["sync", "buffered"] = "sync"  # buffered: a round is a release of `buffer` updates as they arrive
    buffer: Count | None = None  # updates that a release waits for
    staleness: Literal["constant", "polynomial"] = "constant"  # weight of an update from an older model
    staleness_exponent: Annotated[float, msgspec.Meta(ge=0)] = 0.5
    searches_per_day: Annotated[float, msgspec.Meta(gt=0)] = 10.0  # of the mean client (buffered)
    rate_spread: Annotated[float, msgspec.Meta(ge=0, le=5)] = 1.0  # sd of the logarithm of clients' rates (buffered)
    day_rhythm: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.8  # amplitude of the day's rhythm (buffered)


class Central(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="central"):
    """No federation: one update an interaction, or the gradients of a batch summed for one step."""

    batch: Count = 1
    rounds: Count = 1000


def federated(federation: Federated | Central) -> Federated:
    """The federation of a setting that must have clients."""
    if not isinstance(federation, Federated):
        raise SpecError('this needs clients; use federation = { clients = ..., rounds = ... } instead of "central"')
    return federation


class ClientPools(NamedTuple):
    """The queries and the click model of each client, where clients differ."""

    pools: Array  # queries; client c draws from pools[start[c] : stop[c]]
    start: Array  # [clients]
    stop: Array  # [clients]
    users: Array  # [clients] which click model, or DRAWN


def everything(clients: Array, *, queries: int, click_models: int) -> ClientPools:
    """These clients hold every query; client i clicks by click model i modulo their number."""
    start, stop = np.zeros(len(clients), dtype=np.int64), np.full(len(clients), queries)
    return ClientPools(np.arange(queries), start, stop, clients % click_models)


class Task(NamedTuple):
    train: Dataset
    grades: int
    click_models: tuple[ClickModel, ...]  # click_models[client % len] of a client
    ranker: Any
    learner: Any
    federation: Federated | Central
    privacy: Any
    seed: int
    pools: ClientPools | None = None  # None: everybody holds everything
    transform: Transform | None = None  # how attackers change the updates before aggregation
    personal: Any = Shared()
    warm_up: int = 0  # interactions of the server before the first round, as the client after the last
    secagg_mode: SecAggMode = "one-server"

    @property
    def k(self) -> int:
        return len(self.click_models[0].click)


def click_tables(task: Task) -> tuple[Array, Array]:
    """Click probabilities [click models, k, grades] and stop probabilities [click models, grades], for kernels."""
    return np.stack([model.click for model in task.click_models]), np.stack([model.stop for model in task.click_models])


def init_parameters(task: Task) -> Array:
    start: Array = task.ranker.init(task.train.features.shape[1], task.seed)
    return start


def schedule_of(task: Task, without: tuple[int, ...] = ()) -> Schedule:
    return federation_schedule(federated(task.federation), task.seed, getattr(task.privacy, "releases", None), without)


def federation_schedule(
    federation: Federated, seed: int, max_releases: int | None = None, without: tuple[int, ...] = ()
) -> Schedule:
    """Participation in every round, a function of the federation and the seed only."""
    if federation.mode == "buffered":
        arrivals = Arrivals(
            federation.clients, federation.interactions, federation.searches_per_day, federation.rate_spread,
            federation.day_rhythm, seed,
        )  # fmt: skip
        return buffered(arrivals, buffer=buffer_of(federation), releases=federation.rounds, max_releases=max_releases)
    return synchronous(
        federation.clients, federation.interactions, federation.rounds, cohort=federation.cohort,
        round_robin=federation.round_robin, seed=seed, without=without,
    )  # fmt: skip


def buffer_of(federation: Federated) -> int:
    return federation.buffer or federation.clients


def participants_of(federation: Federated) -> int:
    """Clients whose updates one release adds up."""
    return buffer_of(federation) if federation.mode == "buffered" else federation.cohort or federation.clients


def protection_in(task: Task) -> Protection:
    """The task's mechanism with its event and an empty ledger."""
    federation, learner = federated(task.federation), task.learner
    possible = len(outcomes(learner.objective, task.k)) if learner.message == "objective" else 0
    size = task.ranker.size(task.train.features.shape[1])
    return federation_protection(
        federation, task.privacy, parameters=size, outcomes=possible, secagg_mode=task.secagg_mode
    )


def federation_protection(
    federation: Federated, mechanism: Any, *, secagg_mode: SecAggMode, parameters: int, outcomes: int = 0
) -> Protection:
    """A mechanism as this federation uses it."""
    cohort = buffer_of(federation) if federation.mode == "buffered" else federation.cohort
    max_rounds = max_participation(
        federation.clients, cohort, round_robin=federation.round_robin, rounds=federation.rounds
    )
    return protection_of(
        mechanism, clients=federation.clients, cohort=cohort, max_rounds=max_rounds, parameters=parameters,
        outcomes=outcomes, groups=federation.groups, secagg_mode=secagg_mode,
    )  # fmt: skip
