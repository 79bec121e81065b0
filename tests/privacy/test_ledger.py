"""The ledger: it adds up per user, refuses what a budget forbids before it happens, and survives a file."""

import json
import math
import subprocess
import sys

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from releases_by_hand import gaussian, laplace

from foltr.errors import PrivacyError
from foltr.privacy import ledger
from foltr.privacy.accounting import epsilon
from foltr.privacy.calibration import gaussian_epsilon, laplace_scale, noise_multiplier
from foltr.privacy.events import RECIPIENTS, Event

DELTA = 1e-5


def spent_by(book, user):
    return ledger.spent(book._replace(counts=book.counts[[user]]))


def test_users_pay_for_the_rounds_they_took_part_in():
    event = gaussian(4.0)
    book = ledger.begin(3, delta=DELTA)
    book = ledger.record(book, event, np.array([0, 1]))
    book = ledger.record(book, event, np.array([0]), times=2)
    assert [spent_by(book, user) for user in range(3)] == [epsilon({event: n}, DELTA) for n in (3, 1, 0)]
    assert ledger.spent(book) == epsilon({event: 3}, DELTA)


def test_a_user_pays_for_different_releases_together():
    book = ledger.begin(2, delta=DELTA)
    book = ledger.record(book, gaussian(4.0), np.array([0, 1]))
    book = ledger.record(book, laplace(9.0), np.array([1]))
    assert ledger.spent(book) == epsilon({gaussian(4.0): 1, laplace(9.0): 1}, DELTA)


def test_an_empty_ledger_has_spent_nothing():
    assert ledger.spent(ledger.begin(3, delta=DELTA)).epsilon == 0


def test_the_round_beyond_the_budget_is_refused_and_nothing_changes():
    event = gaussian(4.0)  # five of them cost 2.26, six 2.50
    book = ledger.begin(2, delta=DELTA, budget=2.4)
    book = ledger.record(book, event, np.array([0]), times=5)
    assert not ledger.admits(book, event, np.array([0, 1]))
    with pytest.raises(PrivacyError, match=r"would exceed the budget of epsilon 2.4 .* nothing was released"):
        ledger.record(book, event, np.array([0, 1]))
    assert book.counts.tolist() == [[5], [0]]
    assert ledger.admits(book, event, np.array([1]), times=5)  # the other can still afford it
    assert not ledger.admits(book, event, np.array([1]), times=6)


def test_without_a_budget_everything_is_admitted():
    book = ledger.record(ledger.begin(1, delta=DELTA), gaussian(0.1), np.array([0]), times=1000)
    assert ledger.admits(book, gaussian(0.1), np.array([0]))


def test_a_server_that_the_events_do_not_name_sees_all():
    book = ledger.record(ledger.begin(1, delta=DELTA), gaussian(9.0, against=RECIPIENTS), np.array([0]))
    assert ledger.spent(book, "server").epsilon == float("inf")
    assert ledger.spent(book).epsilon < 1


def test_users_who_are_alike_take_no_space():
    book = ledger.record(ledger.begin(10_000, delta=DELTA), gaussian(4.0), np.arange(10_000), times=20)
    assert json.loads(ledger.dumps(book))["counts"] == [[20]]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20), st.none() | st.floats(1, 9))
def test_a_ledger_in_a_card_has_the_counts_of_every_user(rows, budget):
    events = (gaussian(4.0, against=RECIPIENTS, noise_contributors=9, present=8), laplace(3.0))
    book = ledger.Ledger(DELTA, budget, events, np.array(rows, np.int32).reshape(-1, 2))
    content = json.loads(ledger.dumps(book))
    assert [tuple(content["counts"][row]) for row in content["user_has"]] == rows
    assert (content["delta"], content["budget"]) == (DELTA, budget)
    assert tuple(msgspec.convert(event, Event) for event in content["events"]) == events


# --- admission ------------------------------------------------------------------------------------------------------


