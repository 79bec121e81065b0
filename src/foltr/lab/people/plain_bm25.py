"""BM25 as a practitioner tries it first: title and body as one field of plain words, over the whole corpus.

Plain words are runs of letters, digits and underscores in lower case; stop words are removed, Snowball's stems taken.
k1 = 1.2, b = .75. Unlike the node's analysis, identifiers are not divided (`get_content` is one word), and names and
paths of files are not searched.
"""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from foltr.text.analysis import stem, stop_words
from foltr.text.bm25 import bm25, idf
from foltr.types import Array

_WORD = re.compile(r"\w+")


def plain_terms(text: str) -> list[str]:
    stop = _STOP
    return [stem(word) for word in _WORD.findall(text.lower()) if word not in stop]


_STOP = frozenset(stop_words("english"))


class PlainBm25:
    """Postings of plain words."""

    def __init__(self, titles: Sequence[str], bodies: Sequence[str]) -> None:
        numbers: dict[str, int] = {}
        owners: list[int] = []
        terms: list[int] = []
        counts: list[int] = []
        lengths = np.zeros(len(titles))
        for document, (title, body) in enumerate(zip(titles, bodies, strict=True)):
            found = Counter(plain_terms(f"{title} {body}"))
            lengths[document] = found.total()
            owners += [document] * len(found)
            terms += [numbers.setdefault(term, len(numbers)) for term in found]
            counts += found.values()
        order = np.argsort(np.array(terms, dtype=np.int64), kind="stable")
        self._numbers, self._lengths = numbers, lengths
        self._owners, self._counts = np.array(owners)[order], np.array(counts, dtype=np.float64)[order]
        self._starts = np.searchsorted(np.array(terms)[order], np.arange(len(numbers) + 1))

    def scores(self, query: str) -> Array:
        """[documents] of a query; terms that no document has count nothing."""
        scores = np.zeros(len(self._lengths))
        for term, repeats in Counter(plain_terms(query)).items():
            if term in self._numbers:
                some = slice(*self._starts[self._numbers[term] : self._numbers[term] + 2].tolist())
                owners, frequency = self._owners[some], np.array([some.stop - some.start])
                weight = repeats * idf(len(scores), frequency)
                scores[owners] += bm25(self._counts[some, None], self._lengths[owners], self._lengths.mean(), weight)
        return scores

    def best(self, query: str, top_k: int) -> Array:
        """Documents with a term of the query, best first, equal ones in their order."""
        scores = self.scores(query)
        order = np.argsort(-scores, kind="stable")[:top_k]
        return order[scores[order] > 0]
