"""What kernels say to the processor themselves, against plain NumPy."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foltr.intrinsics.keys import PLACES, fill_keys, highest_in_lanes
from foltr.intrinsics.lanes import LANES
from foltr.intrinsics.lists import passed, weigh
from foltr.intrinsics.masses import fill_masses, highest, stack
from foltr.intrinsics.products import ROWS, add_rows, dots
from foltr.intrinsics.room import LINE, room
from foltr.kernel import kernel
from foltr.rng import stream


@kernel
def dots_of(flat, a, b, c, d, weights, out, place):
    dots(flat, (a, b, c, d), weights, out, place)


@kernel
def add_rows_of(flat, rows, weights, count, out):
    add_rows(flat, rows, weights, count, out)


@kernel
def passed_of(table, row, target):
    return passed(table, row, target)


@kernel
def weigh_of(pairs, place, masses, shares, reach, out):
    weigh(pairs, place, masses, shares, reach, out)


@kernel
def highest_of(keys, rows, best):
    highest_in_lanes(keys, rows, best)


def normal(seed, size):
    return stream(seed, purpose="data").normal(size)


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 46, 136, 700])
def test_dot_products_read_every_feature_and_none_beyond(width):
    weights, out = normal(1, width), np.full(ROWS + 4, -1.0)
    starts = [3, 3 + width + 40, 3, 3 + 2 * (width + 40)]  # a row may come twice
    flat = np.full(3 * (width + 40) + 3, np.nan, np.float32)
    for number, start in enumerate(sorted(set(starts))):
        flat[start : start + width] = normal(2 + number, width)
    dots_of(flat, *starts, weights, out, 2)
    exact = [math.fsum(float(x) * w for x, w in zip(flat[at : at + width], weights, strict=True)) for at in starts]
    assert out[2 : 2 + ROWS] == pytest.approx(exact, abs=1e-12)
    assert out[2] == out[4]  # to the bit, wherever the row stands
    assert [*out[:2], *out[2 + ROWS :]] == [-1.0] * 4


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


@given(st.lists(st.floats(0, 10) | st.just(math.inf), min_size=2 * LANES, max_size=2 * LANES), st.floats(0, 10))
def test_what_a_target_has_passed_is_counted(values, target):
    table = np.array(values).reshape(2, LANES)
    for row in (0, 1):
        for value in (target, *table[row]):
            assert passed_of(table, row, value) == np.count_nonzero(table[row] <= value)


@given(st.integers(2, 10), st.integers(0, 1000))
def test_pairs_are_weighed_as_the_formula_says(ranks, seed):
    chosen = np.exp(3 * normal(seed, ranks))
    masses = np.cumsum(chosen[::-1])[::-1] + 0.5  # what remained: those shown further down, and others
    listed = [(i, j) for i in range(ranks) for j in range(i + 1, ranks)]
    pairs = np.zeros((4, -(-len(listed) // LANES) * LANES))
    for at, (i, j) in enumerate(listed):
        pairs[:, at] = i, j, chosen[i], chosen[j]
    out = np.zeros(pairs.shape[1])
    for place in range(0, len(listed), LANES):
        weigh_of(pairs, place, masses, 1 / masses, ranks, out)
    for weight, (i, j) in zip(out, listed, strict=False):
        u, v = chosen[i], chosen[j]
        odds = math.prod((m - v + u) / m for m in masses[i + 1 : j + 1])
        assert weight == pytest.approx(u * v / (u + v) ** 2 / (1 + odds), rel=1e-12)


def test_a_pair_that_has_faded_weighs_nothing_and_is_a_number():
    pairs = np.array([[0.0], [1.0], [1e-200], [1e-300]]) * np.ones((1, LANES))
    out = np.ones(LANES)
    weigh_of(pairs, 0, np.ones(2), np.ones(2), 2, out)
    assert out.tolist() == [0.0] * LANES


@kernel
def highest_score(scores, blocks):
    return highest(scores, blocks)


@kernel
def masses_of(scores, blocks, shift, mass):
    fill_masses(scores, blocks, shift, mass)


@kernel
def stack_of(mass, groups, reach, ends):
    return stack(mass, groups, reach, ends)


@given(st.lists(st.floats(-750, 750), min_size=1, max_size=40))
def test_masses_are_those_of_exp_and_padding_has_none(drawn):
    blocks = -(-len(drawn) // LANES)
    scores, mass = np.full(blocks * LANES + 1, -math.inf), np.full(blocks * LANES + 1, -1.0)
    scores[: len(drawn)] = drawn
    shift = highest_score(scores, blocks)
    assert shift == max(drawn)
    masses_of(scores, blocks, shift, mass)
    exact = [math.exp(score - shift) if score - shift >= -708 else 0.0 for score in drawn]
    assert mass[: len(drawn)] == pytest.approx(exact, rel=4e-16, abs=0)
    assert mass[len(drawn) : -1].tolist() == [0.0] * (blocks * LANES - len(drawn))
    assert mass[-1] == -1.0


@given(st.integers(1, 3), st.integers(0, 1000))
def test_running_sums_reach_the_whole(groups, seed):
    blocks = groups * LANES
    mass = np.exp(5 * normal(seed, blocks * LANES)).reshape(blocks, LANES)
    mass[seed % blocks, seed % LANES] = 0.0  # one that was taken
    reach, ends = np.zeros_like(mass), np.zeros(blocks + 1)
    whole = stack_of(mass, groups, reach, ends)
    assert whole == pytest.approx(math.fsum(mass.ravel()), rel=1e-14)
    assert reach.ravel() == pytest.approx(np.cumsum(mass), rel=1e-13)
    assert ends.tolist() == [*reach[:, -1], 0.0]
    assert ends[blocks - 1] == whole


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
    bits = mine.view(np.int64) & PLACES
    assert np.where(mine < 0, bits, PLACES - bits).tolist() == list(range(len(drawn)))
    assert keys[-1].tolist() == [-1.0] * LANES


@given(st.integers(1, 6), st.integers(0, 1000))
def test_the_highest_of_each_lane(fours, seed):
    keys, best = normal(seed, 4 * fours * LANES).reshape(-1, LANES), np.zeros(LANES)
    keys[0, 0] = -math.inf
    highest_of(keys, 4 * fours, best)
    assert best.tolist() == keys.max(axis=0).tolist()


@pytest.mark.parametrize("kind", [np.float64, np.int64, bool])
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 8)])
def test_room_is_zero_and_begins_on_a_line(shape, kind):
    made = room(*shape, kind=kind)
    assert (made.shape, made.dtype) == (shape, kind)
    assert made.ctypes.data % LINE == 0
    assert not made.any()
    whole = made
    while whole.base is not None:
        whole = whole.base
    end = made.ctypes.data + -(-made.nbytes // LINE) * LINE
    assert end <= whole.ctypes.data + whole.nbytes  # the rest of the last line is its own


def test_machine_code_is_kept_where_foltr_says_whichever_module_comes_first(tmp_path):
    code = "import foltr.intrinsics.products, numba; print(numba.config.CACHE_DIR)"
    environment = {**os.environ, "FOLTR_CACHE": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert answer.stdout.startswith(str(tmp_path))
