"""A Plackett-Luce list as a race: every document runs for a random time, and those in first are the list.

Times are exponential with rate exp(score); who comes in first, second and so on is then drawn as Plackett-Luce says.
All documents run at once, and no branch hangs on chance.
"""

from typing import Any

import numba
from llvmlite import ir
from numba.extending import intrinsic

from foltr._kernels.simd import lanes
from foltr._kernels.simd.draws import exponential
from foltr._kernels.simd.elementary import exp_both_ways
from foltr._kernels.simd.lanes import DOUBLE, LANES, WORD, arrays, constant, words

HEAT = 3 * LANES  # documents that run side by side: one vector alone would wait for itself
PLACES = (1 << 20) - 1  # fits into the last digits of a key
_SLOWEST = 1e300


@intrinsic  # type: ignore[untyped-decorator]
def race(typing: Any, first: Any, scores: Any, shift: Any, word: Any, stride: Any, mass: Any, keys: Any) -> Any:  # noqa: ARG001
    """For HEAT documents from `first` on: mass = exp(score - shift), and key = exponential number / mass.

    The numbers come from `word`, `word` + `stride` and so on. The last 20 digits of a key are the document's place,
    which alters odds by less than 2^-31. No key is negative or NaN.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, weight, result = arrays(context, builder, signature, arguments, 1, 5, 6)
        doubles, whole = ir.VectorType(DOUBLE, HEAT), ir.VectorType(WORD, HEAT)
        first, shift, word, stride = (lanes.spread(builder, arguments[k], HEAT) for k in (0, 2, 3, 4))
        behind = ir.Constant(whole, list(range(HEAT)))
        below = builder.fsub(lanes.load(builder, values.data, arguments[0], doubles), shift)
        pace, slowness = exp_both_ways(builder, below)
        time = builder.fmul(slowness, exponential(builder, builder.add(word, builder.mul(stride, behind))))
        time = lanes.lower(builder, time, constant(_SLOWEST, HEAT))
        digits = builder.and_(builder.bitcast(time, whole), words(~PLACES, HEAT))
        key = builder.or_(digits, builder.add(first, behind))
        lanes.store(builder, pace, weight.data, arguments[0])
        lanes.store(builder, builder.bitcast(key, doubles), result.data, arguments[0])
        return context.get_dummy_value()

    return numba.types.void(first, scores, shift, word, stride, mass, keys), generate
