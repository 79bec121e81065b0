"""Word sequences of documents as compressed bytes.

Words are numbered in the order in which they were first seen, so that frequent words have small numbers. A sequence is
stored as planes (all low bytes, all second bytes, ...), as many as its largest number needs: the upper planes compress
to little.
"""

import zlib

import numpy as np

from foltr.text.fields import FIELDS
from foltr.types import Array

_LEVEL = 1  # level 6 takes four times as long for 4 % less
_HEADER = 4 * len(FIELDS) + 1


def encode(words: Array, lengths: Array) -> bytes:
    """`words` [total] of all fields one after the other, `lengths` [fields] words of each field."""
    words = np.ascontiguousarray(words, dtype="<u4")
    width = 1 if not len(words) else max(1, (int(words.max()).bit_length() + 7) // 8)
    planes = words.view(np.uint8).reshape(-1, 4)[:, :width].T  # [width, total]
    header = np.asarray(lengths, dtype="<u4").tobytes() + bytes([width])
    return header + zlib.compress(planes.tobytes(), _LEVEL)


def decode(content: bytes) -> tuple[Array, Array]:
    """Words [total] int32 and lengths [fields]."""
    lengths = np.frombuffer(content, dtype="<u4", count=len(FIELDS)).astype(np.int64)
    width = content[_HEADER - 1]
    planes = np.frombuffer(zlib.decompress(memoryview(content)[_HEADER:]), np.uint8).reshape(width, -1)
    words = planes[0].astype(np.int32)
    for i in range(1, width):
        words |= planes[i].astype(np.int32) << (8 * i)
    return words, lengths
