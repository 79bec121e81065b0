"""Reverse top-K sketches in machine code: the kernels of `foltr.silo.rtk`.

A cell is a stretch of numbers, one an entry:

    heap      count (32 bits, signed), document (32): a bounded min-heap, the least entry first. An entry weighs as
              much as its count, or with `both_ends` as its count's magnitude.
    sample    tag (16 bits), 65,535 less the count (16), document (32): sorted, so by tag, then by falling count, then
              by document. Of one tag a cell stores the `top` first entries; a full cell drops its last one. `limits`
              is the smallest tag of which something was dropped: below it a cell is complete.

Equal counts of a heap are ordered by the cell's number mixed with the document, so that what a cell stores does not
depend on the order of insertion, and other cells store other documents.
"""

from typing import NamedTuple

import numpy as np

from foltr._kernels.compile import inlined, kernel
from foltr._kernels.rng import mix
from foltr._kernels.sorting import median
from foltr.types import Array

MAX_COUNT = 65_535  # of an entry of a sample
NO_LIMIT = 65_536


class Table(NamedTuple):
    """The cells of a sketch."""

    entries: Array  # [z, w, capacity] int64 of heaps, uint64 of samples
    sizes: Array  # [z, w] int32
    limits: Array  # [z, w] int32; of samples


class Added(NamedTuple):
    """Documents to enter, by the numbers of their terms."""

    offsets: Array  # [added + 1]
    terms: Array  # [entries]
    counts: Array  # [entries]
    numbers: Array  # [added] int32 of the documents


class Lists(NamedTuple):
    """One cell of every row, as an owner answered."""

    documents: Array  # [z, capacity] int32
    counts: Array  # [z, capacity]
    sizes: Array  # [z] int32


class Votes(NamedTuple):
    """Votes of the cells on each document that is in any."""

    documents: Array  # [seen] int32
    rows: Array  # [seen] int32 cells that list it
    agreement: Array  # [seen] int32: rows of positive sign less rows of negative sign
    total: Array  # [seen] sum of signed counts
    median: Array  # [seen] of signed counts


class Workspace(NamedTuple):
    slots: Array  # an open hash table of places in the votes; -1: free
    last: Array  # [entries] the last row that listed a document; -1: none
    places: Array  # [entries] the document's place; -1: its row listed it before
    values: Array  # [entries] signed counts
    gathered: Array  # [entries] the same, by document


@kernel
def add_to_heaps(table: Table, both_ends: bool, added: Added, columns: Array, signs: Array, sums: Array) -> None:
    """Every document enters every cell with its own sketch's count there; `both_ends` leaves out zeros.

    sums [z, w] int64: zeros, workspace for the sketch of one document.
    """
    rows, width = table.sizes.shape
    for document in range(added.numbers.size):
        for entry in range(added.offsets[document], added.offsets[document + 1]):
            term = added.terms[entry]
            for row in range(rows):
                sums[row, columns[term, row]] += signs[term, row] * added.counts[entry]
        for row in range(rows):
            for column in range(width):
                count = sums[row, column]
                sums[row, column] = 0
                if count != 0 or not both_ends:
                    packed = (count << 32) | added.numbers[document]
                    size, cell = table.sizes[row, column], row * width + column
                    table.sizes[row, column] = _push(table.entries[row, column], size, packed, both_ends, cell)


@kernel
def delete_from_heaps(table: Table, both_ends: bool, number: int) -> None:
    rows, width = table.sizes.shape
    for row in range(rows):
        for column in range(width):
            heap = table.entries[row, column]
            for place in range(table.sizes[row, column]):
                if heap[place] & 0xFFFFFFFF == number:
                    table.sizes[row, column] -= 1
                    last = table.sizes[row, column]
                    heap[place] = heap[last]
                    if place < last:
                        _rise(heap, place, both_ends, row * width + column)
                        _sink(heap, place, last, both_ends, row * width + column)
                    break


@kernel
def _push(heap: Array, size: int, entry: int, both_ends: bool, cell: int) -> int:
    """Enters one entry; a full cell drops its least. Returns the new size."""
    if size < heap.size:
        heap[size] = entry
        _rise(heap, size, both_ends, cell)
        return size + 1
    if _less(heap[0], entry, both_ends, cell):
        heap[0] = entry
        _sink(heap, 0, size, both_ends, cell)
    return size


@kernel
def _rise(heap: Array, place: int, both_ends: bool, cell: int) -> None:
    while place > 0:
        above = (place - 1) // 2
        if not _less(heap[place], heap[above], both_ends, cell):
            break
        heap[place], heap[above] = heap[above], heap[place]
        place = above


@kernel
def _sink(heap: Array, place: int, size: int, both_ends: bool, cell: int) -> None:
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and _less(heap[below + 1], heap[below], both_ends, cell):
            below += 1
        if not _less(heap[below], heap[place], both_ends, cell):
            break
        heap[place], heap[below] = heap[below], heap[place]
        place = below


