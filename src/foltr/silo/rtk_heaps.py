"""Cells that keep the largest counts: bounded min-heaps in flat arrays, for the variants `paper` and `sound`.

Source: S3 algorithm 4 and "Delete" in section V-B. An entry is one number: count (32 bits, signed), document (32). The
least entry of a cell is its first. A cell weighs an entry by its count (`paper`), or by the size of its count whatever
the sign (`both_ends`).

Differs from the paper: it leaves open which of two equal counts goes. Here the cell's number mixed with the document
decides, so that what a cell keeps does not depend on the order of insertion, and other cells keep other documents.
"""

import numpy as np

from foltr.types import Array


def unpack(entries: Array) -> tuple[Array, Array]:
    """Documents and counts."""
    return entries.astype(np.int32), (entries >> 32).astype(np.int32)
