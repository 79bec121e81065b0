"""Documents to measure sketches on, with terms to ask for: made up at any size, or a corpus of text.

Made-up documents follow Simon (1955): each next word is, with a fixed chance, one that the document has already, else
one of a Zipf vocabulary; so that, as in text, a word that is there at all is there several times.

Differs from the paper: it samples documents of MS MARCO, which is not to be had everywhere.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

from foltr._kernels.synthetic import write_words
from foltr.lab.data import corpora
from foltr.rng import stream
from foltr.text.analysis import terms as cut
from foltr.text.counts import Counts, count
from foltr.types import Array


class Task(NamedTuple):
    documents: Counts
    words: list[str]  # [vocabulary]
    asked: Array  # terms to ask for; each is in some document


def made_up(documents: int, length: int = 1000, vocabulary: int = 200_000, asked: int = 40, seed: int = 1) -> Task:
    """Documents of a Zipf vocabulary; the terms asked for are spread over all frequencies."""
    weights = 1.0 / (np.arange(vocabulary) + 2.7)
    mass = np.cumsum(weights / weights.sum())
    found = [_one_document(mass, length, seed, number) for number in range(documents)]
    offsets = np.concatenate([[0], np.cumsum([len(words) for words, _ in found])]).astype(np.int64)
    terms, counts = (np.concatenate(part).astype(np.int32) for part in zip(*found, strict=True))
    counted = Counts(offsets, terms, counts, np.full(documents, length, np.int64), vocabulary)
    held = np.unique(terms)
    places = len(held) ** stream(seed, client=documents, purpose="choice").uniform(asked)
    return Task(counted, [f"w{number}" for number in range(vocabulary)], held[places.astype(np.int64) - 1])


def text(name: str, asked: int = 600, seed: int = 1) -> Task:
    """Titles and bodies of a corpus, and a sample of its queries' terms that some document has."""
    corpus = corpora.load(name)
    both = zip(corpus.titles, corpus.bodies, strict=True)
    found = [Counter(cut(f"{title} {body}")) for title, body in both]
    words = sorted(set().union(*found))
    vocabulary = {word: number for number, word in enumerate(words)}
    known = sorted({vocabulary[word] for query in corpus.query_texts for word in cut(query) if word in vocabulary})
    order = stream(seed, purpose="choice").permutation(len(known))[:asked]
    return Task(count(found, vocabulary), words, np.array(known)[order])


def _one_document(mass: Array, length: int, seed: int, number: int) -> tuple[Array, Array]:
    draws = stream(seed, client=number, purpose="data")
    words = np.empty(length, np.int64)
    write_words(mass, np.uint64(draws.start), np.uint64(draws.stride), words)
    return np.unique(words, return_counts=True)
