"""A document's score and place as one double, its key: the best document of a list has the highest.

A key grows with the score and, where scores are equal, falls with the place. A score is a single; a double has 29
digits more, and they hold the place.
"""

import functools
from typing import Any

import numba
from numba.core import cgutils
from numba.extending import intrinsic

from foltr._kernels.simd import lanes
from foltr._kernels.simd.lanes import DOUBLES, FLOATS, WORDS, arrays, constant, words
from foltr._kernels.simd.sizes import LANES, SCORE_PLACE_BITS

_ZERO = 2.0**-1000  # stands for a score of 0; nearer to it than any other single
_TOP = 2.0**1000  # stands for infinity; beyond any other single


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
def highest_in_lanes(typing: Any, keys: Any, rows: Any, best: Any) -> Any:  # noqa: ARG001
    """best[lane] = the largest of keys[0 .. rows, lane], float64 without NaN, for LANES lanes; rows come in fours.

    Four rows at a time: each comparison waits for the one before in its lane.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table, result = arrays(context, builder, signature, arguments, 0, 2)
        index = arguments[1].type

        def row(position: Any) -> Any:
            return lanes.load(builder, table.data, builder.mul(position, index(LANES)), DOUBLES)

        so_far = [cgutils.alloca_once_value(builder, row(index(k))) for k in range(4)]
        with cgutils.for_range_slice(builder, index(4), arguments[1], index(4), index) as (position, _):
            for k, highest in enumerate(so_far):
                builder.store(
                    lanes.higher(builder, builder.load(highest), row(builder.add(position, index(k)))), highest
                )
        found = functools.reduce(
            functools.partial(lanes.higher, builder), [builder.load(highest) for highest in so_far]
        )
        lanes.store(builder, found, result.data, index(0))
        return context.get_dummy_value()

    return numba.types.void(keys, rows, best), generate
