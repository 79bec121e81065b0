"""Leakage of queries and answers of S3: the anonymity set of a query, and attacks on messages.

Source: S3 equation 4 and section IV-B step 3.

**Anonymity set.** A query shows one column of each of z rows; z1 of them are the term's, and only the asker knows
which. An owner has the hash key and can try every word of a vocabulary: a word is a candidate if at least z1 of its z
columns are those asked for. Another word has each column with probability 1 / w, so it is a candidate with the upper
tail of a binomial distribution, and of V words (V - 1) times as many are expected. Of 100,000 words (z = 30, w = 200):

    z1 = 2: 991      z1 = 3: 46      z1 = 4: 1.5      z1 = 5: .04

Below 1 the term is most likely identified. This holds for one query; an asker whose decoys change from query to query,
or from session to session, reveals the term by what stays the same, hence `protocol` sends the same columns for the
same term in all sessions of an epoch. A question to an index shows the keyed hash of the term: its set is empty.

**Attacks.**

    differences          `paper` adds one draw to all cells of an answer, so it cancels in every difference: differences
                         of counts are exact, whatever epsilon says.
    remove_shared_noise  where most cells asked for are empty, the mode of an answer is the draw: counts are exact.
    matching_rows,       an owner has the hash key: the words of a vocabulary that have at least z1 of the columns asked
    identify             for. From z1 = 5 on only the term itself is usually left.

Against `one_shot` the first two find noise. Identifying a term does not depend on the owner's noise.

Differs from the paper: it gives no such number and no z1, and it states that both sides are protected.
"""

from collections.abc import Sequence

import numpy as np
from scipy.stats import binom

from foltr.errors import SpecError
from foltr.silo.sketches import Family, hash_terms
from foltr.types import Array

VOCABULARY = 100_000  # words, about as many as a large collection has after the rarest are left out
_DECIMALS = 6  # rounding error that adding and subtracting a draw leaves on a whole number


def anonymity_set_size(*, real_rows: int, rows: int, columns: int, vocabulary: int = VOCABULARY) -> float:
    """Expected words, besides the term itself, with at least `real_rows` of the columns asked for."""
    if not 1 <= real_rows <= rows or columns < 1 or vocabulary < 1:
        raise SpecError(
            f"{real_rows} real rows of {rows}, {columns} columns, {vocabulary} words; use 1 to {rows} real rows, "
            "and at least one column and one word"
        )
    return float((vocabulary - 1) * binom.sf(real_rows - 1, rows, 1 / columns))


def remove_shared_noise(answer: Array) -> Array:
    """[z] cells less the mode of the answer; exact where the mode of the owner's cells is 0."""
    relative = np.round(answer - answer[0], _DECIMALS)
    values, frequency = np.unique(relative, return_counts=True)
    return relative - values[frequency.argmax()]


def matching_rows(columns: Array, vocabulary: Sequence[str], family: Family) -> Array:
    """[words] in how many rows a word's column is the one asked for."""
    if len(columns) != family.rows:
        raise SpecError(f"a question of {len(columns)} columns, hashes of {family.rows} rows; use the same family")
    return (hash_terms(vocabulary, family).columns == columns).sum(axis=1)


def identify(columns: Array, vocabulary: Sequence[str], family: Family, *, real_rows: int) -> list[str]:
    """Words with at least z1 of the columns asked for, those with the most first."""
    rows = matching_rows(columns, vocabulary, family)
    order = np.argsort(-rows, kind="stable")
    return [vocabulary[place] for place in order if rows[place] >= real_rows]
