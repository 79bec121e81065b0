"""Rounds of federated averaging in which somebody may cheat, somebody may be absent, and updates are kept.

Source: S2 section 6.1.1 and equations 6.1, 6.3 and 6.4.

Differs from the paper: nothing. The average is taken of the clients' models, which is the same as adding the average of
their updates; without absent clients and without cheating it is `federation.rounds.run` to the last bit.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.federation.aggregators import fedavg
from foltr.federation.round import Engine, Federated, Task, Transform
from foltr.federation.schedule import interactions_of, pick
from foltr.types import Array


class Round(NamedTuple):
    """The state after a round, and who made it."""

    round: int
    parameters: Array  # [P]
    clients: Array  # [n]
    steps: Array  # [n] local steps of each
    updates: Array | None  # [n, P] what was sent less the round's start, in rounds that are kept


def federate(
    task: Task, engine: Engine, *, keep_every: int | None = None, without: Collection[int] = (),
    transform: Transform | None = None,
) -> Iterator[Round]:  # fmt: skip
    """All rounds; updates are kept in rounds 1, 1 + keep_every, ... Clients in `without` stay at home."""
    federation = federated(task)
    parameters = begin(task)
    clients, steps = _present(task, 1, without)
    prepared = engine.prepare(clients, steps)
    for round in range(1, federation.rounds + 1):
        if federation.cohort is not None:
            clients, steps = _present(task, round, without)
            prepared = engine.prepare(clients, steps)
        updates = None
        if clients.size:
            models, _ = engine.train(parameters, prepared, round=round)
            if transform is not None:
                models = transform(models, clients, parameters, round)
            if keep_every is not None and (round - 1) % keep_every == 0:
                updates = models - parameters
            parameters = fedavg(models, steps)
        yield Round(round, parameters, clients, steps, updates)


def negate(leavers: Collection[int], z: float) -> Transform:
    """The leavers send -z times the model that they trained (equation 6.3)."""
    attacking = np.array(sorted(leavers))

    def transform(models: Array, clients: Array, start: Array, round: int) -> Array:  # noqa: ARG001
        factors = np.where(np.isin(clients, attacking), -z, 1.0)
        return models * factors[:, None]

    return transform


def begin(task: Task) -> Array:
    """The model that every way starts from."""
    return task.ranker.start(task.train.features.shape[1], task.seed)


def federated(task: Task) -> Federated:
    if not isinstance(task.federation, Federated):
        raise SpecError("forgetting a client needs a federation; use federation kind = 'federated'")
    return task.federation


def _present(task: Task, round: int, without: Collection[int]) -> tuple[Array, Array]:
    """Clients of a round that are not in `without`, and the interactions of each."""
    federation = federated(task)
    clients = pick(federation.clients, federation.cohort, seed=task.seed, round=round)
    clients = clients[~np.isin(clients, list(without))]
    return clients, interactions_of(clients, federation.interactions)
