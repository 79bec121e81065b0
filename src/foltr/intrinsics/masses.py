"""Of all documents of a list: the highest score, masses exp(score - shift), and their running sums."""

from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from foltr.intrinsics import lanes
from foltr.intrinsics.lanes import DOUBLE, DOUBLES, INT, LANES, arrays, constant

_LOWEST = -708.0  # below this exp is nothing
LOG2_E = 1.4426950408889634
LN2_HIGH = 0.6931471803691238
LN2_LOW = 1.9082149292705877e-10
_TERMS = 13  # of the series of exp


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
        found, size = builder.load(best), LANES
        while size > 1:
            size //= 2
            found = lanes.higher(builder, *(_chosen(builder, found, range(k, k + size)) for k in (0, size)))
        return builder.extract_element(found, INT(0))

    return numba.types.float64(scores, blocks), generate


@intrinsic  # type: ignore[untyped-decorator]
def fill_masses(typing: Any, scores: Any, blocks: Any, shift: Any, mass: Any) -> Any:  # noqa: ARG001
    """mass = exp(scores - shift) of so many blocks of LANES; no score is above the shift."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, result = arrays(context, builder, signature, arguments, 0, 3)
        index, shift = arguments[1].type, lanes.spread(builder, arguments[2])
        every = (index(0), builder.mul(arguments[1], index(LANES)), index(LANES))
        with cgutils.for_range_slice(builder, *every, index) as (position, _):
            below = builder.fsub(lanes.load(builder, values.data, position, DOUBLES), shift)
            lanes.store(builder, _exp(builder, below), result.data, position)
        return context.get_dummy_value()

    return numba.types.void(scores, blocks, shift, mass), generate


@intrinsic  # type: ignore[untyped-decorator]
def stack(typing: Any, mass: Any, groups: Any, reach: Any, ends: Any) -> Any:  # noqa: ARG001
    """reach = mass of all documents up to and with each; ends = reach of the last of each block. Returns the whole.

    A group is LANES blocks of LANES documents. Everything is written a vector at a time: one that is read whole while
    parts of it are still on their way to memory would have to wait for them.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        masses, sums, last = arrays(context, builder, signature, arguments, 0, 2, 3)
        index = arguments[1].type
        passed = cgutils.alloca_once_value(builder, DOUBLE(0.0))
        with cgutils.for_range_slice(builder, index(0), arguments[1], index(1), index) as (group, _):
            so_far, of_blocks = builder.load(passed), constant(0.0)
            for block in range(LANES):
                at = builder.add(builder.mul(group, index(LANES * LANES)), index(LANES * block))
                within = _running(builder, lanes.load(builder, masses.data, at, DOUBLES))
                lanes.store(builder, builder.fadd(within, lanes.spread(builder, so_far)), sums.data, at)
                so_far = builder.fadd(so_far, builder.extract_element(within, INT(LANES - 1)))
                of_blocks = builder.insert_element(of_blocks, so_far, INT(block))
            lanes.store(builder, of_blocks, last.data, builder.mul(group, index(LANES)))
            builder.store(so_far, passed)
        return builder.load(passed)

    return numba.types.float64(mass, groups, reach, ends), generate


def _running(builder: Any, values: Any) -> Any:
    """Sums of the values up to and with each lane."""
    step = 1
    while step < LANES:
        values = builder.fadd(values, _moved(builder, values, step))
        step *= 2
    return values


def _exp(builder: Any, x: Any) -> Any:
    """exp of what is not positive, to the last digit or so: 2^k times a series for what is left."""
    fused = lanes.function(builder, f"llvm.fma.v{LANES}f64", DOUBLES, [DOUBLES] * 3)
    floor = lanes.function(builder, f"llvm.floor.v{LANES}f64", DOUBLES, [DOUBLES])
    high = lanes.higher(builder, x, constant(_LOWEST))
    k = builder.call(floor, [builder.call(fused, [high, constant(LOG2_E), constant(0.5)])])
    left = builder.call(fused, [k, constant(-LN2_HIGH), high])
    left = builder.call(fused, [k, constant(-LN2_LOW), left])
    term, terms = 1.0, []
    for number in range(1, _TERMS):
        term /= number
        terms.append(term)
    series = constant(terms.pop())
    for coefficient in reversed([1.0, *terms]):
        series = builder.call(fused, [series, left, constant(coefficient)])
    words = ir.VectorType(ir.IntType(64), LANES)
    exponent = builder.add(builder.fptosi(k, words), ir.Constant(words, [1023] * LANES))
    power = builder.bitcast(builder.shl(exponent, ir.Constant(words, [52] * LANES)), DOUBLES)
    return builder.select(builder.fcmp_ordered(">=", x, constant(_LOWEST)), builder.fmul(series, power), constant(0.0))


def _moved(builder: Any, vector: Any, lanes_up: int) -> Any:
    """Every lane so many lanes up, zeros behind."""
    places = [LANES + k if k < lanes_up else k - lanes_up for k in range(LANES)]
    return builder.shuffle_vector(vector, constant(0.0), ir.Constant(ir.VectorType(INT, LANES), places))


def _chosen(builder: Any, vector: Any, places: range) -> Any:
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(INT, len(places)), list(places)))
