"""Three adversaries, two adjacencies, two nodes: the figures of a card against closed forms written down here.

Nothing below uses the package's accountant or calibration for the expected values: the profile of Gaussian noise is
written with scipy, and its roots are found by scipy.
"""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import ncx2

from foltr.errors import SpecError
from foltr.lab.runs.card import card_of
from foltr.lab.spec.parse import plan
from foltr.privacy import release
from foltr.privacy.accounting import epsilon, removal_epsilon
from foltr.privacy.adversaries import composed_epsilon
from foltr.privacy.events import Event
from foltr.privacy.mechanisms import Gaussian, ReleaseContext, bit_of
from foltr.privacy.noise import SystemStream
from foltr.secagg.guarantee import guarantee
from foltr.secagg.ring import Ring

DELTA, RELEASES = 1e-5, 20
TWO = {"secagg": {"mode": "two-servers"}}


def profile(mu, target):
    """delta(epsilon) of Gaussian noise (Balle and Wang 2018, theorem 8)."""
    return ndtr(mu / 2 - target / mu) - math.exp(target) * ndtr(-mu / 2 - target / mu)


def epsilon_of(mu):
    return brentq(lambda target: profile(mu, target) - DELTA, 1e-9, 200.0, xtol=1e-12)


MU = brentq(lambda mu: profile(mu, 1.0) - DELTA, 1e-3, 5.0, xtol=1e-14)  # of epsilon 1 over the whole run
SIGMA = math.sqrt(RELEASES) / MU  # noise multiplier of one of 20 releases


def card(privacy=None, clients=1000, **more):
    tables = {"data": {"name": "synthetic-mq2007"}, "federation": {"clients": clients, "rounds": RELEASES}, **more}
    (setting,) = plan(tables | {"privacy": {"kind": "gaussian", **(privacy or {})}}).settings
    return card_of(setting, 46)


def against(found, name):
    (one,) = [one for one in found["adversaries"] if one["id"] == name]
    return one


# --- noise is tied to the honest --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("honest", "stated"), [(800, 1.07), (31, 6.7), (1, 65.7)])
def test_noise_for_900_with_fewer_honest_shares_is_worth_less(honest, stated):
    """Claimed 1, sized for 900 of 1,000: what it is worth when only so many shares are unknown to the adversary."""
    event = Event("gaussian", "l2", 1.0, "l2", SIGMA, noise_contributors=900, present=honest)
    expected = epsilon_of(MU * math.sqrt(900 / honest))
    assert expected == pytest.approx(stated, rel=0.01)
    assert composed_epsilon(event, RELEASES, DELTA) == pytest.approx(expected, rel=1e-6)
    if honest > 1:  # a distribution of that many losses takes ten seconds
        assert epsilon({event: RELEASES}, DELTA).epsilon == pytest.approx(expected, rel=2e-3)


def test_a_deployed_release_keeps_its_epsilon_against_a_server_with_100_of_1000_clients():
    terms = guarantee(1000, dropouts=0.1, corrupt=0.1)
    ring = Ring(clients=1000)
    _, event = release.release(np.ones(46), clip=1.0, multiplier=SIGMA, guarantee=terms, ring=ring)
    assert (event.noise_contributors, event.present, event.colluders) == (800, 800, 100)
    share = event.noise / math.sqrt(event.noise_contributors) / event.bound
    assert share * math.sqrt(800) == pytest.approx(SIGMA, rel=1e-6)  # 900 shares less 100 that are known
    assert share * math.sqrt(900) == pytest.approx(1.0607 * SIGMA, rel=1e-3)
    assert epsilon({event: RELEASES}, DELTA, "malicious").epsilon == pytest.approx(1.0, rel=2e-3)


def test_the_shares_that_a_client_draws_are_as_large_as_its_event_says():
    """Variance of 4,000 steps of noise within 5 standard errors: false alarm below 1 in 10^6."""
    terms = guarantee(10, dropouts=0.1, corrupt=0.1)
    noisy, event = release.release(np.zeros(4000), clip=1.0, multiplier=2.0, guarantee=terms, ring=Ring(clients=10))
    steps = noisy.view("<i4").astype(float)
    assert np.mean(steps**2) == pytest.approx(event.noise**2 / terms.honest, rel=5 * math.sqrt(2 / 4000))


