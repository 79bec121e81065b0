"""Room for kernels to work in; one for each thread, made once."""

from typing import NamedTuple

import numpy as np

from foltr._kernels.simd.lanes import LANES
from foltr._kernels.simd.layers import whole_blocks
from foltr._kernels.simd.leaders import GROUP, LEADERS
from foltr._kernels.simd.normals import NORMALS
from foltr._kernels.simd.products import ROWS
from foltr._kernels.simd.race import HEAT
from foltr._kernels.simd.room import room
from foltr.types import Array


class Workspace(NamedTuple):
    single: Array  # [P] in single precision
    scores: Array  # [longest list]; what follows up to a whole group and a heat is its own
    mass: Array  # [whole groups and a heat] exp(score), relative to the best
    keys: Array  # [whole groups and a heat] when each document comes in, and its place
    leading: Array  # [shown, to whole LEADERS] keys of the first
    listed: Array  # [longest list] bool, false between lists
    ranking: Array  # [shown]
    clicks: Array  # [shown] bool
    chosen: Array  # [shown] mass of the document at each rank
    masses: Array  # [shown] mass that remained before each rank
    shares: Array  # [shown] 1 / masses
    shifts: Array  # [shown] the score by which the masses at a rank are shifted
    weights: Array  # [shown]
    steps: Array  # [shown] weights times the learning rate
    rows: Array  # [shown] where the features of the document at each rank begin
    winners: Array  # [shown] clicked ranks
    losers: Array  # [shown] ranks preferred less
    pairs: Array  # [4, winners x losers] higher rank, lower rank, and the masses of the documents there
    pair_weights: Array  # [winners x losers]
    turned: Array  # [features x whole blocks of units] weights by feature, in single precision
    units: Array  # [longest list x whole blocks of units] what they put out
    signal: Array  # [shown] of one unit
    change: Array  # [P]
    normals: Array  # [P, to whole NORMALS]
    drift: Array  # [P] how far a client has come since the start of the round
    own: Array  # [P] a client's parameters


def scratch(longest: int, shown: int, hidden: int, size: int) -> Workspace:
    whole = -(-longest // GROUP) * GROUP + HEAT
    width, units = size // max(hidden, 1) - 2, whole_blocks(hidden)
    pairs = -(-(shown // 2) * (shown - shown // 2) // LANES) * LANES
    return Workspace(
        single=room(size, kind=np.float32),
        scores=room(whole)[:longest],
        mass=room(whole),
        keys=room(whole),
        leading=room(-(-shown // LEADERS) * LEADERS),
        listed=room(longest, kind=bool),
        ranking=room(shown, kind=np.int64),
        clicks=room(shown, kind=bool),
        chosen=room(shown),
        masses=room(shown),
        shares=room(shown),
        shifts=room(shown),
        weights=room(shown),
        steps=room(shown),
        rows=room(shown, kind=np.int64),
        winners=room(shown, kind=np.int64),
        losers=room(shown, kind=np.int64),
        pairs=room(4, pairs),
        pair_weights=room(pairs),
        turned=room(max(width, 0) * units, kind=np.float32),
        units=room((longest + ROWS) * units),
        signal=room(shown),
        change=room(size),
        normals=room(-(-size // NORMALS) * NORMALS),
        drift=room(size),
        own=room(size),
    )