def admitted(event, *, budget, delta=DELTA, at_most=10_000):
    """How many releases a ledger lets through."""
    book, user = ledger.begin(1, delta=delta, budget=budget, events=(event,)), np.array([0])
    while ledger.admits(book, event, user) and book.counts[0, 0] < at_most:
        ledger.charge(book, event, user)
    return int(book.counts[0, 0])


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize("target", [0.1, 1.0, 8.0, 1e9])
@pytest.mark.parametrize("releases", [1, 2, 7, 20, 100, 1000])
def test_noise_admits_the_releases_it_was_calibrated_for(target, delta, releases):
    event = gaussian(noise_multiplier(target, delta, releases))
    assert releases <= admitted(event, budget=target, delta=delta) < releases * 1.01 + 1  # the margin is a thousandth


@given(st.floats(0.01, 50), st.integers(1, 300), st.floats(0.01, 100))
def test_laplace_noise_admits_exactly_the_releases_it_was_calibrated_for(target, releases, clip):
    event = Event("laplace", "l1", clip, "l1", laplace_scale(target, releases, clip))
    assert admitted(event, budget=target, delta=0.0) == releases


@given(st.lists(st.tuples(st.floats(0.5, 40), st.integers(1, 5)), min_size=1, max_size=4), st.floats(0.1, 20))
def test_gaussian_releases_of_different_noise_are_admitted_as_the_accountant_says(kinds, budget):
    book = ledger.begin(1, delta=DELTA, budget=budget)
    for multiplier, times in kinds[:-1]:
        book = ledger.charge(book, gaussian(multiplier), np.array([0]), times)
    last, times = gaussian(kinds[-1][0]), kinds[-1][1]
    admits = ledger.admits(book, last, np.array([0]), times)
    exact = epsilon({**ledger_of(book), last: ledger_of(book).get(last, 0) + times}, DELTA).epsilon
    if abs(exact / budget - 1) > 1e-3:  # numerical composition rounds upwards
        assert admits == (exact <= budget)


def ledger_of(book):
    return dict(zip(book.events, book.counts[0].tolist(), strict=True))


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.floats(0.5, 20))
def test_what_is_admitted_never_exceeds_the_budget(gaussians, laplaces, discrete, budget):
    in_ring = Event("discrete-gaussian", "l2", 50.0, "l2", 200.0, noise_contributors=4, present=4)
    kinds = {gaussian(3.0): gaussians, laplace(4.0): laplaces, in_ring: discrete}
    book, user = ledger.begin(1, delta=DELTA, budget=budget), np.array([0])
    for event, times in kinds.items():
        if ledger.admits(book, event, user, times):
            book = ledger.charge(book, event, user, times)
    assert ledger.spent(book).epsilon <= budget * (1 + 1e-3)


def test_discrete_gaussian_noise_is_admitted_by_the_same_figure_as_the_accountants():
    event = Event("discrete-gaussian", "l2", 50.0, "l2", 200.0, noise_contributors=4, present=4)
    exact = [gaussian_epsilon(math.sqrt(times / (200.0**2 - 4)) * 50, DELTA) for times in (3, 4)]
    assert epsilon({event: 3}, DELTA).epsilon == pytest.approx(exact[0], rel=1e-3)
    assert admitted(event, budget=exact[0] * (1 + 1e-8)) == 3
    assert admitted(event, budget=exact[1] * (1 - 1e-6)) == 3


@pytest.mark.parametrize(
    "event",
    [gaussian(9.0, against=()), gaussian(9.0, present=0), laplace(9.0, noise_contributors=2, present=1)],
    ids=["holds against nobody", "no noise is there", "a share of Laplace noise is missing"],
)
def test_what_hides_nothing_is_not_admitted(event):
    assert not ledger.admits(ledger.begin(1, delta=DELTA, budget=1e6), event, np.array([0]))


def test_what_cannot_be_composed_is_refused():
    book = ledger.charge(ledger.begin(1, delta=DELTA, budget=9.0), gaussian(9.0), np.array([0]))
    with pytest.raises(PrivacyError, match="different kinds"):
        ledger.admits(book, gaussian(9.0, adjacency="replace"), np.array([0]))
    with pytest.raises(PrivacyError, match="clips in l2"):
        ledger.admits(book, Event("laplace", "l1", 1.0, "l2", 9.0), np.array([0]))


