"""From events to epsilon: against published figures, closed forms and brute force; what is not known is refused."""

import itertools
import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from releases_by_hand import gaussian, laplace, response

from foltr.errors import PrivacyError
from foltr.privacy.accounting import epsilon, laplace_divergence
from foltr.privacy.calibration import gaussian_epsilon, noise_multiplier
from foltr.privacy.events import RECIPIENTS, Event, one_share, pure_epsilon, with_present
from foltr.privacy.mechanisms import Fpdgd, ReleaseContext

DELTA = 1e-5
# releases, noise multiplier -> epsilon of a user at delta 1e-5
TABLE = {
    (1, 2.0): 1.99, (1, 4.0): 0.93, (1, 8.0): 0.43,
    (20, 4.0): 4.98, (20, 8.0): 2.26, (20, 16.0): 1.05,
    (200, 8.0): 8.60, (200, 16.0): 3.80, (200, 32.0): 1.74,
}  # fmt: skip


@pytest.mark.parametrize(("releases", "multiplier"), TABLE)
def test_gaussian_releases_cost_what_methods_says(releases, multiplier):
    spent = epsilon({gaussian(multiplier): releases}, DELTA)
    assert spent.pld == pytest.approx(TABLE[releases, multiplier], abs=0.005)
    assert spent.epsilon == spent.pld
    assert spent.pld < spent.rdp < 1.15 * spent.pld  # an upper bound, with the known distance


@pytest.mark.parametrize(("releases", "multiplier"), TABLE)
def test_numerical_composition_is_the_closed_form(releases, multiplier):
    exact = gaussian_epsilon(math.sqrt(releases) / multiplier, DELTA)
    assert epsilon({gaussian(multiplier): releases}, DELTA).pld == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize(("parameters", "rounds", "user_level"), [(136, 200, 217), (46, 1000, 853)])
def test_fpdgd_costs_a_user_hundreds(parameters, rounds, user_level):
    event = Fpdgd(1.2, 3.0, "half-delta").event(ReleaseContext(1000, rounds, parameters))
    spent = epsilon({event: rounds}, DELTA)
    assert spent.pld is None
    assert spent.rdp == pytest.approx(user_level, rel=0.2)
    assert pure_epsilon(event) == pytest.approx(math.sqrt(parameters) * 1.2)


@pytest.mark.parametrize(("parameters", "rounds", "half", "whole"), [(136, 200, 74, 217), (46, 1000, 262, 853)])
def test_fpdgd_by_zero_out_is_half_the_distance_and_still_hundreds(parameters, rounds, half, whole):
    """README and findings compare it with user-level DP: zero-out is a ball's radius, replacement its diameter."""
    for clip, user_level in (("half-delta", half), ("delta", whole)):
        mechanism = Fpdgd(1.2, 3.0, clip)
        event = mechanism.event(ReleaseContext(1000, rounds, parameters))
        assert event.adjacency == "replace"
        assert event.bound == 2 * mechanism.radius
        zero_out = msgspec.structs.replace(event, bound=mechanism.radius, adjacency="zero-out")
        assert epsilon({zero_out: rounds}, DELTA).rdp == pytest.approx(user_level, abs=1)


def test_epsilon_1_by_zero_out_is_2_15_by_replacement():
    mu = noise_multiplier(1.0, DELTA, 20)
    assert gaussian_epsilon(math.sqrt(20) / mu, DELTA) == pytest.approx(1.0, abs=0.01)
    assert gaussian_epsilon(2 * math.sqrt(20) / mu, DELTA) == pytest.approx(2.15, abs=0.01)


def test_clipping_to_delta_doubles_the_round():
    half, whole = (Fpdgd(1.2, 3.0, clip).event(ReleaseContext(10, 1, 46)) for clip in ("half-delta", "delta"))
    assert pure_epsilon(whole) == pytest.approx(2 * pure_epsilon(half))


def test_releases_that_never_happened_cost_nothing():
    assert epsilon({}, DELTA).epsilon == 0
    assert epsilon({gaussian(1.0): 0}, DELTA).epsilon == 0


# --- composition ----------------------------------------------------------------------------------------------------

KINDS = [gaussian(6.0), gaussian(9.0), laplace(20.0), laplace(50.0)]
counts = st.lists(st.integers(0, 6), min_size=len(KINDS), max_size=len(KINDS))


@given(counts, st.permutations(range(len(KINDS))))
@settings(max_examples=15)
def test_the_order_of_releases_does_not_matter(times, order):
    here = epsilon(dict(zip(KINDS, times, strict=True)), DELTA)
    there = epsilon({KINDS[i]: times[i] for i in order}, DELTA)
    assert there.epsilon == pytest.approx(here.epsilon, rel=1e-3, abs=1e-3)
    assert there.rdp == pytest.approx(here.rdp)


