"""Rounds in which operators and nodes are killed at any write and start again from the disk.

Nobody is counted twice, and a node that was charged for a round without a sum was killed in it itself, or too few
contributions arrived, or the sum waits for an operator.
"""

import os
from collections import Counter, defaultdict
from itertools import chain, count

import numpy as np
import pytest
from small_members import NODES, RATE, START, mean_of, rounds_of, small

from foltr.federation import coordinator as coordinating
from foltr.federation.coordinator import publish
from foltr.federation.in_memory import InMemory
from foltr.federation.member import respond
from foltr.federation.round import RoundModel
from foltr.rng import stream
from foltr.secagg.two_servers import min_clients

pytestmark = pytest.mark.usefixtures("silent_operators")

KILLED_AT_A_WRITE = 0.004  # of some thirty writes of a party in a round
AWAY = 0.03  # calls of an operator that reach nobody
HOURS = 5.0  # between two rounds


class Killed(BaseException):
    """A process that ends here: nothing in the package catches it."""


class Chaos:
    """Ends whoever is armed at one of its writes; no file is really forced to the disk."""

    def __init__(self, monkeypatch, seed):
        blocks = (stream(seed, round=block, purpose="data").uniform(4096).tolist() for block in count())
        self.uniform, self.armed, self.kills = chain.from_iterable(blocks), False, Counter()
        monkeypatch.setattr(os, "fsync", self.fsync)

    def fsync(self, _descriptor):
        if self.armed and next(self.uniform) < KILLED_AT_A_WRITE:
            self.armed = False
            raise Killed

    def run(self, who, function, *given):
        self.armed = True
        try:
            return function(*given)
        except Killed:
            self.kills[who] += 1
            raise
        finally:
            self.armed = False


class Fragile:
    """An operator that is away at times, and that starts again from its disk after a kill."""

    def __init__(self, place, start, chaos):
        self.place, self.start, self.chaos, self.operator = place, start, chaos, start()

    def __getattr__(self, name):
        def call(*given):
            if next(self.chaos.uniform) < AWAY:
                raise ConnectionError("away")
            try:
                return self.chaos.run(f"operator {self.place}", getattr(self.operator, name), *given)
            except Killed:
                self.operator = self.start()
                raise ConnectionError("killed") from None

        return call


class Nodes:
    """Five nodes that start again after a kill; who was charged, and who was killed, in which round."""

    def __init__(self, fed, chaos):
        self.fed, self.chaos, self.round = fed, chaos, 1
        self.sides, self.killed, self.charged = {}, defaultdict(set), Counter()

    def side(self, client):
        if client not in self.sides:
            side = self.fed.side(client)
            charge = side.ledger.charge

            def counted(event, *, federation, round, **message):
                charge(event, federation=federation, round=round, **message)
                self.charged[client, round] += 1

            side.ledger.charge = counted
            self.sides[client] = side
        return self.sides[client]

    def respond(self, client, message):
        try:
            return self.chaos.run("nodes", respond, self.side(client), message)
        except Killed:
            del self.sides[client]
            self.killed[self.round].add(client)
            return None

    def transport(self):
        return InMemory({client: lambda message, client=client: self.respond(client, message)
                         for client in range(NODES)})  # fmt: skip


@pytest.mark.parametrize(
    ("seed", "rounds"), [(0, 40), *(pytest.param(seed, 200, marks=pytest.mark.slow) for seed in range(1, 11))]
)
def test_nobody_is_counted_twice_or_charged_for_nothing(tmp_path, monkeypatch, seed, rounds):
    """Ten federations of 200 rounds are 2,000: a ledger is read whole at every charge."""
    chaos = Chaos(monkeypatch, seed)
    fed, sums = small(tmp_path), {}
    nodes = Nodes(fed, chaos)
    combine = coordinating.combine

    def combined(halves, *, window):
        result = combine(halves, window=window)
        members = {client for group in result.members for client in group}
        assert sums.setdefault(window.round, members) == members  # asked again, the same sum
        return result

    monkeypatch.setattr(coordinating, "combine", combined)
    pair = tuple(Fragile(place, lambda place=place: fed.operators()[place].operator, chaos) for place in (0, 1))
    collector, released, parameters = fed.collector(nodes.transport(), pair), 0, None
    for result in rounds_of(collector, rounds):
        model = RoundModel(result.state.version, result.parameters, result.parameters)
        publish(collector, model, range(NODES), round=result.round)
        released, parameters, nodes.round = released + result.released, result.parameters, result.round + 1
        fed.clock.now += 2 * HOURS * 3600 * next(chaos.uniform)
    assert released > rounds / 2  # the protocol is not kept safe by silence
    if seed:
        assert min(chaos.kills[who] for who in ("operator 0", "operator 1", "nodes")) > 3
    assert set(nodes.charged.values()) == {1}
    expected = START.parameters + RATE * sum(mean_of(members) for members in sums.values())
    np.testing.assert_allclose(parameters, expected, atol=1e-9 * rounds)  # every sum once
    for round, members in sums.items():
        assert all(nodes.charged[client, round] == 1 or client in nodes.killed[round] for client in members)
    for client, round in nodes.charged:
        paid = {one for one in range(NODES) if nodes.charged[one, round]} - nodes.killed[round]
        lost = round not in sums and len(paid) >= min_clients(fed.setup)
        assert not lost or round > rounds - 8, (client, round)  # the newest may wait for an operator
        assert round not in sums or client in sums[round] or client in nodes.killed[round], (client, round)