def test_a_release_is_counted_in_place():
    event, cohort = gaussian(40.0), np.arange(500_000, 501_000)
    book = ledger.begin(1_000_000, delta=DELTA, budget=1.0, events=(event,))
    for _ in range(50):
        assert ledger.admits(book, event, cohort)
        assert ledger.charge(book, event, cohort).counts is book.counts
    assert (book.counts.dtype, book.counts.sum()) == (np.int32, 50 * 1000)
    further = ledger.charge(book, laplace(100.0), cohort)  # a new column; the other ledger has none
    assert (further.counts.shape, book.counts.shape) == ((1_000_000, 2), (1_000_000, 1))


def test_a_user_who_is_listed_twice_has_twice_the_bound():
    """20 releases for epsilon 1; two contributions to each are a mu twice as large, which costs 2.15 and not 1.46."""
    event, both = gaussian(noise_multiplier(1.0, DELTA, 20)), np.array([1, 2, 1])
    book = ledger.begin(3, delta=DELTA)
    for _ in range(20):
        book = ledger.charge(book, event, both)
    assert book.counts[:, 0].tolist() == [0, 80, 20]
    assert spent_by(book, 1).epsilon == pytest.approx(gaussian_epsilon(2 * math.sqrt(20) / event.noise, DELTA), 1e-3)
    assert spent_by(book, 1).epsilon == pytest.approx(2.15, abs=0.01)
    pure = ledger.charge(ledger.begin(3, delta=DELTA), laplace(4.0), both)
    assert pure.counts[:, 0].tolist() == [0, 2, 1]  # epsilons add up within a release as over releases


@pytest.mark.parametrize("event", [gaussian(4.0), laplace(9.0)])
@given(users=st.lists(st.integers(0, 3), max_size=8), budget=st.floats(0.01, 4), times=st.integers(0, 3))
def test_a_release_is_admitted_exactly_if_it_leaves_everybody_within_the_budget(event, users, budget, times):
    book = ledger.begin(4, delta=DELTA, budget=budget)
    after = ledger.charge(book._replace(counts=book.counts.copy()), event, np.array(users, np.int64), times)
    worst = max(ledger.closed_epsilon({event: int(count)}, DELTA) for count in after.counts[:, 0])
    if abs(worst / budget - 1) > 1e-6:
        assert ledger.admits(book, event, np.array(users, np.int64), times) == (worst <= budget)


@pytest.mark.parametrize("times", [-1, -(2**40), 2**31, 0.5])
@pytest.mark.parametrize("call", [ledger.admits, ledger.charge, ledger.record])
def test_releases_happen_0_times_or_more(call, times):
    book = ledger.begin(2, delta=DELTA, budget=1e6, events=(gaussian(4.0),))
    with pytest.raises(PrivacyError, match="times; a release happens 0 to"):
        call(book, gaussian(4.0), np.array([0]), times)
    assert book.counts.sum() == 0


def test_a_count_never_wraps_around():
    book = ledger.charge(ledger.begin(2, delta=DELTA), gaussian(4.0), np.array([0]), 2**31 - 1)
    with pytest.raises(PrivacyError, match="cannot be counted"):
        ledger.charge(book, gaussian(4.0), np.array([0, 1]))
    with pytest.raises(PrivacyError, match="cannot be counted"):
        ledger.charge(book, gaussian(4.0), np.zeros(50_000, np.int64))
    assert book.counts[:, 0].tolist() == [2**31 - 1, 0]


def test_users_are_numbered_from_0():
    with pytest.raises(PrivacyError, match="user -1"):
        ledger.charge(ledger.begin(3, delta=DELTA), gaussian(4.0), np.array([-1]))


def test_a_release_without_users_costs_nothing():
    book = ledger.begin(3, delta=DELTA, budget=0.0)
    assert ledger.admits(book, gaussian(0.1), np.array([], np.int64))
    assert ledger.charge(book, gaussian(0.1), np.array([], np.int64)).counts.sum() == 0


@pytest.mark.parametrize(
    ("delta", "budget"), [(-0.1, 1.0), (1.0, 1.0), (1e-5, -1.0), (1e-5, math.inf), (1e-5, math.nan)]
)
def test_a_ledger_of_impossible_figures_is_not_begun(delta, budget):
    with pytest.raises(PrivacyError, match=r"use a finite epsilon|must lie between"):
        ledger.begin(1, delta=delta, budget=budget)


