"""The whole list of a query as a person sees it: ranked, perhaps in another spelling, pinned documents first, hidden
ones left out; or the scored candidates with the newest first.

A list, its filters and its previews are several requests for one ranking. `RecentRankings` ranks again only when
something that the ranking depends on has changed.
"""

from collections import OrderedDict
from collections.abc import Collection, Hashable
from typing import NamedTuple

import numpy as np

from foltr.node.index.candidate_queries import SHORTEST_IN_BODIES
from foltr.node.index.store import Document
from foltr.node.learning import curations as node_curations
from foltr.node.learning.curations import Curations
from foltr.node.learning.habits import Openings
from foltr.node.learning.log import Log
from foltr.node.learning.memory import DAY
from foltr.node.search import pins, presentation, ranking
from foltr.node.search import query as language
from foltr.node.search.query import Query
from foltr.node.search.ranking import Context, Ranking, RankingPage, take
from foltr.node.search.reader import Reader
from foltr.node.search.results import Counts, Row
from foltr.node.search.spelling import rank_with_spelling

_MANY_COMPLETIONS = 64  # words that begin as the last one of a query: those that have all words are not counted


class Listed(NamedTuple):
    """A list with what it was computed from."""

    reader: Reader
    query: Query
    context: Context
    curations: Curations  # what is pinned or hidden for the query
    ranking: Ranking
    counts: Counts

    @property
    def total(self) -> int:
        return len(self.ranking.documents) + len(self.ranking.tail)

    def documents(self) -> list[Document]:
        return [*self.ranking.documents, *self.reader.documents(self.ranking.tail)]


class _Held(NamedTuple):
    listed: Listed
    openings: Openings  # the log returns the same object until choices or the day change


class RecentRankings:
    """The rankings of the last queries of one node, each as long as nothing that it depends on has changed.

    The key has the query, the depth, pins, memory, both versions of the weights, exploration, the day and the state of
    the index. A ranking is ranked again when one of its files has been deleted since, and is not held when a file of a
    candidate was missing, because it may come back without a change of the index.
    """

    HELD = 8

    def __init__(self) -> None:
        self._held: OrderedDict[Hashable, _Held] = OrderedDict()

    def listed(self, reader: Reader, log: Log, context: Context, *, newest_first: bool = False) -> Listed:
        """The list of a query, ranked again only where it has to be."""
        curations = node_curations.of(log, context.text)
        key = _dependencies(reader, context, curations)
        held = self._held.get(key)
        if held is None or not _is_valid(held, reader, context):
            held = _Held(_listed(reader, context, curations), context.openings)
            self._held.pop(key, None)
            if not held.listed.ranking.missing:
                self._held[key] = held
        else:
            self._held.move_to_end(key)
        while len(self._held) > self.HELD:
            self._held.popitem(last=False)
        result = held.listed
        return result._replace(ranking=_by_date(result.ranking)) if newest_first else result

    def clear(self) -> None:
        """Drops queries and documents, which must not stay in memory after they were erased."""
        self._held.clear()


def _dependencies(reader: Reader, context: Context, curations: Curations) -> Hashable:
    remembered = tuple(
        (choice.document, choice.typed, presentation.times_used(choice)) for choice in context.remembered
    )
    models = tuple(
        (model.version, model.weights.tobytes(), tuple((feature.name, feature.scaling) for feature in model.features))
        for model in (context.model, context.trusted)
        if model is not None
    )
    day = int(context.now // DAY)
    return (context.text, context.depth, curations, remembered, models, context.exploration, day, reader.state())


def _is_valid(held: _Held, reader: Reader, context: Context) -> bool:
    same_index = held.listed.reader is reader and held.openings is context.openings
    return same_index and all(map(ranking.is_there, held.listed.ranking.documents))


def _listed(reader: Reader, context: Context, curations: Curations) -> Listed:
    """Ranks a query, then places pinned documents first and leaves hidden ones out."""
    query = language.parse(context.text)
    context = pins.as_candidates(context, curations)
    hidden = [number for key in curations.hidden for number in reader.documents_of(key)]
    ranked = rank_with_spelling(reader, query, context)
    placed = pins.placed(ranked, curations, hidden)
    more = len(ranked.documents) + len(ranked.tail) + ranked.missing >= context.depth
    counts = _counts(reader, query, placed, more=more, most=context.depth, hidden=hidden)
    return Listed(reader, query, context, curations, placed, counts)


def _counts(reader: Reader, query: Query, listed: Ranking, *, more: bool, most: int, hidden: Collection[int]) -> Counts:
    """Counts the documents of a list, and those of them that have all words; exact up to the end of the list."""
    asked, numbers = listed.asked, {*(document.id for document in listed.documents), *listed.tail}
    some = Counts(most if more else len(numbers), None, more=more, kind=_kind(query, listed))
    unfinished = any(len(term.words) > _MANY_COMPLETIONS for term in asked.terms)  # somebody types on
    if len(asked.terms) < 2 or listed.respelt or some.kind != "exactly" or unfinished:
        return some
    with_all = None if hidden or listed.missing else reader.count_with_all_words(query, asked)  # much faster
    if with_all is None:
        having = set(reader.with_all_words(query, asked, most + 1).tolist())
        with_all = len(having.difference(hidden) if more else having & numbers)
    return some._replace(all_words=min(with_all, most), more_with_all=with_all > most)


def _kind(query: Query, listed: Ranking) -> str:
    """How exact counts are. After one or two letters rare words are not looked for; phrases and alternatives of
    conditions are checked in the documents that are scored, and in others when they are shown."""
    if any(len(term.text) < SHORTEST_IN_BODIES and len(term.words) > 1 for term in listed.asked.terms):
        return "at least"
    checked_later = [group for group in query.conditions if not all(clause.field for clause in group)]
    exact = all(len(group) == 1 and not group[0].quoted for group in checked_later)
    return "exactly" if exact or not listed.tail else "at most"


def rows_at(found: Listed, places: slice) -> tuple[RankingPage, tuple[Row, ...]]:
    """Returns one page of a list, and its rows as they are shown."""
    page = ranking.page_of(found.reader, found.query, found.ranking, found.context, places)
    rows = presentation.rows(found.reader, found.query, found.ranking, page, places.start + 1)
    return page, pins.explained(rows, [ranking.key_of(document) for document in page.documents], found.curations)


def _by_date(ranked: Ranking) -> Ranking:
    order = sorted(range(len(ranked.documents)), key=lambda row: -ranked.documents[row].date)
    return take(ranked, order)._replace(propensities=np.ones(len(order)), tail=[], teams=None)
