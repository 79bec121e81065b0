"""Figures of the threat model that no other test computes: what each fault was worth, and what stops it now.

Expected values are closed forms written with scipy; 20 releases for epsilon 1 at delta 1e-5 unless said.
"""

import math

import numpy as np
import pytest
from releases_by_hand import gaussian
from scipy.optimize import brentq, minimize_scalar
from scipy.special import ndtr

from foltr.errors import PrivacyError
from foltr.federation.schedule import Members
from foltr.lab.simulation import plain
from foltr.lab.simulation.population import load, task_of
from foltr.lab.spec.parse import setting
from foltr.privacy import ledger, release
from foltr.privacy.calibration import noise_multiplier
from foltr.privacy.events import Event
from foltr.privacy.ledger_file import open_ledger
from foltr.rng import stream
from foltr.secagg.guarantee import guarantee
from foltr.secagg.ring import Ring

DELTA, RELEASES = 1e-5, 20
USER = np.zeros(1, np.int64)


def profile(mu, target):
    """delta(epsilon) of Gaussian noise (Balle and Wang 2018, theorem 8)."""
    return ndtr(mu / 2 - target / mu) - math.exp(target) * ndtr(-mu / 2 - target / mu)


def epsilon_of(mu):
    return brentq(lambda target: profile(mu, target) - DELTA, 1e-9, 200.0, xtol=1e-12)


def mu_of(target):
    return brentq(lambda mu: profile(mu, target) - DELTA, 1e-3, 50.0, xtol=1e-14)


def epsilon_by_concentrated_privacy(mu):
    """Of rho = mu^2 / 2 at the best order (Canonne, Kamath and Steinke 2020, proposition 12)."""

    def at(order):
        return mu * mu / 2 * order + math.log1p(-1 / order) - (math.log(DELTA) + math.log(order)) / (order - 1)

    return minimize_scalar(at, bounds=(1.001, 5000), method="bounded", options={"xatol": 1e-9}).fun


MU = mu_of(1.0)


# --- noise for the honest -------------------------------------------------------------------------------------------


def test_noise_for_the_honest_is_1_12_times_as_much():
    """Of 1,000 clients 800 shares are unknown to the server; the noise of all 1,000 is sqrt(1000 / 800) times that."""
    sizes = guarantee(1000, dropouts=0.1, corrupt=0.1)
    event = release.event_of(clip=1.0, multiplier=16.7, guarantee=sizes, ring=Ring(1000), parameters=46)
    share = event.noise / event.bound / math.sqrt(event.noise_contributors)
    assert share * math.sqrt(1000) / 16.7 == pytest.approx(math.sqrt(1000 / 800), rel=1e-6)
    assert math.sqrt(1000 / 800) == pytest.approx(1.12, abs=0.005)


def test_one_honest_share_of_twenty_is_worth_more_than_5():
    """Nineteen nodes that are made to add no noise: ledgers that know of concentrated privacy only said 1.09."""
    said, true = epsilon_by_concentrated_privacy(MU), epsilon_of(MU * math.sqrt(20))
    assert (said, true) == (pytest.approx(1.09, abs=0.005), pytest.approx(5.41, abs=0.005))
    assert epsilon_of(MU * math.sqrt(19)) == pytest.approx(5.25, abs=0.005)  # sized for 19 of the 20
    event = Event("gaussian", "l2", 1.0, "l2", math.sqrt(RELEASES) / MU, noise_contributors=20, present=1)
    assert ledger.closed_epsilon({event: RELEASES}, DELTA) == pytest.approx(true, rel=1e-6)


def test_another_ranker_for_the_others_leaves_the_update_of_one_in_a_correct_sum():
    """49 of 50 nodes get weights so large that no pair is in doubt and their PDGD steps vanish; the victim gets zeros.

    Why the digest of the ranker is in the context: the sum is right, and is the victim's update within 3.5 %.
    """
    one = setting({
        "data": {"name": "synthetic-mq2007@60", "folds": 1},
        "federation": {"clients": 50, "interactions": 4, "rounds": 1},
    })  # fmt: skip
    engine = plain.engine(task_of(one, load(one.data, 1), 1)[0])
    cohort, victim = Members(np.arange(50), np.full(50, 4)), 7
    direction = stream(1, purpose="start").normal(46)

    def error(scale):
        models = np.tile(scale * direction, (50, 1))
        models[victim] = 0.0
        sent = engine.local_updates(models, cohort, 1, None)[0].values
        return np.linalg.norm(sent.sum(axis=0) - sent[victim]) / np.linalg.norm(sent[victim])

    assert error(0.0) > 3  # the same ranker for everybody hides it
    assert error(1e4) < 0.035
    assert error(1e5) < 1e-9


# --- calibration and ledger -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("planned", "before"), [(20, 17), (50, 42)])
def test_concentrated_privacy_alone_admits_fewer_than_planned_and_the_ledger_all(planned, before):
    by_order = [k for k in range(1, planned + 1) if epsilon_by_concentrated_privacy(MU * math.sqrt(k / planned)) <= 1.0]
    assert max(by_order) == before
    event = release.event_of(
        clip=1.0, multiplier=noise_multiplier(1.0, DELTA, planned),
        guarantee=guarantee(1000, dropouts=0.1, corrupt=0.1), ring=Ring(1000), parameters=46,
    )  # fmt: skip
    book = ledger.begin(1, delta=DELTA, budget=1.0)
    assert ledger.admits(book, event, USER, planned)
    assert not ledger.admits(book, event, USER, planned + 1)


def test_concentrated_privacy_alone_would_need_8_3_percent_more_noise():
    factor = brentq(lambda more: epsilon_by_concentrated_privacy(MU / more) - 1.0, 1.0, 1.5)
    calibrated = noise_multiplier(1.0, DELTA, RELEASES) * MU / math.sqrt(RELEASES)  # a thousandth above the root
    assert factor / calibrated == pytest.approx(1.083, abs=0.0005)


# --- failed rounds --------------------------------------------------------------------------------------------------


def test_retries_that_are_not_charged_make_1_into_1_46_and_are_charged(tmp_path):
    """Every round fails once after the vector left: 40 releases happen. A node charges the failed ones, and stops."""
    multiplier = noise_multiplier(1.0, DELTA, RELEASES)
    assert epsilon_of(math.sqrt(2 * RELEASES) / multiplier) == pytest.approx(1.46, abs=0.005)
    node = open_ledger(tmp_path / "ledger", delta=DELTA, budget=1.0)
    for attempt in range(RELEASES):
        node.charge(gaussian(multiplier), federation="a", round=attempt)
    with pytest.raises(PrivacyError, match="would exceed"):
        node.charge(gaussian(multiplier), federation="a", round=RELEASES)
    assert node.spent() == pytest.approx(1.0, rel=2e-3)
