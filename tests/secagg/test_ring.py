"""Numbers in the ring: exact sums, norms that never grow, and no silent overflow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from foltr.errors import SpecError
from foltr.secagg.ring import Ring, decode, encode, largest

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
def test_all_clients_at_the_bound_still_fit_and_more_is_refused(ring):
    bound = largest(ring)
    assert ring.clients * bound < 2 ** (ring.bits - 1)
    at = float(bound) if float(bound) <= bound else np.nextafter(float(bound), 0)  # not every integer is a double
    edge = np.array([at, -at]) * 2.0**-ring.fraction
    assert decode(encode(edge, ring), ring).tolist() == edge.tolist()
    beyond = max(np.nextafter(at, np.inf), np.floor(at) + 1) * 2.0**-ring.fraction
    for value in (beyond, -beyond):
        with pytest.raises(SpecError, match="too large"):
            encode(np.array([0.0, value]), ring)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(value):
    with pytest.raises(SpecError, match="not finite"):
        encode(np.array([0.0, value]), Ring(clients=2))


@pytest.mark.parametrize("value", [2.0**63, -(2.0**63), 1e300, -1e300])
def test_what_does_not_fit_64_bits_is_refused(value):
    with pytest.raises(SpecError, match="too large"):
        encode(np.array([value]), Ring(clients=1, bits=64, fraction=0))


@pytest.mark.parametrize("wrong", [{"clients": 0}, {"clients": 2, "fraction": 32}, {"clients": 2, "fraction": -1}])
def test_a_ring_that_cannot_be_is_refused(wrong):
    with pytest.raises(SpecError, match="use "):
        Ring(**wrong)
