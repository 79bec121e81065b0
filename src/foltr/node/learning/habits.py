"""Habits of a person: from counts of what was opened to how much likelier than chance each document is opened next.

A Pólya urn of two levels. With c_f of C openings in folder f, which has n_f of the N documents, and c_d of document d:

    P(folder f) = (c_f + phi n_f / N) / (C + phi)           P(d | f) = (c_d + theta / n_f) / (c_f + theta)

phi and theta are how many openings the sizes alone are worth. Somebody who opens any document alike has large ones, and
what was opened says nothing; somebody with favourite folders has a small phi, somebody who returns to the same
documents a small theta. Both are averaged over a grid, in proportion to the probability of all openings of the person
(the Dirichlet-multinomial distribution; a flat prior on the logarithm). Features are the two probabilities over those
of chance, n_f / N and 1 / n_f: 1 before the first opening. Their product is P(d) over 1 / N, and the logarithm of it
what Bayes' rule adds to a score in logits.

Sizes matter: half of the openings in a folder with half of the documents is no preference. An opening counts once for
the same typed text and document (`count_openings`): what the same words bring back is the memory's business and
says nothing about other searches.

Habits are those of a kind of search. Documents that have a single word of the query in their bodies match it nearly
alike, so that any habit would decide their order, also for somebody who finds his documents by names or several words.
Searches for such a word (`text.matching.is_body_word`) have counts of their own: what was opened by such searches.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from foltr.node.learning.memory import DECAY, days_between, folder_of
from foltr.types import Array

CONCENTRATIONS = np.array([0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 1e4, 1e6])  # grid of phi and theta
_SHIFT = 8  # from here on Stirling's series is exact to 1e-10


class Habits(NamedTuple):
    """The probability of every concentration, given the openings of a person."""

    folders: Array  # [CONCENTRATIONS] of phi
    documents: Array  # [CONCENTRATIONS] of theta


NO_HABITS = Habits(*(np.full((2, len(CONCENTRATIONS)), 1 / len(CONCENTRATIONS))))


def habits(counts: Array, folder: Array, sizes: Array, total: int) -> Habits:
    """From the openings of documents [m], the place of the folder of each [m] in `sizes`, the documents of these
    folders [k], and the number of all documents."""
    if not len(counts):
        return NO_HABITS
    in_folder = np.bincount(folder, counts, len(sizes))
    size = np.asarray(sizes, dtype=np.float64)
    by_folder = _log_probability(in_folder, size / total) + _log_urn(in_folder.sum()[None])
    by_document = _log_probability(counts, 1 / size[folder]) + _log_urn(in_folder)
    return Habits(_normalised(by_folder), _normalised(by_document))


def _log_probability(counts: Array, shares: Array) -> Array:
    """[CONCENTRATIONS] sum of log Gamma(c + a) - log Gamma(a), with a the concentration times the share."""
    base = CONCENTRATIONS[:, None] * shares
    return (log_gamma(counts + base) - log_gamma(base)).sum(axis=1)


def _log_urn(totals: Array) -> Array:
    """[CONCENTRATIONS] sum of log Gamma(a) - log Gamma(total + a), over urns with so many openings."""
    return (log_gamma(CONCENTRATIONS)[:, None] - log_gamma(totals + CONCENTRATIONS[:, None])).sum(axis=1)


def _normalised(logarithms: Array) -> Array:
    chances = np.exp(logarithms - logarithms.max())
    return chances / chances.sum()


def log_gamma(values: Array) -> Array:
    """The logarithm of the gamma function of positive numbers, by Stirling's series. (A node has no scipy.)"""
    x = np.asarray(values, dtype=np.float64)
    below = np.log(np.prod([x + step for step in range(_SHIFT)], axis=0))  # Gamma(x + 8) over Gamma(x)
    y = x + _SHIFT
    series = 1 / (12 * y) - 1 / (360 * y**3) + 1 / (1260 * y**5) - 1 / (1680 * y**7)
    return (y - 0.5) * np.log(y) - y + 0.5 * np.log(2 * np.pi) + series - below


