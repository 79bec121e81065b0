"""Arrays on lines of the processor's cache."""

import math

import numpy as np

from foltr.types import Array

LINE = 64  # bytes of the processor's cache that move together


def aligned_zeros(*shape: int, dtype: type = np.float64) -> Array:
    """Zeros that begin on a line of the cache and share none with other arrays: threads do not slow each other down.

    The memory behind the array up to the end of its last line belongs to it as well.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.zeros(-(-size // LINE) * LINE + LINE, np.uint8)
    begin = -buffer.ctypes.data % LINE
    return buffer[begin : begin + size].view(dtype).reshape(shape)
