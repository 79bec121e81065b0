"""Weights of preference pairs."""

from typing import Any

import numba
from numba.core import cgutils
from numba.extending import intrinsic

from foltr._kernels.simd import lanes
from foltr._kernels.simd.lanes import DOUBLE, DOUBLES, arrays, constant

_LEAST = 1e-150  # its square is still a number


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