@given(counts, st.integers(0, len(KINDS) - 1))
@settings(max_examples=15)
def test_a_further_release_never_costs_less(times, which):
    before = epsilon(dict(zip(KINDS, times, strict=True)), DELTA)
    times[which] += 1
    after = epsilon(dict(zip(KINDS, times, strict=True)), DELTA)
    assert after.rdp > before.rdp
    assert after.epsilon > before.epsilon - 1e-3


def test_equal_releases_may_be_told_apart_or_not():
    """Two events of one multiplier and one event twice are the same."""
    equal = {gaussian(5.0, parameters=1): 2, gaussian(5.0, parameters=2): 3}
    assert epsilon(equal, DELTA).epsilon == pytest.approx(epsilon({gaussian(5.0): 5}, DELTA).epsilon, rel=1e-6)


# --- what cannot be composed ----------------------------------------------------------------------------------------

NEEDED = {
    "gaussian": "l2", "discrete-gaussian": "l2", "fpdgd": "l2", "laplace": "l1", "randomized-response": "outcome",
}  # fmt: skip
norms = st.sampled_from(["l1", "l2", "outcome"])
positive = st.floats(0.01, 100)


@given(st.sampled_from(sorted(NEEDED)), norms, norms, positive, positive, st.integers(1, 9), st.integers(1, 5))
def test_noise_of_another_norm_than_is_declared_and_clipped_is_never_composed(
    mechanism, norm, clipped, bound, noise, parameters, times
):
    event = Event(mechanism, norm, bound, clipped, noise, parameters=parameters, outcomes=3)
    if (norm, clipped) == (NEEDED[mechanism], NEEDED[mechanism]):
        return
    with pytest.raises(PrivacyError, match="cannot be composed"):
        epsilon({event: times}, DELTA)
    with pytest.raises(PrivacyError, match="cannot be composed"):
        epsilon({gaussian(4.0): 1, event: times}, DELTA)


def test_every_wrong_pair_of_norms_is_refused():
    wrong = 0
    for mechanism, norm, clipped in itertools.product(NEEDED, ("l1", "l2", "outcome"), ("l1", "l2", "outcome")):
        if {norm, clipped} != {NEEDED[mechanism]}:
            wrong += 1
            with pytest.raises(PrivacyError):
                epsilon({Event(mechanism, norm, 1.0, clipped, 0.5, outcomes=3): 1}, DELTA)
    assert wrong == 5 * 8


def test_an_unknown_mechanism_is_refused_with_the_known_ones():
    with pytest.raises(PrivacyError, match=r"magic: no accounting .* known are gaussian, discrete-gaussian, laplace"):
        epsilon({Event("magic", "l2", 1.0, "l2", 1.0): 1}, DELTA)


@pytest.mark.parametrize("other", [gaussian(3.0, unit="word"), gaussian(3.0, adjacency="replace"), response(0.5, 3)])
def test_different_units_or_adjacencies_are_not_composed(other):
    with pytest.raises(PrivacyError, match="different kinds cannot be composed"):
        epsilon({gaussian(4.0): 1, other: 1}, DELTA)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5])
def test_a_delta_out_of_range_is_refused(delta):
    with pytest.raises(PrivacyError, match="between 0 and 1"):
        epsilon({gaussian(4.0): 1}, delta)


# --- whose noise, against whom --------------------------------------------------------------------------------------


def test_an_adversary_who_is_not_named_sees_through():
    event = gaussian(4.0, against=RECIPIENTS)
    assert epsilon({event: 1}, DELTA, "server").epsilon == math.inf
    assert epsilon({event: 1}, DELTA, "recipients").epsilon < 1


@given(st.integers(1, 50), st.integers(0, 50))
@settings(max_examples=20)
def test_fewer_gaussian_shares_cost_more(expected, missing):
    present = max(1, expected - missing)
    event = gaussian(20.0, noise_contributors=expected, present=present)
    exact = gaussian_epsilon(math.sqrt(expected / present) / 20.0, DELTA)
    assert epsilon({event: 1}, DELTA).epsilon == pytest.approx(exact, rel=1e-2, abs=1e-3)
    if present < expected:
        assert epsilon({event: 1}, DELTA).rdp > epsilon({with_present(event, expected): 1}, DELTA).rdp


def test_further_gaussian_shares_are_not_counted():
    spent = [epsilon({gaussian(4.0, noise_contributors=9, present=there): 1}, DELTA).epsilon for there in (9, 10)]
    assert spent[0] == spent[1]


@pytest.mark.parametrize("event", [laplace(2.0), Fpdgd().event(ReleaseContext(1, 1, 4))])
def test_laplace_shares_hold_only_together(event):
    together = Event(
        **{name: getattr(event, name) for name in event.__struct_fields__} | {"noise_contributors": 5, "present": 5}
    )
    assert epsilon({together: 1}, DELTA).epsilon < math.inf
    assert epsilon({with_present(together, 4): 1}, DELTA).epsilon == math.inf
    assert epsilon({one_share(together): 1}, DELTA).epsilon == math.inf
    assert pure_epsilon(with_present(together, 4)) == math.inf


