"""A Plackett-Luce list as an exponential race: every document gets a random time, and the first k are the list.

Times are exponential with rate exp(score), so the order of the times is a Plackett-Luce ranking. All times are drawn at
once, and no branch depends on them.
"""

from typing import Any

import numba
from llvmlite import ir
from numba.extending import intrinsic

from foltr._kernels.simd import lanes
from foltr._kernels.simd.draws import exponential
from foltr._kernels.simd.elementary import exp_both_ways
from foltr._kernels.simd.lanes import DOUBLE, WORD, arrays, constant, words
from foltr._kernels.simd.sizes import BLOCK, PLACE_BITS

_SLOWEST = 1e300


@intrinsic  # type: ignore[untyped-decorator]
def exponential_race(
    typing: Any, first: Any, scores: Any, shift: Any, word: Any, stride: Any, mass: Any, keys: Any  # noqa: ARG001
) -> Any:  # fmt: skip
    """For BLOCK documents from `first` on: mass = exp(score - shift), and key = exponential number / mass.

    The numbers come from `word`, `word` + `stride` and so on. The last 20 digits of a key are the document's place,
    which alters odds by less than 2^-31. No key is negative or NaN.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, weight, result = arrays(context, builder, signature, arguments, 1, 5, 6)
        doubles, whole = ir.VectorType(DOUBLE, BLOCK), ir.VectorType(WORD, BLOCK)
        first, shift, word, stride = (lanes.spread(builder, arguments[k], BLOCK) for k in (0, 2, 3, 4))
        behind = ir.Constant(whole, list(range(BLOCK)))
        below = builder.fsub(lanes.load(builder, values.data, arguments[0], doubles), shift)
        pace, slowness = exp_both_ways(builder, below)
        time = builder.fmul(slowness, exponential(builder, builder.add(word, builder.mul(stride, behind))))
        time = lanes.lower(builder, time, constant(_SLOWEST, BLOCK))
        digits = builder.and_(builder.bitcast(time, whole), words(~PLACE_BITS, BLOCK))
        key = builder.or_(digits, builder.add(first, behind))
        lanes.store(builder, pace, weight.data, arguments[0])
        lanes.store(builder, builder.bitcast(key, doubles), result.data, arguments[0])
        return context.get_dummy_value()

    return numba.types.void(first, scores, shift, word, stride, mass, keys), generate
