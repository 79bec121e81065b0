"""How often the document that a person wanted was the first of the list, and what brought it there.

The document of a list is its last opening (`teaching`). That it was first by memory, or by what the person opens often,
is computed from the log alone:

    by memory    its score was not the highest of the list, and it had been opened before for the same text or for one
                 that begins with it
    by habits    its score was the highest, and without the two features of what was opened another one would have been

A pinned document is first by its pin. Where the version that ranked a list is deleted, nothing is said of habits.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from foltr.errors import InputError
from foltr.node.learning import curations, memory
from foltr.node.learning.log import Log, decoded
from foltr.node.learning.versions import HISTORY, values_of, version
from foltr.types import Array

LAST = 40  # searches with an opening


class Success(NamedTuple):
    """Searches with an opening, the last ones of a log."""

    searches: int
    first: int  # whose document was the first of the list
    by_memory: int  # of these
    by_habits: int  # of these


def success(log: Log, last: int = LAST) -> Success:
    """Counts over the last searches in which something was opened and not taken back."""
    rows = log.rows(
        "SELECT c.impression, c.id, c.position, c.typed, c.document, d.key FROM choices c JOIN documents d "
        "ON d.id = c.document WHERE c.id IN (SELECT max(id) FROM choices WHERE withdrawn = 0 AND impression IS NOT "
        "NULL GROUP BY impression) ORDER BY c.impression DESC LIMIT ?",
        (last,),
    )
    first = [row for row in rows if row[2] == 0]
    reasons = [_reason(log, row) for row in first]
    return Success(len(rows), len(first), reasons.count("memory"), reasons.count("habits"))


def sentence(counted: Success) -> str:
    """The counts in words."""
    if not counted.searches:
        return "Nothing was opened yet."
    reasons = {"by memory": counted.by_memory, "by what you open often": counted.by_habits}
    if counted.searches == 1:
        found = f"Your last search {'had' if counted.first else 'did not have'} the document first"
        return "; ".join([found, *(by for by, count in reasons.items() if count)]) + "."
    found = f"{counted.first} of your last {counted.searches} searches had the document first"
    said = [f"{count} {by}" for by, count in reasons.items() if count]
    return f"{found}; {', '.join(said).replace(' by', ' of them by', 1)}." if said else f"{found}."


def _reason(log: Log, row: Sequence[Any]) -> str:
    """What brought a document to the first place: "memory", "habits" or nothing of the two."""
    impression, choice, _, typed, document, key = row
    stored = log.rows(
        "SELECT i.model_version, i.candidates, i.scores, i.features, s.names FROM impressions i JOIN feature_sets s "
        "ON s.id = i.feature_set WHERE i.id = ?",
        (impression,),
    )
    if not stored:
        return ""
    model_version, candidates, packed, features, names = stored[0]
    scores = np.frombuffer(packed, dtype="<f4").astype(np.float64)
    if scores[0] < scores.max():
        return "memory" if _was_remembered(log, choice, typed, document, key) else ""
    without = scores - _history_points(log, model_version, json.loads(names), features, candidates)
    return "habits" if without[0] < without.max() - 1e-6 else ""  # scores are rounded to float32


def _was_remembered(log: Log, choice: int, typed: str | None, document: int, key: bytes | None) -> bool:
    if typed is None or key is None or decoded(key) in curations.of(log, typed).pinned:
        return False
    earlier = log.rows(
        "SELECT typed FROM choices WHERE document = ? AND id < ? AND withdrawn = 0 AND typed IS NOT NULL",
        (document, choice),
    )
    return any(memory.counts(text, typed) for (text,) in earlier)


def _history_points(log: Log, number: int, names: list[str], packed: bytes, candidates: int) -> Array:
    """[candidates] what the features of openings added to the scores."""
    try:
        weights = values_of(version(log, number), tuple(names))
    except InputError:  # the version is gone
        return np.zeros(candidates)
    columns = [place for place, name in enumerate(names) if name.partition(":")[0] in HISTORY]
    features = np.frombuffer(packed, dtype="<f4").reshape(candidates, -1).astype(np.float64)
    return features[:, columns] @ weights[columns]
