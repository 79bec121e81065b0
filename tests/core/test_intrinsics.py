"""The functions of `_kernels.simd` against NumPy: with hand-written SIMD and, in a process of its own, without."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from foltr._kernels import simd
from foltr._kernels.compile import kernel
from foltr._kernels.machine import USE_SIMD, simd_supported
from foltr._kernels.simd import (
    add_rows,
    dots,
    exponential_race,
    fill_keys,
    fill_normals,
    highest,
    highest_two_in_lanes,
    mass_above,
    plain,
    prefetch,
    smallest_k,
    unit_sums,
    weigh_pairs,
)
from foltr._kernels.simd.lanes import (
    BLOCK,
    GROUP,
    LANES,
    NORMALS,
    PLACE_BITS,
    ROWS,
    SCORE_PLACE_BITS,
    SMALLEST,
    UNITS,
)
from foltr._kernels.workspace import LINE, aligned_zeros
from foltr.rng import stream

NAMES = (
    "add_rows", "dots", "exponential_race", "fill_keys", "fill_normals", "highest", "highest_two_in_lanes",
    "mass_above", "prefetch", "smallest_k", "unit_sums", "weigh_pairs",
)  # fmt: skip


@kernel
def prefetch_of(flat, index):
    prefetch(flat, index)


@kernel
def dots_of(flat, a, b, c, d, weights, out, place):
    dots(flat, (a, b, c, d), weights, out, place)


@kernel
def unit_sums_of(flat, a, b, c, d, width, weights, units, first, out, at):
    unit_sums(flat, (a, b, c, d), width, weights, units, first, out, at)


@kernel
def add_rows_of(flat, rows, weights, count, out):
    add_rows(flat, rows, weights, count, out)


@kernel
def weigh_of(pairs, place, normalizers, inverse, reach, out):
    weigh_pairs(pairs, place, normalizers, inverse, reach, out)


@kernel
def highest_two_of(keys, rows, best):
    highest_two_in_lanes(keys, rows, best)


@kernel
def fill_normals_of(word, stride, groups, out):
    fill_normals(word, stride, groups, out)


def normal(seed, size):
    return stream(seed, purpose="data").normal(size)


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 46, 136, 700])
def test_dot_products_read_every_feature_and_none_beyond(width):
    weights, out = normal(1, width).astype(np.float32), np.full(ROWS + 4, -1.0)
    starts = [3, 3 + width + 40, 3, 3 + 2 * (width + 40)]  # a row may come twice
    flat = np.full(3 * (width + 40) + 3, np.nan, np.float32)
    for number, start in enumerate(sorted(set(starts))):
        flat[start : start + width] = normal(2 + number, width)
    dots_of(flat, *starts, weights, out, 2)
    exact = [math.fsum(float(x) * w for x, w in zip(flat[at : at + width], weights, strict=True)) for at in starts]
    assert out[2 : 2 + ROWS] == pytest.approx(exact, abs=1e-4)
    assert out[2] == out[4]  # to the bit, wherever the row stands
    assert [*out[:2], *out[2 + ROWS :]] == [-1.0] * 4


@pytest.mark.parametrize("width", [1, 2, 46, 136])
def test_sums_of_units_are_those_of_their_block_and_nothing_beyond(width):
    every = 3 * UNITS
    weights, out = normal(1, width * every).astype(np.float32), np.full(5 + ROWS * every, -1.0)
    starts = [3, 3 + width + 9, 3, 3 + 2 * (width + 9)]
    flat = np.full(3 * (width + 9) + 3, np.nan, np.float32)
    for number, start in enumerate(sorted(set(starts))):
        flat[start : start + width] = normal(2 + number, width)
    unit_sums_of(flat, *starts, width, weights, every, UNITS, out, 5)
    documents = np.stack([flat[at : at + width] for at in starts]).astype(float)
    found = out[5:].reshape(ROWS, every)
    assert found[:, UNITS : 2 * UNITS] == pytest.approx(
        documents @ weights.reshape(width, every)[:, UNITS : 2 * UNITS].astype(float), abs=1e-4
    )
    assert found[0].tolist() == found[2].tolist()
    assert [*out[:5], *found[:, :UNITS].ravel(), *found[:, 2 * UNITS :].ravel()] == [-1.0] * (5 + ROWS * 2 * UNITS)


@pytest.mark.parametrize("width", [1, 7, 8, 9, 46, 136])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_rows_are_added_with_their_weights_and_nothing_beyond(width, count):
    rows, weights, out = np.array([2, 2 + width + 9, 2]), normal(1, 3), np.full(width + 9, 0.5)
    flat = np.full(2 * (width + 9) + 2, np.nan, np.float32)
    for number, start in enumerate((rows[0], rows[1])):
        flat[start : start + width] = normal(2 + number, width)
    add_rows_of(flat, rows, weights, count, out[:width])
    exact = sum((weights[r] * flat[rows[r] : rows[r] + width].astype(float) for r in range(count)), np.full(width, 0.5))
    assert out[:width] == pytest.approx(exact, abs=1e-12)
    assert set(out[width:]) == {0.5}


@given(st.integers(2, 10), st.integers(0, 1000))
def test_pairs_are_weighed_as_the_formula_says(ranks, seed):
    chosen = np.exp(3 * normal(seed, ranks))
    normalizers = np.cumsum(chosen[::-1])[::-1] + 0.5  # what remained: those shown further down, and others
    listed = [(i, j) for i in range(ranks) for j in range(i + 1, ranks)]
    pairs = np.zeros((4, -(-len(listed) // LANES) * LANES))
    for at, (i, j) in enumerate(listed):
        pairs[:, at] = i, j, chosen[i], chosen[j]
    out = np.zeros(pairs.shape[1])
    for place in range(0, len(listed), LANES):
        weigh_of(pairs, place, normalizers, 1 / normalizers, ranks, out)
    for weight, (i, j) in zip(out, listed, strict=False):
        u, v = chosen[i], chosen[j]
        odds = math.prod((m - v + u) / m for m in normalizers[i + 1 : j + 1])
        assert weight == pytest.approx(u * v / (u + v) ** 2 / (1 + odds), rel=1e-12)


def test_a_pair_whose_masses_underflow_weighs_nothing_and_is_a_number():
    pairs = np.array([[0.0], [1.0], [1e-200], [1e-300]]) * np.ones((1, LANES))
    out = np.ones(LANES)
    weigh_of(pairs, 0, np.ones(2), np.ones(2), 2, out)
    assert out.tolist() == [0.0] * LANES


@kernel
def highest_score(scores, blocks):
    return highest(scores, blocks)


@kernel
def mass_above_of(mass, keys, blocks, limit):
    return mass_above(mass, keys, blocks, limit)


@kernel
def race_of(first, scores, shift, word, stride, mass, keys):
    exponential_race(first, scores, shift, np.uint64(word), np.uint64(stride), mass, keys)


@kernel
def smallest_of(keys, groups, limit, out):
    smallest_k(keys, groups, limit, out)


@given(st.lists(st.floats(-750, 750), min_size=1, max_size=40))
def test_the_highest_score(drawn):
    blocks = -(-len(drawn) // LANES)
    scores = np.full(blocks * LANES, -math.inf)
    scores[: len(drawn)] = drawn
    assert highest_score(scores, blocks) == max(drawn)


@given(st.lists(st.floats(-750, 0) | st.sampled_from([-math.inf, math.nan]), min_size=BLOCK, max_size=BLOCK), st.data())
def test_masses_and_times_of_a_race(below, data):
    first, shift = data.draw(st.sampled_from([0, LANES, 1000 * LANES])), data.draw(st.floats(-5, 5))
    draws = stream(data.draw(st.integers(0, 10**6)), purpose="ranking")
    scores, mass, keys = (np.full(first + BLOCK + 1, -1.0) for _ in range(3))
    scores[first:-1] = np.array(below) + shift
    race_of(first, scores, shift, np.uint64(draws.start), np.uint64(draws.stride), mass, keys)
    below_best = scores[first:-1] - shift
    exact = [math.exp(one) if one >= -708 else 0.0 for one in below_best]
    assert mass[first:-1] == pytest.approx(exact, rel=5e-16, abs=0)
    times = -np.log1p(-draws.uniform(BLOCK))
    for key, time, weight in zip(keys[first:-1], times, exact, strict=True):
        if weight > 1e-290:
            assert key == pytest.approx(min(time / weight, 1e300), rel=2**-31)
        else:  # next to no mass, or none: behind all that have some
            assert key > 1e270
    assert (keys[first:-1].view(np.int64) & PLACE_BITS).tolist() == list(range(first, first + BLOCK))
    assert np.isfinite(keys[first:-1]).all()
    assert (keys[first:-1] >= 0).all()
    assert (mass[:first] == -1).all()
    assert (mass[-1], keys[-1]) == (-1.0, -1.0)


def test_times_of_a_race_are_exponential_at_both_ends():
    size = 400 * BLOCK
    draws, keys, mass = stream(3, purpose="ranking"), np.zeros(size), np.zeros(size)
    for first in range(0, size, BLOCK):
        word = (int(draws.start) + first * int(draws.stride)) % 2**64
        race_of(first, np.zeros(size), 0.0, np.uint64(word), draws.stride, mass, keys)
    assert keys == pytest.approx(-np.log1p(-draws.uniform(size)), rel=2**-31)
    assert kstest(keys, "expon").pvalue > 1e-3  # false alarm 1 in 1,000
    assert keys.min() < 1e-3
    assert keys.max() > 7


@given(st.integers(1, 3), st.integers(0, 1000), st.integers(1, 3 * GROUP))
def test_the_smallest_keys_come_in_order_and_then_the_next(groups, seed, filled):
    keys = np.full(groups * GROUP, math.inf)
    filled = min(filled, keys.size)
    keys[:filled] = np.exp(3 * normal(seed, filled))
    expected = [*np.sort(keys[:filled]), *[math.inf] * (3 * SMALLEST)]
    last = -1.0
    for turn in range(2):
        out = np.zeros(SMALLEST + 1)
        smallest_of(keys, groups, last, out)
        assert out.tolist() == [*expected[turn * SMALLEST : (turn + 1) * SMALLEST], 0.0]
        last = out[SMALLEST - 1]


@given(st.integers(1, 20), st.integers(0, 1000))
def test_the_mass_above_is_that_of_higher_keys(blocks, seed):
    mass, keys = np.exp(5 * normal(seed, blocks * LANES)), normal(seed + 1, blocks * LANES)
    for limit in (keys[seed % keys.size], -9.0, 9.0):
        assert mass_above_of(mass, keys, blocks, limit) == pytest.approx(math.fsum(mass[keys > limit]), rel=1e-14)


@kernel
def keys_of(scores, first, count, column, keys):
    fill_keys(scores, first, count, column, keys)


TINY = float(np.float32(1e-45))  # the smallest single
SINGLES = st.floats(width=32, allow_nan=False) | st.sampled_from([0.0, -0.0, TINY, -TINY, math.inf, -math.inf])


@given(st.lists(SINGLES, min_size=1, max_size=30), st.integers(1, 2 * LANES), st.data())
def test_keys_order_as_scores_do_and_equal_ones_by_place(drawn, columns, data):
    column = data.draw(st.integers(0, columns - 1))
    scores = np.full((len(drawn) + 2, columns), np.nan, np.float32)
    scores[2:, column] = drawn
    keys = np.full((len(drawn) + 1, LANES), -1.0)
    keys_of(scores, 2, len(drawn), column // LANES * LANES, keys)
    mine = keys[:-1, column % LANES]
    assert np.isfinite(mine).all()
    assert sorted(range(len(drawn)), key=lambda i: -mine[i]) == sorted(range(len(drawn)), key=lambda i: -drawn[i])
    bits = mine.view(np.int64) & SCORE_PLACE_BITS
    assert np.where(mine < 0, bits, SCORE_PLACE_BITS - bits).tolist() == list(range(len(drawn)))
    assert keys[-1].tolist() == [-1.0] * LANES


@given(st.integers(1, 6), st.integers(0, 1000))
def test_the_two_highest_of_each_lane(fours, seed):
    keys, best = normal(seed, 4 * fours * LANES).reshape(-1, LANES), np.zeros((2, LANES))
    keys[0, 0], keys[1:, 1] = -math.inf, -math.inf
    highest_two_of(keys, 4 * fours, best)
    assert best.tolist() == np.sort(keys, axis=0)[:-3:-1].tolist()


@pytest.mark.parametrize("kind", [np.float64, np.int64, bool])
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 8)])
def test_aligned_arrays_are_zero_and_begins_on_a_line(shape, kind):
    found = aligned_zeros(*shape, dtype=kind)
    assert (found.shape, found.dtype) == (shape, kind)
    assert found.ctypes.data % LINE == 0
    assert not found.any()
    whole = found
    while whole.base is not None:
        whole = whole.base
    end = found.ctypes.data + -(-found.nbytes // LINE) * LINE
    assert end <= whole.ctypes.data + whole.nbytes  # the rest of the last line is its own


@pytest.mark.parametrize("seed", range(20))
def test_normal_numbers_are_those_of_the_stream_to_the_last_digits(seed):
    draws, out = stream(seed, purpose="perturbation"), np.full(50 * NORMALS + 3, -7.0)
    fill_normals_of(np.uint64(draws.start), np.uint64(draws.stride), 50, out)
    assert out[: 50 * NORMALS] == pytest.approx(draws.normal(50 * NORMALS), abs=1e-14)
    assert out[50 * NORMALS :].tolist() == [-7.0] * 3


def test_prefetching_leaves_everything_as_it_is():
    flat = normal(1, 40).astype(np.float32)
    before = flat.copy()
    prefetch_of(flat, 7)
    assert np.array_equal(flat, before)


def test_the_facade_runs_what_was_chosen():
    chosen = os.environ.get("FOLTR_SIMD", "1") != "0" and simd_supported()
    assert chosen == USE_SIMD
    for name in NAMES:
        assert (getattr(simd, name) is getattr(plain, name)) == (not USE_SIMD)


@pytest.mark.skipif(not USE_SIMD, reason="these are the plain loops already")
def test_the_same_contracts_hold_for_the_plain_loops():
    """This file and the drawing of lists, in a process without hand-written SIMD."""
    files = [__file__, str(Path(__file__).with_name("test_plackett_luce.py"))]
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files],
        env={**os.environ, "FOLTR_SIMD": "0"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout
