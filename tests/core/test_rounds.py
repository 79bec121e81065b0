"""The one round: who is asked before what happens, what a transform sees, and what the server makes of it."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foltr.federation.aggregators import FedAvg, weighted_sum
from foltr.federation.buffered import Arrivals, buffered
from foltr.federation.engine import EngineCollector
from foltr.federation.releases import planned, protection_of
from foltr.federation.round import Protection, Release, run_rounds
from foltr.federation.schedule import Members, Schedule, synchronous
from foltr.federation.server import adam, add, init_state, mean_delta
from foltr.privacy import ledger as ledgers
from foltr.privacy.mechanisms import Gaussian, ReleaseContext
from foltr.types import OnlineMetrics, Updates

WIDTH = 3
START = np.array([1.0, -2.0, 0.5])
COLLECTING = {"aggregator", "transform", "address"}  # pieces of an `EngineCollector`


class Recording(NamedTuple):
    """An engine whose client c sends (1 + c) times the model that it was sent, and everything that it was told."""

    calls: list
    extra: int = 0  # columns that a mechanism would append

    def prepare(self, members):
        return members

    def local_updates(self, models, cohort, round, release):
        self.calls.append((round, models, cohort, release))
        count = len(cohort.clients)
        values = np.broadcast_to(models, (count, WIDTH)) * (1.0 + cohort.clients)[:, None]
        values = np.hstack([values, np.ones((count, self.extra))])
        updates = Updates(values, cohort.interactions, cohort.clients, np.full(count, round - 1))
        return updates, OnlineMetrics(np.full(count, 0.5), np.full(count, 1.0))


def never(*_):
    raise AssertionError("this must not be called")


def rounds_of(engine, schedule, state=None, **pieces):
    collecting = {"aggregator": mean_delta, **{name: pieces.pop(name) for name in COLLECTING & pieces.keys()}}
    pieces = {"server_optimizer": add, **pieces}
    return run_rounds(state or init_state(START), schedule, EngineCollector(engine, **collecting), **pieces)


def test_rounds_add_the_mean_delta_weighted_by_interactions():
    engine = Recording([])
    first, second = rounds_of(engine, synchronous(2, (1, 3), 2))
    step = 1 + (1 * 1 + 3 * 2) / 4  # clients send 1 and 2 times the model, after 1 and 3 interactions
    assert first.parameters == pytest.approx(START * step)
    assert second.parameters == pytest.approx(START * step**2)
    assert [done.state.version for done in (first, second)] == [1, 2]
    assert [done.round for done in (first, second)] == [1, 2]
    assert all(done.released for done in (first, second))
    assert [call[0] for call in engine.calls] == [1, 2]


def test_an_engine_prepares_once_for_those_who_always_take_part_and_again_for_cohorts():
    class Counting(Recording):
        def prepare(self, members):
            prepared.append(members.clients.tolist())
            return members

    for cohort, times in ((None, 1), (2, 4)):
        prepared = []
        list(rounds_of(Counting([]), synchronous(5, 1, 4, cohort=cohort)))
        assert len(prepared) == times


def test_a_round_without_clients_leaves_everything_as_it_is():
    schedule = Schedule([1, 2], lambda round: Members(np.arange(round - 1), np.ones(round - 1, np.int64)), fixed=False)
    engine = Recording([])
    empty, full = rounds_of(engine, schedule)
    assert not empty.released
    assert empty.collected.updates is None
    assert empty.collected.included.size == 0
    assert empty.parameters.tolist() == START.tolist()
    assert full.parameters == pytest.approx(2 * START)
    assert [call[0] for call in engine.calls] == [2]


def test_an_address_moves_the_random_streams_and_not_the_rounds():
    engine = Recording([])
    assert [done.round for done in rounds_of(engine, synchronous(2, 1, 2), address=50)] == [1, 2]
    assert [call[0] for call in engine.calls] == [51, 52]


def test_a_transform_sees_deltas_and_the_model_they_are_relative_to():
    seen = []

    def transform(updates, model, round):
        seen.append((updates.values.copy(), model.copy(), round))
        return updates._replace(values=-updates.values)

    *_, last = rounds_of(Recording([]), synchronous(2, 1, 2), transform=transform)
    (first_values, first_model, first), (_, second_model, second) = seen
    assert first_values == pytest.approx(np.stack([START, 2 * START]))  # deltas, not start + delta
    assert first_model.tolist() == START.tolist()
    assert second_model == pytest.approx(START - 1.5 * START)  # what it made of them is what was added
    assert (first, second) == (1, 2)
    assert last.collected.updates.values == pytest.approx(
        np.stack([-second_model, -2 * second_model])
    )  # as they arrived


def tight(releases, *, budget=1.0, clients=3):
    """A Gaussian mechanism whose budget admits so many releases, and a ledger for these clients."""
    mechanism = Gaussian(budget, releases=releases)
    return protection_of(mechanism, clients=clients, cohort=None, max_rounds=100, parameters=WIDTH)


def test_a_round_that_the_ledger_refuses_leaves_the_model_and_calls_nobody():
    protection, engine, asked = tight(2), Recording([]), []

    def aggregator(updates, *_):
        asked.append(updates)
        return mean_delta(updates)

    def transform(updates, model, round):
        asked.append(round)
        return updates

    state = init_state(START, mechanism_state=1.0)
    done = list(rounds_of(engine, synchronous(3, 1, 4), state, protection=protection, aggregator=aggregator,
                          transform=transform))  # fmt: skip
    assert [one.released for one in done] == [True, True, False, False]
    assert len(asked) == 4  # transform and aggregator, in two rounds
    for refused in done[2:]:
        assert np.array_equal(refused.parameters, done[1].parameters)
        assert len(refused.collected.online.ndcg) == 3  # people go on searching
    assert [one.state.version for one in done] == [1, 2, 3, 4]
    assert protection.ledger.counts.tolist() == [[2]] * 3
    releases = [call[3] for call in engine.calls]
    assert releases == [Release(1.0, protection.event)] * 2 + [None] * 2


def test_a_budget_that_admits_nothing_releases_nothing():
    generous, small = Gaussian(10.0), 1e-3
    event = generous.event(ReleaseContext(3, 1, WIDTH))
    ledger = ledgers.begin(3, delta=1e-5, budget=small, events=(event,))
    protection = Protection(generous, event, ledger, ReleaseContext(3, 1, WIDTH))
    done = list(rounds_of(Recording([]), synchronous(3, 1, 3), protection=protection, aggregator=never,
                          transform=never, server_optimizer=never))  # fmt: skip
    assert not any(one.released for one in done)
    assert not ledger.counts.any()


def test_the_ledger_is_charged_before_clients_train_and_before_anything_is_aggregated():
    protection, charged = tight(2), []

    class Looking(Recording):
        def local_updates(self, *given):
            charged.append(("client", int(protection.ledger.counts[0, 0])))
            return Recording.local_updates(self, *given)

    def aggregator(updates, *_):
        charged.append(("aggregator", int(protection.ledger.counts[0, 0])))
        return mean_delta(updates)

    list(rounds_of(Looking([]), synchronous(3, 1, 3), protection=protection, aggregator=aggregator))
    assert charged == [("client", 1), ("aggregator", 1), ("client", 2), ("aggregator", 2), ("client", 2)]


def test_a_round_is_refused_when_one_of_its_clients_cannot_afford_it():
    """Clients 0 and 1 spend all in two rounds; a round with client 1 and a fresh one is refused for both."""
    cohorts = {1: [0, 1], 2: [0, 1], 3: [1, 2], 4: [2, 3]}
    schedule = Schedule(list(cohorts), lambda round: Members(np.array(cohorts[round]), np.ones(2, np.int64)), False)
    protection = tight(2, clients=4)
    done = list(rounds_of(Recording([]), schedule, protection=protection))
    assert [one.released for one in done] == [True, True, False, True]
    assert protection.ledger.counts[:, 0].tolist() == [2, 2, 1, 1]


@pytest.mark.parametrize("cohort", [None, 4])
def test_what_is_planned_is_what_happens(cohort):
    mechanism = Gaussian(1.0, releases=3)
    schedule = synchronous(9, 1, 12, cohort=cohort, seed=5)
    protection = protection_of(mechanism, clients=9, cohort=cohort, max_rounds=12, parameters=WIDTH)
    plan = planned(protection, schedule, 9)
    assert not protection.ledger.counts.any()  # a plan charges nobody
    done = list(rounds_of(Recording([]), schedule, protection=protection))
    assert plan.admitted.tolist() == [one.released for one in done]
    assert plan.counts.tolist() == protection.ledger.counts[:, 0].tolist()


def test_what_a_mechanism_appends_decides_its_next_state_and_never_reaches_the_model():
    mechanism = Gaussian(1.0, adaptive=0.5)
    context = ReleaseContext(2, 3, WIDTH)
    protection = Protection(mechanism, mechanism.event(context), None, context)
    widths = []

    def transform(updates, model, round):
        widths.append(updates.values.shape[1])
        return updates

    state = init_state(START, mechanism_state=0.25)
    first, _ = rounds_of(
        Recording([], extra=1), synchronous(2, 1, 2), state, protection=protection, transform=transform
    )
    assert widths == [WIDTH, WIDTH]
    assert first.parameters == pytest.approx(START * 2.5)
    # bits 1 + 1 over 2 clients, measured from one half: all are within the clip, and it falls by exp(-.2 (1.5 - .5))
    assert first.state.mechanism_state == pytest.approx(mechanism.next_state(0.25, np.array([2.0]), context))
    assert first.state.mechanism_state < 0.25


def test_updates_start_from_the_versions_that_their_clients_had():
    versions = {1: [0, 0], 2: [0, 1], 3: [1, 2], 4: [0, 3]}
    schedule = Schedule(
        list(versions), lambda round: Members(np.arange(2), np.ones(2, np.int64), np.array(versions[round])), False
    )
    engine = Recording([])
    done = list(rounds_of(engine, schedule))
    models = [START, *(one.parameters for one in done)]
    for (_, sent, _, _), one, bases in zip(engine.calls, done, versions.values(), strict=True):
        assert np.array_equal(sent, np.stack([models[version] for version in bases]))
        assert one.collected.updates.base_versions.tolist() == bases
    assert done[1].parameters == pytest.approx(models[1] + (models[0] + 2 * models[1]) / 2)


def test_a_buffered_schedule_runs_with_the_versions_that_it_says():
    schedule = buffered(Arrivals(6, 2, seed=4), buffer=2, releases=8)
    engine = Recording([])
    done = list(rounds_of(engine, schedule))
    models = [START, *(one.parameters for one in done)]
    stale = 0
    for (_, sent, _, _), one in zip(engine.calls, done, strict=True):
        bases = schedule.members(one.round).base_versions
        assert np.array_equal(sent, np.stack([models[version] for version in bases]))
        assert one.collected.updates.base_versions.tolist() == bases.tolist()
        stale += int((bases < one.round - 1).sum())
    assert stale > 0  # some did start from an older model


def test_three_rounds_of_adam_by_hand():
    gradients = np.array([[0.5, -2.0, 0.0], [1.0, 3.0, 0.0], [-0.25, 0.5, 1.0]])
    given = iter(gradients)
    *_, last = rounds_of(
        Recording([]), synchronous(2, 1, 3), aggregator=lambda *_: next(given), server_optimizer=adam(0.01)
    )
    expected = START.tolist()
    for i in range(WIDTH):
        mean = square = 0.0
        for t, gradient in enumerate(gradients[:, i], start=1):
            mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
            expected[i] += 0.01 * (mean / (1 - 0.9**t)) / (math.sqrt(square / (1 - 0.999**t)) + 1e-8)
    assert last.parameters == pytest.approx(expected, abs=1e-14)
    assert last.state.moments[0] == pytest.approx(0.1 * gradients[2] + 0.09 * gradients[1] + 0.081 * gradients[0])


def test_an_average_by_hand():
    updates, weights = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 80.0]]), np.array([1, 2, 1])
    assert FedAvg()(updates, weights, num_byzantine=0).tolist() == [(1 + 4 + 4) / 4, (10 + 40 + 80) / 4]
    assert weighted_sum(updates, np.array([1, 0, -1])).tolist() == [1 - 4, 10 - 80]


@given(st.integers(1, 40), st.integers(1, 9))
def test_an_average_is_that_of_numpy(clients, size):
    updates = np.cos(np.arange(clients * size)).reshape(clients, size)
    weights = 1 + np.arange(clients) % 4
    expected = np.average(updates, axis=0, weights=weights)
    assert FedAvg()(updates, weights, num_byzantine=0) == pytest.approx(expected, abs=1e-13)
    batch = Updates(updates, weights, np.arange(clients), np.zeros(clients, np.int64))
    assert mean_delta(batch) == pytest.approx(expected, abs=1e-13)
