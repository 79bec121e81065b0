"""Votes of the cells of a reverse top-K query, gathered by document; see `silo.rtk_query`."""

from foltr._kernels.compile import callee, kernel
from foltr._kernels.sketch import median
from foltr.types import Array


@kernel
def tally(
    held: Array,
    counts: Array,
    sizes: Array,
    signs: Array,
    slots: Array,  # an open hash table of places in what follows; -1: free
    last: Array,  # [seen] the row that spoke last about a document; -1: none
    places: Array,  # [entries] the document's; -1: it spoke already
    values: Array,  # [entries] signed counts
    gathered: Array,  # [entries] the same, by document
    documents: Array,
    rows: Array,
    agreement: Array,
    total: Array,
    middle: Array,
) -> int:
    """Gathers the entries by document; returns how many documents there are."""
    seen = entries = 0
    for row in range(sizes.size):
        for at in range(sizes[row]):
            number = held[row, at]
            slot = (number * 0x9E3779B1) & (slots.size - 1)
            while slots[slot] >= 0 and documents[slots[slot]] != number:
                slot = (slot + 1) & (slots.size - 1)
            place = slots[slot]
            if place < 0:
                place = seen
                slots[slot], documents[place] = place, number
                seen += 1
            places[entries] = -1
            if last[place] != row:
                last[place] = row
                value = float(signs[row]) * counts[row, at]
                places[entries], values[entries] = place, value
                rows[place] += 1
                total[place] += value
                agreement[place] += (value > 0) - (value < 0)
            entries += 1
    fill_medians(places, values, rows, seen, entries, last, gathered, middle)
    return seen


@callee
def fill_medians(
    places: Array, values: Array, rows: Array, seen: int, entries: int, ends: Array, gathered: Array, middle: Array
) -> None:
    """Of every document's values, brought side by side."""
    end = 0
    for place in range(seen):
        ends[place] = end
        end += rows[place]
    for entry in range(entries):
        place = places[entry]
        if place >= 0:
            gathered[ends[place]] = values[entry]
            ends[place] += 1
    for place in range(seen):
        middle[place] = median(gathered[ends[place] - rows[place] : ends[place]], rows[place])
