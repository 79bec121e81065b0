"""The rules of the model are those of the code: sampled actions of the adversary, put to real nodes and to the real
second operator and to the model, are accepted and refused alike, charge alike, and release the same sums.

Where the code is stricter than the model, the test says where: an operator opens rounds in rising order only, and
without noise nodes accept no second ranker before a sum has led to it.
"""

import numpy as np
import pytest
from operator_machine import Context, Operator, Sum, World, begin, contributed, fewest, may_open, opened
from operator_search import broken
from real_parties import (
    charged,
    close,
    copy_of_operator,
    federation,
    forge,
    open_sum,
    restore_node,
    restore_operator,
    tell,
    update_of,
)

from foltr.rng import stream

NOISY = World(honest=3, colluders=1, founders=3, dropouts=1, noise=True, rounds=3, rankers=2)
CIRCLE = World(honest=3, colluders=1, founders=3, dropouts=0, noise=False, rounds=3, rankers=1)
WALKS, ACTIONS = 12, 36
WEIGHTS = {"announce": 14, "replay": 2, "restore": 1, "restore B": 1, "forge": 1, "close": 5, "open": 4}


@pytest.fixture(autouse=True)
def silent_operators(monkeypatch):
    """B draws zeros where it adds noise, so that sums can be compared; everything else is what runs."""
    monkeypatch.setattr(
        "foltr.federation.operator.noise_of",
        lambda setup: (lambda size: np.zeros(size, np.int64)) if setup.terms.noise_multiplier else None,
    )


class Walk:
    """The model's state beside the real parties; `counts` says how often each kind of action was accepted, refused."""

    def __init__(self, world, folder, draws):
        self.world, self.draws = world, draws
        self.state, self.fed = begin(world), federation(world, folder)
        self.copies, self.arrived, self.counts = [copy_of_operator(self.fed)], {}, {}

    def below(self, bound):
        return int(bound * next(self.draws))

    def context(self):
        """Mostly the round that is next, so that some of the walks get far."""
        if self.below(10):
            round = min(1 + max((round for round, *_ in self.state.operator.closed), default=0), self.world.rounds)
            return Context(round, round % self.world.rankers, 0)
        return Context(1 + self.below(self.world.rounds), self.below(self.world.rankers), 0)

    def step(self):
        names = [name for name, weight in WEIGHTS.items() for _ in range(weight)]
        name = names[self.below(len(names))]
        accepted = getattr(self, name.replace(" ", "_"))()
        yes, no = self.counts.get(name, (0, 0))
        self.counts[name] = (yes + bool(accepted), no + (not accepted))
        for client, node in enumerate(self.state.nodes):
            assert charged(self.fed, client) == node.charged, (name, client)
        assert broken(self.world, self.state) == ""

    def announce(self, at=None):
        client, at = self.below(self.world.honest), at or self.context()
        before = self.state.nodes[client]
        after = contributed(self.world, before, at, closed=False)
        earlier = self.fed.sent.get((client, at))
        answer = tell(self.fed, client, at)
        assert (answer is not None) == (after != before or before.stored == at), (client, at, before)
        if answer is not None and after == before:
            assert answer == earlier  # the stored bytes, and no second release
        nodes = self.state.nodes
        self.state = self.state._replace(nodes=(*nodes[:client], after, *nodes[client + 1 :]))
        return answer

    def replay(self):
        sent = sorted({at for _, at in self.fed.sent})
        return self.announce(sent[self.below(len(sent))]) if sent else None

    def restore(self):
        client = self.below(self.world.honest)
        restore_node(self.fed, client)
        nodes = self.state.nodes
        self.state = self.state._replace(
            nodes=(*nodes[:client], nodes[client]._replace(stored=None), *nodes[client + 1 :])
        )
        return True

    def restore_B(self):  # noqa: N802
        """Every older copy of B's folder is tried for something new, and gains nothing; then the newest one returns."""
        newest = copy_of_operator(self.fed)
        restore_operator(self.fed, self.copies[self.below(len(self.copies))])
        released = []
        for at, (listed, arrived) in list(self.arrived.items()):
            closed = close(self.fed, at)
            if closed is not None:
                assert closed[0] <= listed  # no second list with others in it
            if at.round in self.state.operator.opened:
                released.append(open_sum(self.fed, at, sorted(listed)[1:], arrived))
        restore_operator(self.fed, newest)
        assert all(total is None for total in released)
        return False

    def forge(self):
        assert not forge(self.fed, self.below(self.world.honest), Context(3, 0, 0))
        return False

    def is_erased(self, round):
        """Stricter than the model: the half of a later round erases the keys of all rounds before it."""
        return round <= max(self.state.operator.opened, default=0)

    def close(self):
        at, operator = self.context(), self.state.operator
        fitting = frozenset(client for client, node in enumerate(self.state.nodes) if at in node.sent)
        contexts = {closed: context for closed, _, context in operator.closed}
        if len(fitting) + self.world.colluders < fewest(self.world, 0) and self.below(5):
            return False  # mostly the adversary waits until a sum is possible
        result = close(self.fed, at)
        if at.round in contexts:
            if contexts[at.round] != at:
                assert result is None  # no second list of a round
            return False
        if self.is_erased(at.round):
            assert result is None
            return False
        assert result is not None
        listed, arrived = result
        assert listed == fitting, (at, fitting)
        self.arrived[at] = (listed, arrived)
        closed = tuple(sorted((*operator.closed, (at.round, listed, at)), key=lambda one: one[0]))
        self.state = self.state._replace(operator=operator._replace(closed=closed))
        self.copies.append(copy_of_operator(self.fed))
        return True

    def open(self):
        if not self.state.operator.closed:
            return False
        _, present, at = self.state.operator.closed[self.below(len(self.state.operator.closed))]
        skipped = self.below(2 * self.world.honest)  # half of the time nobody
        clients = frozenset(client for client in present if client != skipped)
        allowed = may_open(self.world, self.state.operator, at, clients) and not self.is_erased(at.round)
        total = open_sum(self.fed, at, clients, self.arrived[at][1])
        assert (total is not None) == bool(allowed and (clients or self.world.colluders)), (at, clients)
        if total is None:
            return False
        np.testing.assert_array_equal(total, sum((update_of(client, at.ranker) for client in clients), np.zeros(2)))
        contributions = frozenset((client, at) for client in clients)
        after = opened(self.world, self.state.operator, at)
        assert isinstance(after, Operator)
        self.state = self.state._replace(operator=after, sums=self.state.sums | {Sum(at.round, contributions, 0)})
        self.copies.append(copy_of_operator(self.fed))
        return True


