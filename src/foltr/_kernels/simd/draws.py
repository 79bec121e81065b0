"""Random numbers of whole vectors: uniform, exponential and normal ones, and the exponential race of a list.

They are those that `rng` makes of the same words; `fill_normals` is the fast twin of `rng.fill_normal`. In a race every
document gets a random time, and the first k are a Plackett-Luce list: times are exponential with rate exp(score), so
their order is a Plackett-Luce ranking. All times are drawn at once, and no branch depends on them.
"""

from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from foltr._kernels.simd import lanes
from foltr._kernels.simd.elementary import cosine_and_sine, exp_both_ways, minus_log
from foltr._kernels.simd.lanes import BLOCK, DOUBLE, INT, NORMALS, PLACE_BITS, WORD, arrays, constant, words
from foltr.rng import FIRST_FACTOR, SECOND_FACTOR

_ONE = 1 << 53
_PAIRS = NORMALS // 2
_SLOWEST = 1e300


def uniform(builder: Any, word: Any) -> Any:
    """Numbers u in [0, 1), as `rng.uniform_at` has them."""
    return _unit(builder, _mixed(builder, word))


def exponential(builder: Any, word: Any) -> Any:
    """-log(1 - u) of the same numbers."""
    return minus_log(builder, _unit(builder, builder.sub(words(_ONE, word.type.count), _mixed(builder, word))))


def _mixed(builder: Any, word: Any) -> Any:
    """53 digits, as `rng.mix` makes them."""
    size = word.type.count
    for shift, factor in ((30, FIRST_FACTOR), (27, SECOND_FACTOR)):
        word = builder.mul(builder.xor(word, builder.lshr(word, words(shift, size))), words(factor, size))
    word = builder.xor(word, builder.lshr(word, words(31, size)))
    return builder.lshr(word, words(11, size))


def _unit(builder: Any, digits: Any) -> Any:
    size = digits.type.count
    return builder.fmul(builder.sitofp(digits, ir.VectorType(DOUBLE, size)), constant(1 / _ONE, size))


@intrinsic  # type: ignore[untyped-decorator]
def fill_normals(typing: Any, word: Any, stride: Any, groups: Any, out: Any) -> Any:  # noqa: ARG001
    """out[0 .. groups * NORMALS] from the numbers of `word`, `word` + `stride` and so on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (result,) = arrays(context, builder, signature, arguments, 3)
        index, doubles = arguments[2].type, ir.VectorType(DOUBLE, _PAIRS)
        root = lanes.function(builder, f"llvm.sqrt.v{_PAIRS}f64", doubles, [doubles])
        first, stride = (lanes.spread(builder, arguments[k], _PAIRS) for k in (0, 1))
        even = ir.Constant(ir.VectorType(WORD, _PAIRS), list(range(0, NORMALS, 2)))
        paired = ir.Constant(ir.VectorType(INT, NORMALS), [k // 2 + _PAIRS * (k % 2) for k in range(NORMALS)])
        with cgutils.for_range_slice(builder, index(0), arguments[2], index(1), index) as (group, _):
            position = builder.mul(group, index(NORMALS))
            place = builder.add(lanes.spread(builder, position, _PAIRS), even)
            at = builder.add(first, builder.mul(stride, place))
            radius = builder.call(root, [builder.fmul(exponential(builder, at), constant(2.0, _PAIRS))])
            parts = cosine_and_sine(builder, uniform(builder, builder.add(at, stride)))
            both = builder.shuffle_vector(*(builder.fmul(radius, part) for part in parts), paired)
            lanes.store(builder, both, result.data, position)
        return context.get_dummy_value()

    return numba.types.void(word, stride, groups, out), generate


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
