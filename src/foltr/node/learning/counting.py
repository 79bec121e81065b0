"""Counts of the openings in a log, all of them and those that followed a search for a single word of bodies.

The second part needs no column of its own: the features that were logged with a list say whether a title or a name had
its word (`text.matching.is_body_word`), also in logs of earlier versions.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from foltr.node.learning import habits
from foltr.node.learning.habits import Openings
from foltr.text.matching import is_body_word

Rows: TypeAlias = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]  # SQL and its values -> rows


def openings_of(rows: Rows, of_body_words: dict[int, bool], now: float) -> Openings:
    """Decayed counts as of the day of `now`.

    `of_body_words` holds for every list with an opening whether its query was a single word of bodies; it is brought up
    to date here. Lists never change and their numbers are not used again.
    """
    chosen = rows(
        "SELECT c.impression, c.typed, d.key, c.time FROM choices c JOIN documents d ON d.id = c.document "
        "WHERE c.withdrawn = 0 AND d.key IS NOT NULL",
        (),
    )
    typed_texts = {impression: typed for impression, typed, *_ in chosen if None not in (impression, typed)}
    for gone in of_body_words.keys() - typed_texts.keys():
        del of_body_words[gone]
    for impression in typed_texts.keys() - of_body_words.keys():
        of_body_words[impression] = _is_of_body_word(rows, impression, typed_texts[impression])
    every = [(typed, key.decode("utf-8", "surrogateescape"), time) for _, typed, key, time in chosen]
    part = [opening for (impression, *_), opening in zip(chosen, every, strict=True) if of_body_words.get(impression)]
    return habits.count_openings(every, now)._replace(by_body_word=habits.count_openings(part, now))


def _is_of_body_word(rows: Rows, impression: int, typed: str) -> bool:
    if len(typed.split()) != 1:
        return False  # without reading the features
    lists = rows(
        "SELECT i.candidates, i.features, s.names FROM impressions i JOIN feature_sets s ON s.id = i.feature_set "
        "WHERE i.id = ?",
        (impression,),
    )
    return any(
        is_body_word(
            typed,
            np.frombuffer(features, dtype="<f4").reshape(candidates, -1),
            [name.partition(":")[0] for name in json.loads(names)],
        )
        for candidates, features, names in lists
    )
