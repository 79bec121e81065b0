"""The whole list of a query as a person sees it: ranked, perhaps in another spelling, pinned documents first, hidden
ones left out; or the scored candidates with the newest first."""

from typing import NamedTuple

import numpy as np

from foltr.node.index.store import Document
from foltr.node.learning.log import Log
from foltr.node.search import pins, presentation, ranking
from foltr.node.search import query as language
from foltr.node.search.pins import Pins
from foltr.node.search.query import Query
from foltr.node.search.ranking import Context, Ranking, RankingPage, take
from foltr.node.search.reader import Reader
from foltr.node.search.results import Row
from foltr.node.search.spelling import rank_with_spelling


class Listed(NamedTuple):
    """A list with what it was computed from."""

    reader: Reader
    query: Query
    context: Context
    said: Pins  # what is pinned or hidden for the query
    ranking: Ranking

    @property
    def total(self) -> int:
        return len(self.ranking.documents) + len(self.ranking.tail)

    def documents(self) -> list[Document]:
        return [*self.ranking.documents, *self.reader.documents(self.ranking.tail)]


def listed(reader: Reader, log: Log, context: Context, *, newest_first: bool = False) -> Listed:
    """Ranks a query; the last steps are pins, hidden documents and the order by date."""
    said, query = pins.of(log, context.text), language.parse(context.text)
    context = pins.as_candidates(context, said)
    hidden = [number for key in said.hidden for number in reader.documents_of(key)]
    found = pins.placed(rank_with_spelling(reader, query, context), said, hidden)
    return Listed(reader, query, context, said, _by_date(found) if newest_first else found)


def rows_at(found: Listed, places: slice) -> tuple[RankingPage, tuple[Row, ...]]:
    """Returns one page of a list, and its rows as they are shown."""
    page = ranking.page_of(found.reader, found.query, found.ranking, found.context, places)
    rows = presentation.rows(found.reader, found.query, found.ranking, page, places.start + 1)
    return page, pins.explained(rows, [ranking.key_of(document) for document in page.documents], found.said)


def _by_date(ranked: Ranking) -> Ranking:
    order = sorted(range(len(ranked.documents)), key=lambda row: -ranked.documents[row].date)
    return take(ranked, order)._replace(propensities=np.ones(len(order)), tail=[], teams=None)
