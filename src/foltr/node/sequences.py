"""Word sequences of documents as compressed bytes.

Words are numbered in the order in which they were first seen, so that frequent words have small numbers. A number takes
as many bytes as the largest of its sequence needs; zlib finds the repeated phrases (bytes in planes, all low ones
first, are 15 % larger and no faster).
"""

import zlib

import numpy as np

from foltr.text.fields import FIELDS
from foltr.types import Array

_LEVEL = 3
_HEADER = 4 * len(FIELDS) + 1


def encode(words: Array, lengths: Array) -> bytes:
    """`words` [total] of all fields one after the other, `lengths` [fields] words of each field."""
    words = np.ascontiguousarray(words, dtype="<u4")
    width = 1 if not len(words) else max(1, (int(words.max()).bit_length() + 7) // 8)
    by_byte = words.view(np.uint8).reshape(-1, 4)[:, :width]  # [total, width], the lowest byte first
    header = np.asarray(lengths, dtype="<u4").tobytes() + bytes([width])
    return header + zlib.compress(by_byte.tobytes(), _LEVEL)


def decode(content: bytes) -> tuple[Array, Array]:
    """Words [total] int32 and lengths [fields]."""
    lengths = np.frombuffer(content, dtype="<u4", count=len(FIELDS)).astype(np.int64)
    width = content[_HEADER - 1]
    by_byte = np.frombuffer(zlib.decompress(memoryview(content)[_HEADER:]), np.uint8).reshape(-1, width)
    words = np.zeros(len(by_byte), "<u4")
    out = words.view(np.uint8).reshape(-1, 4)
    for i in range(width):  # column by column: three times as fast as all at once
        out[:, i] = by_byte[:, i]
    return words.view("<i4"), lengths
