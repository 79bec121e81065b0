"""Random numbers of whole vectors: what `rng` makes of the same words."""

from typing import Any

from llvmlite import ir

from foltr._kernels.simd.elementary import minus_log
from foltr._kernels.simd.lanes import DOUBLE, constant, words
from foltr.rng import FIRST_FACTOR, SECOND_FACTOR

_ONE = 1 << 53


def uniform(builder: Any, word: Any) -> Any:
    """Numbers u in [0, 1), as `rng.uniform_at` has them."""
    return _unit(builder, _mixed(builder, word))


def exponential(builder: Any, word: Any) -> Any:
    """-log(1 - u) of the same numbers."""
    return minus_log(builder, _unit(builder, builder.sub(words(_ONE, word.type.count), _mixed(builder, word))))


def _mixed(builder: Any, word: Any) -> Any:
    """53 digits, as `rng.mix` makes them."""
    size = word.type.count
    for shift, factor in ((30, FIRST_FACTOR), (27, SECOND_FACTOR)):
        word = builder.mul(builder.xor(word, builder.lshr(word, words(shift, size))), words(factor, size))
    word = builder.xor(word, builder.lshr(word, words(31, size)))
    return builder.lshr(word, words(11, size))


def _unit(builder: Any, digits: Any) -> Any:
    size = digits.type.count
    return builder.fmul(builder.sitofp(digits, ir.VectorType(DOUBLE, size)), constant(1 / _ONE, size))
