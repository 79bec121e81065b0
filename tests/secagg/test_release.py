"""A deployed release: clipped and noised in integers, summed in secret, accounted for."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from small_rounds import federation, members, server_of

from foltr.errors import SpecError
from foltr.privacy import release
from foltr.privacy.accounting import epsilon
from foltr.privacy.calibration import noise_multiplier
from foltr.privacy.ledger import affordable, closed_epsilon
from foltr.secagg.guarantee import Guarantee
from foltr.secagg.in_process import run_in_memory
from foltr.secagg.ring import Ring, decode

RING = Ring(clients=7)
SEVEN = Guarantee(cohort=7, min_clients=7, colluders=1, honest=6)


def let_out(update, clip=1.0, multiplier=3.0, guarantee=SEVEN, ring=RING):
    return release.release(update, clip=clip, multiplier=multiplier, guarantee=guarantee, ring=ring)


@given(arrays(float, 6, elements=st.floats(-1e6, 1e6)), st.floats(1e-3, 100))
def test_no_update_is_longer_than_the_bound_of_its_event(update, clip):
    encoded = release._bounded(update, clip, math.floor(clip * 2**16), RING)
    assert release._square(encoded, RING) <= math.floor(clip * 2**16) ** 2


def test_a_sum_of_releases_through_secure_aggregation_is_noisy_by_as_much_as_the_event_says():
    """7 clients of 200 numbers, all updates zero: chi-square of the sum, false alarm below 1 in 10^5."""
    fed = federation(7, length=200)
    everybody = Guarantee(cohort=7, min_clients=7, colluders=0, honest=7)
    released = {name: let_out(np.zeros(200), multiplier=2.0, guarantee=everybody) for name in fed.identities}
    rows = {name: vector for name, (vector, _) in released.items()}
    found = run_in_memory(server_of(fed), members(fed, rows=rows))
    event = next(iter(released.values()))[1]
    steps = np.ldexp(decode(found.total, RING), 16)
    assert np.square(steps / event.noise).sum() == pytest.approx(200, abs=5 * math.sqrt(400))


def test_the_event_keeps_the_target_that_its_noise_was_sized_for():
    multiplier = noise_multiplier(1.0, 1e-5, 20)
    _, event = let_out(np.ones(46), multiplier=multiplier)
    assert 0.99 < epsilon({event: 20}, 1e-5, "malicious").epsilon <= 1.0


def test_an_update_that_is_not_finite_is_let_out_as_noise_alone():
    vector, _ = let_out(np.array([np.nan, 1.0, np.inf]))
    assert vector.shape == (3,)


def test_what_cannot_be_is_refused():
    with pytest.raises(SpecError, match="honest shares"):
        let_out(np.ones(3), guarantee=SEVEN._replace(honest=0))
    with pytest.raises(SpecError, match="noise multiplier"):
        let_out(np.ones(3), multiplier=-1.0)
    with pytest.raises(SpecError, match="clip"):
        let_out(np.ones(3), clip=1e-9)


def test_a_sum_without_noise_is_clipped_and_its_epsilon_is_infinite():
    vector, event = let_out(np.array([30.0, 40.0, 0.0]), multiplier=0.0, clip=1.0)
    assert np.linalg.norm(vector.view("<i4").astype(float)) <= event.bound
    assert event.mechanism == "none"
    assert closed_epsilon({event: 1}, 0.5) == math.inf
    assert not affordable({event: 1}, budget=1e9, delta=0.5, against="recipients")
