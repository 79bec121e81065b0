"""Openings against the sizes of folders in the live index, computed again when choices, the day or documents change."""

from typing import NamedTuple

from foltr.node.index.store import Store
from foltr.node.learning import memory
from foltr.node.learning.memory import Openings
from foltr.node.search.reader import Reader


class _Known(NamedTuple):
    counted: Openings  # the log returns the same object until something changes
    store: Store
    generation: int
    weighed: Openings


class WeighedOpenings:
    """Remembers the last result: while somebody types, nothing of it changes."""

    def __init__(self) -> None:
        self._known: _Known | None = None

    def __call__(self, counted: Openings, reader: Reader | None) -> Openings:
        if reader is None or not counted.documents:
            return counted
        known, store, generation = self._known, reader.store, reader.store.generation
        if known is None or known.counted is not counted or known.store is not store or known.generation != generation:
            sizes, indexed = store.folder_sizes(counted.folders), store.collection().documents
            known = _Known(counted, store, generation, memory.weighed(counted, sizes, indexed))
            self._known = known
        return known.weighed
