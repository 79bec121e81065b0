"""Numbers in the ring: exact sums, norms that never grow, and no silent overflow."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import ndtr

from foltr.errors import SpecError
from foltr.privacy.noise import discrete_gaussian, share_variance
from foltr.secagg.ring import Ring, decode, dtype, encode, largest, require_range

RINGS = [Ring(clients=10), Ring(clients=1000, bits=64, fraction=30), Ring(clients=1, bits=32, fraction=0)]


@pytest.mark.parametrize("ring", RINGS, ids=str)
@given(data=st.data())
def test_the_decoded_sum_is_the_sum_of_what_was_cut(ring, data):
    bound = largest(ring) / 2**ring.fraction
    rows = data.draw(arrays(np.float64, (min(ring.clients, 10), 3), elements=st.floats(-bound * 0.99, bound * 0.99)))
    total = sum((encode(row, ring) for row in rows), np.zeros(3, f"<u{ring.bits // 8}"))
    steps = [[int(value * 2**ring.fraction) for value in row] for row in rows.tolist()]  # int() cuts towards zero
    expected = [sum(column) / 2**ring.fraction for column in zip(*steps, strict=True)]
    assert decode(total, ring).tolist() == expected


@given(values=arrays(np.float64, 8, elements=st.floats(-100, 100)))
def test_no_coordinate_grows(values):
    ring = Ring(clients=10)
    assert (np.abs(decode(encode(values, ring), ring)) <= np.abs(values)).all()


def test_cutting_goes_towards_zero_on_both_sides():
    ring = Ring(clients=2, fraction=1)
    assert decode(encode(np.array([0.9, -0.9, 1.5, -1.5]), ring), ring).tolist() == [0.5, -0.5, 1.5, -1.5]


@pytest.mark.parametrize("ring", RINGS, ids=str)
def test_all_clients_at_the_bound_still_fit_and_more_saturates(ring):
    bound = largest(ring)
    assert ring.clients * bound < 2 ** (ring.bits - 1)
    at = float(bound) if float(bound) <= bound else np.nextafter(float(bound), 0)  # not every integer is a double
    edge = np.array([at, -at]) * 2.0**-ring.fraction
    assert decode(encode(edge, ring), ring).tolist() == edge.tolist()
    beyond = max(np.nextafter(at, np.inf), np.floor(at) + 1) * 2.0**-ring.fraction
    for value in (beyond, -beyond):
        steps = encode(np.array([0.0, value]), ring).view(f"<i{ring.bits // 8}").tolist()
        assert steps == [0, bound if value > 0 else -bound]


def test_no_refusal_depends_on_data():
    """What is no number is sent as zero, what is too large as the bound."""
    sent = encode(np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 0.5]), Ring(clients=2, fraction=1)).view("<i4")
    bound = (2**31 - 1) // 2
    assert sent.tolist() == [0, bound, -bound, bound, -bound, 1]


@pytest.mark.parametrize("value", [2.0**63, -(2.0**63), 1e300, -1e300])
def test_what_does_not_fit_64_bits_saturates(value):
    sent = encode(np.array([value]), Ring(clients=1, bits=64, fraction=0)).view("<i8")
    assert sent.tolist() == [int(np.sign(value)) * (2**63 - 1)]


def test_the_range_has_room_for_the_noise():
    """100 clients of clip 1 with noise of standard deviation 300, honest 80: 100 + 6 x 300 x sqrt(100 / 80)."""
    reach = 100 + 6 * 300 * np.sqrt(100 / 80)
    terms = {"clip": 1.0, "multiplier": 300.0, "honest": 80}
    assert 2 ** (31 - 20) < reach < 2 ** (31 - 19)
    require_range(Ring(clients=100, fraction=19), **terms)
    with pytest.raises(SpecError, match=r"64 bits \(recommended\)"):
        require_range(Ring(clients=100, fraction=20), **terms)
    require_range(Ring(clients=100, bits=64, fraction=20), **terms)
    with pytest.raises(SpecError, match=r"lower fraction$"):
        require_range(Ring(clients=100, bits=64, fraction=52), **terms)


# what the noise does to a ring without room for it


def wrong_signs(mean, stddev, most):
    """Probability that a normal number comes out of a ring of +-most with the other sign, summed over its windings."""
    windings = range(1, 2 + int((abs(mean) + 10 * stddev) / most))
    above = sum(ndtr((2 * k * most - mean) / stddev) - ndtr(((2 * k - 1) * most - mean) / stddev) for k in windings)
    below = sum(ndtr((-(2 * k - 1) * most - mean) / stddev) - ndtr((-2 * k * most - mean) / stddev) for k in windings)
    return above + below


def summed_in_ring(terms, sums, updates):
    """So many sums of `clients` numbers at `updates`, each with a share of noise: how many have the wrong sign."""
    ring, bound = terms["ring"], int(terms["clip"] * 2 ** terms["ring"].fraction)
    variance = (Fraction(terms["multiplier"]) * bound) ** 2
    total = np.zeros(sums, dtype(ring.bits))
    exact = np.zeros(sums)
    for _ in range(ring.clients):
        noise = discrete_gaussian(share_variance(variance, terms["honest"]), sums)
        total += encode(np.full(sums, updates), ring) + noise.astype(total.dtype)
        exact += np.ldexp(noise.astype(float), -ring.fraction) + updates
    return int((np.sign(decode(total, ring)) != np.sign(exact)).sum())


EDGE = {"ring": Ring(100), "clip": 327.67, "multiplier": 4.0, "honest": 80}  # 100 clips are the range of 32 bits
WIDE = {"ring": Ring(20, 32, 24), "clip": 1.0, "multiplier": 300.0, "honest": 16}  # 20 clips of a range of 128


@pytest.mark.parametrize(("terms", "share"), [(EDGE, 0.49), (WIDE, 0.42)], ids=["at the edge", "much noise"])
def test_where_only_the_clips_fit_sums_come_out_with_the_wrong_sign_and_the_ring_is_refused(terms, share):
    """Before, only the clips had to fit. At the edge every second sum is wrong, as were 21 of 40 in a review.

    400 sums with noise of the operating system, within 5 standard errors of the closed form: 1 in 10^6.
    """
    ring, sums = terms["ring"], 400
    stddev = terms["multiplier"] * terms["clip"] * np.sqrt(ring.clients / terms["honest"])
    expected = wrong_signs(ring.clients * terms["clip"], stddev, 2.0 ** (31 - ring.fraction))
    assert expected == pytest.approx(share, abs=0.01)
    found = summed_in_ring(terms, sums, terms["clip"]) / sums
    assert abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / sums)
    limits = {name: terms[name] for name in ("clip", "multiplier", "honest")}
    with pytest.raises(SpecError, match=r"64 bits \(recommended\)"):
        require_range(ring, **limits)
    require_range(Ring(ring.clients, 64, ring.fraction), **limits)


def test_a_ring_that_is_accepted_has_one_wrong_sign_in_500_million_sums():
    """Six standard deviations: at the fewest clips and the most noise that still fit."""
    ring, honest, clip = Ring(20), 16, 1.0
    most = (2**31 - 1) / 2**16
    multiplier = (most - 20 * clip) / (6 * clip * np.sqrt(20 / 16)) * (1 - 1e-12)
    require_range(ring, clip=clip, multiplier=multiplier, honest=honest)
    assert wrong_signs(20 * clip, multiplier * clip * np.sqrt(20 / 16), most) < 2.1e-9


@pytest.mark.parametrize("wrong", [{"clients": 0}, {"clients": 2, "fraction": 32}, {"clients": 2, "fraction": -1}])
def test_a_ring_that_cannot_be_is_refused(wrong):
    with pytest.raises(SpecError, match="use "):
        Ring(**wrong)
