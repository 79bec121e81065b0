"""What a simulated person has opened, as the node counts it (`foltr.node.memory`), over document numbers."""

from typing import NamedTuple

import numpy as np

from foltr.node.memory import DECAY, FOLDER_SMOOTHING, saturated
from foltr.types import Array

SEARCHES_A_DAY = 10  # counts decay by the day


class History(NamedTuple):
    """Decayed counts; arrays change in place."""

    folder_of: Array  # [documents] number of the folder
    documents: Array  # [documents] openings
    folders: Array  # [folders] openings


def no_history(folder_of: Array) -> History:
    return History(folder_of, np.zeros(len(folder_of)), np.zeros(int(folder_of.max(initial=0)) + 1))


def opened(history: History, document: int) -> None:
    history.documents[document] += 1
    history.folders[history.folder_of[document]] += 1


def next_day(history: History) -> None:
    history.documents[:] *= DECAY
    history.folders[:] *= DECAY


def columns(history: History, documents: Array) -> tuple[Array, Array]:
    """The features `opened` and `folder` of some documents, as the node scales them."""
    shares = history.folders[history.folder_of[documents]] / (history.folders.sum() + FOLDER_SMOOTHING)
    return saturated(history.documents[documents]), shares
