"""Simulated people: what they look for, one search after the other.

A person with lasting preferences looks for documents of four favourite folders in most searches, and in two of five
searches for a document that was looked for before, with new words. A person without preferences looks for any document.
The targets of a person depend on seed and number only, so that all learners meet the same searches.
"""

from typing import NamedTuple

import numpy as np

from foltr.lab.people.corpora import Texts
from foltr.lab.people.queries import Idf, KnownItem, known_item
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
    favourites: Array  # [FAVOURITES] folders; empty without preferences
    targets: Array  # [searches] documents, in order


def person(texts: Texts, *, seed: int, number: int, searches: int, preferences: bool) -> Person:
    """One person and the targets of all searches."""
    favourites = _favourites(texts, seed, number) if preferences else np.empty(0, np.int64)
    draws = stream(seed, client=number, purpose="users")
    fresh = _fresh_targets(texts, favourites, seed, number, searches)
    again, which = draws.uniform(searches), draws.skip(searches).uniform(searches)
    targets = fresh.copy()
    for search in range(1, searches if preferences else 0):
        if again[search] < REFINDING:
            targets[search] = targets[int(which[search] * search)]
    return Person(seed, number, favourites, targets)


def _favourites(texts: Texts, seed: int, number: int) -> Array:
    """Folders without replacement, in proportion to the square root of their size."""
    sizes = np.bincount(texts.folders)
    fit = np.flatnonzero(sizes >= min(SMALLEST_FOLDER, sizes.max()))
    times = -np.log1p(-stream(seed, client=number, purpose="choice").uniform(len(fit))) / np.sqrt(sizes[fit])
    return np.sort(fit[np.argsort(times, kind="stable")[:FAVOURITES]])


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
        known_item(texts, target, idf, stream(someone.seed, round=search, client=someone.number, purpose="data"))
        for search, target in enumerate(someone.targets.tolist())
    ]


def test_searches(texts: Texts, someone: Person, idf: Idf, *, after: int, count: int) -> list[KnownItem]:
    """Searches that the person might make after so many, with new words: what learners are tested on."""
    block = _TEST + after
    fresh = _fresh_targets(texts, someone.favourites, someone.seed, someone.number, count, block)
    draws = stream(someone.seed, round=block, client=someone.number, purpose="users")
    again, which = draws.uniform(count), draws.skip(count).uniform(count)
    refinding = (again < REFINDING) & (len(someone.favourites) > 0) & (after > 0)
    earlier = someone.targets[(which * max(after, 1)).astype(np.int64)]
    return [
        known_item(
            texts, target, idf, stream(someone.seed, round=1000 * block + place, client=someone.number, purpose="data")
        )
        for place, target in enumerate(np.where(refinding, earlier, fresh).tolist())
    ]
