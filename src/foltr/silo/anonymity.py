"""How well an obfuscated question hides its term: the expected number of other words that fit it too.

Source: S3 equation 4. A question shows one column of each of z rows; z1 of them are the term's, nobody but the asker
knows which. An owner has the hash key and can try every word of a vocabulary: a word fits if at least z1 of its z
columns are those asked for. Another word has each column with chance 1 / w, so it fits with the upper tail of a
binomial distribution, and of V words (V - 1) times as many are expected. Of 100,000 words (z = 30, w = 200):

    z1 = 2: 991      z1 = 3: 46      z1 = 4: 1.5      z1 = 5: .04

Below 1 the term is most likely named. This holds for one question; an asker whose decoys change from question to
question gives the term away by what stays the same, hence `asking` sends the same columns for the same term.

Differs from the paper: it gives no such figure, and no z1.
"""

from scipy.stats import binom

from foltr.errors import SpecError

VOCABULARY = 100_000  # words, about as many as a large collection has after the rarest are left out


def others_that_fit(*, true_rows: int, rows: int, columns: int, vocabulary: int = VOCABULARY) -> float:
    """Expected words, besides the term itself, with at least `true_rows` of the columns asked for."""
    if not 1 <= true_rows <= rows or columns < 1 or vocabulary < 1:
        raise SpecError(
            f"{true_rows} true rows of {rows}, {columns} columns, {vocabulary} words; use 1 to {rows} true rows, "
            "and at least one column and one word"
        )
    return float((vocabulary - 1) * binom.sf(true_rows - 1, rows, 1 / columns))


def spoken(others: float) -> str:
    """One sentence for people."""
    if others >= 1:
        return f"about {others:,.0f} other words fit the question"
    return f"{others:.2g} other words fit the question: whoever has the key can name the term"
