"""Documents that a simulated person opened, counted and weighted as on a node (`node.learning.habits`)."""

from typing import NamedTuple

import numpy as np

from foltr.node.learning.habits import NO_HABITS, Habits, document_lift, folder_lift, habits
from foltr.node.learning.memory import DECAY
from foltr.types import Array

SEARCHES_A_DAY = 10  # counts decay by the day


class History:
    """Decayed counts of openings; they change in place."""

    def __init__(self, folder_of: Array) -> None:
        self.folder_of = folder_of  # [documents] number of the folder
        self.sizes = np.bincount(folder_of)  # [folders] documents
        self.documents = np.zeros(len(folder_of))
        self.folders = np.zeros(len(self.sizes))
        self.day = 0
        self.newest: dict[tuple[str, int], int] = {}  # typed text and document -> day
        self.known: Habits | None = NO_HABITS  # None: they must be estimated again


class Counts(NamedTuple):
    """Everything that a person opened, and the part that followed searches for a single word of bodies."""

    all: History
    by_body_word: History


def no_history(folder_of: Array) -> Counts:
    return Counts(History(folder_of), History(folder_of))


def opened(counts: Counts, document: int, typed: str, *, body_word: bool) -> None:
    """Counts one more opening; `body_word` says of which kind its search was."""
    for history in counts if body_word else (counts.all,):
        _opened(history, document, typed)


def _opened(history: History, document: int, typed: str) -> None:
    """One more opening; of those with the same text and document the newest counts."""
    earlier = history.newest.get((typed, document))
    weight = 1.0 if earlier is None else 1.0 - DECAY ** (history.day - earlier)
    history.newest[typed, document] = history.day
    history.documents[document] += weight
    history.folders[history.folder_of[document]] += weight
    history.known = None


def next_day(counts: Counts) -> None:
    for history in counts:
        history.day += 1
        history.documents *= DECAY
        history.folders *= DECAY
        history.known = None


def columns(counts: Counts, documents: Array, *, body_word: bool) -> tuple[Array, Array]:
    """The features `opened` and `folder` of some documents for a search of one kind, as the node scales them."""
    history = counts.by_body_word if body_word else counts.all
    if history.known is None:
        history.known = _habits(history)
    folder = history.folder_of[documents]
    sizes, in_folder = history.sizes[folder], history.folders[folder]
    total = history.folders.sum()
    if not total > 0:
        return np.zeros(len(documents)), np.zeros(len(documents))
    within = document_lift(history.known, history.documents[documents], in_folder, sizes)
    among = folder_lift(history.known, in_folder, sizes / len(history.documents), total)
    return np.log(within), np.log(among)


def _habits(history: History) -> Habits:
    found = np.flatnonzero(history.documents)
    folders, place = np.unique(history.folder_of[found], return_inverse=True)
    return habits(history.documents[found], place, history.sizes[folders], len(history.documents))
