"""Rounds of federated averaging in which somebody may cheat, somebody may be absent, and updates are kept.

Source: S2 section 6.1.1 and equations 6.1, 6.3 and 6.4.

Differs from the paper: nothing. The average of the clients' updates is added, which is the same as averaging their
models; without absent clients and without cheating it is `federation.rounds.run` to the last bit.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.federation.aggregators import weighted_mean
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
    everybody = _present(task, 1, without)  # the very same arrays each round: engines then prepare only once
    for round in range(1, federation.rounds + 1):
        clients, steps = everybody if federation.cohort is None else _present(task, round, without)
        updates = None
        if clients.size:
            models, _ = engine.train(parameters, clients, steps, round=round)
            deltas = models - parameters
            if transform is not None:
                deltas = transform(deltas, clients, parameters, round)
            if keep_every is not None and (round - 1) % keep_every == 0:
                updates = deltas
            parameters = parameters + weighted_mean(deltas, steps)
        yield Round(round, parameters, clients, steps, updates)


def negate(leavers: Collection[int], z: float) -> Transform:
    """The leavers send -z times the model that they trained (equation 6.3)."""
    attacking = np.array(sorted(leavers))

    def transform(deltas: Array, clients: Array, model: Array, round: int) -> Array:  # noqa: ARG001
        attacks = np.isin(clients, attacking)[:, None]
        return np.where(attacks, -z * (model + deltas) - model, deltas)

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