@pytest.mark.parametrize("name", ["noisy", "circle"])
def test_real_parties_and_the_model_accept_refuse_charge_and_release_alike(tmp_path, name):
    world = {"noisy": NOISY, "circle": CIRCLE}[name]
    counts = {}
    for number in range(WALKS):
        walk = Walk(
            world, tmp_path / str(number), iter(stream(number, purpose="data", client=len(name)).uniform(20 * ACTIONS))
        )
        for _ in range(ACTIONS):
            walk.step()
        for kind, (yes, no) in walk.counts.items():
            before = counts.get(kind, (0, 0))
            counts[kind] = (before[0] + yes, before[1] + no)
    for kind in ("announce", "close", "open"):
        assert min(counts[kind]) >= 2, counts  # both answers are seen: the comparison is not empty


@pytest.mark.parametrize("world", [NOISY, CIRCLE], ids=["noisy", "circle"])
def test_a_second_sum_of_a_ranker_opens_with_noise_only(tmp_path, world):
    fed, operator, released = federation(world, tmp_path), Operator(), []
    for at in (Context(1, 0, 0), Context(2, 0, 0)):
        assert all(tell(fed, client, at) for client in range(world.honest))
        listed, arrived = close(fed, at)
        assert listed == frozenset(range(world.honest))
        allowed = may_open(world, operator, at, listed)
        released.append(open_sum(fed, at, listed, arrived) is not None)
        assert released[-1] == allowed
        operator = opened(world, operator, at) if allowed else operator
    assert released == [True, world.noise]
    assert (tell(fed, 0, Context(3, 1, 0)) is None) == (not world.noise)  # the same weights under another number
