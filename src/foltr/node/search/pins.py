"""Applies pinned and hidden results (`learning.curations`) to a ranking."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from foltr.node.learning import memory
from foltr.node.learning.curations import Curations
from foltr.node.learning.memory import Remembered
from foltr.node.search.ranking import Context, Ranking, key_of, take
from foltr.node.search.results import Row


def as_candidates(context: Context, curations: Curations) -> Context:
    """Pinned documents are candidates by the rule of the memory: those that match the query and its conditions."""
    known = {one.document for one in context.remembered}
    new = [Remembered(key, 0.0, 1.0, memory.typed_text(context.text)) for key in curations.pinned if key not in known]
    return context._replace(remembered=[*context.remembered, *new])


def placed(ranking: Ranking, curations: Curations, hidden_numbers: Collection[int] = ()) -> Ranking:
    """A list with pinned documents first and without hidden ones; `hidden_numbers` are theirs, for the tail."""
    if not curations.pinned and not curations.hidden:
        return ranking
    keys = [key_of(one) for one in ranking.documents]
    first = [keys.index(key) for key in curations.pinned if key in keys]
    others = [row for row, key in enumerate(keys) if row not in first and key not in curations.hidden]
    rows = np.array([*first, *others], dtype=int)
    lifted = np.arange(len(rows)) < len(first)
    taken = take(ranking, rows)
    return taken._replace(
        propensities=np.where(lifted, 1.0, taken.propensities),
        tail=[one for one in ranking.tail if one not in set(hidden_numbers)],
    )


def explained(rows: Iterable[Row], keys: Sequence[str], curations: Curations) -> tuple[Row, ...]:
    """Rows whose reason says that they are pinned; `keys` are those of the rows."""
    return tuple(
        row._replace(reason="pinned by you for this search", remembered=False) if key in curations.pinned else row
        for row, key in zip(rows, keys, strict=True)
    )
