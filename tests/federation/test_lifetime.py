"""A budget has an end: rounds that are planned are the rounds that a ledger admits, and words say until when."""

import math
from datetime import date

import msgspec
import pytest
from scipy.special import ndtr

from foltr.errors import PrivacyError, SpecError
from foltr.federation.lifetime import (
    ARRIVING,
    LONGEST_WINDOW,
    completed,
    lifetime_words,
    plan_lifetime,
    remaining_lifetime,
)
from foltr.federation.policy import Limits, release_event
from foltr.privacy.ledger_file import open_ledger
from foltr.secagg.crypto import new_identity
from foltr.secagg.terms import Terms, new_federation, registry

BEGINS = date(2027, 1, 1)
DELTA = 1e-6


def terms(length=46, **other):
    return Terms(new_federation(), length, **{"bits": 64, "fraction": 32, "dropouts": 0.5} | other)


def planned(members=1000, budget=4.0, days=365, some=None, **other):
    return plan_lifetime(
        some or terms(), members=members, budget=budget, delta=DELTA, begins=BEGINS, days=days, **other
    )


def delta_of(rounds, multiplier, epsilon):
    """Of Gaussian noise (Balle and Wang 2018, theorem 8)."""
    mu = math.sqrt(rounds) / multiplier
    return ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("members", [60, 100, 300, 1000, 10_000])
@pytest.mark.parametrize("days", [30, 365, 1000])
def test_a_planned_federation_lasts_as_long_as_it_was_asked_to_and_spends_its_budget(members, days):
    found = planned(members, days=days)
    assert days <= (found.ends - found.begins).days == found.rounds * found.interval < days + found.interval
    assert 1 <= found.window == min(found.interval, LONGEST_WINDOW)
    assert found.noise <= 0.5
    assert delta_of(found.rounds, found.noise_multiplier, 4.0) == pytest.approx(DELTA, rel=0.02)
    assert found.noise == pytest.approx(found.noise_multiplier * math.sqrt(2 * 46) / found.fewest)


def test_one_more_round_in_that_time_would_not_be_usable_or_would_be_more_than_one_a_day():
    for members in (60, 100, 300, 1000):
        found = planned(members)
        if found.interval > 1:
            closer = math.ceil(365 / (found.interval - 1))
            noise = found.noise * math.sqrt(closer / found.rounds)
            assert noise > 0.5
    assert planned(10_000).interval == 1


def test_the_figures_of_the_security_document():
    """Epsilon 4 at delta 1e-6: 53 weekly rounds at 8.7, and six at 3."""
    for multiplier, rounds in ((8.7, 53), (3.0, 6)):
        weekly = terms(noise_multiplier=multiplier, stage_seconds=86_400.0)
        found = remaining_lifetime(weekly, members=100, budget=4.0, delta=DELTA, begins=BEGINS, interval=7)
        assert found.rounds == rounds
        assert delta_of(rounds, multiplier, 4.0) <= DELTA < delta_of(rounds + 1, multiplier, 4.0)
        assert (found.ends - BEGINS).days == 7 * rounds


def test_a_ledger_admits_every_planned_round_and_refuses_the_next(tmp_path):
    some = terms(length=3)
    found = planned(20, some=some, days=200)
    some = msgspec.structs.replace(some, noise_multiplier=found.noise_multiplier)
    known = registry(public(), {client: public() for client in range(20)})
    event = release_event(some, known, (public(), public()))
    ledger = open_ledger(tmp_path / "data" / "ledger", delta=DELTA, budget=4.0, witness=tmp_path / "state" / "ledger")
    for round in range(1, found.rounds + 1):
        ledger.charge(event, federation=some.federation, round=round)
    with pytest.raises(PrivacyError, match="exceed this node's budget"):
        ledger.charge(event, federation=some.federation, round=found.rounds + 1)


def public():
    return new_identity().public_key().public_bytes_raw()


def test_what_other_federations_released_shortens_a_lifetime():
    some = terms(noise_multiplier=8.7, stage_seconds=86_400.0)
    about = {"members": 100, "budget": 4.0, "delta": DELTA, "begins": BEGINS}
    alone = remaining_lifetime(some, **about)
    event = release_event(some, registry(public(), {client: public() for client in range(100)}), (public(), public()))
    shared = remaining_lifetime(some, **about, before={event: 40})
    assert (alone.rounds, shared.rounds) == (53, 13)
    assert shared.epsilon == pytest.approx(alone.epsilon)
    spent = remaining_lifetime(some, **about, before={event: 53})
    assert (spent.rounds, spent.ends) == (0, BEGINS)
    assert "no further round" in lifetime_words(spent)[0]


def test_rounds_that_follow_each_other_end_at_the_earliest_possible_date():
    some = terms(noise_multiplier=8.7, stage_seconds=43_200.0)
    found = remaining_lifetime(some, members=100, budget=4.0, delta=DELTA, begins=BEGINS)
    assert (found.interval, (found.ends - BEGINS).days) == (0.5, 26)


def test_without_noise_there_is_no_date():
    assert remaining_lifetime(terms(), members=5, budget=4.0, delta=DELTA, begins=BEGINS) is None


def test_a_federation_too_small_for_its_budget_is_refused_with_what_would_help():
    with pytest.raises(SpecError, match=r"20 members: .* drowns 46 parameters of sums of 10; use more members"):
        planned(20)
    assert planned(20, most_noise=4.0).noise > 0.5
    with pytest.raises(SpecError, match="at least 3 members"):
        planned(2)


def test_a_generous_budget_does_not_fall_below_the_noise_that_policies_ask_for():
    found = planned(10_000, budget=500.0, days=3)
    assert found.noise_multiplier == Limits().noise_multiplier
    assert found.epsilon < 500


@pytest.mark.parametrize(
    ("hours", "fewest", "machines", "simulated", "close"),
    [
        (6, 50, 0, 0.72, 0.05), (6, 50, 1, 1.0, 0.01), (24, 50, 0, 1.0, 0.01), (24, 90, 0, 0.05, 0.02),
        (72, 50, 0, 1.0, 0.01), (24, 50, 3, 1.0, 0.01),
    ],
)  # fmt: skip
def test_the_binomial_share_of_completed_rounds_is_close_to_the_simulated_one(
    hours, fewest, machines, simulated, close
):
    found = completed(100, fewest, hours / 24)[list(ARRIVING)[machines]]
    assert found == pytest.approx(simulated, abs=close)


def test_longer_windows_and_smaller_quorums_complete_more_rounds():
    for machines in ARRIVING:
        by_window = [completed(30, 26, days)[machines] for days in (0.1, 0.25, 1, 2, 3, 7)]
        assert by_window == sorted(by_window)
        by_quorum = [completed(30, fewest, 1.0)[machines] for fewest in (30, 27, 20, 10)]
        assert by_quorum == sorted(by_quorum)


def test_words_say_until_when_and_against_whom():
    said = " ".join(lifetime_words(planned(1000)))
    for part in ("From 1 January 2027 the budget lasts until 1 January 2028", "does not renew", "delta 1e-06",
                 "unit: one node", "replaced by zero", "one operator with any number of members", "500 of 1,000",
                 "365 rounds, one a day"):  # fmt: skip
        assert part in said
    few = plan_lifetime(terms(dropouts=0.1), members=5000, budget=4.0, delta=DELTA, begins=BEGINS, days=30)
    assert "Expected to complete, of 30 rounds: 0 with laptops used an hour a day, 30 with" in " ".join(
        lifetime_words(few)
    )
    assert "a round alone tells little" in " ".join(lifetime_words(planned(20, most_noise=4.0)))
