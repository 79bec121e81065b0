"""The best of many: the smallest keys of a list in order, and the highest keys of several rankers at once.

The smallest keys are found without a branch: the network of comparisons is the same for all lists.

A key holds a document's score and place as one double: the best document of a list has the highest. It grows with the
score and, where scores are equal, falls with the place. A score is a single; a double has 29 digits more, and they hold
the place.
"""

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numba
from numba.core import cgutils
from numba.extending import intrinsic

from foltr._kernels.simd import lanes
from foltr._kernels.simd.lanes import (
    DOUBLES,
    FLOATS,
    GROUP,
    INT,
    LANES,
    SCORE_PLACE_BITS,
    SMALLEST,
    WORDS,
    arrays,
    constant,
    words,
)

_ZERO = 2.0**-1000  # stands for a score of 0; nearer to it than any other single
_TOP = 2.0**1000  # stands for infinity; beyond any other single


@intrinsic  # type: ignore[untyped-decorator]
def smallest_k(typing: Any, keys: Any, groups: Any, limit: Any, out: Any) -> Any:  # noqa: ARG001
    """out[0 .. SMALLEST] = the lowest of keys[0 .. groups * GROUP] above a limit, in order; then infinity.

    Each lane holds its own in order; then lanes are merged, half with half.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table, result = arrays(context, builder, signature, arguments, 0, 3)
        index, limit, never = arguments[1].type, lanes.spread(builder, arguments[2]), constant(math.inf)

        def group(first: Any) -> list[Any]:
            places = [builder.add(first, index(LANES * k)) for k in range(LANES)]
            read = [lanes.load(builder, table.data, place, DOUBLES) for place in places]
            above = [builder.select(builder.fcmp_ordered(">", some, limit), some, never) for some in read]
            return [*_sorted(builder, above), *[never] * (SMALLEST - LANES)]

        stored = [cgutils.alloca_once_value(builder, some) for some in group(index(0))]
        every = (index(GROUP), builder.mul(arguments[1], index(GROUP)), index(GROUP))
        with cgutils.for_range_slice(builder, *every, index) as (position, _):
            for place, some in zip(
                stored, _merged(builder, [*map(builder.load, stored)], group(position)), strict=True
            ):
                builder.store(some, place)
        best, size = [*map(builder.load, stored)], LANES
        while size > 1:
            size //= 2
            halves = ([lanes.chosen(builder, some, range(k, k + size)) for some in best] for k in (0, size))
            best = _merged(builder, *halves)
        for rank, key in enumerate(best):
            builder.store(builder.extract_element(key, INT(0)), builder.gep(result.data, [index(rank)]))
        return context.get_dummy_value()

    return numba.types.void(keys, groups, limit, out), generate


def _sorted(builder: Any, row: Sequence[Any]) -> list[Any]:
    """Vectors so ordered that every lane rises."""
    row = list(row)
    for a, b in _network(len(row)):
        row[a], row[b] = _ordered(builder, row[a], row[b])
    return row


def _network(size: int) -> Iterator[tuple[int, int]]:
    """Batcher's odd-even merge sort: which are compared with which, one after the other."""
    run = 1
    while run < size:
        distance = run
        while distance:
            for first in range(distance % run, size - distance, 2 * distance):
                for k in range(first, first + min(distance, size - first - distance)):
                    if k // (2 * run) == (k + distance) // (2 * run):
                        yield k, k + distance
            distance //= 2
        run *= 2


