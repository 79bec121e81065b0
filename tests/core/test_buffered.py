"""Buffered rounds: who is in which release, from which version, and what an update from an older model weighs."""

import numpy as np
import pytest
from by_hand import far
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest, norm

from foltr.errors import SpecError
from foltr.federation.buffered import Arrivals, buffered, client_rates, staleness_weights, weigh_staleness
from foltr.types import Updates

PATTERN = (4, 2, 3)


def releases_of(schedule):
    """[releases, buffer] clients and the versions that they started from."""
    members = [schedule.members(round) for round in schedule.rounds]
    return np.stack([one.clients for one in members]), np.stack([one.base_versions for one in members])


@st.composite
def federations(draw):
    clients = draw(st.integers(1, 25))
    arrivals = Arrivals(
        clients, draw(st.sampled_from([1, 3, PATTERN])), draw(st.sampled_from([0.5, 10.0])),
        draw(st.sampled_from([0.0, 1.0, 2.0])), draw(st.sampled_from([0.0, 0.8, 1.0])), draw(st.integers(0, 10**6)),
    )  # fmt: skip
    return arrivals, draw(st.integers(1, clients)), draw(st.integers(1, 12))


@given(federations())
def test_a_release_holds_at_most_one_update_of_a_client(case):
    arrivals, buffer, releases = case
    clients, versions = releases_of(buffered(arrivals, buffer=buffer, releases=releases))
    assert clients.shape == versions.shape == (releases, buffer)
    assert (np.diff(clients, axis=1) > 0).all()  # rising, so nobody is in it twice
    assert clients.min() >= 0
    assert clients.max() < arrivals.clients


@given(federations())
def test_no_update_starts_from_a_model_that_was_not_released_yet(case):
    arrivals, buffer, releases = case
    clients, versions = releases_of(buffered(arrivals, buffer=buffer, releases=releases))
    newest = np.arange(releases)[:, None]  # before release r there are versions 0 .. r
    assert (versions >= 0).all()
    assert (versions <= newest).all()
    for client in range(arrivals.clients):  # a client begins again when it has sent, from the version of that moment
        releases_with, at = np.nonzero(clients == client)
        started = versions[releases_with, at]
        assert started[:1].tolist() in ([], [0])
        assert started[1:].tolist() == releases_with[:-1].tolist()


def test_members_make_the_searches_of_the_pattern():
    schedule = buffered(Arrivals(9, PATTERN, seed=2), buffer=4, releases=5)
    for round in schedule.rounds:
        members = schedule.members(round)
        assert members.interactions.tolist() == [PATTERN[client % 3] for client in members.clients]


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_a_buffer_for_everybody_is_synchronous_up_to_staleness(spread):
    """Everybody is in every release; whoever sent before the last one came began again from the model before it."""
    arrivals = Arrivals(12, 2, rate_spread=spread, day_rhythm=0.0, seed=3)
    schedule = buffered(arrivals, buffer=12, releases=6)
    clients, versions = releases_of(schedule)
    assert (clients == np.arange(12)).all()
    assert versions.tolist() == [[max(0, release - 1)] * 12 for release in range(6)]
    assert not schedule.fixed


def test_a_single_client_with_a_buffer_of_one_is_one_release_behind():
    _, versions = releases_of(buffered(Arrivals(1, 3), buffer=1, releases=5))
    assert versions[:, 0].tolist() == [0, 0, 1, 2, 3]


def test_equal_rates_take_part_equally_often_and_unequal_ones_do_not():
    """200 releases of 5 out of 20: 50 each. Waiting times of 4 searches have a coefficient of variation of 1/2.

    So counts of equal clients vary by about sqrt(50) / 2 = 3.5: none is five times another, which takes more than nine
    standard deviations; where rates vary by exp(2), many are.
    """
    for spread, unequal in ((0.0, False), (2.0, True)):
        schedule = buffered(Arrivals(20, 4, rate_spread=spread, day_rhythm=0.0, seed=7), buffer=5, releases=200)
        counts = np.bincount(releases_of(schedule)[0].ravel(), minlength=20)
        assert counts.sum() == 1000
        assert (counts.max() > 5 * counts.min()) == unequal


@given(federations(), st.integers(1, 6))
def test_nobody_takes_part_more_often_than_allowed(case, most):
    arrivals, buffer, releases = case
    if most * arrivals.clients < releases * buffer:
        with pytest.raises(SpecError, match=r"use fewer releases, a smaller buffer or a larger privacy\.releases"):
            buffered(arrivals, buffer=buffer, releases=releases, max_releases=most)
        return
    try:
        schedule = buffered(arrivals, buffer=buffer, releases=releases, max_releases=most)
    except SpecError:  # enough participations in all, but of too few clients for the last release
        assert buffer > 1
        return
    clients, _ = releases_of(schedule)
    assert np.bincount(clients.ravel(), minlength=arrivals.clients).max() <= most


def test_a_last_release_that_too_few_may_join_says_what_to_change():
    """Three clients may take part twice each, in three releases of two: one who is left alone cannot fill the last."""
    failed = 0
    for seed in range(20):
        arrivals = Arrivals(3, 1, rate_spread=2.0, seed=seed)
        try:
            buffered(arrivals, buffer=2, releases=3, max_releases=2)
        except SpecError:
            failed += 1
            with pytest.raises(SpecError, match=r"no client is left who may take part; use a larger privacy\.releases"):
                buffered(arrivals, buffer=2, releases=3, max_releases=2)
    assert failed  # it does happen from some of these seeds


