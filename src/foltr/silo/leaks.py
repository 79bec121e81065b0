"""What the answers and questions of S3 give away: attacks that need nothing but what their reader is sent.

    differences   `paper` adds one draw to all cells of an answer, so it is gone from every difference: differences of
                  counts are exact, whatever epsilon says.
    undone        where most cells asked for are empty, the most frequent value of an answer IS the draw: counts are
                  exact.
    fits, named   an owner has the hash key: of a vocabulary, the words that have at least z1 of the columns asked for.
                  From z1 = 5 on it is as a rule the term alone (`anonymity`).

Against `cells` and `once` the first two find noise. Naming a term does not depend on the owner's noise.

Differs from the paper: it states that both sides are protected.
"""

from collections.abc import Sequence

import numpy as np

from foltr.errors import SpecError
from foltr.silo.hashing import Family, hash_terms
from foltr.types import Array

_PRECISE = 6  # decimals: what adding and taking away again leaves of a whole number


def differences(answer: Array) -> Array:
    """[z - 1] by how much each cell exceeds the first."""
    return np.round(np.diff(answer, prepend=answer[:1])[1:].cumsum(), _PRECISE)


def undone(answer: Array) -> Array:
    """[z] cells less the value that most of them have; equal to the owner's own where that one was 0."""
    gaps = np.round(answer - answer[0], _PRECISE)
    values, often = np.unique(gaps, return_counts=True)
    return gaps - values[often.argmax()]


def fits(columns: Array, vocabulary: Sequence[str], family: Family) -> Array:
    """[words] in how many rows a word's column is the one asked for."""
    if len(columns) != family.rows:
        raise SpecError(f"a question of {len(columns)} columns, hashes of {family.rows} rows; use the same family")
    return (hash_terms(vocabulary, family).columns == columns).sum(axis=1)


def named(columns: Array, vocabulary: Sequence[str], family: Family, *, true_rows: int) -> list[str]:
    """Words that fit a question with at least z1 true rows, the best fitting first."""
    rows = fits(columns, vocabulary, family)
    order = np.argsort(-rows, kind="stable")
    return [vocabulary[place] for place in order if rows[place] >= true_rows]