# --- the claims about Laplace noise ---------------------------------------------------------------------------------

ORDERS = np.array([1.01, 1.5, 2.0, 3.0, 8.0, 64.0, 1000.0])


def test_the_divergence_of_laplace_noise_is_concave_in_the_squared_shift():
    """So a difference of one L2 norm is seen best when spread evenly: what `fpdgd` is accounted for by."""
    squares = np.linspace(0.0, 30.0, 3001)[1:]
    for order in ORDERS:
        divergence = np.array([laplace_divergence(order, math.sqrt(square)) for square in squares])
        assert (np.diff(divergence, 2) < 1e-9 * (1 + divergence[2:])).all()


@given(st.floats(0.01, 5), st.floats(0.01, 5))
def test_a_shift_in_two_coordinates_shows_no_more_than_in_one(first, second):
    """For noise that hides L1, the worst difference lies in a single coordinate."""
    apart = laplace_divergence(ORDERS, first) + laplace_divergence(ORDERS, second)
    assert (apart <= laplace_divergence(ORDERS, first + second) + 1e-9).all()


@pytest.mark.parametrize("first", [0.1, 0.5, 0.9])
def test_the_same_by_distributions(first):
    from dp_accounting.pld import privacy_loss_distribution as pld

    whole = pld.from_laplace_mechanism(1.0, value_discretization_interval=1e-3)
    parts = [pld.from_laplace_mechanism(1 / shift, value_discretization_interval=1e-3) for shift in (first, 1 - first)]
    apart = parts[0].compose(parts[1])
    for target in (0.0, 0.2, 0.5, 0.8, 0.95):
        assert apart.get_delta_for_epsilon(target + 2e-3) <= whole.get_delta_for_epsilon(target) + 1e-9


def test_the_divergence_of_laplace_noise_by_integration():
    from scipy.integrate import quad

    def moment(x):
        return 0.5 * math.exp(3.0 * -abs(x) - 2.0 * -abs(x - 0.7))

    total = sum(quad(moment, low, high)[0] for low, high in ((-40, 0), (0, 0.7), (0.7, 40)))
    assert laplace_divergence(3.0, 0.7) == pytest.approx(math.log(total) / 2, rel=1e-8)


# --- randomised response --------------------------------------------------------------------------------------------


def brute_force(p, outcomes, times, delta):
    """Smallest epsilon at delta between two people whose true outcomes differ every time, over all they may answer."""
    lie = (1 - p) / (outcomes - 1)
    answers = list(itertools.product(range(outcomes), repeat=times))
    ours = np.array([math.prod(p if one == 0 else lie for one in said) for said in answers])
    others = np.array([math.prod(p if one == 1 else lie for one in said) for said in answers])
    low, high = 0.0, times * math.log(p / lie)
    for _ in range(60):
        tried = (low + high) / 2
        seen = np.maximum(ours - math.exp(tried) * others, 0).sum()
        low, high = (tried, high) if seen > delta else (low, tried)
    return high


@pytest.mark.parametrize(("p", "outcomes", "times"), [(0.5, 3, 1), (0.5, 3, 6), (0.7, 4, 4), (0.9, 2, 8), (0.3, 5, 4)])
@pytest.mark.parametrize("delta", [1e-5, 0.1])
def test_randomised_response_by_brute_force(p, outcomes, times, delta):
    spent = epsilon({response(p, outcomes): times}, delta)
    exact = brute_force(p, outcomes, times, delta)
    assert spent.pld == pytest.approx(exact, rel=2e-3, abs=2e-3)
    assert spent.rdp > exact - 1e-6


def test_one_response_by_hand_and_one_that_never_lies():
    assert pure_epsilon(response(0.9, 11)) == pytest.approx(math.log(0.9 / (0.1 / 10)))
    assert pure_epsilon(response(1.0, 11)) == math.inf
    assert epsilon({response(1.0, 11): 1}, DELTA).epsilon == math.inf


# --- how many releases a budget allows ------------------------------------------------------------------------------


def test_discrete_shares_of_many_units_are_nearly_gaussian():
    """Noise of hundreds of units of the ring cannot be told from a continuous one; of half a unit it can."""
    wide, continuous = (
        Event(m, "l2", 100.0, "l2", 400.0, noise_contributors=4, present=4) for m in ("discrete-gaussian", "gaussian")
    )
    assert epsilon({wide: 1}, DELTA).rdp == pytest.approx(epsilon({continuous: 1}, DELTA).rdp, rel=5e-5)
    narrow, fine = (
        Event(m, "l2", 0.5, "l2", 2.0, noise_contributors=16, present=16) for m in ("discrete-gaussian", "gaussian")
    )
    assert epsilon({narrow: 1}, DELTA).rdp > 1.1 * epsilon({fine: 1}, DELTA).rdp