def test_admission_needs_numpy_alone():
    code = (
        "import sys, numpy as np; from foltr.privacy import ledger; from foltr.privacy.events import Event;"
        "event = Event('gaussian', 'l2', 1.0, 'l2', 9.0); book = ledger.begin(2, delta=1e-5, budget=1.0);"
        "assert ledger.admits(book, event, np.arange(2)); ledger.charge(book, event, np.arange(2));"
        "print([m for m in ('numba', 'scipy', 'dp_accounting', 'foltr.privacy.accounting') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- files ----------------------------------------------------------------------------------------------------------


def test_a_ledger_with_an_infinite_number_is_not_written():
    book = ledger.charge(ledger.begin(1, delta=DELTA), gaussian(math.inf), np.array([0]))
    with pytest.raises(PrivacyError, match="not finite"):
        ledger.dumps(book)


# --- admission is bounded work ----------------------------------------------------------------------------------------

EXTREME = st.floats(5e-324, 1.7e308)
EVENTS = st.one_of(
    st.builds(lambda bound, noise: Event("gaussian", "l2", bound, "l2", noise), EXTREME, EXTREME),
    st.builds(lambda bound, noise: Event("laplace", "l1", bound, "l1", noise), EXTREME, EXTREME),
    st.builds(
        lambda bound, noise, shares, size: Event(
            "discrete-gaussian", "l2", bound, "l2", noise, noise_contributors=shares, present=shares, parameters=size
        ), EXTREME, EXTREME, st.integers(1, 10**18), st.integers(1, 10**12),
    ),
)  # fmt: skip


@given(
    event=EVENTS, times=st.sampled_from([0, 1, 20, 2**31 - 1]), delta=st.just(0.0) | st.floats(0, 1, exclude_max=True),
    budget=st.just(0.0) | st.floats(0, 1.7e308),
)  # fmt: skip
def test_admission_answers_whatever_it_is_asked(event, times, delta, budget):
    """Yes, no, or a PrivacyError: it never hangs, overflows or divides by zero; and what it admits is affordable."""
    book = ledger.begin(1, delta=delta, budget=budget)
    try:
        admits = ledger.admits(book, event, np.array([0]), times)
        figure = ledger.closed_epsilon({event: times}, delta)
    except PrivacyError:
        return
    assert admits == (figure <= budget * (1 + 1e-9)) or figure == pytest.approx(budget, rel=1e-6)


@given(EXTREME, st.integers(1, 10**18))
def test_what_hides_nothing_is_never_admitted_by_overflow(noise, times):
    """mu is beyond every double, or nearly: no finite budget covers it."""
    counts = {Event("gaussian", "l2", noise, "l2", noise): times * 10**300}
    assert not ledger.affordable(counts, budget=1e12, delta=0.5, against="recipients")
    assert ledger.closed_epsilon(counts, 0.5) == math.inf


def test_figures_beyond_doubles_hide_nothing():
    for event in (gaussian(1e-200), laplace(1e-250), Event("discrete-gaussian", "l2", 1.0, "l2", 1.4e154)):
        assert not ledger.admits(ledger.begin(1, delta=0.5, budget=1.7e308), event, np.array([0]), 2**31 - 1)


def test_without_a_delta_gaussian_noise_is_not_admitted():
    assert not ledger.admits(ledger.begin(1, delta=0.0, budget=1e9), gaussian(100.0), np.array([0]))
    in_ring = Event("discrete-gaussian", "l2", 50.0, "l2", 5000.0)
    assert not ledger.admits(ledger.begin(1, delta=0.0, budget=1e9), in_ring, np.array([0]))


def test_a_million_different_users_are_one_closed_form():
    """Nobody has more than the largest count of each kind: users are not asked one by one."""
    events, calls = (gaussian(900.0), laplace(1e6)), []
    counts = np.stack([np.arange(1_000_000) % 997, np.arange(1_000_000) % 1009], axis=1).astype(np.int32)
    book = ledger.Ledger(DELTA, 9.0, events, counts)
    with pytest.MonkeyPatch.context() as patch:
        within = ledger._within
        patch.setattr(ledger, "_within", lambda *args, **more: calls.append(1) or within(*args, **more))
        assert ledger.admits(book, events[0], np.arange(1_000_000))
    assert len(calls) == 1