def test_the_card_has_a_figure_for_three_adversaries():
    found = card({"dropouts": 0.1, "corrupt": 0.1})
    assert against(found, "recipients")["epsilon"] == pytest.approx(epsilon_of(MU * math.sqrt(800 / 900)), rel=3e-3)
    assert against(found, "server-sums")["epsilon"] == pytest.approx(epsilon_of(MU * math.sqrt(800 / 900)), rel=3e-3)
    malicious = against(found, "malicious")
    assert malicious["epsilon"] == pytest.approx(1.0, rel=3e-3)
    assert malicious["who"] == "a malicious server with 100 colluding clients"
    assert malicious["round"] == pytest.approx(epsilon_of(MU / math.sqrt(RELEASES)), rel=5e-3)


def test_a_spec_that_assumes_nobody_corrupt_still_meets_one_colluder():
    found = card(clients=10)
    malicious = against(found, "malicious")
    assert malicious["who"] == "a malicious server with 1 colluding client"
    assert malicious["epsilon"] == pytest.approx(epsilon_of(MU * math.sqrt(10 / 9)), rel=3e-3)
    assert malicious["epsilon"] > 1.05 > against(found, "recipients")["epsilon"]


def test_two_servers_keep_the_figure_against_one_that_lies_and_any_number_of_clients():
    found = card({"corrupt": 0.3, "dropouts": 0.3}, **TWO)
    assert against(found, "malicious-pair")["epsilon"] == pytest.approx(1.0, rel=3e-3)
    assert against(found, "recipients")["epsilon"] == pytest.approx(epsilon_of(MU / math.sqrt(2)), rel=3e-3)
    assert against(found, "both-servers")["epsilon"] == "infinite"


def test_with_two_servers_removal_equals_zero_out():
    """The servers' noise does not depend on who is there: with 10 clients one server's figure is 13, two have none."""
    one, two = (card(clients=10, **mode) for mode in ({}, TWO))
    assert one["removal"] == pytest.approx(13.0, rel=0.01)
    assert two["removal"] is None
    assert any("removal equals zero-out" in said for said in two["sentences"])


def test_attackers_take_no_noise_from_two_servers():
    attack = {"kind": "lie", "num_attackers": 3}
    assert card(clients=10, attack=attack, **TWO)["run"] == card(clients=10, **TWO)["run"]
    assert card(clients=10, attack=attack)["run"]["epsilon"] == pytest.approx(
        epsilon_of(MU * math.sqrt(10 / 7)), rel=3e-3
    )


def test_without_secure_sums_a_malicious_server_reads_single_messages():
    found = card({"secure_aggregation": False, "corrupt": 0.1})
    assert against(found, "malicious-single")["epsilon"] == pytest.approx(epsilon_of(MU * math.sqrt(900)), rel=3e-3)


# --- zero-out, removal, two nodes -------------------------------------------------------------------------------------


def removal_delta(pair, distance, dimensions, target):
    """P(L > target) under N(v, p^2 I) and under N(0, q^2 I), L the log ratio of the two, |v| = distance.

    L(x) = a |x - c|^2 + b with a = (1/q^2 - 1/p^2) / 2: L is a noncentral chi-square number under either.
    """
    p, q = pair
    a = (1 / q**2 - 1 / p**2) / 2
    centre = -distance / p**2 / (2 * a)
    b = dimensions * math.log(q / p) - distance**2 / (2 * p**2) - a * centre**2
    level = (np.asarray(target) - b) / a
    tail = ncx2.sf if a > 0 else ncx2.cdf
    there = tail(level / p**2, dimensions, ((distance - centre) / p) ** 2)
    return there, tail(level / q**2, dimensions, (centre / q) ** 2)


def directions(clients):
    """Standard deviations of the two sums, with the client's share and without it, in both orders."""
    share = SIGMA / math.sqrt(clients)
    more, fewer = share * math.sqrt(clients), share * math.sqrt(clients - 1)
    return (more, fewer), (fewer, more)


