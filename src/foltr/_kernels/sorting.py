"""Sorting and medians in machine code, in the caller's buffers: Shell sort with Knuth's increments."""

from foltr._kernels.compile import callee
from foltr.types import Array


@callee
def sort(values: Array, count: int) -> None:
    """The first `count` values in rising order."""
    increment = 1
    while 3 * increment + 1 < count:
        increment = 3 * increment + 1
    while increment > 0:
        for i in range(increment, count):
            value, at = values[i], i
            while at >= increment and values[at - increment] > value:
                values[at] = values[at - increment]
                at -= increment
            values[at] = value
        increment //= 3


@callee
def median(values: Array, count: int) -> float:
    """Median of the first `count` values, which get sorted; of an even number the mean of the two central ones."""
    sort(values, count)
    return 0.5 * (values[(count - 1) // 2] + values[count // 2])


@callee
def weighted_median(values: Array, weights: Array, count: int) -> float:
    """The smallest value that at least half of the weight does not exceed. Sorts both by value."""
    increment, total = 1, 0.0
    for i in range(count):
        total += weights[i]
    while 3 * increment + 1 < count:
        increment = 3 * increment + 1
    while increment > 0:
        for i in range(increment, count):
            value, weight, at = values[i], weights[i], i
            while at >= increment and values[at - increment] > value:
                values[at], weights[at] = values[at - increment], weights[at - increment]
                at -= increment
            values[at], weights[at] = value, weight
        increment //= 3
    passed = 0.0
    for i in range(count):
        passed += weights[i]
        if 2.0 * passed >= total:
            return float(values[i])
    return float(values[count - 1])
