"""What a set of masked vectors determines about the vectors below the masks: linear algebra over formal symbols.

A masked vector is a form x_i + b_i + sum of +-m_ij. Masks that the adversary cannot compute are independent and uniform
in the ring of integers modulo 2^bits, so of the honest vectors it learns the combinations whose masks cancel, and
nothing else: {a X : a M = 0 modulo 2^bits}, with X the coefficients of vectors and M those of unknown masks, one row
for each masked vector.

Two fields decide the ring. If M has the same rank over the rationals and over the field of two elements, then its left
kernel modulo 2^bits is the reduction of its integer kernel, and what is determined is what the rational kernel gives.
If each mask stands in at most two rows, with opposite signs (no client answered `mask` twice), M is a network matrix
and the ranks agree; `determined` computes both. A prime of 61 bits stands for the rationals: minors of M are far below.

A symbol is a bit: vectors first, masks above. Coefficients are 0, +1 and -1.
"""

from collections.abc import Iterable
from typing import NamedTuple

PRIME = 2**61 - 1


class Form(NamedTuple):
    plus: int  # bits of the symbols with coefficient +1
    minus: int  # with coefficient -1


class Determined(NamedTuple):
    """Bases, in echelon form, of the combinations of vectors that a view determines."""

    parity: tuple[int, ...]  # over two elements: bits of the vectors with an odd coefficient
    rational: tuple[tuple[tuple[int, int], ...], ...]  # (vector, coefficient modulo PRIME), sorted
    same_rank: bool  # of the unknown masks over both fields


def parities(rows: Iterable[int], vectors: int) -> list[int]:
    """Over two elements: a basis of the combinations of the first `vectors` symbols in the span of the rows."""
    return _reduced(_split(rows, vectors)[0])


def determined(forms: Iterable[Form], vectors: int) -> Determined:
    """The combinations of the first `vectors` symbols in the span; known masks are left out of the forms before."""
    forms = list(forms)
    pure, rank = _split([form.plus | form.minus for form in forms], vectors)
    left, prime_rank = _eliminated([_coefficients(form) for form in forms], vectors)
    return Determined(tuple(_reduced(pure)), tuple(tuple(sorted(row.items())) for row in left), rank == prime_rank)


def _split(rows: Iterable[int], vectors: int) -> tuple[list[int], int]:
    """What is left without masks, and the rank of the masks."""
    pivots: list[tuple[int, int]] = []
    pure: list[int] = []
    for row in rows:
        for bit, pivot in pivots:
            if row & bit:
                row ^= pivot
        masks = row >> vectors
        if masks:
            pivots.append(((masks & -masks) << vectors, row))
        elif row:
            pure.append(row)
    return pure, len(pivots)


def _reduced(rows: Iterable[int]) -> list[int]:
    """Reduced echelon form over two elements."""
    basis: list[int] = []
    for row in rows:
        for pivot in basis:
            row = min(row, row ^ pivot)
        if row:
            basis = [min(pivot, pivot ^ row) if pivot & (1 << row.bit_length() - 1) else pivot for pivot in basis]
            basis = sorted([*basis, row], reverse=True)
    return basis


def _coefficients(form: Form) -> dict[int, int]:
    return dict.fromkeys(_bits(form.plus), 1) | dict.fromkeys(_bits(form.minus), PRIME - 1)


def _bits(number: int) -> Iterable[int]:
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


def _eliminated(rows: list[dict[int, int]], vectors: int) -> tuple[list[dict[int, int]], int]:
    """Gauss-Jordan modulo PRIME: first the masks, then the vectors of the rows that have none left."""
    with_masks = _pivoted(rows, lambda symbol: symbol >= vectors)
    pure = [row for row, pivot in with_masks if pivot is None and row]
    found = [row for row, pivot in _pivoted(pure, lambda _: True) if pivot is not None]
    return found, sum(pivot is not None for _, pivot in with_masks)


def _pivoted(rows, eligible) -> list[tuple[dict[int, int], int | None]]:
    rows, pivots = [dict(row) for row in rows], [None] * len(rows)
    for place, row in enumerate(rows):
        pivot = min((symbol for symbol in row if eligible(symbol)), default=None)
        pivots[place] = pivot
        if pivot is not None:
            inverse = pow(row[pivot], -1, PRIME)
            rows[place] = scaled = {symbol: value * inverse % PRIME for symbol, value in row.items()}
            for other in range(len(rows)):
                if other != place and pivot in rows[other]:
                    rows[other] = _minus(rows[other], scaled, rows[other][pivot])
    return list(zip(rows, pivots, strict=True))


def _minus(row: dict[int, int], pivot: dict[int, int], factor: int) -> dict[int, int]:
    every = row.keys() | pivot.keys()
    changed = {symbol: (row.get(symbol, 0) - factor * pivot.get(symbol, 0)) % PRIME for symbol in every}
    return {symbol: value for symbol, value in changed.items() if value}
