"""Sorting and middles in machine code, in buffers that the caller made. Shell's sort, with Knuth's gaps."""

from foltr._kernels.compile import callee
from foltr.types import Array


@callee
def sort(values: Array, count: int) -> None:
    """The first `count` values in rising order."""
    gap = 1
    while 3 * gap + 1 < count:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            value, at = values[i], i
            while at >= gap and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap //= 3


@callee
def middle(values: Array, count: int) -> float:
    """Median of the first `count` values, which get sorted; between two middle ones their mean."""
    sort(values, count)
    return 0.5 * (values[(count - 1) // 2] + values[count // 2])


@callee
def weighted_middle(values: Array, weights: Array, count: int) -> float:
    """The least value that at least half of the weight does not exceed. Sorts both by value."""
    gap, total = 1, 0.0
    for i in range(count):
        total += weights[i]
    while 3 * gap + 1 < count:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            value, weight, at = values[i], weights[i], i
            while at >= gap and values[at - gap] > value:
                values[at], weights[at] = values[at - gap], weights[at - gap]
                at -= gap
            values[at], weights[at] = value, weight
        gap //= 3
    passed = 0.0
    for i in range(count):
        passed += weights[i]
        if 2.0 * passed >= total:
            return float(values[i])
    return float(values[count - 1])
