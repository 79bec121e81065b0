"""Cells that keep whole lists of few terms: sorted flat arrays, for the variant `sampled`.

An entry is one number: tag (16 bits), 65,535 less the count (16), document (32). In rising order these are by tag, then
by falling count, then by document. Of one tag a cell keeps the `top` first entries, and when it is full it lets the
last entry go. So a cell holds the complete top K of the terms whose tags are small there; a term's tag differs from row
to row, so each row samples other terms. `limits` says from which tag on something was let go: below it a cell is
complete.

Differs from the paper: all of it is ours, in the paper's 8 bytes an entry. Counts above 65,535 are kept as 65,535.
"""

import numpy as np

from foltr._kernels.rtk_samples import MOST_COUNT
from foltr.types import Array

NO_LIMIT = 65_536


def unpack(entries: Array) -> tuple[Array, Array, Array]:
    """Documents, counts and tags."""
    counts = MOST_COUNT - (entries >> np.uint64(32) & np.uint64(MOST_COUNT)).astype(np.int32)
    return entries.astype(np.uint32).astype(np.int32), counts, (entries >> np.uint64(48)).astype(np.uint16)