def folder_lift(known: Habits, counts: Array, shares: Array, openings: float) -> Array:
    """[n] P(folder) over its share of the documents, from its openings [n] and these shares [n]."""
    grid = CONCENTRATIONS
    return (counts[:, None] / shares[:, None] + grid) / (openings + grid) @ known.folders


def document_lift(known: Habits, counts: Array, in_folder: Array, sizes: Array) -> Array:
    """[n] P(document | folder) over 1 / size, from the openings of document and folder and the size, all [n]."""
    grid = CONCENTRATIONS
    return (counts[:, None] * sizes[:, None] + grid) / (in_folder[:, None] + grid) @ known.documents


# ---- counts of a log


class Openings(NamedTuple):
    """Decayed counts of openings, and what they say about the next one once the sizes of folders are known."""

    documents: dict[str, float]
    folders: dict[str, float]
    total: float
    sizes: dict[str, int] = {}  # noqa: RUF012 - documents of every folder with openings
    indexed: int = 0  # documents of the index
    habits: Habits = NO_HABITS
    by_body_word: "Openings | None" = None  # the part of them that followed a search for a single word of bodies


NO_OPENINGS = Openings({}, {}, 0.0)


def count_openings(openings: Iterable[tuple[str | None, str, float]], now: float) -> Openings:
    """Counts of (typed text, document, time) at a day: an opening counts .975^days; of those with the same text and
    document the newest. Openings without a text count each."""
    newest: dict[object, tuple[str, float]] = {}
    for number, (typed, document, time) in enumerate(openings):
        pair = number if typed is None else (typed, document)
        newest[pair] = document, max(time, newest.get(pair, (document, time))[1])
    documents: dict[str, float] = {}
    folders: dict[str, float] = {}
    for document, time in newest.values():
        weight, folder = DECAY ** days_between(time, now), folder_of(document)
        documents[document] = documents.get(document, 0.0) + weight
        folders[folder] = folders.get(folder, 0.0) + weight
    return Openings(documents, folders, sum(documents.values()))


def weighed(counted: Openings, sizes: Mapping[str, int], indexed: int) -> Openings:
    """The counts against the documents in each of their folders and in the index. Documents that are gone from the
    index still count for their folder."""
    if not counted.documents:
        return counted
    places = {folder: place for place, folder in enumerate(counted.folders)}
    folder = np.array([places[folder_of(one)] for one in counted.documents])
    known = np.maximum(np.bincount(folder), [sizes.get(one, 0) for one in places])
    total = max(indexed, int(known.sum()))
    found = habits(np.array(list(counted.documents.values())), folder, known, total)
    part = None if counted.by_body_word is None else weighed(counted.by_body_word, sizes, indexed)
    return counted._replace(
        sizes=dict(zip(places, known.tolist(), strict=True)), indexed=total, habits=found, by_body_word=part
    )


def opened(counted: Openings, documents: Sequence[str]) -> Array:
    """[documents] how many times likelier than chance each is to be opened next within its folder, minus 1."""
    counts = np.array([counted.documents.get(one, 0.0) for one in documents])
    in_folder, sizes = _by_folder(counted, documents)
    return np.where(in_folder > 0, document_lift(counted.habits, counts, in_folder, sizes) - 1, 0.0)


def folder_opened(counted: Openings, documents: Sequence[str]) -> Array:
    """[documents] how many times likelier than chance the next opening lies in the document's folder, minus 1."""
    in_folder, sizes = _by_folder(counted, documents)
    lift = folder_lift(counted.habits, in_folder, sizes / max(counted.indexed, 1), counted.total)
    return lift - 1 if counted.total > 0 else np.zeros(len(lift))


def _by_folder(counted: Openings, documents: Sequence[str]) -> tuple[Array, Array]:
    """Openings in the folder of each document, and how many documents it has; 1 where none was opened: it does not
    matter then."""
    folders = [folder_of(one) for one in documents]
    counts = np.array([counted.folders.get(one, 0.0) for one in folders])
    return counts, np.array([counted.sizes.get(one, 1) for one in folders], dtype=np.float64)
