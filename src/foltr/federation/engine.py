"""Collecting updates that are visible: engines run the clients, and an aggregator combines what each of them sent.

Simulations collect this way, and so do the parties of a silo and unlearning, which replay updates that were stored. In
a deployed federation nobody sees a single update (`coordinator`).
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from foltr.federation.round import Release, RoundModel, RoundSum
from foltr.federation.schedule import Members
from foltr.types import Array, OnlineMetrics, Updates

# (updates, model [P], round) -> updates as they arrive: attacks, the calibration of a replay
Transform: TypeAlias = Callable[[Updates, Array, int], Updates]
# (updates, version of the newest model) -> one delta [P], or a gradient
Aggregate: TypeAlias = Callable[[Updates, int], Array]


class Engine(Protocol):
    """Where clients run: in plain Python, in machine code, or over a click log."""

    def prepare(self, members: Members) -> Any:
        """A cohort as `local_updates` takes it, prepared once where the same clients take part in every round."""
        ...

    def local_updates(
        self, models: Array, cohort: Any, round: int, release: Release | None
    ) -> tuple[Updates, OnlineMetrics]:
        """The updates of `client.local_update` for every client of the cohort, as one batch.

        `models` is [P], or [n, P] where clients have rankers of their own; `round` addresses random streams. Without a
        release the updates are not protected.
        """
        ...


class EngineCollector:
    """Runs an engine, then transforms and aggregates the updates. See `federation.round.Collector`."""

    def __init__(
        self, engine: Engine, aggregator: Aggregate | None, transform: Transform | None = None, *, address: int = 0
    ) -> None:
        """`aggregator`: None where rankers are personal and the server makes one step for each client. `address`:
        added to a round's number where its random streams are read; a replay reads new ones."""
        self._engine, self._aggregator, self._transform, self._address = engine, aggregator, transform, address
        self._prepared: tuple[Members, Any] | None = None

    def collect(self, model: RoundModel, members: Members, round: int, release: Release | None) -> RoundSum:
        cohort = self._cohort(members)
        updates, online = self._engine.local_updates(model.starts, cohort, self._address + round, release)
        if members.base_versions is not None:
            updates = updates._replace(base_versions=members.base_versions)
        if release is None or self._aggregator is None:
            return RoundSum(None, members.clients, {}, online=online, updates=updates)
        updates, appended = _without_appended(updates, len(model.parameters), release)
        if self._transform is not None:
            updates = self._transform(updates, model.parameters, round)
        delta = self._aggregator(updates, model.version)
        return RoundSum(delta, updates.clients, {}, appended, online, updates)

    def _cohort(self, members: Members) -> Any:
        """Prepares a cohort, once for equal members."""
        if self._prepared is None or self._prepared[0] is not members:
            self._prepared = members, self._engine.prepare(members)
        return self._prepared[1]


def _without_appended(updates: Updates, width: int, release: Release) -> tuple[Updates, Array]:
    """Updates of the model's width, and the sums of the values that a mechanism appended to them."""
    if release.acts_on != "delta" or updates.values.shape[1] == width:
        return updates, np.empty(0)
    return updates._replace(values=updates.values[:, :width]), updates.values[:, width:].sum(axis=0)
