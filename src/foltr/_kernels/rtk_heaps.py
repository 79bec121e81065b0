"""Bounded min-heaps in flat arrays; see `silo.rtk_heaps`."""

import numpy as np

from foltr._kernels.compile import callee, inlined, kernel
from foltr._kernels.rng import mix
from foltr.types import Array


@kernel
def add_to_heaps(
    entries: Array,  # [z, w, room] int64
    sizes: Array,
    both_ends: bool,
    offsets: Array,  # [added + 1]
    terms: Array,
    amounts: Array,
    numbers: Array,  # [added] of the documents
    columns: Array,
    signs: Array,
    table: Array,  # [z, w] int64 zeros: room for the sketch of one document
) -> None:
    """Every document enters every cell with what its own sketch has there; `both_ends` leaves out zeros."""
    rows, width = sizes.shape
    for added in range(numbers.size):
        for entry in range(offsets[added], offsets[added + 1]):
            term = terms[entry]
            for row in range(rows):
                table[row, columns[term, row]] += signs[term, row] * amounts[entry]
        for row in range(rows):
            for column in range(width):
                count = table[row, column]
                table[row, column] = 0
                if count != 0 or not both_ends:
                    entry = (count << 32) | numbers[added]
                    size = sizes[row, column]
                    sizes[row, column] = push(entries[row, column], size, entry, both_ends, row * width + column)


@kernel
def delete_from_heaps(entries: Array, sizes: Array, both_ends: bool, number: int) -> None:
    rows, width = sizes.shape
    for row in range(rows):
        for column in range(width):
            heap = entries[row, column]
            for place in range(sizes[row, column]):
                if heap[place] & 0xFFFFFFFF == number:
                    sizes[row, column] -= 1
                    last = sizes[row, column]
                    heap[place] = heap[last]
                    if place < last:
                        rise(heap, place, both_ends, row * width + column)
                        sink(heap, place, last, both_ends, row * width + column)
                    break


@callee
def push(heap: Array, size: int, entry: int, both_ends: bool, cell: int) -> int:
    """Enters one entry; a full cell loses its least. Returns how many there are now."""
    if size < heap.size:
        heap[size] = entry
        rise(heap, size, both_ends, cell)
        return size + 1
    if less(heap[0], entry, both_ends, cell):
        heap[0] = entry
        sink(heap, 0, size, both_ends, cell)
    return size


@callee
def rise(heap: Array, place: int, both_ends: bool, cell: int) -> None:
    while place > 0:
        above = (place - 1) // 2
        if not less(heap[place], heap[above], both_ends, cell):
            break
        heap[place], heap[above] = heap[above], heap[place]
        place = above


@callee
def sink(heap: Array, place: int, size: int, both_ends: bool, cell: int) -> None:
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and less(heap[below + 1], heap[below], both_ends, cell):
            below += 1
        if not less(heap[below], heap[place], both_ends, cell):
            break
        heap[place], heap[below] = heap[below], heap[place]
        place = below


@inlined
def less(entry: int, other: int, both_ends: bool, cell: int) -> bool:
    weight, other_weight = entry >> 32, other >> 32
    if both_ends:
        weight, other_weight = abs(weight), abs(other_weight)
    if weight != other_weight:
        return weight < other_weight
    return bool(tie_order(entry & 0xFFFFFFFF, cell) < tie_order(other & 0xFFFFFFFF, cell))


@inlined
def tie_order(number: int, cell: int) -> np.uint64:
    """A different order of the documents in every cell."""
    return mix(np.uint64(number) ^ (np.uint64(cell) << np.uint64(32)))
