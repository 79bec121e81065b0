"""The round: send, train, transform, admit, aggregate, step. `run_rounds` yields a result after each.

Sources: S0 Algorithms 2 and 3 (FedAvg), S1 section 3.1 (FOLtR-ES), S2 chapters 4 to 6.

What differs between federations is passed in: a schedule says who takes part, an engine runs the clients, a transform
changes updates on their way (attacks, calibration of a replay), an aggregator combines them, an optimiser steps.

Differs from the paper: the server adds the aggregated delta to the model instead of averaging the clients' models,
which is the same up to rounding.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from foltr.errors import SpecError
from foltr.federation.schedule import Members, Schedule
from foltr.federation.server import ServerOptimizer, ServerState
from foltr.privacy import ledger as ledgers
from foltr.privacy.events import Event
from foltr.privacy.ledger import Ledger
from foltr.privacy.mechanisms import NoPrivacy, ReleaseContext
from foltr.types import Array, OnlineMetrics, Updates


class Engine(Protocol):
    """Where clients run: in plain Python, in machine code, over a click log, or across a network."""

    def prepare(self, members: Members) -> Any:
        """A cohort as `local_updates` takes it, prepared once where the same clients take part in every round."""
        ...

    def local_updates(
        self, models: Array, cohort: Any, round: int, release: "Release | None"
    ) -> tuple[Updates, OnlineMetrics]:
        """The updates of `client.local_update` for every client of the cohort, as one batch.

        `models` is [P], or [n, P] where clients have rankers of their own; `round` addresses random streams. Without a
        release the updates are not protected.
        """
        ...


class Release(NamedTuple):
    """The parameters of a release that the server sends to clients."""

    state: Any  # of the mechanism, such as the clip
    event: Event | None


# (updates, model [P], round) -> updates as they arrive
Transform: TypeAlias = Callable[[Updates, Array, int], Updates]
# (updates, version of the newest model) -> one delta [P], or a gradient
Aggregate: TypeAlias = Callable[[Updates, int], Array]


class Protection(NamedTuple):
    """The mechanism that the engine's clients apply, and the ledger that admits every release before it happens."""

    mechanism: Any = NoPrivacy()
    event: Event | None = None  # the privacy event of one round; None: no protection
    ledger: Ledger | None = None
    context: ReleaseContext = ReleaseContext(1, 1, 1)


UNPROTECTED = Protection()


class RoundResult(NamedTuple):
    round: int
    members: Members
    state: ServerState
    updates: Updates  # as they arrived
    online: OnlineMetrics
    released: bool  # False: the ledger refused the round, and the model stays

    @property
    def parameters(self) -> Array:
        return self.state.parameters


def run_rounds(
    state: ServerState, schedule: Schedule, engine: Engine, *, protection: Protection = UNPROTECTED,
    aggregator: Aggregate, server_optimizer: ServerOptimizer, transform: Transform | None = None,
    personalization: Any = None,
) -> Iterator[RoundResult]:  # fmt: skip
    """All rounds of a schedule."""
    cohort, versions = None, {state.version: state.parameters}
    for round in schedule.rounds:
        if cohort is None or not schedule.fixed:
            members = schedule.members(round)
            cohort = engine.prepare(members) if members.clients.size else None
        if cohort is None:
            yield RoundResult(round, members, state, _nothing(state), OnlineMetrics(np.empty(0), np.empty(0)), False)
            continue
        released = admit(protection, members.clients)
        models = _models(state, members, versions)
        release = Release(state.mechanism_state, protection.event) if released else None
        updates, online = engine.local_updates(models, cohort, schedule.address + round, release)
        if members.base_versions is not None:
            updates = updates._replace(base_versions=members.base_versions)
        if not released:  # clients go on searching with their current ranker and send nothing
            state = state._replace(version=state.version + 1)
        elif personalization is not None:
            state = personalization(state, updates)
        else:
            updates, state = _extra(updates, state, protection)
            if transform is not None:
                updates = transform(updates, state.parameters, round)
            state = server_optimizer(state, aggregator(updates, state.version))
        yield RoundResult(round, members, state, updates, online, released)


def _models(state: ServerState, members: Members, versions: dict[int, Array]) -> Array:
    """What clients start from: the newest model, their own, or in buffered rounds the one they began with."""
    if members.base_versions is None:
        return state.parameters if state.personal is None else state.personal.models
    versions[state.version] = state.parameters
    for version in [version for version in versions if version < members.oldest_version]:
        del versions[version]  # nobody starts from it any more
    return np.stack([versions[version] for version in members.base_versions.tolist()])


def admit(protection: Protection, clients: Array) -> bool:
    """Asks the ledger for a release about these clients, and charges it; True without a ledger."""
    if protection.ledger is None or protection.event is None:
        return True
    if not ledgers.admits(protection.ledger, protection.event, clients):
        return False
    ledgers.charge(protection.ledger, protection.event, clients)
    return True


def _extra(updates: Updates, state: ServerState, protection: Protection) -> tuple[Updates, ServerState]:
    """Removes the coordinates that a mechanism appended to a delta and updates its state by them."""
    width = len(state.parameters)
    if protection.mechanism.acts_on != "delta" or updates.values.shape[1] == width:
        return updates, state
    if protection.event is not None and protection.event.noise_by == "servers":
        raise SpecError(
            f"{type(protection.mechanism).__name__} appends {updates.values.shape[1] - width} values to an update, to "
            f'which two servers add no noise; use secagg.mode = "one-server"'
        )
    extra = updates.values[:, width:].sum(axis=0)
    following = protection.mechanism.next_state(state.mechanism_state, extra, protection.context)
    return updates._replace(values=updates.values[:, :width]), state._replace(mechanism_state=following)


def _nothing(state: ServerState) -> Updates:
    none = np.empty(0, dtype=np.int64)
    return Updates(np.empty((0, len(state.parameters))), none, none, none)
