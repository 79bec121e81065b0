"""Simulated people: what they look for, one search after the other.

A person with lasting preferences looks for documents of four favourite folders in most searches, and in two of five
searches for a document that was looked for before, with new words. A person without preferences looks for any document.
A person who moves has other favourite folders from some search on.
The targets of a person depend on seed and number only, so that all learners meet the same searches.
"""

from typing import NamedTuple

import numpy as np

from foltr.lab.people.corpora import Texts
from foltr.lab.people.queries import Idf, KnownItem, known_item
from foltr.lab.people.settings import Words
from foltr.rng import stream
from foltr.types import Array

FAVOURITES = 4  # folders of a person
IN_FAVOURITES = 0.8  # share of the new targets
REFINDING = 0.4  # share of searches for an earlier target
SMALLEST_FOLDER = 5  # documents of a folder that can be a favourite
_TEST = 1 << 20  # addresses of test searches begin here, far from those of other searches


class Person(NamedTuple):
    seed: int
    number: int
    favourites: Array  # folders at the start; empty without preferences
    later: Array  # folders from search `moves_at` on
    moves_at: int
    targets: Array  # [searches] documents, in order
    words: Words


def person(
    texts: Texts, *, seed: int, number: int, searches: int, preferences: bool, favourites: int = FAVOURITES,
    moves_at: int | None = None, words: Words = "mixed",
) -> Person:  # fmt: skip
    """One person and the targets of all searches."""
    chosen = _favourites(texts, seed, number, 2 * favourites if preferences else 0)
    first, later = np.sort(chosen[:favourites]), np.sort(chosen[favourites:])
    draws = stream(seed, client=number, purpose="users")
    fresh = _fresh_targets(texts, first, seed, number, searches)
    if moves_at is None or not len(later):
        moves_at, later = searches, first
    fresh[moves_at:] = _fresh_targets(texts, later, seed, number, searches)[moves_at:]
    again, which = draws.uniform(searches), draws.skip(searches).uniform(searches)
    targets = fresh.copy()
    for search in range(1, searches if preferences else 0):
        if again[search] < REFINDING:
            targets[search] = targets[int(which[search] * search)]
    return Person(seed, number, first, later, moves_at, targets, words)


def _favourites(texts: Texts, seed: int, number: int, count: int) -> Array:
    """Folders without replacement, in proportion to the square root of their size, in the order of the draw."""
    sizes = np.bincount(texts.folders)
    fit = np.flatnonzero(sizes >= min(SMALLEST_FOLDER, sizes.max()))
    times = -np.log1p(-stream(seed, client=number, purpose="choice").uniform(len(fit))) / np.sqrt(sizes[fit])
    return fit[np.argsort(times, kind="stable")[:count]]


def _fresh_targets(texts: Texts, favourites: Array, seed: int, number: int, count: int, block: int = 0) -> Array:
    """Targets that may be new: mostly in favourite folders, each folder alike; else anywhere."""
    draws = stream(seed, round=block, client=number, purpose="queries")
    inside, folder, place = (draws.skip(part * count).uniform(count) for part in range(3))
    targets = (place * len(texts.titles)).astype(np.int64)
    members = [np.flatnonzero(texts.folders == favourite) for favourite in favourites]
    for search in np.flatnonzero(inside < IN_FAVOURITES).tolist() if members else []:
        own = members[int(folder[search] * len(members))]
        targets[search] = own[int(place[search] * len(own))]
    return targets


def searches_of(texts: Texts, someone: Person, idf: Idf) -> list[KnownItem]:
    """The person's searches, with words of their own each."""
    return [
        known_item(
            texts, target, idf, stream(someone.seed, round=search, client=someone.number, purpose="data"), someone.words
        )
        for search, target in enumerate(someone.targets.tolist())
    ]


def test_searches(texts: Texts, someone: Person, idf: Idf, *, after: int, count: int) -> list[KnownItem]:
    """Searches that the person might make after so many, with new words: what learners are tested on."""
    block = _TEST + after
    favourites = someone.favourites if after < someone.moves_at else someone.later
    fresh = _fresh_targets(texts, favourites, someone.seed, someone.number, count, block)
    draws = stream(someone.seed, round=block, client=someone.number, purpose="users")
    again, which = draws.uniform(count), draws.skip(count).uniform(count)
    refinding = (again < REFINDING) & (len(someone.favourites) > 0) & (after > 0)
    earlier = someone.targets[(which * max(after, 1)).astype(np.int64)]
    return [
        known_item(
            texts,
            target,
            idf,
            stream(someone.seed, round=1000 * block + place, client=someone.number, purpose="data"),
            someone.words,
        )
        for place, target in enumerate(np.where(refinding, earlier, fresh).tolist())
    ]
