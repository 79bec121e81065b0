"""The highest score of a list, the mass of documents that are not displayed, and the weights of preference pairs."""

import functools
from typing import Any

import numba
from numba.core import cgutils
from numba.extending import intrinsic

from foltr._kernels.simd import lanes
from foltr._kernels.simd.lanes import DOUBLE, DOUBLES, LANES, arrays, constant

_LEAST = 1e-150  # its square is still a number


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


@intrinsic  # type: ignore[untyped-decorator]
def weigh_pairs(typing: Any, pairs: Any, place: Any, normalizers: Any, inverse: Any, reach: Any, out: Any) -> Any:  # noqa: ARG001
    """out[place .. place + LANES] = rho * sigma' of so many pairs [higher rank, lower rank, mass at each][pairs].

    With the masses u and v of a pair at ranks i < j, and m of all that remained at a rank,
    1 / rho = 1 + product over ranks i < r <= j of (m_r - v + u) / m_r, and sigma' = u v / (u + v)^2.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given, whole, part, result = arrays(context, builder, signature, arguments, 0, 2, 3, 5)
        place, index = arguments[1], arguments[1].type
        columns = builder.extract_value(given.shape, 1)
        places = [builder.add(place, builder.mul(index(row), columns)) for row in range(4)]
        i, j, upper, lower = (lanes.load(builder, given.data, at, DOUBLES) for at in places)
        nothing, one = constant(0.0), constant(1.0)
        odds = cgutils.alloca_once_value(builder, one)
        with cgutils.for_range_slice(builder, index(1), arguments[4], index(1), index) as (rank, _):
            here = lanes.spread(builder, builder.sitofp(rank, DOUBLE))
            mass, share = (lanes.spread(builder, builder.load(builder.gep(a.data, [rank]))) for a in (whole, part))
            left = lanes.higher(builder, builder.fsub(mass, lower), nothing)
            factor = builder.fmul(builder.fadd(left, upper), share)
            between = builder.and_(builder.fcmp_ordered("<", i, here), builder.fcmp_ordered("<=", here, j))
            so_far = builder.load(odds)
            builder.store(builder.select(between, builder.fmul(so_far, factor), so_far), odds)
        both = lanes.higher(builder, builder.fadd(upper, lower), constant(_LEAST))
        rest = builder.fmul(builder.fmul(both, both), builder.fadd(one, builder.load(odds)))
        weights = builder.fdiv(builder.fmul(upper, lower), rest)
        lanes.store(builder, weights, result.data, place)
        return context.get_dummy_value()

    return numba.types.void(pairs, place, normalizers, inverse, reach, out), generate
