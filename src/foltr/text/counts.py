"""Term counts of documents as arrays, and what a party may say about all of its documents together.

    document i holds terms[offsets[i] : offsets[i + 1]], in rising order, each as often as `counts` says

Terms are numbers of one vocabulary that all parties share, as they share the key of their hashes. Statistics are sums,
so the statistics of several parties are the sums of theirs: cross-party IDF (S3, below Definition 2) and the
collection's language model come from these.

Differs from the paper: nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from foltr._kernels.term_counts import look_up
from foltr.errors import SpecError
from foltr.text.analysis import PLAIN, Rules, terms
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


def count_corpus(corpus: Corpus, rules: Rules = PLAIN) -> TextCounts:
    """Both fields of every document, over the vocabulary of the whole corpus."""
    titles = [Counter(terms(text, rules)) for text in corpus.titles]
    bodies = [Counter(terms(text, rules)) for text in corpus.bodies]
    words = sorted(set().union(*titles, *bodies))
    vocabulary = {word: number for number, word in enumerate(words)}
    return TextCounts(vocabulary, count(titles, vocabulary), count(bodies, vocabulary))


def count(documents: Sequence[Mapping[str, int]], vocabulary: Vocabulary) -> Counts:
    """Arrays of the terms that each document has; a term that is not in the vocabulary is an error."""
    offsets = np.concatenate([[0], np.cumsum([len(found) for found in documents])]).astype(np.int64)
    numbers, amounts = np.empty(offsets[-1], dtype=np.int32), np.empty(offsets[-1], dtype=np.int32)
    for place, found in enumerate(documents):
        part = slice(offsets[place], offsets[place + 1])
        there = np.fromiter((_number(word, vocabulary) for word in found), dtype=np.int32, count=len(found))
        order = np.argsort(there)
        numbers[part] = there[order]
        amounts[part] = np.fromiter(found.values(), dtype=np.int32, count=len(found))[order]
    return Counts(offsets, numbers, amounts, _sums(amounts, offsets), len(vocabulary))


def _number(word: str, vocabulary: Vocabulary) -> int:
    number = vocabulary.get(word)
    if number is None:
        raise SpecError(f"the term {word!r} is not in the vocabulary; make the vocabulary of all documents first")
    return number


def _sums(amounts: Array, offsets: Array) -> Array:
    """[documents] sum of each document's stretch, which may be empty."""
    running = np.concatenate([[0], np.cumsum(amounts, dtype=np.int64)])
    return running[offsets[1:]] - running[offsets[:-1]]


def known_terms(text: str, vocabulary: Vocabulary, rules: Rules = PLAIN) -> Array:
    """The numbers of a query's terms, repeated ones as often; words that no document has are left out."""
    found = (vocabulary.get(word) for word in terms(text, rules))
    return np.array([number for number in found if number is not None], dtype=np.int32)


def take(counts: Counts, documents: Array) -> Counts:
    """The same for only these documents, in this order."""
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
    """What one party tells about its documents."""
    size = counts.vocabulary_size
    frequency = np.bincount(counts.terms, weights=counts.counts, minlength=size).astype(np.int64)
    return Statistics(
        len(counts.lengths), int(counts.lengths.sum()), np.bincount(counts.terms, minlength=size), frequency
    )


def sum_statistics(parties: Iterable[Statistics]) -> Statistics:
    """What all parties together would tell."""
    told = list(parties)
    sizes = {len(one.document_frequency) for one in told}
    if len(sizes) != 1:
        raise SpecError(f"statistics over vocabularies of {sorted(sizes)} terms cannot be added; share one vocabulary")
    return Statistics(
        sum(one.documents for one in told),
        sum(one.length for one in told),
        np.sum([one.document_frequency for one in told], axis=0),
        np.sum([one.collection_frequency for one in told], axis=0),
    )


def counts_of(counts: Counts, documents: Array, wanted: Array) -> Array:
    """[documents, wanted] how often each document has each term."""
    found = np.zeros((len(documents), len(wanted)), dtype=np.int32)
    look_up(counts.offsets, counts.terms, counts.counts, np.asarray(documents), np.asarray(wanted), found)
    return found
