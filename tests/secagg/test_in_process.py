"""The protocol in one process: the plain sum up to the fixed-point step, or a clear refusal."""

import numpy as np
import pytest

from foltr.errors import SecureAggregationError
from foltr.rng import stream
from foltr.secagg.in_process import MAX_CLIENTS, secure_sum


def updates(clients, seed, width=7):
    return 10.0 * stream(seed, round=clients, purpose="data").normal(clients * width).reshape(clients, width)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("clients", range(3, 13))
def test_the_secure_sum_is_the_plain_sum_up_to_a_step_for_each_client(clients, seed):
    rows = updates(clients, seed)
    assert np.abs(secure_sum(rows) - rows.sum(axis=0)).max() <= clients * 2.0**-32


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("clients", range(5, 13))
def test_one_who_drops_out_is_not_in_the_sum(clients, seed):
    rows, lost = updates(clients, seed), (clients + seed) % clients
    plain = np.delete(rows, lost, axis=0).sum(axis=0)
    assert np.abs(secure_sum(rows, dropped=[lost]) - plain).max() <= clients * 2.0**-32


@pytest.mark.parametrize("fraction", [4, 16])
def test_values_are_cut_towards_zero_to_the_step_of_the_ring(fraction):
    rows = updates(5, 4)
    cut = np.trunc(np.ldexp(rows, fraction)).sum(axis=0)
    assert np.array_equal(np.ldexp(secure_sum(rows, bits=32, fraction=fraction), fraction), cut)


def test_several_may_drop_out():
    rows = updates(12, 5)
    assert secure_sum(rows, dropped=(0, 3, 11)) == pytest.approx(np.delete(rows, (0, 3, 11), axis=0).sum(axis=0))


def test_a_sparse_graph_is_summed_too():
    rows = updates(110, 6, width=2)
    assert secure_sum(rows, dropped=(7, 50)) == pytest.approx(np.delete(rows, (7, 50), axis=0).sum(axis=0), abs=1e-6)


@pytest.mark.parametrize(
    ("clients", "more", "says"),
    [
        (2, {}, f"for 3 to {MAX_CLIENTS} clients, not 2"),
        (MAX_CLIENTS + 1, {}, f"for 3 to {MAX_CLIENTS} clients, not {MAX_CLIENTS + 1}"),
        (3, {"dropped": [0]}, "cannot tolerate 1 dropouts"),
        (6, {"dropped": [0, 1, 2, 3]}, "cannot tolerate 4 dropouts"),
        (6, {"dropped": [6]}, "use numbers from 0 to 5"),
        (6, {"bits": 32, "fraction": 30}, "is too large"),
        (6, {"fraction": 64}, "use 0 to 63 binary digits"),
    ],
)
def test_what_cannot_be_summed_is_refused(clients, more, says):
    with pytest.raises(SecureAggregationError, match=says):
        secure_sum(updates(clients, 7), **more)


def test_a_value_that_is_not_finite_is_refused():
    rows = updates(4, 8)
    rows[2, 1] = np.nan
    with pytest.raises(SecureAggregationError, match="not finite"):
        secure_sum(rows)
