"""The exponential and what is made of it, for kernels."""

import math

import numpy as np

from foltr._kernels.compile import inlined
from foltr._kernels.simd.elementary import LN2_HIGH, LN2_LOW, LOG2_E


@inlined
def exp_of_nonpositive(x: float) -> float:
    """exp(x) for x <= 0 to the last digit or so, in a form that processors can do several at a time."""
    x = max(x, -708.0)
    k = math.floor(x * LOG2_E + 0.5)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    series = 1.0 / 479001600.0
    series = series * r + 1.0 / 39916800.0
    series = series * r + 1.0 / 3628800.0
    series = series * r + 1.0 / 362880.0
    series = series * r + 1.0 / 40320.0
    series = series * r + 1.0 / 5040.0
    series = series * r + 1.0 / 720.0
    series = series * r + 1.0 / 120.0
    series = series * r + 1.0 / 24.0
    series = series * r + 1.0 / 6.0
    series = series * r + 0.5
    series = series * r + 1.0
    series = series * r + 1.0
    power = np.int64((np.int64(k) + 1023) << 52).view(np.float64)  # 2^k by its bits
    return series * power


@inlined
def sigmoid(x: float) -> float:
    small = exp_of_nonpositive(-abs(x))
    return (1.0 if x >= 0.0 else small) / (1.0 + small)
