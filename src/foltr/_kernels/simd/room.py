"""Arrays for kernels to work in."""

import math

import numpy as np

from foltr.types import Array

LINE = 64  # bytes of the processor's cache that move together


def room(*shape: int, kind: type = np.float64) -> Array:
    """Zeros that begin on a line of the cache and share none with other arrays: threads stay out of each other's way.

    What follows the array up to the end of its last line is its own as well.
    """
    size = math.prod(shape) * np.dtype(kind).itemsize
    whole = np.zeros(-(-size // LINE) * LINE + LINE, np.uint8)
    begin = -whole.ctypes.data % LINE
    return whole[begin : begin + size].view(kind).reshape(shape)
