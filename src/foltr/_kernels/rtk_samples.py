"""Sorted cells that store whole lists of few terms; see `silo.rtk_samples`."""

import numpy as np

from foltr._kernels.compile import callee, inlined, kernel
from foltr.types import Array

MOST_COUNT = 65_535


@kernel
def add_to_samples(
    entries: Array,  # [z, w, room] uint64
    sizes: Array,
    limits: Array,
    top: int,
    offsets: Array,  # [added + 1]
    terms: Array,
    amounts: Array,
    numbers: Array,  # [added] of the documents
    columns: Array,
    tags: Array,
) -> None:
    """Enters every term of every document in one cell of each row."""
    for added in range(numbers.size):
        for entry in range(offsets[added], offsets[added + 1]):
            term = terms[entry]
            for row in range(sizes.shape[0]):
                column, tag = columns[term, row], tags[term, row]
                packed = pack(tag, amounts[entry], numbers[added])
                cell, size = entries[row, column], sizes[row, column]
                if size == cell.size and tag > tag_of(cell[size - 1]):
                    limits[row, column] = min(limits[row, column], tag)
                    continue
                place = before(cell, size, packed)
                end = before(cell, size, pack(tag, 0, 0) | np.uint64(0xFFFFFFFF)) - 1  # the tag's last entry
                if end + 1 < top or tag_of(cell[end + 1 - top]) != tag:  # the tag has room: the cell's last one goes
                    end = min(size, cell.size - 1)
                    if size == cell.size:
                        limits[row, column] = min(limits[row, column], tag_of(cell[end]))
                    sizes[row, column] = end + 1
                for at in range(end, place, -1):
                    cell[at] = cell[at - 1]
                if place <= end:
                    cell[place] = packed


@kernel
def delete_from_samples(entries: Array, sizes: Array, number: int) -> None:
    rows, width = sizes.shape
    for row in range(rows):
        for column in range(width):
            cell, left = entries[row, column], 0
            for place in range(sizes[row, column]):
                if cell[place] & np.uint64(0xFFFFFFFF) != np.uint64(number):
                    cell[left] = cell[place]
                    left += 1
            sizes[row, column] = left


@inlined
def pack(tag: int, count: int, number: int) -> np.uint64:
    rest = MOST_COUNT - min(count, MOST_COUNT)
    return (np.uint64(tag) << np.uint64(48)) | (np.uint64(rest) << np.uint64(32)) | np.uint64(number)


@inlined
def tag_of(packed: np.uint64) -> int:
    return int(packed >> np.uint64(48))


@callee
def before(cell: Array, size: int, packed: np.uint64) -> int:
    """How many entries are smaller."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if cell[middle] < packed:
            low = middle + 1
        else:
            high = middle
    return low
