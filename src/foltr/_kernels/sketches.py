"""Hashes of terms and count sketches in machine code: the kernels of `foltr.silo.sketches`."""

import numpy as np

from foltr._kernels.compile import kernel
from foltr._kernels.rng import mix
from foltr._kernels.sorting import median
from foltr.types import Array


@kernel
def mix_rows(digests: Array, words: Array) -> None:
    """words [terms, z]: 64 bits for every row, from one digest a term."""
    for term in range(words.shape[0]):
        for row in range(words.shape[1]):
            words[term, row] = mix(mix(digests[term] + np.uint64(row + 1) * np.uint64(0x9E3779B97F4A7C15)))


@kernel
def split_bits(words: Array, width: int, columns: Array, signs: Array, tags: Array) -> None:
    """The high half gives the column, the low half sign and tag: they share no bit."""
    for term in range(words.shape[0]):
        for row in range(words.shape[1]):
            word = words[term, row]
            columns[term, row] = ((word >> np.uint64(32)) * np.uint64(width)) >> np.uint64(32)
            signs[term, row] = 1 if word & np.uint64(1) else -1
            tags[term, row] = (word >> np.uint64(1)) & np.uint64(0xFFFF)


@kernel
def add_counts(offsets: Array, terms: Array, counts: Array, columns: Array, signs: Array, cells: Array) -> None:
    for document in range(offsets.size - 1):
        for entry in range(offsets[document], offsets[document + 1]):
            term = terms[entry]
            for row in range(columns.shape[1]):
                cells[document, row, columns[term, row]] += signs[term, row] * counts[entry]


@kernel
def row_medians(cells: Array, columns: Array, signs: Array, workspace: Array, estimates: Array) -> None:
    rows = columns.shape[1]
    for document in range(cells.shape[0]):
        for term in range(columns.shape[0]):
            for row in range(rows):
                workspace[row] = signs[term, row] * cells[document, row, columns[term, row]]
            estimates[document, term] = median(workspace, rows)


@kernel
def row_minima(cells: Array, columns: Array, estimates: Array) -> None:
    for document in range(cells.shape[0]):
        for term in range(columns.shape[0]):
            smallest = cells[document, 0, columns[term, 0]]
            for row in range(1, columns.shape[1]):
                smallest = min(smallest, cells[document, row, columns[term, row]])
            estimates[document, term] = smallest
