"""Features times weights, of several documents at once."""

import functools
from collections.abc import Sequence
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from foltr._kernels.simd import lanes
from foltr._kernels.simd.lanes import DOUBLES, FLOATS, INT, MASK, SINGLES, arrays
from foltr._kernels.simd.sizes import LANES, ROWS


@intrinsic  # type: ignore[untyped-decorator]
def dots(typing: Any, flat: Any, rows: Any, weights: Any, out: Any, place: Any) -> Any:  # noqa: ARG001
    """out[place .. place + ROWS] (float64) = sums of weights times what follows each of flat[rows] (both float32).

    Products are added up as singles, in as many sums as a vector has; these sums are added as doubles. The last few
    are read under a mask: left to itself the compiler takes them one by one. Every sum is made in the same order,
    wherever its row stands.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        features, weighing, result = arrays(context, builder, signature, arguments, 0, 2, 3)
        starts = [builder.gep(features.data, [builder.extract_value(arguments[1], r)]) for r in range(ROWS)]
        sums = _sums(builder, starts, weighing.data, builder.extract_value(weighing.shape, 0))
        four = _gathered(builder, [_halved(builder, some) for some in sums])
        lanes.store(builder, four, result.data, arguments[4])
        return context.get_dummy_value()

    return numba.types.void(flat, rows, weights, out, place), generate


def _sums(builder: Any, starts: Sequence[Any], weights: Any, size: Any) -> list[Any]:
    """For each row as many sums as a vector has singles, each of every so many-th product."""
    index, step = size.type, SINGLES.count
    fused = lanes.fused(builder, SINGLES)
    totals = [cgutils.alloca_once_value(builder, ir.Constant(SINGLES, [0.0] * step)) for _ in starts]

    def add(read: Any, position: Any) -> None:
        weighing = read(weights, position, SINGLES)
        for start, total in zip(starts, totals, strict=True):
            builder.store(fused(read(start, position, SINGLES), weighing, builder.load(total)), total)

    whole = builder.and_(size, index(-step))
    with cgutils.for_range_slice(builder, index(0), whole, index(step), index) as (position, _):
        add(functools.partial(lanes.load, builder), position)
    with builder.if_then(builder.icmp_signed("<", whole, size)):
        few = lanes.first(builder, builder.sub(size, whole), step)
        add(functools.partial(lanes.masked, builder, mask=few), whole)
    return [builder.load(total) for total in totals]


def _halved(builder: Any, sums: Any) -> Any:
    """LANES doubles of twice as many singles."""
    return builder.fpext(builder.fadd(*(lanes.chosen(builder, sums, range(k, k + LANES)) for k in (0, LANES))), DOUBLES)


def _gathered(builder: Any, sums: list[Any]) -> Any:
    """One vector of the total of each of ROWS vectors."""

    def chosen(one: Any, other: Any, places: list[int]) -> Any:
        return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(INT, len(places)), places))

    halves = [builder.fadd(chosen(s, s, [0, 1, 2, 3]), chosen(s, s, [4, 5, 6, 7])) for s in sums]
    one, other = (
        builder.fadd(chosen(a, b, [0, 4, 2, 6]), chosen(a, b, [1, 5, 3, 7])) for a, b in (halves[:2], halves[2:])
    )
    return builder.fadd(chosen(one, other, [0, 1, 4, 5]), chosen(one, other, [2, 3, 6, 7]))


@intrinsic  # type: ignore[untyped-decorator]
def add_rows(typing: Any, flat: Any, rows: Any, weights: Any, count: Any, out: Any) -> Any:  # noqa: ARG001
    """out (float64) += weights[r] times what follows flat[rows[r]] (float32), for r < count; out is written once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        features, places, weighing, result = arrays(context, builder, signature, arguments, 0, 1, 2, 4)
        size, count = builder.extract_value(result.shape, 0), arguments[3]
        index, loop = size.type, cgutils.for_range_slice
        fused = lanes.fused(builder, DOUBLES)
        total = cgutils.alloca_once(builder, DOUBLES)

        def add(position: Any, read: Any) -> Any:
            """The sums from one position on; `read` says how to read there."""
            builder.store(read(result.data, position, DOUBLES), total)
            with loop(builder, index(0), count, index(1), index) as (row, _):
                weight = lanes.spread(builder, builder.load(builder.gep(weighing.data, [row])))
                start = builder.gep(features.data, [builder.load(builder.gep(places.data, [row]))])
                values = builder.fpext(read(start, position, FLOATS), DOUBLES)
                builder.store(fused(values, weight, builder.load(total)), total)
            return builder.load(total)

        whole = builder.and_(size, index(-LANES))
        with loop(builder, index(0), whole, index(LANES), index) as (position, _):
            sums = add(position, functools.partial(lanes.load, builder))
            lanes.store(builder, sums, result.data, position)
        with builder.if_then(builder.icmp_signed("<", whole, size)):
            few = lanes.first(builder, builder.sub(size, whole))
            sums = add(whole, functools.partial(lanes.masked, builder, mask=few))
            write = lanes.function(builder, f"llvm.masked.store.v{LANES}f64.p0", ir.VoidType(),
                              [DOUBLES, DOUBLES.as_pointer(), INT, MASK])  # fmt: skip
            builder.call(write, [sums, lanes.at(builder, result.data, whole, DOUBLES), INT(8), few])
        return context.get_dummy_value()

    return numba.types.void(flat, rows, weights, count, out), generate
