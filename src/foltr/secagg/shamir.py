"""Shamir's secret sharing of 32-byte secrets: any `threshold` shares give the secret, fewer reveal nothing.

Source: Shamir, "How to share a secret" (1979). A secret is 16 words of 16 bits, each shared by its own polynomial over
the integers modulo 65537. All sums of products stay below 2^53, so they are one exact matrix product of doubles:
80 shares with threshold 50 take 0.1 ms, big integers modulo a 256-bit prime 1.3 ms.
2^32 - 1 is a multiple of 65537: 32 random bits other than all ones leave an exactly uniform remainder.

Differs from the paper: nothing.
"""

import os
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from foltr.errors import SecureAggregationError, SpecError
from foltr.types import Array

Random = Callable[[int], bytes]
PRIME = 65537
WORDS = 16  # of 16 bits, in a secret
SHARE = 2 * WORDS + 2  # bytes: the low 16 bits of each value, then one bit for each that is 65536
_MAX_SHARES = 4096  # keeps sums of products exact: 4096 x 65536^2 < 2^53


def share(secret: bytes, threshold: int, num_shares: int, random: Random = os.urandom) -> list[bytes]:
    """`num_shares` shares; share i is the value at the point i + 1. `random`: so many secret bytes."""
    if not 1 <= threshold <= num_shares <= _MAX_SHARES:
        raise SpecError(f"threshold {threshold} of {num_shares} shares; use 1 <= threshold <= shares <= {_MAX_SHARES}")
    if len(secret) != 2 * WORDS:
        raise SpecError(f"a secret of {len(secret)} bytes; use {2 * WORDS}")
    coefficients = np.vstack([np.frombuffer(secret, "<u2"), _uniform(threshold - 1, random)])  # [threshold, words]
    values = np.remainder(_powers(threshold, num_shares) @ coefficients.astype(np.float64), PRIME)  # [shares, words]
    return _as_bytes(values.astype(np.uint32))


def combine(shares: Mapping[int, bytes]) -> bytes:
    """The secret from shares by their number; as many as the threshold asks for."""
    points = np.array(list(shares), np.int64) + 1
    values = _from_bytes(list(shares.values())).astype(np.float64)  # [shares, words]
    secret = np.remainder(_weights(points) @ values, PRIME).astype(np.int64)
    if (secret > 0xFFFF).any():  # no secret has such a word
        raise SecureAggregationError("the shares are inconsistent: they give no secret")
    return secret.astype("<u2").tobytes()


def _uniform(rows: int, random: Random) -> Array:
    """Uniform values modulo the prime, [rows, words]."""
    wanted = rows * WORDS
    found = np.empty(0, np.uint32)
    while len(found) < wanted:
        words = np.frombuffer(random(4 * (wanted - len(found))), np.uint32)
        found = np.concatenate([found, words[words != 0xFFFFFFFF] % PRIME])
    return found.reshape(rows, WORDS)


@lru_cache(maxsize=64)
def _powers(threshold: int, num_shares: int) -> Array:
    """point^power modulo the prime, [shares, threshold]."""
    points = np.arange(1, num_shares + 1)
    columns = [np.ones(num_shares, np.int64)]
    for _ in range(threshold - 1):
        columns.append(columns[-1] * points % PRIME)
    return np.stack(columns, axis=1).astype(np.float64)


def _weights(points: Array) -> Array:
    """Lagrange's weights at zero: the product over the other points of other / (other - point)."""
    differences = (points[None, :] - points[:, None]) % PRIME  # [point, other]
    others = np.broadcast_to(points, differences.shape).copy()
    np.fill_diagonal(differences, 1)  # a point is not compared with itself
    np.fill_diagonal(others, 1)
    return (_product(others) * _inverse(_product(differences)) % PRIME).astype(np.float64)


def _product(rows: Array) -> Array:
    """Of each row, modulo the prime: halves are multiplied until one column is left."""
    while rows.shape[1] > 1:
        half = rows.shape[1] // 2
        rows = np.hstack([rows[:, :half] * rows[:, half : 2 * half] % PRIME, rows[:, 2 * half :]])
    return rows[:, 0]


def _inverse(values: Array) -> Array:
    """By Fermat's little theorem: value^(prime - 2), and prime - 2 is 1111111111111111 in binary."""
    power, result = values, np.ones_like(values)
    for _ in range(16):
        result = result * power % PRIME
        power = power * power % PRIME
    return result


def _as_bytes(values: Array) -> list[bytes]:
    low = (values & 0xFFFF).astype("<u2").view(np.uint8)  # the cut turns 65536 into 0
    whole = np.hstack([low, np.packbits(values == 0x10000, axis=1)]).tobytes()
    return [whole[k : k + SHARE] for k in range(0, len(whole), SHARE)]


def _from_bytes(shares: list[bytes]) -> Array:
    """[shares, words]"""
    if any(len(one) != SHARE for one in shares):
        raise SecureAggregationError(f"a share has {SHARE} bytes; one of these has another size")
    raw = np.frombuffer(b"".join(shares), np.uint8).reshape(len(shares), SHARE)
    low = raw[:, : 2 * WORDS].copy().view("<u2").astype(np.int64)
    return low + (np.unpackbits(raw[:, 2 * WORDS :], axis=1).astype(np.int64) << 16)
