"""Columns, signs and tags from 64-bit hashes; see `silo.hashing`."""

import numpy as np

from foltr._kernels.compile import kernel
from foltr._kernels.rng import mix
from foltr.types import Array


@kernel
def mix_rows(digests: Array, words: Array) -> None:
    for term in range(words.shape[0]):
        for row in range(words.shape[1]):
            words[term, row] = mix(mix(digests[term] + np.uint64(row + 1) * np.uint64(0x9E3779B97F4A7C15)))


@kernel
def cut(words: Array, width: int, columns: Array, signs: Array, tags: Array) -> None:
    """The high half says the column, the low half sign and tag: they share no bit."""
    for term in range(words.shape[0]):
        for row in range(words.shape[1]):
            word = words[term, row]
            columns[term, row] = ((word >> np.uint64(32)) * np.uint64(width)) >> np.uint64(32)
            signs[term, row] = 1 if word & np.uint64(1) else -1
            tags[term, row] = (word >> np.uint64(1)) & np.uint64(0xFFFF)
