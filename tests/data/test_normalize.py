"""Scaling, by arithmetic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from foltr.errors import SpecError
from foltr.lab.data import normalize
from foltr.rankers.normalize import query_minmax


def rows(*values):
    return np.array(values, np.float32)


def test_minmax_looks_at_one_query_only():
    features = rows([1, 5, 2], [3, 5, 2], [2, 5, 0], [10, 0, 7], [20, 4, 7])
    normalize.apply("query-minmax", features, np.array([0, 3, 5]))
    assert features.tolist() == [[0, 0, 1], [1, 0, 1], [0.5, 0, 0], [0, 0, 0], [1, 1, 0]]


def test_a_query_of_one_document_becomes_zero():
    features = rows([3, -2])
    normalize.apply("query-minmax", features, np.array([0, 1]))
    assert features.tolist() == [[0, 0]]


def test_zscore_uses_the_mean_and_sd_of_the_training_set():
    train = rows([1, 7], [3, 7], [5, 7], [7, 7])  # mean 4, variance (9 + 1 + 1 + 9) / 4 = 5
    zscore = normalize.centre_and_scale(normalize.add_rows(normalize.no_moments(2), train))
    test = rows([4, 7], [9, 100])
    normalize.apply("zscore", test, np.array([0, 2]), zscore)
    assert test == pytest.approx(rows([0, 0], [5 / 5**0.5, 0]))


@given(
    values=arrays(np.float32, (12, 3), elements=st.floats(-100, 100, width=32)),
    cut=st.integers(1, 11),
)
def test_moments_do_not_depend_on_the_blocks(values, cut):
    blocks = normalize.no_moments(3)
    for block in (values[:cut], values[cut:]):
        blocks = normalize.add_rows(blocks, block)
    assert blocks.rows == 12
    assert blocks.mean == pytest.approx(values.mean(axis=0, dtype=np.float64), abs=1e-9)
    assert blocks.squares / 12 == pytest.approx(values.var(axis=0, dtype=np.float64), abs=1e-7)


def test_a_large_constant_is_still_constant():
    moments = normalize.no_moments(1)
    for _ in range(50):
        moments = normalize.add_rows(moments, np.full((7, 1), 16777217.3, np.float32))
    assert normalize.centre_and_scale(moments)[1, 0] == 0


def test_an_unknown_kind_lists_the_known_ones():
    with pytest.raises(SpecError, match="none, query-minmax, zscore"):
        normalize.check_scaling("minmax")
    with pytest.raises(SpecError, match="training set"):
        normalize.apply("zscore", rows([1]), np.array([0, 1]))


@given(
    values=arrays(np.float32, (12, 3), elements=st.floats(-100, 100, width=32)),
    cuts=st.lists(st.integers(0, 12), max_size=4),
)
def test_minmax_of_clients_is_that_of_the_lab(values, cuts):
    """Queries without documents included."""
    offsets = np.array([0, *sorted(cuts), 12])
    compiled, plain = values.copy(), values.copy()
    normalize.query_minmax(compiled, offsets)
    query_minmax(plain, offsets)
    assert plain == pytest.approx(compiled, abs=1e-7)
    query_minmax(plain[:0], np.array([0, 0]))
