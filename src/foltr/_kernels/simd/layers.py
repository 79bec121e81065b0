"""Sums of a layer's units, of several documents at once: a lane for each unit, so that no sum crosses lanes."""

from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from foltr._kernels.simd import lanes
from foltr._kernels.simd.lanes import DOUBLES, SINGLES, arrays
from foltr._kernels.simd.sizes import LANES, ROWS, UNITS


@intrinsic  # type: ignore[untyped-decorator]
def unit_sums(
    typing: Any, flat: Any, rows: Any, width: Any, weights: Any, units: Any, first: Any, out: Any, at: Any  # noqa: ARG001
) -> Any:  # fmt: skip
    """out[at + r * units + first ..] (float64) = what follows flat[rows[r]] times weights[..width, first ..] (float32).

    For UNITS units and ROWS documents r; `units` is how many there are, to whole UNITSs. Products are added up as
    singles, feature after feature.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        features, weighing, result = arrays(context, builder, signature, arguments, 0, 3, 6)
        _, rows, width, _, units, first, _, at = arguments
        index, fused = width.type, lanes.fused(builder, SINGLES)
        starts = [builder.gep(features.data, [builder.extract_value(rows, r)]) for r in range(ROWS)]
        totals = [cgutils.alloca_once_value(builder, ir.Constant(SINGLES, [0.0] * UNITS)) for _ in starts]
        with cgutils.for_range_slice(builder, index(0), width, index(1), index) as (feature, _):
            block = lanes.load(builder, weighing.data, builder.add(builder.mul(feature, units), first), SINGLES)
            for start, total in zip(starts, totals, strict=True):
                value = lanes.spread(builder, builder.load(builder.gep(start, [feature])), UNITS)
                builder.store(fused(value, block, builder.load(total)), total)
        for row, total in enumerate(totals):
            begin = builder.add(builder.add(at, first), builder.mul(units, index(row)))
            for k in range(0, UNITS, LANES):
                some = builder.fpext(lanes.chosen(builder, builder.load(total), range(k, k + LANES)), DOUBLES)
                lanes.store(builder, some, result.data, builder.add(begin, index(k)))
        return context.get_dummy_value()

    return numba.types.void(flat, rows, width, weights, units, first, out, at), generate
