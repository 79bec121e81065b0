"""Counts of terms looked up in documents; see `text.counts`."""

from foltr._kernels.compile import kernel
from foltr.types import Array


@kernel
def look_up(offsets: Array, terms: Array, counts: Array, documents: Array, wanted: Array, found: Array) -> None:
    """Binary search in the terms of each document."""
    for row in range(documents.size):
        first, last = offsets[documents[row]], offsets[documents[row] + 1]
        for column in range(wanted.size):
            low, high = first, last
            while low < high:
                middle = (low + high) // 2
                if terms[middle] < wanted[column]:
                    low = middle + 1
                else:
                    high = middle
            if low < last and terms[low] == wanted[column]:
                found[row, column] = counts[low]
