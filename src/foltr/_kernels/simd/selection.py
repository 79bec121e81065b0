"""The smallest keys of a list, in order, without a branch: the network of comparisons is the same for all lists."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numba
from numba.core import cgutils
from numba.extending import intrinsic

from foltr._kernels.simd import lanes
from foltr._kernels.simd.lanes import DOUBLES, INT, arrays, constant
from foltr._kernels.simd.sizes import GROUP, LANES, SMALLEST


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
