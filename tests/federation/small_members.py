"""Five nodes that learn fixed updates, a coordinator and two operators that can be away, all with state on the disk."""

from functools import partial
from typing import NamedTuple

import numpy as np

from foltr.federation.announcement import Ranker
from foltr.federation.coordinator import Coordinator, TwoOperators
from foltr.federation.in_memory import InMemory
from foltr.federation.member import NodeSide, respond
from foltr.federation.membership import Member, Storage
from foltr.federation.operator import Operator
from foltr.federation.policy import Guarded, Limits, Policy, accept
from foltr.federation.round import run_rounds
from foltr.federation.schedule import synchronous
from foltr.federation.server import add_scaled, init_state
from foltr.privacy.ledger_file import open_ledger
from foltr.secagg.crypto import new_identity
from foltr.secagg.terms import Terms, new_federation, registry
from foltr.secagg.two_servers import two_servers

NODES, LENGTH = 5, 3
NAMES = tuple(f"feature {place}" for place in range(LENGTH))
RATE = 2.0
NOW = 1.8e9
LIMITS = Limits(epsilon=1e6, noise_multiplier=0.5, min_clients=4, rounds_per_week=1_000)


class Clock:
    def __init__(self, now=NOW):
        self.now = now

    def __call__(self):
        return self.now


class Reached:
    """An operator over a connection that can be cut."""

    def __init__(self, operator):
        self.operator, self.away = operator, False

    def __getattr__(self, name):
        if self.away:
            raise ConnectionError("the second operator does not answer")
        return getattr(self.operator, name)


class Small(NamedTuple):
    terms: Terms
    registry: object
    identities: dict
    server: object
    pair: tuple  # private identities of the operators
    folder: object
    clock: Clock
    adopted: list  # nodes, and the rankers that they took over

    @property
    def setup(self):
        first, second = map(public, self.pair)
        return two_servers(self.terms, self.registry, (first, second))

    def side(self, client, budget=None):
        home = self.folder / f"node-{client}"
        if not Guarded(home / "state").path.exists():
            policy = accept(Policy(LIMITS), self.terms.federation, self.setup.operators)
            Guarded(home / "state").save(policy)
        ledger = open_ledger(home / "data" / "ledger", delta=1e-5, budget=budget, witness=home / "state" / "ledger")
        return NodeSide(
            Member(client, self.identities[client], self.terms, self.registry),
            Storage(home / "data", home / "state"), ledger, learn=lambda _ranker: update_of(client),
            adopt=lambda ranker: self.adopted.append((client, ranker)), operators=self.setup.operators,
            clock=self.clock, start=START_RANKER, server_learning_rate=RATE, policy=Guarded(home / "state"),
        )  # fmt: skip

    def transport(self, clients=range(NODES)):
        return InMemory({client: partial(respond, self.side(client)) for client in clients})

    def operators(self):
        return tuple(
            Reached(Operator(place, identity, self.setup,
                             Storage(self.folder / f"operator-{place}", self.folder / f"witness-{place}"), self.clock))
            for place, identity in enumerate(self.pair)
        )  # fmt: skip

    def collector(self, transport, operators=None):
        coordinator = Coordinator(self.terms, self.registry, self.server, NAMES, transport)
        journal = self.folder / "coordinator" / "journal"
        return TwoOperators(coordinator, self.setup, operators or self.operators(), journal, self.clock)

    def charged(self, client):
        return sum(self.side(client).ledger.counts().values())


def small(folder, **terms):
    identities, server = {client: new_identity() for client in range(NODES)}, new_identity()
    known = registry(public(server), {client: public(one) for client, one in identities.items()})
    usual = {"bits": 64, "fraction": 32, "dropouts": 0.2, "noise_multiplier": 0.5}
    described = Terms(new_federation(), LENGTH, **usual | terms)
    return Small(described, known, identities, server, (new_identity(), new_identity()), folder, Clock(), [])


def public(identity):
    return identity.public_key().public_bytes_raw()


def update_of(client):
    """Binary fractions, so that sums are exact."""
    return np.array([client / 16, -client / 32, 0.125])


def mean_of(clients):
    return np.mean([update_of(client) for client in clients], axis=0)


START = init_state(np.array([1.0, 2.0, 3.0]))
START_RANKER = Ranker(0, NAMES, START.parameters.astype("<f8").tobytes())
OPTIMIZER = add_scaled(RATE)


def rounds_of(collector, rounds):
    return run_rounds(START, synchronous(NODES, 1, rounds), collector, server_optimizer=OPTIMIZER)