def test_the_cap_changes_nothing_before_somebody_reaches_it():
    arrivals = Arrivals(15, 2, seed=5)
    free, _ = releases_of(buffered(arrivals, buffer=3, releases=12))
    capped, _ = releases_of(buffered(arrivals, buffer=3, releases=12, max_releases=3))
    counts = np.zeros(15, int)
    for release, chosen in enumerate(free):
        if (counts[chosen] == 3).any():
            break
        assert capped[release].tolist() == chosen.tolist()
        counts[chosen] += 1
    assert counts.max() == 3  # somebody did reach it


@pytest.mark.parametrize("buffer", [0, 6])
def test_a_buffer_that_cannot_be_filled_is_refused(buffer):
    with pytest.raises(SpecError, match=f"buffer = {buffer}: .* use 1 to 5"):
        buffered(Arrivals(5, 2), buffer=buffer, releases=3)


def test_a_schedule_is_a_function_of_its_seed():
    one, again, other = (
        releases_of(buffered(Arrivals(20, PATTERN, seed=seed), buffer=6, releases=15)) for seed in (1, 1, 2)
    )
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_more_releases_go_on_where_fewer_stopped():
    arrivals = Arrivals(20, PATTERN, seed=1)
    few, many = (releases_of(buffered(arrivals, buffer=6, releases=releases)) for releases in (5, 15))
    assert np.array_equal(np.array(few), np.array(many)[:, :5])


@pytest.mark.parametrize("spread", [0.5, 1.0])
def test_rates_have_the_mean_that_was_asked_for_and_are_log_normal(spread):
    """40,000 clients; false alarm 1 in 1,000 for each of the four."""
    clients, mean = 40_000, 7.0
    rates = client_rates(Arrivals(clients, 1, searches_per_day=mean, rate_spread=spread, seed=11))
    stddev = mean * np.sqrt(np.expm1(spread**2))  # of a log-normal number with this mean
    assert abs(rates.mean() - mean) < far(1e-3) * stddev / np.sqrt(clients)
    logs = (np.log(rates / mean) + spread**2 / 2) / spread
    assert kstest(logs, norm.cdf).pvalue > 1e-3


def test_without_a_spread_all_rates_are_equal():
    assert set(client_rates(Arrivals(50, 1, searches_per_day=3.0, rate_spread=0.0)).tolist()) == {3.0}


def stale(*base_versions):
    count = len(base_versions)
    return Updates(np.ones((count, 2)), np.ones(count), np.arange(count), np.array(base_versions))


def test_weights_of_staleness_by_hand():
    updates = stale(9, 8, 6, 0)  # staleness 0, 1, 3 and 9 at version 9
    assert staleness_weights(updates, 9, kind="constant", exponent=0.5).tolist() == [1, 1, 1, 1]
    half = staleness_weights(updates, 9, kind="polynomial", exponent=0.5)
    assert half == pytest.approx([1, 1 / np.sqrt(2), 1 / 2, 1 / np.sqrt(10)])
    assert staleness_weights(updates, 9, kind="polynomial", exponent=1.0) == pytest.approx([1, 1 / 2, 1 / 4, 1 / 10])
    assert staleness_weights(updates, 9, kind="polynomial", exponent=0.0).tolist() == [1, 1, 1, 1]


def test_staleness_scales_updates_and_leaves_what_they_are_divided_by():
    updates = stale(9, 6)
    weighed = weigh_staleness(updates, 9, kind="polynomial", exponent=0.5)
    assert weighed.values.tolist() == [[1.0, 1.0], [0.5, 0.5]]
    assert weighed.weights.tolist() == [1.0, 1.0]
    assert updates.values.tolist() == [[1.0, 1.0], [1.0, 1.0]]  # what was given stays


def arrival_hours(day_rhythm):
    """When clients with one search a day on average send: the hours at which their updates arrive, by the schedule."""
    from foltr.federation.buffered import _finish

    arrivals = Arrivals(1, 1, searches_per_day=1.0, rate_spread=0.0, day_rhythm=day_rhythm, seed=13)
    times, now = [], 0.0
    for number in range(4000):
        now = _finish(now, arrivals, 1.0, 1, 0, number)
        times.append(now)
    return np.array(times)


def test_searches_are_a_poisson_process_that_follows_the_day():
    """4,000 searches in turn, at one a day; false alarm 1 in 1,000 for each of the four."""
    flat = arrival_hours(0.0)
    assert kstest(np.diff(flat, prepend=0.0), "expon").pvalue > 1e-3
    assert kstest(flat % 1.0, "uniform").pvalue > 1e-3
    daily = arrival_hours(0.8)

    def share_until(hour):  # integral of 1 + .8 cos(2 pi (t - .6)) over the day so far
        return hour + 0.8 / (2 * np.pi) * (np.sin(2 * np.pi * (hour - 0.6)) - np.sin(-2 * np.pi * 0.6))

    assert kstest(daily % 1.0, share_until).pvalue > 1e-3
    assert kstest(daily % 1.0, "uniform").pvalue < 1e-9  # and a rhythm that did nothing would be noticed
    assert abs(len(daily) / daily[-1] - 1.0) < far(1e-3) / np.sqrt(len(daily))  # one a day, with or without rhythm


def test_only_versions_that_somebody_still_starts_from_are_kept():
    """The oldest version of a round is the least that it or a later round needs."""
    arrivals = Arrivals(clients=12, interactions=2, seed=5)
    schedule = buffered(arrivals, buffer=3, releases=40)
    members = [schedule.members(round) for round in schedule.rounds]
    for place, one in enumerate(members):
        assert one.oldest_version == min(int(later.base_versions.min()) for later in members[place:])
