"""Memory of kernels: arrays on lines of the processor's cache, workspaces of them, and features fetched ahead.

Each thread has one workspace, allocated once.
"""

import math
from typing import NamedTuple

import numpy as np

from foltr._kernels.compile import callee
from foltr._kernels.simd import prefetch
from foltr._kernels.simd.lanes import BLOCK, GROUP, LANES, NORMALS, ROWS, SMALLEST, UNITS
from foltr.types import Array

LINE = 64  # bytes of the processor's cache that move together
_FEATURES = LINE // 4  # of a line
_PORTION = 16 * _FEATURES  # as many as a processor waits for at a time


def aligned_zeros(*shape: int, dtype: type = np.float64) -> Array:
    """Zeros that begin on a line of the cache and share none with other arrays: threads do not slow each other down.

    The memory behind the array up to the end of its last line belongs to it as well.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.zeros(-(-size // LINE) * LINE + LINE, np.uint8)
    begin = -buffer.ctypes.data % LINE
    return buffer[begin : begin + size].view(dtype).reshape(shape)


class Workspace(NamedTuple):
    single: Array  # [P] in single precision
    scores: Array  # [longest list]; the memory behind it, up to a whole group and a block, belongs to it
    mass: Array  # [whole groups and a block] exp(score - shift)
    keys: Array  # [whole groups and a block] each document's time in the exponential race, and its place
    smallest: Array  # [k, to whole SMALLEST] keys of the first documents
    listed: Array  # [longest list] bool, false between lists
    ranking: Array  # [k]
    clicks: Array  # [k] bool
    chosen: Array  # [k] mass of the document at each rank
    normalizers: Array  # [k] mass of all documents that are not ranked above
    inverse: Array  # [k] 1 / normalizers
    shifts: Array  # [k] the score by which the masses at a rank are shifted
    weights: Array  # [k]
    steps: Array  # [k] weights times the learning rate
    rows: Array  # [k] where the features of the document at each rank begin
    positives: Array  # [k] clicked ranks
    negatives: Array  # [k] ranks that clicked ones are preferred to
    pairs: Array  # [4, positives x negatives] higher rank, lower rank, and the masses of the documents there
    pair_weights: Array  # [positives x negatives]
    transposed: Array  # [features x whole UNITS] weights by feature, in single precision
    units: Array  # [longest list x whole UNITS] outputs of the hidden units
    signal: Array  # [k] of one unit
    change: Array  # [P]
    normals: Array  # [P, to whole NORMALS]
    drift: Array  # [P] how far a client has come since the start of the round
    own: Array  # [P] a client's parameters


def workspace_for(longest: int, k: int, hidden: int, size: int) -> Workspace:
    """For lists of up to `longest` documents, k of them displayed, and rankers of `size` parameters."""
    whole = _multiple(longest, GROUP) + BLOCK
    width, units = size // max(hidden, 1) - 2, _multiple(hidden, UNITS)
    pairs = _multiple((k // 2) * (k - k // 2), LANES)
    per_rank = {
        name: aligned_zeros(k) for name in ("chosen", "normalizers", "inverse", "shifts", "weights", "steps", "signal")
    }
    ranks = {name: aligned_zeros(k, dtype=np.int64) for name in ("ranking", "rows", "positives", "negatives")}
    return Workspace(
        single=aligned_zeros(size, dtype=np.float32),
        scores=aligned_zeros(whole)[:longest],
        mass=aligned_zeros(whole),
        keys=aligned_zeros(whole),
        smallest=aligned_zeros(_multiple(k, SMALLEST)),
        listed=aligned_zeros(longest, dtype=bool),
        clicks=aligned_zeros(k, dtype=bool),
        pairs=aligned_zeros(4, pairs),
        pair_weights=aligned_zeros(pairs),
        transposed=aligned_zeros(max(width, 0) * units, dtype=np.float32),
        units=aligned_zeros((longest + ROWS) * units),
        change=aligned_zeros(size),
        normals=aligned_zeros(_multiple(size, NORMALS)),
        drift=aligned_zeros(size),
        own=aligned_zeros(size),
        **per_rank,
        **ranks,
    )


def _multiple(count: int, of: int) -> int:
    """As many or more, to a multiple."""
    return -(-count // of) * of


class Ahead(NamedTuple):
    """Features of the next list."""

    flat: Array
    begin: int
    end: int


@callee
def ahead(features: Array, first: int, last: int) -> Ahead:
    """Documents first .. last."""
    return Ahead(features.reshape(-1), first * features.shape[1], last * features.shape[1])


@callee
def fetch(coming: Ahead, portion: int) -> None:
    """Prefetches a portion. Scoring needs no prefetch of its own: it reads in order, which processors predict."""
    begin = coming.begin + portion * _PORTION
    for line in range(begin, min(begin + _PORTION, coming.end), _FEATURES):
        prefetch(coming.flat, line)
