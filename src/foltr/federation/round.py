"""The round: admit, collect, step. `run_rounds` yields a result after each.

Sources: S0 Algorithms 2 and 3 (FedAvg), S1 section 3.1 (FOLtR-ES), S2 chapters 4 to 6.

What differs between federations is passed in: a schedule says who takes part, a collector asks the clients and combines
their updates (`engine.EngineCollector` in a simulation, `coordinator` in a deployed federation), an optimiser steps.

Differs from the paper: the server adds the aggregated delta to the model instead of averaging the clients' models,
which is the same up to rounding.
"""

from collections.abc import Callable, Iterator, Mapping
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


class RoundModel(NamedTuple):
    """The model that a round begins with."""

    version: int
    parameters: Array  # [P] the newest
    starts: Array  # [P], or [n, P] where clients start from models of their own or from older ones


class Release(NamedTuple):
    """The parameters of a release that the server sends to clients."""

    state: Any  # of the mechanism, such as the clip
    event: Event | None
    acts_on: str = "delta"  # what the mechanism protects


class RoundSum(NamedTuple):
    """The result of a round, as the server sees it."""

    delta: Array | None  # [P] what the server steps by, a delta or a gradient; None: nothing was released
    included: Array  # [n] clients in the sum
    dropped: Mapping[int, str]  # clients that were asked and are not in the sum, with reasons where they are known
    appended: Array = np.empty(0)  # sums of the values that the mechanism appended to the updates
    online: OnlineMetrics | None = None  # simulations only
    updates: Updates | None = None  # as they arrived; simulations only


class Collector(Protocol):
    """Where clients are, and how their updates are combined."""

    def collect(self, model: RoundModel, members: Members, round: int, release: Release | None) -> RoundSum:
        """Asks the members of a round. Without a release, clients go on with the model and send nothing."""
        ...


# (state, updates [n, P]) -> the state of the next version, with personal rankers
Personalize: TypeAlias = Callable[[ServerState, Updates], ServerState]


class Protection(NamedTuple):
    """The mechanism that clients apply, and the ledger that admits every release before it happens."""

    mechanism: Any = NoPrivacy()
    event: Event | None = None  # the privacy event of one round; None: no protection
    ledger: Ledger | None = None
    context: ReleaseContext = ReleaseContext(1, 1, 1)


UNPROTECTED = Protection()


class RoundResult(NamedTuple):
    round: int
    members: Members
    state: ServerState
    collected: RoundSum
    released: bool  # False: the ledger refused the round or there was no sum, and the model stays

    @property
    def parameters(self) -> Array:
        return self.state.parameters


def run_rounds(
    state: ServerState, schedule: Schedule, collector: Collector, *, server_optimizer: ServerOptimizer,
    protection: Protection = UNPROTECTED, personalization: Personalize | None = None,
) -> Iterator[RoundResult]:  # fmt: skip
    """All rounds of a schedule."""
    members, versions = None, {state.version: state.parameters}
    for round in schedule.rounds:
        if members is None or not schedule.fixed:
            members = schedule.members(round)
        if not members.clients.size:
            yield RoundResult(round, members, state, RoundSum(None, members.clients, {}), False)
            continue
        model = RoundModel(state.version, state.parameters, _starts(state, members, versions))
        release = None
        if admit(protection, members.clients):
            release = Release(state.mechanism_state, protection.event, protection.mechanism.acts_on)
        collected = collector.collect(model, members, round, release)
        if release is not None and personalization is not None and collected.updates is not None:
            state = personalization(state, collected.updates)
        elif release is not None and collected.delta is not None:
            state = server_optimizer(_with_appended(state, collected.appended, protection), collected.delta)
        else:  # clients go on searching with their current ranker
            state, release = state._replace(version=state.version + 1), None
        yield RoundResult(round, members, state, collected, released=release is not None)


def _starts(state: ServerState, members: Members, versions: dict[int, Array]) -> Array:
    """Models that clients start from: the newest model, their own, or in buffered rounds the one they began with."""
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


def _with_appended(state: ServerState, appended: Array, protection: Protection) -> ServerState:
    """Updates the state of a mechanism by the sums of the values that it appended to the updates."""
    if not appended.size:
        return state
    if protection.event is not None and protection.event.noise_by == "servers":
        raise SpecError(
            f"{type(protection.mechanism).__name__} appends {appended.size} values to an update, to which two servers "
            f'add no noise; use secagg.mode = "one-server"'
        )
    following = protection.mechanism.next_state(state.mechanism_state, appended, protection.context)
    return state._replace(mechanism_state=following)