@inlined
def _less(entry: int, other: int, both_ends: bool, cell: int) -> bool:
    weight, other_weight = entry >> 32, other >> 32
    if both_ends:
        weight, other_weight = abs(weight), abs(other_weight)
    if weight != other_weight:
        return weight < other_weight
    return bool(_tie_order(entry & 0xFFFFFFFF, cell) < _tie_order(other & 0xFFFFFFFF, cell))


@inlined
def _tie_order(number: int, cell: int) -> np.uint64:
    """A different order of the documents in every cell."""
    return mix(np.uint64(number) ^ (np.uint64(cell) << np.uint64(32)))


@kernel
def add_to_samples(table: Table, top: int, added: Added, columns: Array, tags: Array) -> None:
    """Enters every term of every document in one cell of each row."""
    for document in range(added.numbers.size):
        for entry in range(added.offsets[document], added.offsets[document + 1]):
            term = added.terms[entry]
            for row in range(table.sizes.shape[0]):
                column, tag = columns[term, row], tags[term, row]
                packed = pack(tag, added.counts[entry], added.numbers[document])
                cell, size = table.entries[row, column], table.sizes[row, column]
                if size == cell.size and tag > tag_of(cell[size - 1]):
                    table.limits[row, column] = min(table.limits[row, column], tag)
                    continue
                place = _before(cell, size, packed)
                end = _before(cell, size, pack(tag, 0, 0) | np.uint64(0xFFFFFFFF)) - 1  # the tag's last entry
                # fewer than `top` of this tag: the cell grows, or drops its last entry where it is full
                if end + 1 < top or tag_of(cell[end + 1 - top]) != tag:
                    end = min(size, cell.size - 1)
                    if size == cell.size:
                        table.limits[row, column] = min(table.limits[row, column], tag_of(cell[end]))
                    table.sizes[row, column] = end + 1
                for at in range(end, place, -1):
                    cell[at] = cell[at - 1]
                if place <= end:
                    cell[place] = packed


@kernel
def delete_from_samples(table: Table, number: int) -> None:
    rows, width = table.sizes.shape
    for row in range(rows):
        for column in range(width):
            cell, left = table.entries[row, column], 0
            for place in range(table.sizes[row, column]):
                if cell[place] & np.uint64(0xFFFFFFFF) != np.uint64(number):
                    cell[left] = cell[place]
                    left += 1
            table.sizes[row, column] = left


@inlined
def pack(tag: int, count: int, number: int) -> np.uint64:
    rest = MAX_COUNT - min(count, MAX_COUNT)
    return (np.uint64(tag) << np.uint64(48)) | (np.uint64(rest) << np.uint64(32)) | np.uint64(number)


@inlined
def tag_of(packed: np.uint64) -> int:
    return int(packed >> np.uint64(48))


@kernel
def _before(cell: Array, size: int, packed: np.uint64) -> int:
    """Number of entries that are smaller."""
    low, high = 0, size
    while low < high:
        half = (low + high) // 2
        if cell[half] < packed:
            low = half + 1
        else:
            high = half
    return low


@kernel
def tally(lists: Lists, signs: Array, workspace: Workspace, votes: Votes) -> int:
    """Gathers the entries by document; returns how many documents there are."""
    slots, last = workspace.slots, workspace.last
    seen = entries = 0
    for row in range(lists.sizes.size):
        for at in range(lists.sizes[row]):
            number = lists.documents[row, at]
            slot = (number * 0x9E3779B1) & (slots.size - 1)
            while slots[slot] >= 0 and votes.documents[slots[slot]] != number:
                slot = (slot + 1) & (slots.size - 1)
            place = slots[slot]
            if place < 0:
                place = seen
                slots[slot], votes.documents[place] = place, number
                seen += 1
            workspace.places[entries] = -1
            if last[place] != row:
                last[place] = row
                value = float(signs[row]) * lists.counts[row, at]
                workspace.places[entries], workspace.values[entries] = place, value
                votes.rows[place] += 1
                votes.total[place] += value
                votes.agreement[place] += (value > 0) - (value < 0)
            entries += 1
    _take_medians(workspace, votes, seen, entries)
    return seen


@kernel
def _take_medians(workspace: Workspace, votes: Votes, seen: int, entries: int) -> None:
    """Of every document's values, brought side by side."""
    ends, end = workspace.last, 0
    for place in range(seen):
        ends[place] = end
        end += votes.rows[place]
    for entry in range(entries):
        place = workspace.places[entry]
        if place >= 0:
            workspace.gathered[ends[place]] = workspace.values[entry]
            ends[place] += 1
    for place in range(seen):
        count = votes.rows[place]
        votes.median[place] = median(workspace.gathered[ends[place] - count : ends[place]], count)
