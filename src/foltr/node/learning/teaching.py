"""Choices that teach: which lists of a person weights are fitted to, and which of their documents is the choice.

One rule (`teaches`, `with_last_choice`) holds for the log of a node and for simulated people:

- A typed text teaches once, the first time it has a choice. When a text is typed again, its document was opened before,
  so that earlier openings would look as if they foretold every choice. A beginning of an earlier text with the same
  choice is the same text: people stop typing when they see what they look for.
- Of a list with several openings the last is the choice: the person looked on until then. Documents that were opened
  before it leave the list; they are neither choices nor rivals.

Counts of openings (`habits`) and the memory of choices use every opening.
"""

import json
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from foltr.node.learning.log import Log
from foltr.types import Array, Interaction


class TaughtTexts:
    """The typed texts that had a choice so far."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._chosen_with: dict[Hashable, list[str]] = {}  # document -> texts

    def teaches(self, typed: str | None, document: Hashable) -> bool:
        """Whether the choice of a document teaches, given all choices before; it counts as one of them from now on.

        `typed` is a text as `memory.typed_text` has it. None: it was erased, and nobody knows any more whether it was a
        repetition; nothing is learned from it.
        """
        if typed is None:
            return False
        texts = self._chosen_with.setdefault(document, [])
        is_new = typed not in self._texts and not any(earlier.startswith(typed) for earlier in texts)
        self._texts.add(typed)
        texts.append(typed)
        return is_new


def with_last_choice(interaction: Interaction, openings: Sequence[int]) -> Interaction:
    """The list with its last opening as the only click, without the documents that were opened before.

    `openings` are positions of the list in the order of opening. The rows of the documents leave features and scores
    as well: otherwise a learner would take them for candidates that were not displayed.
    """
    last = openings[-1]
    displayed = np.ones(len(interaction.ranking), dtype=bool)
    displayed[list(openings)] = False
    displayed[last] = True
    clicks = np.zeros(len(displayed), dtype=bool)
    clicks[last] = True
    if displayed.all():
        return interaction._replace(clicks=clicks)
    stays = np.ones(len(interaction.features), dtype=bool)
    stays[np.asarray(interaction.ranking)[~displayed]] = False
    new_rows = np.cumsum(stays) - 1  # [n] row of a candidate among those that stay
    return interaction._replace(
        features=interaction.features[stays],
        ranking=new_rows[np.asarray(interaction.ranking)[displayed]],
        clicks=clicks[displayed],
        scores=interaction.scores[stays],
    )


# ---- from the log


class Lesson(NamedTuple):
    """A list of the log that teaches."""

    impression: int
    choice: int  # number of its last choice
    openings: tuple[int, ...]  # positions, in the order of opening
    typed: str | None


def lessons(log: Log) -> list[Lesson]:
    """The lists that teach, in the order of the log; choices that were withdrawn do not count."""
    rows = log.rows(
        "SELECT impression, id, position, typed, document FROM choices WHERE withdrawn = 0 AND impression IS NOT NULL "
        "ORDER BY impression, id"
    )
    opened: dict[int, tuple[Lesson, int]] = {}  # impression -> list and the document of its last choice
    for impression, choice, position, typed, document in rows:
        before = opened[impression][0].openings if impression in opened else ()
        opened[impression] = Lesson(impression, choice, (*before, position), typed), document
    texts = TaughtTexts()
    return [lesson for lesson, document in opened.values() if texts.teaches(lesson.typed, document)]


def interactions(log: Log, feature_names: tuple[str, ...], taught: Sequence[Lesson]) -> list[Interaction]:
    """The lists of these lessons as a learner takes them; lists that were erased meanwhile are left out.

    Columns follow `feature_names`; a feature that was not logged is 0 for all candidates, so that a softmax over
    them says nothing about its weight.
    """
    columns = {number: _columns(json.loads(names), feature_names)
               for number, names in log.rows("SELECT id, names FROM feature_sets")}  # fmt: skip
    found = (_stored(log, lesson, columns, len(feature_names)) for lesson in taught)
    return [interaction for interaction in found if interaction is not None]


def _stored(
    log: Log, lesson: Lesson, columns: dict[int, tuple[int, Array | None, Array]], width: int
) -> Interaction | None:
    rows = log.rows(
        "SELECT model_version, feature_set, candidates, length(documents), scores, features FROM impressions "
        "WHERE id = ?",
        (lesson.impression,),
    )
    if not rows:
        return None
    version, feature_set, candidates, length, scores, features = rows[0]
    stored, sources, targets = columns[feature_set]
    values = np.frombuffer(features, dtype="<f4").reshape(candidates, stored)
    if sources is not None:
        values, logged = np.zeros((candidates, width), dtype="<f4"), values[:, sources]
        values[:, targets] = logged
    ranking = np.arange(length // 8)
    whole = Interaction(values, ranking, np.zeros(len(ranking), bool), np.frombuffer(scores, dtype="<f4"), version)
    return with_last_choice(whole, lesson.openings)


def _columns(stored: list[str], wanted: tuple[str, ...]) -> tuple[int, Array | None, Array]:
    """Width of the stored rows; None where the columns are the wanted ones, else from which to which they go."""
    if tuple(stored) == wanted:
        return len(stored), None, np.empty(0)
    common = [name for name in wanted if name in stored]
    sources = np.array([stored.index(name) for name in common], dtype=int)
    return len(stored), sources, np.array([wanted.index(name) for name in common], dtype=int)
