"""Term counts of documents as arrays, and the statistics of a collection.

    document i has terms[offsets[i] : offsets[i + 1]], in rising order, with the counts at the same places

Terms are numbers of one vocabulary, which several parties may share. Statistics are sums, so those of several parties
are the sums of theirs: cross-party IDF (S3, below Definition 2) and the collection's language model use them.

Differs from the paper: nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.text.analysis import ENGLISH, TextAnalysis, terms
from foltr.text.corpus import Corpus
from foltr.types import Array

Vocabulary = Mapping[str, int]  # term -> number; numbers count up in the order of the terms


class Counts(NamedTuple):
    offsets: Array  # [documents + 1] int64
    terms: Array  # [entries] int32
    counts: Array  # [entries] int32
    lengths: Array  # [documents] int64: terms, repeated ones as often as they occur
    vocabulary_size: int


class Statistics(NamedTuple):
    documents: int
    length: int  # of all documents together
    document_frequency: Array  # [vocabulary] documents that have the term
    collection_frequency: Array  # [vocabulary] occurrences in all documents


class TextCounts(NamedTuple):
    vocabulary: Vocabulary
    title: Counts
    body: Counts


def count_corpus(corpus: Corpus, analysis: TextAnalysis = ENGLISH) -> TextCounts:
    """Both fields of every document, over the vocabulary of the whole corpus."""
    titles = [Counter(terms(text, analysis)) for text in corpus.titles]
    bodies = [Counter(terms(text, analysis)) for text in corpus.bodies]
    words = sorted(set().union(*titles, *bodies))
    vocabulary = {word: number for number, word in enumerate(words)}
    return TextCounts(vocabulary, count(titles, vocabulary), count(bodies, vocabulary))


def count(documents: Sequence[Mapping[str, int]], vocabulary: Vocabulary) -> Counts:
    """Term counts as arrays; a term that is not in the vocabulary is an error."""
    offsets = np.concatenate([[0], np.cumsum([len(found) for found in documents])]).astype(np.int64)
    numbers, amounts = np.empty(offsets[-1], dtype=np.int32), np.empty(offsets[-1], dtype=np.int32)
    for place, found in enumerate(documents):
        part = slice(offsets[place], offsets[place + 1])
        numbers_here = np.fromiter((_number(word, vocabulary) for word in found), dtype=np.int32, count=len(found))
        order = np.argsort(numbers_here)
        numbers[part] = numbers_here[order]
        amounts[part] = np.fromiter(found.values(), dtype=np.int32, count=len(found))[order]
    return Counts(offsets, numbers, amounts, _sums(amounts, offsets), len(vocabulary))


def _number(word: str, vocabulary: Vocabulary) -> int:
    number = vocabulary.get(word)
    if number is None:
        raise SpecError(f"the term {word!r} is not in the vocabulary; build the vocabulary from all documents first")
    return number


def _sums(amounts: Array, offsets: Array) -> Array:
    """[documents] sum of each document's stretch, which may be empty."""
    running = np.concatenate([[0], np.cumsum(amounts, dtype=np.int64)])
    return running[offsets[1:]] - running[offsets[:-1]]


def known_terms(text: str, vocabulary: Vocabulary, analysis: TextAnalysis = ENGLISH) -> Array:
    """The numbers of a query's terms, repeated ones as often; words outside the vocabulary are left out."""
    found = (vocabulary.get(word) for word in terms(text, analysis))
    return np.array([number for number in found if number is not None], dtype=np.int32)


def take(counts: Counts, documents: Array) -> Counts:
    """Counts of only these documents, in this order."""
    sizes = np.diff(counts.offsets)[documents]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    entries = np.arange(offsets[-1]) + np.repeat(counts.offsets[:-1][documents] - offsets[:-1], sizes)
    return counts._replace(
        offsets=offsets,
        terms=counts.terms[entries],
        counts=counts.counts[entries],
        lengths=counts.lengths[documents],
    )


def statistics(counts: Counts) -> Statistics:
    """Statistics of one party's documents."""
    size = counts.vocabulary_size
    frequency = np.bincount(counts.terms, weights=counts.counts, minlength=size).astype(np.int64)
    return Statistics(
        len(counts.lengths), int(counts.lengths.sum()), np.bincount(counts.terms, minlength=size), frequency
    )


def sum_statistics(parties: Iterable[Statistics]) -> Statistics:
    """Statistics of the documents of all parties."""
    reported = list(parties)
    sizes = {len(one.document_frequency) for one in reported}
    if len(sizes) != 1:
        raise SpecError(f"statistics over vocabularies of {sorted(sizes)} terms cannot be added; share one vocabulary")
    return Statistics(
        sum(one.documents for one in reported),
        sum(one.length for one in reported),
        np.sum([one.document_frequency for one in reported], axis=0),
        np.sum([one.collection_frequency for one in reported], axis=0),
    )


def counts_of(counts: Counts, documents: Array, wanted: Array) -> Array:
    """[documents, wanted] the count of each term in each document: a binary search in all documents at once."""
    rows, terms = np.asarray(documents), np.asarray(wanted)
    if not len(counts.terms):
        return np.zeros((len(rows), len(terms)), dtype=np.int32)
    last = counts.offsets[rows + 1][:, None]
    low = np.repeat(counts.offsets[rows][:, None], len(terms), axis=1)  # [documents, wanted]
    high = np.repeat(last, len(terms), axis=1)
    end = len(counts.terms) - 1
    for _ in range(int((last[:, 0] - low[:, 0]).max(initial=0)).bit_length() if low.size else 0):
        half = (low + high) // 2
        below = (low < high) & (counts.terms[np.minimum(half, end)] < terms)
        low = np.where(below, half + 1, low)
        high = np.where(below, high, half)
    place = np.minimum(low, end)
    return np.where((low < last) & (counts.terms[place] == terms), counts.counts[place], 0).astype(np.int32)
