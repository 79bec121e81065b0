"""The memory of choices of a simulated person, as the node remembers and places what was opened for a typed text."""

from collections.abc import Sequence

import numpy as np

from foltr.lab.people.history import SEARCHES_A_DAY
from foltr.lab.people.searching import Prepared
from foltr.node.learning.memory import DAY, Entry, after_choice, lookup, place, typed_text
from foltr.types import Array


class Memory:
    """Typed texts and the documents that were opened for them."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], Entry] = {}

    def choose(self, search: Prepared, documents: Sequence[int], step: int) -> None:
        """Remembers what was opened in the search of a number."""
        for document in documents:
            pair = typed_text(search.text), str(document)
            self._entries[pair] = after_choice(self._entries.get(pair), _time(step))

    def placed(self, search: Prepared, order: Array, exact_name: Array, step: int) -> Array:
        """[n] the candidates in their order with remembered ones first; `exact_name`: [n] the query is the name."""
        numbers = {str(document): number for number, document in enumerate(search.documents.tolist())}
        found = lookup(self._entries.items(), search.text, _time(step))
        remembered = [numbers[one.document] for one in found if one.document in numbers]
        exact = set(np.flatnonzero(exact_name).tolist())
        return np.array(place(order.tolist(), remembered, exact)[0], dtype=np.int64)


def _time(step: int) -> float:
    return step // SEARCHES_A_DAY * DAY
