"""Lists that were given out: what is needed to log them, to choose from them and to explain them."""

from collections import OrderedDict
from typing import NamedTuple

import numpy as np

from foltr.errors import InputError
from foltr.node.index.store import Document
from foltr.node.learning.log import Impression
from foltr.node.search import ranking
from foltr.node.search.ranking import Model, Page, Ranking
from foltr.node.search.results import Contribution, Results
from foltr.types import Array

_RECENT = 64  # lists that are known; a person chooses from a recent one


class Shown(NamedTuple):
    """A list without what only its computation needed, since many are held."""

    results: Results
    page: Page
    other_scores: Array  # [m] candidates that were scored and are not on the page
    other_scaled: Array  # [m, features of the model]
    model: Model
    impression: int | None = None  # its number in the log, once it is settled


def shown(results: Results, page: Page, ranking: Ranking, model: Model) -> Shown:
    others = page.others
    return Shown(
        results, page, ranking.scores[others].astype(np.float32), ranking.scaled[others].astype(np.float32), model
    )


class Lists:
    """The most recent lists by their search id; equal lists share one."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Shown] = OrderedDict()

    def put(self, known: Shown) -> None:
        name = known.results.search_id
        self._known[name] = known
        self._known.move_to_end(name)
        while len(self._known) > _RECENT:
            self._known.popitem(last=False)

    def get(self, search: Results | str) -> Shown:
        name = search if isinstance(search, str) else search.search_id
        if name not in self._known:
            raise InputError("this list is not known any more; search again")
        return self._known[name]

    def clear(self) -> None:
        self._known.clear()


def place_of(known: Shown, document: int) -> int:
    """The place of a document in a list, counted from 0."""
    for place, row in enumerate(known.results.rows):
        if row.id == document:
            return place
    raise InputError(f"the list did not show document {document}; choose one of its rows")


def document_of(known: Shown, number: int) -> Document:
    """A document by its number; only one that the list shows."""
    return known.page.documents[place_of(known, number)]


def explanation(known: Shown, document: int) -> list[Contribution]:
    return ranking.contributions(known.page, place_of(known, document), known.model)


def impression(known: Shown, now: float) -> Impression:
    """Displayed documents first, then the other candidates that were scored."""
    page, model = known.page, known.model
    return Impression(
        query=known.results.query,
        time=now,
        documents=[ranking.key_of(one) for one in page.documents],
        propensities=page.propensities,
        scores=np.concatenate([page.scores, known.other_scores]),
        features=np.concatenate([page.scaled, known.other_scaled]),
        feature_names=tuple(f"{one.name}:{one.scaling}" for one in model.features),
        model_version=model.version,
        teams=page.teams,
    )
