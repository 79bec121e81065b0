"""Documents to measure sketches on, with terms to ask for: synthetic at any size, or a corpus of text.

Synthetic documents follow Simon (1955): each next word repeats, with a fixed probability, one that the document has
already, else it is drawn from a Zipf vocabulary; so that, as in text, a word that occurs at all occurs several times.

Differs from the paper: it samples documents of MS MARCO, which is not available everywhere.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

from foltr._kernels.texts import draw_words
from foltr.lab.data import corpora
from foltr.rng import stream
from foltr.text.analysis import terms as cut
from foltr.text.counts import Counts, count
from foltr.types import Array

_REPEAT = 0.35  # probability that a word repeats one of its document: about half of 1,000 words are then different


class RetrievalTask(NamedTuple):
    documents: Counts
    words: list[str]  # [vocabulary]
    asked: Array  # terms to ask for; each is in some document


def synthetic_task(
    documents: int, length: int = 1000, vocabulary: int = 200_000, asked: int = 40, seed: int = 1
) -> RetrievalTask:
    """Documents of a Zipf vocabulary; the terms asked for are spread over all frequencies."""
    weights = 1.0 / (np.arange(vocabulary) + 2.7)
    cumulative = np.cumsum(weights / weights.sum())
    found = [_one_document(cumulative, length, seed, number) for number in range(documents)]
    offsets = np.concatenate([[0], np.cumsum([len(words) for words, _ in found])]).astype(np.int64)
    terms, counts = (np.concatenate(part).astype(np.int32) for part in zip(*found, strict=True))
    counted = Counts(offsets, terms, counts, np.full(documents, length, np.int64), vocabulary)
    held = np.unique(terms)
    places = len(held) ** stream(seed, client=documents, purpose="choice").uniform(asked)
    return RetrievalTask(counted, [f"w{number}" for number in range(vocabulary)], held[places.astype(np.int64) - 1])


def text(name: str, asked: int = 600, seed: int = 1) -> RetrievalTask:
    """Titles and bodies of a corpus, and a sample of its queries' terms that some document has; of all terms where
    there are no queries."""
    corpus = corpora.load_corpus(name)
    both = zip(corpus.titles, corpus.bodies, strict=True)
    found = [Counter(cut(f"{title} {body}")) for title, body in both]
    words = sorted(set().union(*found))
    vocabulary = {word: number for number, word in enumerate(words)}
    texts = corpus.query_texts or tuple(words)
    known = sorted({vocabulary[word] for text in texts for word in cut(text) if word in vocabulary})
    order = stream(seed, purpose="choice").permutation(len(known))[:asked]
    return RetrievalTask(count(found, vocabulary), words, np.array(known)[order])


def _one_document(cumulative: Array, length: int, seed: int, number: int) -> tuple[Array, Array]:
    draws = stream(seed, client=number, purpose="data")
    words = np.empty(length, np.int64)
    draw_words(cumulative, _REPEAT, np.uint64(draws.start), np.uint64(draws.stride), words)
    return np.unique(words, return_counts=True)