def _merged(builder: Any, one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    """The lower half of two rising sequences, rising: Batcher's bitonic merge.

    It wants a power of two of them; those that are missing (None) count as lower than all, and cost nothing.
    """
    row = [lanes.lower(builder, a, b) for a, b in zip(one, reversed(other), strict=True)]
    missing = (1 << (len(row) - 1).bit_length()) - len(row)
    row += [None] * missing
    distance = len(row) // 2
    while distance:
        for k in (k for k in range(len(row)) if k & distance == 0):
            row[k], row[k + distance] = _ordered(builder, row[k], row[k + distance])
        distance //= 2
    return row[missing:]


def _ordered(builder: Any, one: Any, other: Any) -> tuple[Any, Any]:
    if one is None or other is None:
        return (None, other if one is None else one)
    return lanes.lower(builder, one, other), lanes.higher(builder, one, other)


@intrinsic  # type: ignore[untyped-decorator]
def fill_keys(typing: Any, scores: Any, first: Any, count: Any, column: Any, keys: Any) -> Any:  # noqa: ARG001
    """keys [documents, LANES] of scores[first .. first + count, column .. column + LANES] (float32, contiguous).

    Past the last column, keys are those of score 0. NaN counts as the lowest score.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table, result = arrays(context, builder, signature, arguments, 0, 4)
        _, first, count, column, _ = arguments
        index, width = first.type, builder.extract_value(table.shape, 1)
        left = builder.sub(width, column)
        few = lanes.first(builder, builder.select(builder.icmp_signed("<", left, index(LANES)), left, index(LANES)))
        with cgutils.for_range_slice(builder, index(0), count, index(1), index) as (document, _):
            position = builder.add(builder.mul(builder.add(first, document), width), column)
            values = builder.fpext(lanes.masked(builder, table.data, position, FLOATS, few), DOUBLES)
            lanes.store(builder, _key(builder, values, document), result.data, builder.mul(document, index(LANES)))
        return context.get_dummy_value()

    return numba.types.void(scores, first, count, column, keys), generate


def _key(builder: Any, scores: Any, document: Any) -> Any:
    high = lanes.higher(builder, scores, constant(-_TOP))
    value = builder.select(builder.fcmp_ordered("<", high, constant(_TOP)), high, constant(_TOP))
    value = builder.select(builder.fcmp_ordered("==", value, constant(0.0)), constant(_ZERO), value)
    negative = builder.fcmp_ordered("<", value, constant(0.0))
    place = lanes.spread(builder, document)
    backwards = builder.sub(words(SCORE_PLACE_BITS), place)
    bits = builder.or_(builder.bitcast(value, WORDS), builder.select(negative, place, backwards))
    return builder.bitcast(bits, DOUBLES)


@intrinsic  # type: ignore[untyped-decorator]
def highest_two_in_lanes(typing: Any, keys: Any, rows: Any, best: Any) -> Any:  # noqa: ARG001
    """best[0, lane], best[1, lane] = the two largest of keys[0 .. rows, lane], float64 without NaN; rows come in fours.

    Four rows at a time: each comparison waits for the one before in its lane. Two ranks take little longer than one.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table, result = arrays(context, builder, signature, arguments, 0, 2)
        index = arguments[1].type

        def row(position: Any) -> Any:
            return lanes.load(builder, table.data, builder.mul(position, index(LANES)), DOUBLES)

        firsts = [cgutils.alloca_once_value(builder, row(index(k))) for k in range(4)]
        seconds = [cgutils.alloca_once_value(builder, constant(-math.inf)) for _ in range(4)]
        with cgutils.for_range_slice(builder, index(4), arguments[1], index(4), index) as (position, _):
            for k, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
                key, so_far = row(builder.add(position, index(k))), builder.load(first)
                passed = lanes.lower(builder, so_far, key)
                builder.store(lanes.higher(builder, builder.load(second), passed), second)
                builder.store(lanes.higher(builder, so_far, key), first)
        pairs = [(builder.load(first), builder.load(second)) for first, second in zip(firsts, seconds, strict=True)]
        highest, second_highest = functools.reduce(functools.partial(_higher_two, builder), pairs)
        lanes.store(builder, highest, result.data, index(0))
        lanes.store(builder, second_highest, result.data, index(LANES))
        return context.get_dummy_value()

    return numba.types.void(keys, rows, best), generate


def _higher_two(builder: Any, one: tuple[Any, Any], other: tuple[Any, Any]) -> tuple[Any, Any]:
    """The two highest of two ordered pairs."""
    passed = lanes.lower(builder, one[0], other[0])
    second = lanes.higher(builder, passed, lanes.higher(builder, one[1], other[1]))
    return lanes.higher(builder, one[0], other[0]), second
