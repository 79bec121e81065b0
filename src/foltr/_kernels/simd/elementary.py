"""exp, log, cosine and sine of whole vectors, of any number of lanes; exp and the sigmoid of single numbers.

All are right to the last digit or so.
"""

import functools
import math
from typing import Any

import numpy as np
from llvmlite import ir

from foltr._kernels.compile import inlined
from foltr._kernels.simd import lanes
from foltr._kernels.simd.lanes import WORD, constant, words

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.6931471803691238
LN2_LOW = 1.9082149292705877e-10
_LOWEST = -708.0  # below this exp is nothing
_EXP_TERMS = 13
_LOG_TERMS = 10
_TURN_TERMS = 9
_HALF_ROOT = 0x3FE6A09E667F3BCD  # the bits of the square root of 1/2
_WHOLE = 1.5 * 2.0**52  # added to a number, the sum's last digits are the number rounded


def exp_both_ways(builder: Any, x: Any) -> tuple[Any, Any]:
    """exp(x) and exp(-x) of what is not positive; 0 and 1e307 or so where x is too low or no number.

    2^k times a series for what is left; its even and odd terms serve both.
    """
    size = x.type.count
    like, fused = functools.partial(constant, lanes=size), lanes.fused(builder, x.type)
    high = lanes.higher(builder, x, like(_LOWEST))
    rounded = fused(high, like(LOG2_E), like(_WHOLE))
    k = builder.fsub(rounded, like(_WHOLE))
    left = fused(k, like(-LN2_LOW), fused(k, like(-LN2_HIGH), high))
    even, odd = _halves(builder, left, [1.0 / math.factorial(n) for n in range(_EXP_TERMS)])
    exponent, one = builder.shl(_words(builder, rounded), words(52, size)), words(1023 << 52, size)
    up, down = (builder.bitcast(move(one, exponent), x.type) for move in (builder.add, builder.sub))
    result = builder.fmul(builder.fadd(even, odd), up)
    result = builder.select(builder.fcmp_ordered(">=", x, like(_LOWEST)), result, like(0.0))
    return result, builder.fmul(builder.fsub(even, odd), down)


def minus_log(builder: Any, x: Any) -> Any:
    """Of positive numbers: -(k log 2 + 2 artanh((m - 1) / (m + 1))), where x = 2^k m and m is near 1."""
    size = x.type.count
    like, fused = functools.partial(constant, lanes=size), lanes.fused(builder, x.type)
    bits = _words(builder, x)
    k = builder.ashr(builder.sub(bits, words(_HALF_ROOT, size)), words(52, size))
    m = builder.bitcast(builder.sub(bits, builder.shl(k, words(52, size))), x.type)
    ratio = builder.fdiv(builder.fsub(m, like(1.0)), builder.fadd(m, like(1.0)))
    series = builder.fadd(
        *_halves(builder, builder.fmul(ratio, ratio), [-2.0 / (2 * n + 1) for n in range(_LOG_TERMS)])
    )
    power = builder.sitofp(k, x.type)
    return fused(power, like(-LN2_HIGH), fused(power, like(-LN2_LOW), builder.fmul(ratio, series)))


def cosine_and_sine(builder: Any, revolutions: Any) -> tuple[Any, Any]:
    """Of 2 pi times what is in [0, 1): a series for what is left beside whole quarters, which swap and turn signs."""
    size = revolutions.type.count
    like, fused = functools.partial(constant, lanes=size), lanes.fused(builder, revolutions.type)
    rounded = fused(revolutions, like(4.0), like(_WHOLE))
    left = fused(builder.fsub(rounded, like(_WHOLE)), like(-0.25), revolutions)
    angle = builder.fmul(left, like(2 * math.pi))
    square = builder.fmul(angle, angle)
    cosine, sine = (
        builder.fadd(*_halves(builder, square, [(-1) ** n / math.factorial(2 * n + odd) for n in range(_TURN_TERMS)]))
        for odd in (0, 1)
    )
    sine, quarters = builder.fmul(sine, angle), _words(builder, rounded)
    swapped = builder.icmp_signed("!=", builder.and_(quarters, words(1, size)), words(0, size))

    def signed(value: Any, half: Any) -> Any:
        sign = builder.shl(builder.and_(half, words(2, size)), words(62, size))
        return builder.bitcast(builder.xor(_words(builder, value), sign), revolutions.type)

    return (
        signed(builder.select(swapped, sine, cosine), builder.add(quarters, words(1, size))),
        signed(builder.select(swapped, cosine, sine), quarters),
    )


def _halves(builder: Any, x: Any, coefficients: list[float]) -> tuple[Any, Any]:
    """The even and the odd terms of a polynomial: two short chains of sums do not wait for each other."""
    fused, square = lanes.fused(builder, x.type), builder.fmul(x, x)

    def summed(terms: list[float]) -> Any:
        highest, *others = (constant(term, x.type.count) for term in reversed(terms))
        return functools.reduce(lambda total, term: fused(total, square, term), others, highest)

    return summed(coefficients[::2]), builder.fmul(summed(coefficients[1::2]), x)


def _words(builder: Any, x: Any) -> Any:
    return builder.bitcast(x, ir.VectorType(WORD, x.type.count))


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
