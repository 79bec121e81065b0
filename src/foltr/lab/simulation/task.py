"""One simulated federation: everything that decides the numbers of a single run."""

from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from foltr.clicks import ClickModel
from foltr.federation.personalization import Shared
from foltr.federation.releases import protection_of
from foltr.federation.round import Protection, Transform
from foltr.federation.schedule import Schedule, synchronous
from foltr.learners.foltr_es import outcomes
from foltr.types import Array, Dataset

Count = Annotated[int, msgspec.Meta(ge=1)]


class Federated(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="federated"):
    clients: Count = 1000
    interactions: Count | Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)] = 4
    rounds: Count = 1000
    cohort: Count | None = None
    round_robin: bool = False  # cohorts in turn, so that nobody takes part more often than others; else at random
    aggregator: str = "fedavg"
    num_byzantine: Annotated[int, msgspec.Meta(ge=0)] | None = None  # to withstand; None: as many as attack
    defend_on_detection: bool = False  # average until the detector sees an attack, and only then use the aggregator


class Central(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="central"):
    """No federation: one update an interaction, or the gradients of a batch summed for one step."""

    batch: Count = 1
    rounds: Count = 1000


class ClientPools(NamedTuple):
    """Whose queries and whose click model, where clients are not all alike."""

    pools: Array  # queries; client c draws from pools[start[c] : stop[c]]
    start: Array  # [clients]
    stop: Array  # [clients]
    users: Array  # [clients] which click model, or DRAWN


def everything(clients: Array, *, queries: int, click_models: int) -> ClientPools:
    """These clients hold every query, and take turns in the click models."""
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
    transform: Transform | None = None  # what attackers make of the updates before they arrive
    personal: Any = Shared()
    warm_up: int = 0  # interactions of the server before the first round, as the client after the last

    @property
    def k(self) -> int:
        return len(self.click_models[0].click)


def init_parameters(task: Task) -> Array:
    start: Array = task.ranker.init(task.train.features.shape[1], task.seed)
    return start


def schedule_of(task: Task, without: tuple[int, ...] = ()) -> Schedule:
    federation = task.federation
    assert isinstance(federation, Federated)
    return synchronous(
        federation.clients, federation.interactions, federation.rounds, cohort=federation.cohort,
        round_robin=federation.round_robin, seed=task.seed, without=without,
    )  # fmt: skip


def protection_in(task: Task) -> Protection:
    """The task's mechanism with its event and an empty ledger."""
    federation, learner = task.federation, task.learner
    assert isinstance(federation, Federated)
    possible = len(outcomes(learner.objective, task.k)) if learner.message == "objective" else 0
    return protection_of(
        task.privacy, clients=federation.clients, cohort=federation.cohort, round_robin=federation.round_robin,
        rounds=federation.rounds, parameters=task.ranker.size(task.train.features.shape[1]), outcomes=possible,
    )  # fmt: skip