def removal_by_renyi(clients, parameters):
    """Epsilon from the Renyi divergences of two Gaussians of different variance (Gil et al. 2013)."""
    orders, dimensions, found = np.exp(np.linspace(0.001, 7.0, 5000)), RELEASES * parameters, []
    for p, q in directions(clients):
        mixed = orders * q**2 + (1 - orders) * p**2
        usable, a = mixed > 0, orders[mixed > 0]
        divergence = a * RELEASES / (2 * mixed[usable]) + dimensions * (
            math.log(q / p) + np.log(q**2 / mixed[usable]) / (2 * (a - 1))
        )
        found.append(np.min(divergence + np.log1p(-1 / a) - (math.log(DELTA) + np.log(a)) / (a - 1)))
    return max(found)


def test_renyi_divergences_bound_removal_from_above_only():
    assert removal_by_renyi(100, 46) == pytest.approx(1.53, abs=0.005)
    assert removal_by_renyi(100, 136) == pytest.approx(2.05, abs=0.005)


def removal_by_chi_square(clients, parameters, target):
    """Delta of 20 releases at once, in 20 P dimensions."""
    found = [removal_delta(pair, math.sqrt(RELEASES), RELEASES * parameters, target) for pair in directions(clients)]
    return max(there - math.exp(target) * back for there, back in found)


def removal_by_composition(clients, parameters, upwards, step=2e-4):
    """Epsilon of 20 releases: the privacy loss of ONE release, rounded to a grid, convolved 20 times.

    `upwards`: losses are rounded up, so the figure is never below the exact one; otherwise never above.
    """
    edges = step * np.arange(-(2**15), 2**15 + 1)
    epsilons = []
    for pair in directions(clients):
        above, _ = removal_delta(pair, 1.0, parameters, edges)  # P(L > edge) under N(v, p^2)
        cells = -np.diff(above)
        outside = 1 - cells.sum()
        assert abs(outside) < 1e-9
        length = 2 ** math.ceil(math.log2(RELEASES * len(cells)))
        total = np.fft.irfft(np.fft.rfft(cells, length) ** RELEASES, length)[: RELEASES * (len(cells) - 1) + 1]
        losses = RELEASES * (edges[1] if upwards else edges[0]) + step * np.arange(len(total))

        def excess(target, total=total, losses=losses):
            over = losses > target
            return float((total[over] * -np.expm1(target - losses[over])).sum()) - DELTA

        epsilons.append(brentq(excess, 0.5, 40.0, xtol=1e-6))
    return max(epsilons)


@pytest.mark.parametrize(
    ("clients", "parameters", "exact", "stated"),
    [
        (1000, 46, 1.0114, 1.01), (100, 46, 1.3896, 1.40), (10, 46, 12.978, 13.0),
        (1000, 136, 1.0183, 1.02), (100, 136, 1.8754, 1.89), (10, 136, 25.327, 25.0),
    ],
)  # fmt: skip
def test_literal_removal_costs_more_than_zero_out(clients, parameters, exact, stated):
    """By integration, by a noncentral chi-square number, and by composing 20 privacy losses.

    `stated` is the figure of the reviews that found the difference. With 100 clients it is .8 % above the exact one;
    with which program it was computed is not known. Renyi divergences give more: 1.53 and 2.05.
    """
    event = Event("gaussian", "l2", 1.0, "l2", SIGMA, noise_contributors=clients, present=clients,
                  parameters=parameters)  # fmt: skip
    found = removal_epsilon(event, RELEASES, DELTA)
    assert found == pytest.approx(exact, rel=1e-4)
    assert found == pytest.approx(stated, rel=0.015)
    if clients < 1000:  # with 1,000 scipy's noncentral chi-square of all 20 releases loses its digits
        assert removal_by_chi_square(clients, parameters, found) == pytest.approx(DELTA, rel=0.02)
    if clients > 10:  # losses beyond the grid with 10
        low, high = (removal_by_composition(clients, parameters, upwards) for upwards in (False, True))
        assert high - low == pytest.approx(RELEASES * 2e-4, rel=0.1)
        assert low - 1e-4 <= found <= high + 1e-4


