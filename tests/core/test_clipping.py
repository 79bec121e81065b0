"""Whoever clips calls one function, and the kernels that clip equal it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from foltr._kernels.aggregation import bounded_mean
from foltr._kernels.pdgd import scale_back
from foltr.clipping import clipped_to, norms

ROWS = arrays(float, (5, 4), elements=st.floats(-1e3, 1e3))


@given(ROWS, st.floats(0.01, 100))
def test_the_kernel_of_the_projection_equals_it(rows, clip):
    for row in rows:
        projected = row.copy()
        scale_back(projected, clip)
        assert projected == pytest.approx(clipped_to(row, clip=clip)[0], rel=1e-12, abs=1e-15)


@given(ROWS)
def test_the_kernel_of_norm_bounding_equals_it(rows):
    mean, bound = np.zeros(rows.shape[1]), np.median(norms(rows))
    bounded_mean(rows, np.ones(len(rows)), np.empty((2, len(rows))), mean)
    expected = clipped_to(rows, clip=bound)[0].mean(axis=0) if bound else np.zeros(4)
    assert mean == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_by_eye():
    clipped, before = clipped_to(np.array([[3.0, 4.0], [0.3, 0.4], [np.nan, 1.0]]), clip=1.0)
    assert clipped == pytest.approx(np.array([[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]))
    assert before == pytest.approx([5.0, 0.5, 0.0])
    assert clipped_to(np.array([3.0, -1.0]), clip=2.0, norm="l1")[0] == pytest.approx([1.5, -0.5])
