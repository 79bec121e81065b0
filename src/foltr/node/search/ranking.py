"""From a query to a list: candidates, conditions, features, a linear score, the memory of choices.

    1  candidates    the best TOP_K documents by BM25 over all text, as the index returns them
    2  conditions    phrases, exclusions and fields; files that are gone
    3  score         sum of weight x scaled feature, in logits
    4  placement     a file whose name is the query; then at most two documents that were chosen for this text before

Equal scores are ordered by path, so that the same query over unchanged documents gives the same list. Behind the
candidates that were scored the list goes on in the order of the index.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from foltr.node.index.store import Document, printable
from foltr.node.learning import guard, memory
from foltr.node.learning.memory import DAY, Openings, Remembered
from foltr.node.learning.versions import Weights
from foltr.node.search.conditions import satisfied
from foltr.node.search.query import Query
from foltr.node.search.reader import Reader
from foltr.text import matching, occurrences
from foltr.text.analysis import fold
from foltr.text.fields import FIELDS, Facts, QueryText, Tokens
from foltr.text.occurrences import Occurrences
from foltr.types import Array

TOP_K = 100  # candidates that are scored
LISTED = 1_000  # documents of a list, unless more are asked for
NAMES = tuple(feature.name for feature in matching.FEATURES)
_NAME_EXACT = NAMES.index("name_exact")


class LinearModel(NamedTuple):
    """A version of the weights, as ranking applies it."""

    version: int
    features: tuple[matching.Feature, ...]  # that it uses, with their scaling
    weights: Array  # [features]
    columns: Array  # [features] their places in `matching.FEATURES`


def model_of(weights: Weights) -> LinearModel:
    columns = matching.columns([one.name for one in weights.features])
    features = tuple(
        matching.FEATURES[column]._replace(scaling=one.scaling)
        for column, one in zip(columns, weights.features, strict=True)
    )
    return LinearModel(weights.version, features, np.array([one.weight for one in weights.features]), columns)


class Context(NamedTuple):
    """Everything that a list depends on beside the query and the index."""

    text: str  # as typed
    model: LinearModel
    trusted: LinearModel | None  # while `model` is on trial: the version that lists are interleaved with
    openings: Openings  # what was opened before, as of a day
    remembered: list[Remembered]  # what was opened for this text before
    now: float  # seconds since 1970
    exploration: bool = False
    depth: int = LISTED  # documents that the list may have


class Ranking(NamedTuple):
    """A list with everything that it was computed from; rows are in the order of display."""

    documents: list[Document]  # [n] scored
    scores: Array  # [n]
    raw: Array  # [n, features]
    scaled: Array  # [n, features of the model]
    tail: list[int]  # documents behind them, in the order of the index
    propensities: Array  # [n] chance of the document at its place
    teams: Array | None  # [n] of an interleaved list: which version brought the document
    remembered: dict[int, Remembered]  # documents that memory placed
    respelt: frozenset[int]  # documents that match another spelling
    asked: QueryText
    suggestion: str | None


class RankingPage(NamedTuple):
    """The rows of a ranking that are shown."""

    documents: list[Document]
    scores: Array  # [k]
    raw: Array  # [k, features]
    scaled: Array  # [k, features of the model]
    propensities: Array  # [k]
    teams: Array | None  # [k]
    others: Array  # [m] rows of the ranking that are not shown


Rows = TypeVar("Rows", Ranking, RankingPage)


def take(table: Rows, rows: Sequence[int] | Array) -> Rows:
    """The given rows in the given order; what is not one value per row stays as it is."""
    rows = np.asarray(rows, dtype=np.int64)
    return table._replace(
        documents=[table.documents[row] for row in rows],
        scores=table.scores[rows],
        raw=table.raw[rows],
        scaled=table.scaled[rows],
        propensities=table.propensities[rows],
        teams=None if table.teams is None else table.teams[rows],
    )


def join(first: Rows, second: Rows) -> Rows:
    """The rows of `first`, then those of `second`; what is not one value per row is that of `second`."""
    without_teams = first.teams is None or second.teams is None
    return second._replace(
        documents=first.documents + second.documents,
        scores=np.concatenate([first.scores, second.scores]),
        raw=np.concatenate([first.raw, second.raw]),
        scaled=np.concatenate([first.scaled, second.scaled]),
        propensities=np.concatenate([first.propensities, second.propensities]),
        teams=None if without_teams else np.concatenate([first.teams, second.teams]),
    )


class _Admitted(NamedTuple):
    documents: list[Document]
    occurrences: Occurrences  # of the query's terms in them; their other words are not held


def rank(reader: Reader, query: Query, context: Context) -> Ranking:
    """The ranking of a query as it is spelt."""
    asked = reader.asked(query)
    ids = reader.candidates(query, asked, context.depth) if asked.terms else reader.recent(query, context.depth)
    admitted, tail = _first_admitted(reader, query, asked, ids)
    admitted = _with_remembered(reader, query, asked, admitted, context)
    documents = admitted.documents
    raw = _features(reader, asked, admitted, context)
    scaled = scale(raw, context.model)
    scores = _scores(scaled, context.model)
    ordered = _ordered(documents, raw, scores, context) if asked.terms else _as_given(len(documents))
    order, lifted, remembered = _placed(asked, documents, raw, ordered.rows, context)
    scored = {document.id for document in documents}
    ranking = Ranking(
        documents=documents,
        scores=scores,
        raw=raw,
        scaled=scaled,
        tail=[number for number in tail if number not in scored],
        propensities=_by_row(ordered.propensities, ordered.rows),
        teams=None if ordered.teams is None else _by_row(ordered.teams, ordered.rows),
        remembered=remembered,
        respelt=frozenset(),
        asked=asked,
        suggestion=None,
    )
    ranking = take(ranking, order)
    return ranking._replace(
        propensities=_overwritten(ranking.propensities, lifted, 1.0),
        teams=None if ranking.teams is None else _overwritten(ranking.teams, lifted, guard.BOTH),
    )


def page_of(reader: Reader, query: Query, ranking: Ranking, context: Context, places: slice) -> RankingPage:
    """Returns one page of the ranking. Results beyond the first 100 candidates are scored on demand and keep their
    position."""
    n = len(ranking.documents)
    page = _page(ranking, np.arange(n)[places])
    behind = slice(max(0, places.start - n), max(0, places.stop - n))
    admitted = _admit(reader, query, ranking.asked, ranking.tail[behind])
    if not admitted.documents:
        return page
    raw = _features(reader, ranking.asked, admitted, context)
    scaled = scale(np.concatenate([ranking.raw, raw]), context.model)[n:]
    more = len(admitted.documents)
    teams = np.full(more, guard.BOTH)
    scores = _scores(scaled, context.model)
    return join(page, RankingPage(admitted.documents, scores, raw, scaled, np.ones(more), teams, page.others))


def _page(ranking: Ranking, rows: Array) -> RankingPage:
    shown = take(ranking, rows)
    others = np.setdiff1d(np.arange(len(ranking.documents)), rows)
    return RankingPage(shown.documents, shown.scores, shown.raw, shown.scaled, shown.propensities, shown.teams, others)


def key_of(document: Document) -> str:
    return memory.document_key(document.path, document.part)


def is_there(document: Document) -> bool:
    """Whether the file still exists: a deleted one is never shown."""
    try:
        os.stat(document.path)  # noqa: PTH116 - a hundred times a query
    except (OSError, ValueError):
        return False
    return True


def _admit(reader: Reader, query: Query, asked: QueryText, ids: Sequence[int]) -> _Admitted:
    """Documents that exist and satisfy the conditions; their words are read and looked through block by block."""
    documents = [document for document in reader.documents(ids) if is_there(document)]
    parts, start = [_Admitted([], occurrences.joined([], len(asked.terms)))], 0
    for tokens in reader.blocks([document.id for document in documents]):
        here = documents[start : start + len(tokens.offsets) // len(FIELDS)]
        start += len(here)
        if query.conditions:
            rows = np.flatnonzero(satisfied(query.conditions, here, tokens, reader.words()))
            here, tokens = [here[row] for row in rows], _tokens_of(tokens, rows)
        parts.append(_Admitted(here, occurrences.find(asked, tokens, reader.store.stop_count)))
    return _joined(parts)


def _first_admitted(reader: Reader, query: Query, asked: QueryText, ids: Sequence[int]) -> tuple[_Admitted, list[int]]:
    """The first TOP_K documents that satisfy the conditions and exist, and the candidates behind them."""
    admitted, start = _admit(reader, query, asked, ids[:TOP_K]), TOP_K
    while len(admitted.documents) < TOP_K and start < len(ids):
        missing = TOP_K - len(admitted.documents)
        admitted = _joined([admitted, _admit(reader, query, asked, ids[start : start + missing])])
        start += missing
    return admitted, list(ids[start:])


def _with_remembered(
    reader: Reader, query: Query, asked: QueryText, admitted: _Admitted, context: Context
) -> _Admitted:
    """Adds remembered documents that match the query and its conditions but are no candidates."""
    keys = {key_of(document) for document in admitted.documents}
    missing = [choice.document for choice in context.remembered if choice.document not in keys]
    extra = [_admit(reader, query, asked, [number]) for key in missing for number in reader.documents_of(key)]
    that_match = [part for part in extra if not asked.terms or part.occurrences.matched.any()]
    return _joined([admitted, *that_match])


def _features(reader: Reader, asked: QueryText, admitted: _Admitted, context: Context) -> Array:
    """[n, features] raw; zero for a query without terms."""
    if not asked.terms or not admitted.documents:
        return np.zeros((len(admitted.documents), len(NAMES)))
    known = facts(admitted.documents, context)
    return matching.of_occurrences(asked, admitted.occurrences, reader.store.collection(), known)


def scale(raw: Array, model: LinearModel) -> Array:
    """[n, features of the model] as the model sees them."""
    return matching.scale(raw[:, model.columns], model.features)


def _scores(scaled: Array, model: LinearModel) -> Array:
    return (scaled * model.weights).sum(axis=1)  # row by row: a matrix product may round a row by its place


def facts(documents: Sequence[Document], context: Context) -> Facts:
    """Facts beyond the words of documents. Ages are whole days, so that a list does not change while it is read."""
    keys = [key_of(one) for one in documents]
    dates = np.array([one.date for one in documents])
    return Facts(
        titles=tuple(fold(one.title) for one in documents),
        names=tuple(fold(printable(_name(one).rpartition(".")[0] or _name(one))) for one in documents),
        age_days=np.maximum(0.0, np.floor(context.now / DAY) - np.floor(dates / DAY)),
        depth=np.array([one.path.count("/") - one.root.rstrip("/").count("/") - 1 for one in documents], np.float64),
        opened=memory.opened(context.openings, keys),
        folder_opened=memory.folder_opened(context.openings, keys),
    )


class _Ordered(NamedTuple):
    rows: list[int]
    propensities: Array  # [n]
    teams: Array | None  # [n]


def _as_given(n: int) -> _Ordered:
    return _Ordered(list(range(n)), np.ones(n), None)


def _ordered(documents: Sequence[Document], raw: Array, scores: Array, context: Context) -> _Ordered:
    """Rows by score; interleaved while a version is on trial; near-ties exchanged where the person allows it."""
    keys = [os.fsencode(key_of(one)) for one in documents]
    rows = _by_score(scores, keys)
    if context.trusted is not None:
        older = _by_score(_scores(scale(raw, context.trusted), context.trusted), keys)
        coins = guard.coins_of(memory.typed_text(context.text), (context.trusted.version, context.model.version))
        both = guard.interleave(older, rows, coins)
        return _Ordered(list(both.order), both.propensities, both.teams)
    if not context.exploration:
        return _as_given(len(rows))._replace(rows=rows)
    explored = guard.explore(
        rows,
        scores[rows],
        query=memory.typed_text(context.text),
        day=int(context.now // DAY),
        remembered=bool(context.remembered),
    )
    return _Ordered(list(explored.order), explored.propensities, None)


def _by_score(scores: Array, keys: Sequence[bytes]) -> list[int]:
    return sorted(range(len(keys)), key=lambda i: (-scores[i], keys[i]))


def _by_row(by_place: Array, rows: list[int]) -> Array:
    """[n] values of rows, from the values of the places at which the rows stand."""
    values = np.empty_like(by_place)
    values[rows] = by_place
    return values


def _overwritten(values: Array, places: list[int], value: float) -> Array:
    changed = values.copy()
    changed[places] = value
    return changed


def _placed(
    asked: QueryText, documents: Sequence[Document], raw: Array, order: list[int], context: Context
) -> tuple[list[int], list[int], dict[int, Remembered]]:
    """The order with exact names and remembered documents lifted, the places of these, and what memory knows."""
    row_of = {key_of(one): i for i, one in enumerate(documents)}
    known = {row_of[one.document]: one for one in context.remembered if one.document in row_of}
    is_exact = [raw[i, _NAME_EXACT] > 0 or _is_name(one, asked.folded) for i, one in enumerate(documents)]
    exact = [row for row in order if is_exact[row]]
    named_first = [*exact[:1], *(row for row in order if row not in exact[:1])]
    placed, _ = memory.place(named_first, known, exact)
    top = len(exact[:1]) + memory.PLACES
    lifted = [place for place, row in enumerate(placed[:top]) if row in known or row in exact[:1]]
    remembered = [placed[place] for place in lifted if placed[place] in known][: memory.PLACES]
    return placed, lifted, {documents[row].id: known[row] for row in remembered}


def _is_name(document: Document, folded: str) -> bool:
    """Whether a query is a file's name with its ending."""
    return fold(printable(_name(document))) == folded


def _name(document: Document) -> str:
    return document.path.rpartition("/")[2]


def _tokens_of(tokens: Tokens, rows: Array) -> Tokens:
    """The words of some of the documents."""
    starts, ends = tokens.offsets[rows * len(FIELDS)], tokens.offsets[(rows + 1) * len(FIELDS)]
    words = [tokens.words[start:end] for start, end in zip(starts, ends, strict=True)]
    lengths = np.diff(tokens.offsets).reshape(-1, len(FIELDS))[rows].ravel()
    return Tokens(np.concatenate([tokens.words[:0], *words]), np.concatenate([[0], np.cumsum(lengths)]))


def _joined(parts: Sequence[_Admitted]) -> _Admitted:
    if len(parts) == 1:
        return parts[0]
    terms = len(parts[0].occurrences.member)
    documents = [document for part in parts for document in part.documents]
    return _Admitted(documents, occurrences.joined([part.occurrences for part in parts], terms))
