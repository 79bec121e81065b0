"""Features times weights, of several documents at once: scores, gradients, sums of hidden units; and their prefetch.

In a layer every unit has a lane, so that no sum crosses lanes.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from foltr._kernels.simd import lanes
from foltr._kernels.simd.lanes import DOUBLES, FLOATS, INT, LANES, MASK, ROWS, SINGLES, UNITS, arrays


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


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typing: Any, array: Any, index: Any) -> Any:  # noqa: ARG001
    """Ask the processor to bring array[index] (of a flat array) near, without waiting for it.

    Near is the second cache: what is being worked on now keeps the first, which a long list would fill.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (flat,) = arrays(context, builder, signature, arguments, 0)
        pointer = builder.bitcast(builder.gep(flat.data, [arguments[1]]), ir.IntType(8).as_pointer())
        function = lanes.function(builder, "llvm.prefetch.p0", ir.VoidType(), [pointer.type, INT, INT, INT])
        builder.call(function, [pointer, INT(0), INT(2), INT(1)])  # read, into the second cache, data
        return context.get_dummy_value()

    return numba.types.void(array, index), generate
