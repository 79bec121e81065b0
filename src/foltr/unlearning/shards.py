"""Shards: clients in independent sub-federations, whose linear models are averaged for use.

To forget a client only its shard is learnt again, from the logs of its other members. Users see lists of their own
shard's model during training, so a client does not influence the lists of other shards.

Differs from the paper: not in S2. The idea is that of Bourtoule et al., "Machine unlearning" (2021), over clients.
"""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.federation.aggregators import weighted_sum
from foltr.federation.engine import Engine, Transform
from foltr.types import Array
from foltr.unlearning.logs import Log, learn, only, size
from foltr.unlearning.replay import Cost, FederationSetup, federate, total_cost, walk

Members = tuple[int, ...]


class Shard(NamedTuple):
    members: Members
    model: Array  # [P]
    cost: Cost  # of making it


class Logged(NamedTuple):
    """A log, and the engine that learns from any part of it."""

    log: Log
    engine: Callable[[Log], Engine]


def assign(clients: int, shards: int) -> list[Members]:
    """Clients by round robin; every shard has at least one."""
    if not 1 <= shards <= clients:
        raise SpecError(f"shards = {shards}: use 1 .. {clients}, the number of clients")
    return [tuple(range(shard, clients, shards)) for shard in range(shards)]


def train(
    federation: FederationSetup, clients: int, shards: Iterable[Members], transform: Transform | None = None
) -> list[Shard]:
    """Every shard is a federation of its own."""
    everybody, trained = set(range(clients)), []
    for members in shards:
        done = walk(federate(federation, without=everybody - {*members}, transform=transform))
        trained.append(Shard(members, done.parameters[-1], done.cost))
    return trained


def learn_shard(start: Array, logged: Logged, members: Members) -> Shard:
    """Trains a shard from its members' logs; without members it stays at the start."""
    rows = only(logged.log, members)
    if not len(rows.rounds):
        return Shard(members, start, Cost(0, 0, 0, 0, 0, 0.0))
    done = walk(learn(start, rows, logged.engine(rows)), searching=False, stored=size(rows))
    return Shard(members, done.parameters[-1], done.cost)


def forget(
    start: Array, shards: Iterable[Shard], logged: Logged, forget_clients: Collection[int]
) -> tuple[list[Shard], Cost]:
    """The shards of these clients are learnt again from what their other members logged. Also the cost."""
    after, again = [], []
    for shard in shards:
        stays = tuple(client for client in shard.members if client not in forget_clients)
        if len(stays) < len(shard.members):
            shard = learn_shard(start, logged, stays)
            again.append(shard.cost)
        after.append(shard)
    if not again:
        raise SpecError(f"forget_clients = {list(forget_clients)}: none is in a shard; there is nothing to forget")
    return after, total_cost(again)


def merged(shards: Iterable[Shard]) -> Array:
    """[P] the mean of the shards by the steps behind each; an empty one has weight 0."""
    models, weights = zip(*((shard.model, shard.cost.local_steps) for shard in shards), strict=True)
    if not any(weights):
        raise SpecError("no shard has members; at least one client has to remain")
    return weighted_sum(np.stack(models), np.array(weights)) / sum(weights)
