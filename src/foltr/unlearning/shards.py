"""Shards: clients in independent sub-federations, whose linear models are averaged for use.

To forget a client only its shard is learnt again, from the logs of its other members. People are shown lists of their
own shard's model while they train it, so a leaver never shaped what the other shards saw.

Differs from the paper: not in S2. The idea is that of Bourtoule et al., "Machine unlearning" (2021), over clients.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.federation.aggregators import weighted_mean
from foltr.federation.round import Engine, Task, Transform
from foltr.rankers import Linear
from foltr.types import Array
from foltr.unlearning.cost import Cost, together, walk
from foltr.unlearning.logs import Log, learn, only, size
from foltr.unlearning.rounds import begin, federate, federated

Members = tuple[int, ...]


class Shard(NamedTuple):
    members: Members
    model: Array  # [P]
    cost: Cost  # of making it


def assign(task: Task, shards: int) -> list[Members]:
    """Clients in turn. Every shard has one at least; only linear models can be averaged after separate training."""
    clients = federated(task).clients
    if not isinstance(task.ranker, Linear):
        raise SpecError("shards average models that were trained apart, which suits linear rankers only; use 'linear'")
    if not 1 <= shards <= clients:
        raise SpecError(f"shards = {shards}: use 1 .. {clients}, the number of clients")
    return [tuple(range(shard, clients, shards)) for shard in range(shards)]


def train(task: Task, engine: Engine, shards: Iterable[Members], transform: Transform | None = None) -> list[Shard]:
    """Every shard is a federation of its own."""
    everybody = set(range(federated(task).clients))
    made = []
    for members in shards:
        done = walk(federate(task, engine, without=everybody - {*members}, transform=transform))
        made.append(Shard(members, done.parameters[-1], done.cost))
    return made


def learn_shard(task: Task, log: Log, members: Members) -> Shard:
    """A shard from its members' logs; one that everybody left has learnt nothing."""
    rows = only(log, members)
    if not len(rows.rounds):
        return Shard(members, begin(task), Cost(0, 0, 0, 0, 0, 0.0))
    done = walk(learn(task, rows), searching=False, kept=size(rows))
    return Shard(members, done.parameters[-1], done.cost)


def forget(task: Task, shards: Iterable[Shard], log: Log, leavers: Collection[int]) -> tuple[list[Shard], Cost]:
    """The leavers' shards are learnt again from what their other members logged; the rest stays. Also the cost."""
    kept, again = [], []
    for shard in shards:
        stays = tuple(client for client in shard.members if client not in leavers)
        if len(stays) < len(shard.members):
            shard = learn_shard(task, log, stays)
            again.append(shard.cost)
        kept.append(shard)
    if not again:
        raise SpecError(f"leavers = {list(leavers)}: none of them is in a shard; there is nothing to forget")
    return kept, together(again)


def merged(shards: Iterable[Shard]) -> Array:
    """[P] the mean of the shards by the steps behind each; one that everybody left weighs nothing."""
    models, weights = zip(*((shard.model, shard.cost.local_steps) for shard in shards), strict=True)
    if not any(weights):
        raise SpecError("no shard has learnt from anybody; at least one client has to remain")
    return weighted_mean(np.stack(models), np.array(weights))
