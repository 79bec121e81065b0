"""Word sequences of documents as bytes.

Words are numbered in the order in which they were first seen, so that frequent words have small numbers: a number takes
two bytes, and the few beyond stand at the end with four. Not compressed: zlib would halve them, but a query reads a
hundred sequences, and unpacking took most of that time.
"""

from collections.abc import Iterable

import numpy as np

from foltr.text.fields import FIELDS, Tokens
from foltr.types import Array

_BEYOND = 0xFFFF  # in place of a number that needs four bytes
_HEADER = 4 * len(FIELDS)


def encode(words: Array, lengths: Array) -> bytes:
    """`words` [total] of all fields one after the other, `lengths` [fields] words of each field."""
    words = np.asarray(words)
    small = np.minimum(words, _BEYOND).astype("<u2")
    return np.asarray(lengths, "<u4").tobytes() + small.tobytes() + words[words >= _BEYOND].astype("<u4").tobytes()


def decode(content: bytes) -> tuple[Array, Array]:
    """Words [total] int32 and lengths [fields]."""
    lengths = np.frombuffer(content, "<u4", len(FIELDS)).astype(np.int64)
    small = np.frombuffer(content, "<u2", int(lengths.sum()), _HEADER)
    words = small.astype(np.int32)
    beyond = np.frombuffer(content, "<u4", offset=_HEADER + small.nbytes)
    if len(beyond):
        words[small == _BEYOND] = beyond
    return words, lengths


def joined(decoded: Iterable[tuple[Array, Array]]) -> Tokens:
    """Sequences of several documents, one after the other."""
    every = list(decoded)
    lengths = np.concatenate([np.zeros(1, np.int64), *(lengths for _, lengths in every)])
    return Tokens(np.concatenate([np.zeros(0, np.int32), *(words for words, _ in every)]), np.cumsum(lengths))
