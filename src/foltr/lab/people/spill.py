"""Spill: how far openings in one folder reach into searches that have nothing to do with it.

A person opens documents of a single folder, each with words of its own (`queries.known_item`, by default mixed words;
somebody who always types one word has habits in searches of one word, and they count there). Then words of the
vocabulary are searched one at a time; a word counts as unrelated where the first three documents by start weights lie
in other folders. Metrics are shares of the first three places of these searches that go to the folder: by counting, by
weights fitted to the openings (MAP), and by both where history is not bounded by the query (`text.matching`).
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from foltr.lab.people import history as histories
from foltr.lab.people.experiment import SHOWN, with_history
from foltr.lab.people.history import SEARCHES_A_DAY, Counts
from foltr.lab.people.people import SMALLEST_FOLDER
from foltr.lab.people.queries import known_item
from foltr.lab.people.searching import Prepared, Searcher, with_features
from foltr.lab.people.settings import Spill
from foltr.lab.people.weights import HISTORY, Weights
from foltr.learners.softmax import SoftmaxMap, fit
from foltr.metrics import order
from foltr.node.learning.memory import typed_text
from foltr.node.learning.teaching import TaughtTexts
from foltr.rng import stream
from foltr.text.matching import columns
from foltr.types import Array, Interaction

FIRST = 3  # places that are looked at
_FEWEST = FIRST + 1  # documents that have a searched word
_LARGEST_SHARE = 0.05  # of the documents, in the folder
_MOST_TRIES = 8  # searches for each opening: a target that is no candidate is not opened


class Opened(NamedTuple):
    """One person's openings in a folder."""

    history: Counts
    lessons: list[Interaction]
    bounded: bool  # whether history was bounded by the query


def measure(searcher: Searcher, setting: Spill, weights: Weights, seed: int) -> dict[str, float]:
    """Metric -> share of the first three places, mean over the people."""
    people = [_of_person(searcher, setting, weights, seed, number) for number in range(setting.people)]
    return {name: float(np.mean([person[name] for person in people])) for name in people[0]}


def _of_person(searcher: Searcher, setting: Spill, weights: Weights, seed: int, number: int) -> dict[str, float]:
    folder = _folder(searcher.texts.folders, seed, number)
    priors = SoftmaxMap(history=tuple(weights.places.tolist())).priors(len(weights.values))
    rows: dict[str, tuple[Opened, Array]] = {}
    for bounded, ending in ((True, ""), (False, ", history not bounded")):
        opened = open_documents(searcher, setting, weights, folder, seed, number, bounded=bounded)
        rows[f"counting{ending}"] = opened, weights.values
        rows[f"MAP{ending}"] = opened, fit(opened.lessons, weights.values, priors)
    moved, searches = Counter[str](), 0
    for search in islice(unrelated_words(searcher, weights, folder, seed, number), setting.words):
        searches += 1
        for row, (opened, values) in rows.items():
            features = _features(search, opened.history, weights, bounded=opened.bounded)
            first = search.documents[order(features @ values)[:FIRST]]
            moved[row] += int((searcher.texts.folders[first] == folder).sum())
    return {f"moved places, {row}": moved[row] / max(FIRST * searches, 1) for row in rows}


def open_documents(
    searcher: Searcher, setting: Spill, weights: Weights, folder: int, seed: int, number: int, *, bounded: bool
) -> Opened:
    """Opens documents of the folder until there are enough; what was displayed also teaches."""
    texts, places = searcher.texts, columns(weights.names)
    inside = np.flatnonzero(texts.folders == folder)
    history, lessons, taught, openings = histories.no_history(texts.folders), [], TaughtTexts(), 0
    for step in range(_MOST_TRIES * setting.openings):
        if openings == setting.openings:
            break
        draws = stream(seed, round=step, client=number, purpose="users")
        target = int(inside[int(draws.integers(len(inside), 1)[0])])
        words = stream(seed, round=step, client=number, purpose="data")
        query = known_item(texts, target, searcher.idf, words, setting.typed)
        search = with_features(searcher.known_item(query), places)
        row = np.flatnonzero(search.documents == target)
        if not len(row):
            continue
        features = _features(search, history, weights, bounded=bounded)
        scores = features @ weights.values
        ranking = order(scores)[:SHOWN]
        if (ranking == row[0]).any() and taught.teaches(typed_text(query.text), target):
            lessons.append(Interaction(features, ranking, ranking == row[0], scores, 0))
        histories.opened(history, target, query.text, body_word=search.body_word)
        openings += 1
        if openings % SEARCHES_A_DAY == 0:
            histories.next_day(history)
    return Opened(history, lessons, bounded)


def unrelated_words(searcher: Searcher, weights: Weights, folder: int, seed: int, number: int) -> Iterator[Prepared]:
    """Searches for one word each, in random order, whose first three documents lie outside of the folder."""
    texts, places = searcher.texts, columns(weights.names)
    lexical = np.where(np.isin(weights.names, HISTORY), 0.0, weights.values)
    having = Counter(
        word
        for title, body in zip(texts.titles, texts.bodies, strict=True)
        for word in set(re.findall(r"[a-z]{3,}", f"{title} {body}".lower()))
    )
    words = sorted(word for word, documents in having.items() if documents >= _FEWEST)
    for place in stream(seed, client=number, purpose="queries").permutation(len(words)).tolist():
        search = with_features(searcher.prepare(words[place], {}), places)
        first = search.documents[order(search.features @ lexical)[:FIRST]]
        if len(search.documents) >= _FEWEST and not (texts.folders[first] == folder).any():
            yield search


def _features(search: Prepared, history: Counts, weights: Weights, *, bounded: bool) -> Array:
    if not bounded:
        search = search._replace(named=np.zeros(len(search.documents), dtype=bool), body_word=False)
    return with_history(search, history, weights)


def _folder(folder_of: Array, seed: int, number: int) -> int:
    """One of the larger folders, none of which is a large part of everything."""
    sizes = np.bincount(folder_of)
    largest = max(SMALLEST_FOLDER, _LARGEST_SHARE * len(folder_of))
    possible = np.flatnonzero((sizes >= min(SMALLEST_FOLDER, sizes.max())) & (sizes <= largest))
    larger = possible[np.argsort(-sizes[possible], kind="stable")][: max(1, len(possible) // 2)]
    return int(larger[int(stream(seed, client=number, purpose="choice").integers(len(larger), 1)[0])])
