"""Of all documents of a list: the highest score, and the mass of those that are not displayed."""

import functools
from typing import Any

import numba
from numba.core import cgutils
from numba.extending import intrinsic

from foltr._kernels.simd import lanes
from foltr._kernels.simd.lanes import DOUBLES, arrays, constant
from foltr._kernels.simd.sizes import LANES


@intrinsic  # type: ignore[untyped-decorator]
def highest(typing: Any, scores: Any, blocks: Any) -> Any:  # noqa: ARG001
    """The largest of scores[0 .. blocks * LANES], float64 without NaN."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (values,), index = arrays(context, builder, signature, arguments, 0), arguments[1].type
        best = cgutils.alloca_once_value(builder, lanes.load(builder, values.data, index(0), DOUBLES))
        for_rest = (index(LANES), builder.mul(arguments[1], index(LANES)), index(LANES))
        with cgutils.for_range_slice(builder, *for_rest, index) as (position, _):
            some = lanes.load(builder, values.data, position, DOUBLES)
            builder.store(lanes.higher(builder, builder.load(best), some), best)
        return lanes.across(builder, functools.partial(lanes.higher, builder), builder.load(best))

    return numba.types.float64(scores, blocks), generate


@intrinsic  # type: ignore[untyped-decorator]
def mass_above(typing: Any, mass: Any, keys: Any, blocks: Any, limit: Any) -> Any:  # noqa: ARG001
    """The sum of mass[0 .. blocks * LANES] of those whose keys are above a limit."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        weight, table = arrays(context, builder, signature, arguments, 0, 1)
        index, limit = arguments[2].type, lanes.spread(builder, arguments[3])
        total = cgutils.alloca_once_value(builder, constant(0.0))
        every = (index(0), builder.mul(arguments[2], index(LANES)), index(LANES))
        with cgutils.for_range_slice(builder, *every, index) as (position, _):
            here, key = (lanes.load(builder, a.data, position, DOUBLES) for a in (weight, table))
            above = builder.select(builder.fcmp_ordered(">", key, limit), here, constant(0.0))
            builder.store(builder.fadd(builder.load(total), above), total)
        return lanes.across(builder, builder.fadd, builder.load(total))

    return numba.types.float64(mass, keys, blocks, limit), generate
