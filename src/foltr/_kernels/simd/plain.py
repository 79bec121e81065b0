"""Plain loops for the intrinsics of this folder: same names, same arguments, same contracts.

They run where hand-written SIMD is not supported, or with FOLTR_SIMD=0. Sums of float32 products are rounded after
every term, as the intrinsics round them, so that both draw the same lists.
"""

import math

import numpy as np

from foltr._kernels.compile import callee, inlined
from foltr._kernels.rng import fill_normal, mix
from foltr._kernels.simd.lanes import BLOCK, GROUP, LANES, NORMALS, PLACE_BITS, ROWS, SCORE_PLACE_BITS, SMALLEST, UNITS
from foltr.types import Array

_SLOWEST = 1e300
_LOWEST = -708.0  # below this exp counts as 0
_TO_UNIT = 2.0**-53
_ZERO, _TOP = 2.0**-1000, 2.0**1000  # stand for a score of 0, and for infinity
_SUMS = 2 * LANES  # of float32 products: product j goes into sum j % _SUMS


@callee
def dots(flat: Array, rows: tuple[int, int, int, int], weights: Array, out: Array, place: int) -> None:
    """See `products.dots`."""
    for r in range(ROWS):
        total = 0.0
        for k in range(LANES):
            low, high = _sum(flat, rows[r], weights, k), _sum(flat, rows[r], weights, k + LANES)
            total += np.float64(np.float32(low + high))
        out[place + r] = total


@callee
def _sum(flat: Array, row: int, weights: Array, first: int) -> np.float32:
    total = np.float32(0.0)
    for j in range(first, weights.size, _SUMS):
        total = _fused(flat[row + j], weights[j], total)
    return total


@inlined
def _fused(x: np.float32, y: np.float32, total: np.float32) -> np.float32:
    """x * y + total, rounded once: the product of two float32 is exact as float64."""
    return np.float32(np.float64(x) * np.float64(y) + np.float64(total))


@callee
def unit_sums(
    flat: Array, rows: tuple[int, int, int, int], width: int, weights: Array, units: int, first: int, out: Array,
    at: int,
) -> None:  # fmt: skip
    """See `products.unit_sums`."""
    for r in range(ROWS):
        sums = out[at + r * units + first : at + r * units + first + UNITS]
        for u in range(UNITS):
            sums[u] = 0.0
        for feature in range(width):
            value, block = flat[rows[r] + feature], weights[feature * units + first :]
            for u in range(UNITS):
                sums[u] = _fused(value, block[u], np.float32(sums[u]))


@callee
def add_rows(flat: Array, rows: Array, weights: Array, count: int, out: Array) -> None:
    """See `products.add_rows`."""
    for r in range(count):
        row, weight = flat[rows[r] :], weights[r]
        for p in range(out.size):
            out[p] += weight * np.float64(row[p])


@callee
def weigh_pairs(pairs: Array, place: int, normalizers: Array, inverse: Array, reach: int, out: Array) -> None:
    """See `pair_weights.weigh_pairs`."""
    for at in range(place, place + LANES):
        upper, lower, odds = pairs[2, at], pairs[3, at], 1.0
        for rank in range(1, reach):
            factor = (max(normalizers[rank] - lower, 0.0) + upper) * inverse[rank]
            odds *= factor if pairs[0, at] < rank <= pairs[1, at] else 1.0
        both = max(upper + lower, 1e-150)
        out[at] = upper * lower / (both * both * (1.0 + odds))


@callee
def highest(scores: Array, blocks: int) -> float:
    """See `pair_weights.highest`."""
    best: float = scores[0]
    for i in range(1, blocks * LANES):
        best = scores[i] if scores[i] > best else best
    return best


@callee
def mass_above(mass: Array, keys: Array, blocks: int, limit: float) -> float:
    """See `pair_weights.mass_above`."""
    total = 0.0
    for i in range(blocks * LANES):
        total += mass[i] if keys[i] > limit else 0.0
    return total


@callee
def exponential_race(
    first: int, scores: Array, shift: float, word: np.uint64, stride: np.uint64, mass: Array, keys: Array
) -> None:
    """See `draws.exponential_race`."""
    for i in range(BLOCK):
        below = scores[first + i] - shift
        some = below >= _LOWEST
        pace = math.exp(below) if some else 0.0
        slowness = math.exp(-below) if some else math.exp(-_LOWEST)
        digits = mix(np.uint64(word) + np.uint64(i) * np.uint64(stride)) >> np.uint64(11)
        time = slowness * -math.log1p(-(np.float64(digits) * _TO_UNIT))
        bits = np.float64(time if time < _SLOWEST else _SLOWEST).view(np.int64)
        mass[first + i] = pace
        keys[first + i] = np.int64((bits & ~np.int64(PLACE_BITS)) | np.int64(first + i)).view(np.float64)


@callee
def smallest_k(keys: Array, groups: int, limit: float, out: Array) -> None:
    """See `selection.smallest_k`."""
    for rank in range(SMALLEST):
        out[rank] = np.inf
    for i in range(groups * GROUP):
        key = keys[i]
        if key > limit and key < out[SMALLEST - 1]:
            at = SMALLEST - 1
            while at > 0 and out[at - 1] > key:
                out[at] = out[at - 1]
                at -= 1
            out[at] = key


@callee
def fill_normals(word: np.uint64, stride: np.uint64, groups: int, out: Array) -> None:
    """See `draws.fill_normals`."""
    fill_normal(word, stride, 0, out[: groups * NORMALS])


@callee
def fill_keys(scores: Array, first: int, count: int, column: int, keys: Array) -> None:
    """See `selection.fill_keys`."""
    for document in range(count):
        for lane in range(LANES):
            score = 0.0
            if column + lane < scores.shape[1]:
                score = np.float64(scores[first + document, column + lane])
            value = min(score if score > -_TOP else -_TOP, _TOP)
            value = _ZERO if value == 0.0 else value
            place = document if value < 0.0 else SCORE_PLACE_BITS - document
            keys[document, lane] = np.int64(np.float64(value).view(np.int64) | np.int64(place)).view(np.float64)


@callee
def highest_two_in_lanes(keys: Array, rows: int, best: Array) -> None:
    """See `selection.highest_two_in_lanes`."""
    for lane in range(LANES):
        best[0, lane], best[1, lane] = keys[0, lane], -np.inf
    for row in range(1, rows):
        for lane in range(LANES):
            best[1, lane] = max(best[1, lane], min(best[0, lane], keys[row, lane]))
            best[0, lane] = max(best[0, lane], keys[row, lane])


@inlined
def prefetch(array: Array, index: int) -> None:
    """Nothing: the processor finds its own way."""