@pytest.mark.parametrize("clients", [2, 10, 100])
def test_literal_removal_with_one_parameter_and_one_release(clients):
    """One dimension: the excess of one density over e^epsilon times the other, integrated on a fine grid."""
    event = Event("gaussian", "l2", 1.0, "l2", 2.0, noise_contributors=clients, present=clients, parameters=1)
    found = removal_epsilon(event, 1, DELTA)
    more, fewer = 2.0, 2.0 * math.sqrt((clients - 1) / clients)
    x = np.linspace(-60.0, 60.0, 600_001)

    def density(mean, sd):
        return np.exp(-(((x - mean) / sd) ** 2) / 2) / (sd * math.sqrt(2 * math.pi))

    excess = [
        float(np.maximum(density(1.0, p) - math.exp(found) * density(0.0, q), 0).sum() * (x[1] - x[0]))
        for p, q in ((more, fewer), (fewer, more))
    ]
    assert max(excess) == pytest.approx(DELTA, rel=0.02)


def test_the_card_states_removal_where_it_differs_and_the_figure_of_two_nodes():
    few, many = card(clients=100), card(clients=1000)
    assert few["removal"] == pytest.approx(1.39, rel=0.01)
    assert many["removal"] is None
    assert many["two_nodes"] == pytest.approx(epsilon_of(2 * MU), rel=2e-3) == pytest.approx(2.15, rel=5e-3)
    assert any("Literal removal" in said and "1.39" in said for said in few["sentences"])
    assert any("a person with two nodes" in said and "2.15" in said for said in many["sentences"])
    for found in (few, many):
        assert any("replaced by zero, while the device still adds its noise" in said for said in found["sentences"])


def test_a_zeroed_client_says_nothing_about_the_clip():
    """Both neighbours of a bit are within 1/2: with +1/2 of a zeroed client, epsilon 1 would be 1.36."""
    assert (bit_of(0.0, 1.0), bit_of(0.3, 1.0), bit_of(3.0, 1.0)) == (0.0, 0.5, -0.5)
    # few clients: noise of the bits as large as the multiplier m. Update (3/4) / m^2, bit (1/2)^2 / m^2, or 1 / m^2
    assert epsilon_of(MU * math.sqrt(3 / 4 + 1 / 4)) == pytest.approx(1.0)
    assert epsilon_of(MU * math.sqrt(3 / 4 + 1)) == pytest.approx(1.36, rel=0.005)


def test_the_bit_of_a_zero_update_is_noise_around_zero():
    """Noise below 1/5: the mean of 400 bits of +1/2 would be 50 standard errors away, 4.5 allowed (1 in 10^5)."""
    mechanism = Gaussian(epsilon=50.0, clip=1.0, adaptive=0.5)
    event = mechanism.event(ReleaseContext(1, 1, 3))
    noise = event.noise  # one client: the bit's noise is the multiplier
    assert noise < 0.2
    for zero in (np.zeros(3), np.array([np.nan, 1.0, np.inf])):
        bits = [mechanism.protect(zero, 1.0, event, SystemStream())[-1] / noise for _ in range(400)]
        assert abs(np.mean(bits)) < 4.5 / math.sqrt(400)


@pytest.mark.parametrize(("trust", "mode"), [("local", "one-server"), ("sum", "two-servers")])
def test_an_adaptive_clip_needs_shares_of_a_sum(trust, mode):
    with pytest.raises(SpecError, match="adaptive"):
        card({"adaptive": 0.5, "trust": trust}, clients=10, secagg={"mode": mode})
    with pytest.raises(SpecError, match="adaptive"):
        Gaussian(adaptive=0.5, trust=trust).event(ReleaseContext(10, 1, 3, secagg_mode=mode))


def test_shared_queries_are_on_the_card():
    found = card(clients=10, partition={"kind": "labels"}, sharing={"fraction": 0.1})
    assert any("10 % of the training queries" in seen and "without noise" in seen for seen in found["visible"])
    assert not any("training queries" in seen for seen in card(clients=10)["visible"])
