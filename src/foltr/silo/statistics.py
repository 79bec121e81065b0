"""Word statistics that a party releases once: by keyed hashes of words, exact or with noise.

Source: S3 below Definition 2 (cross-party IDF and the collection's language model from sums over the parties). For
every word a party states the documents that have it (df) and its occurrences (cf), for every document its length and
its number of different words. A receiver reads the words that it can name itself; nobody lists words in the clear.

    exact   df and cf under the 64-bit keyed hash of every word that the party has. Epsilon is infinite. A member, who
            has the key, can test a dictionary against the table and learns which of its words the party has.
    noisy   df and cf in 2^18 buckets by the same hash, occupied or not, so that it does not show which words there are;
            Laplace noise in every number, rounded. Words that share a bucket add up (7 % of 20,000 words do).

**Event.** Unit `word` (one occurrence of one term in one document), adjacency zero-out. It changes df of one bucket by
at most 1, cf by 1, one document's length by 1 and its number of different words by at most 1: 4 in L1, so the noise has
scale 4 / epsilon. A table is drawn once and repeated: asking again shows the same numbers. The number of documents is
public. For a whole document of n words the bound is n epsilon, which is none.

Differs from the paper: it shares the sums without noise, over a common list of words.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.privacy.events import EVERYBODY, Event
from foltr.silo.noise import Uniforms, check_epsilon, from_system, laplace
from foltr.silo.sketches import Family, hash_words
from foltr.text.counts import Counts, Statistics
from foltr.text.counts import statistics as exact_statistics
from foltr.types import Array

KINDS = ("exact", "noisy")
BUCKETS = 1 << 18
SENSITIVITY = 4.0  # L1, of one occurrence of one word


class StatisticsTable(NamedTuple):
    """Statistics that a party tells about one field of its documents."""

    noise: str
    epsilon: float  # of one word; 0 where the table is exact
    buckets: int  # 0: by hash
    hashes: Array  # [words] uint64, rising; empty where there are buckets
    document_frequency: Array  # [words or buckets] int64
    collection_frequency: Array
    lengths: Array  # [documents] int64
    distinct: Array  # [documents] int64: different words


def release_statistics(
    counts: Counts, words: Sequence[str], family: Family, *, noise: str, epsilon: float = 1.0,
    uniforms: Uniforms = from_system,
) -> StatisticsTable:  # fmt: skip
    """The table of one party's documents; `words` are those of the counts' vocabulary."""
    if noise not in KINDS:
        raise SpecError(f"no statistics {noise!r}; there are {', '.join(KINDS)}")
    found = exact_statistics(counts)
    held = np.flatnonzero(found.document_frequency)
    hashes = hash_words([words[number] for number in held.tolist()], family)
    frequencies = np.stack([found.document_frequency[held], found.collection_frequency[held]]).astype(np.int64)
    sizes = np.stack([counts.lengths, np.diff(counts.offsets)]).astype(np.int64)
    if noise == "exact":
        order = np.argsort(hashes)
        return StatisticsTable("exact", 0.0, 0, hashes[order], *frequencies[:, order], *sizes)
    check_epsilon(epsilon)
    table = np.zeros((2, BUCKETS), np.int64)
    for row, amounts in zip(table, frequencies, strict=True):
        np.add.at(row, _buckets(hashes, BUCKETS), amounts)
    noisy = [
        np.rint(part + laplace(part.shape, SENSITIVITY / epsilon, uniforms)).astype(np.int64) for part in (table, sizes)
    ]
    return StatisticsTable("noisy", epsilon, BUCKETS, np.empty(0, np.uint64), *noisy[0], *noisy[1])


def statistics_event(noise: str, epsilon: float) -> Event:
    """The event of a table, for every word of its documents; an exact one protects against nobody."""
    if noise == "exact":
        return Event("laplace", "l1", SENSITIVITY, "l1", 1.0, unit="word", against=(), present=0, parameters=4)
    scale = SENSITIVITY / epsilon
    return Event("laplace", "l1", SENSITIVITY, "l1", scale, unit="word", against=EVERYBODY, parameters=4)


def look_up(table: StatisticsTable, words: Sequence[str], family: Family) -> Statistics:
    """The statistics of these words, in their order, as the table states them: noisy ones may be below 0.

    They are clipped after the tables of all parties were added (`text.lexical`): clipped before, noise would add up.
    """
    hashes = hash_words(words, family)
    if table.buckets:
        places, known = _buckets(hashes, table.buckets), np.ones(len(hashes), bool)
    else:
        places = np.minimum(np.searchsorted(table.hashes, hashes), max(len(table.hashes) - 1, 0))
        known = table.hashes[places] == hashes if len(table.hashes) else np.zeros(len(hashes), bool)
        places = places if len(table.hashes) else places[:0]
    each = np.zeros((2, len(hashes)), np.int64)
    if len(places):
        frequencies = np.stack([table.document_frequency, table.collection_frequency])
        each = np.where(known, frequencies[:, places], 0)
    return Statistics(len(table.lengths), int(table.lengths.sum()), *each)


def _buckets(hashes: Array, buckets: int) -> Array:
    return (hashes % np.uint64(buckets)).astype(np.int64)
