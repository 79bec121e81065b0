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
from typing import NamedTuple

import numpy as np

from foltr.node.index.store import Document, printable
from foltr.node.learning import guard, memory
from foltr.node.learning.memory import DAY, Openings, Remembered
from foltr.node.learning.versions import Weights
from foltr.node.search.conditions import satisfied
from foltr.node.search.query import Query
from foltr.node.search.reader import Reader
from foltr.node.search.results import Contribution
from foltr.text import matching, occurrences
from foltr.text.analysis import fold
from foltr.text.fields import FIELDS, Facts, QueryText, Tokens
from foltr.text.occurrences import Occurrences
from foltr.types import Array

TOP_K = 100  # candidates that are scored
LISTED = 1_000  # documents of a list, unless more are asked for
NAMES = tuple(feature.name for feature in matching.FEATURES)
_NAME_EXACT = NAMES.index("name_exact")


class Model(NamedTuple):
    """A version of the weights."""

    version: int
    features: tuple[matching.Feature, ...]  # that it uses, with their scaling
    weights: Array  # [features]
    columns: Array  # [features] their places in `matching.FEATURES`


def model_of(weights: Weights) -> Model:
    columns = matching.columns([one.name for one in weights.features])
    features = tuple(
        matching.FEATURES[column]._replace(scaling=one.scaling)
        for column, one in zip(columns, weights.features, strict=True)
    )
    return Model(weights.version, features, np.array([one.weight for one in weights.features]), columns)


class Context(NamedTuple):
    """What a list depends on beside the query and the index."""

    text: str  # as typed
    model: Model
    trusted: Model | None  # while `model` is on trial: the version that lists are interleaved with
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


class Page(NamedTuple):
    """The rows of a list that are shown."""

    documents: list[Document]
    scores: Array  # [k]
    raw: Array  # [k, features]
    scaled: Array  # [k, features of the model]
    propensities: Array  # [k]
    teams: Array | None  # [k]
    others: Array  # [m] rows of the ranking that are not shown


class _Admitted(NamedTuple):
    documents: list[Document]
    found: Occurrences  # of the query's terms in them; their other words are not held


def rank(reader: Reader, query: Query, context: Context) -> Ranking:
    """The list of a query as it is spelt."""
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
    place_of = {row: place for place, row in enumerate(ordered.rows)}
    places = [place_of[row] for row in order]
    shown = {one.id for one in documents}
    return Ranking(
        documents=[documents[i] for i in order],
        scores=scores[order],
        raw=raw[order],
        scaled=scaled[order],
        tail=[one for one in tail if one not in shown],
        propensities=_overwritten(ordered.propensities[places], lifted, 1.0),
        teams=None if ordered.teams is None else _overwritten(ordered.teams[places], lifted, guard.BOTH),
        remembered=remembered,
        respelt=frozenset(),
        asked=asked,
        suggestion=None,
    )


def cut(reader: Reader, query: Query, ranking: Ranking, context: Context, places: slice) -> Page:
    """Some places of a list. Documents behind the scored ones are scored beside them and stay behind them."""
    n = len(ranking.documents)
    scored = np.arange(n)[places]
    page = _rows(ranking, scored)
    behind = slice(max(0, places.start - n), max(0, places.stop - n))
    found = _admit(reader, query, ranking.asked, ranking.tail[behind])
    if not found.documents:
        return page
    raw = _features(reader, ranking.asked, found, context)
    scaled = scale(np.concatenate([ranking.raw, raw]), context.model)[n:]
    more = len(found.documents)
    return page._replace(
        documents=page.documents + found.documents,
        scores=np.concatenate([page.scores, _scores(scaled, context.model)]),
        raw=np.concatenate([page.raw, raw]),
        scaled=np.concatenate([page.scaled, scaled]),
        propensities=np.concatenate([page.propensities, np.ones(more)]),
        teams=None if page.teams is None else np.concatenate([page.teams, np.full(more, guard.BOTH)]),
    )


def _rows(ranking: Ranking, rows: Array) -> Page:
    return Page(
        documents=[ranking.documents[i] for i in rows],
        scores=ranking.scores[rows],
        raw=ranking.raw[rows],
        scaled=ranking.scaled[rows],
        propensities=ranking.propensities[rows],
        teams=None if ranking.teams is None else ranking.teams[rows],
        others=np.setdiff1d(np.arange(len(ranking.documents)), rows),
    )


def contributions(page: Page, row: int, model: Model) -> list[Contribution]:
    """What every feature adds to the score of a row; the points add up to the score."""
    raw, points = page.raw[row, model.columns], page.scaled[row] * model.weights
    columns = zip(model.features, raw, page.scaled[row], model.weights, points, strict=True)
    return [Contribution(feature.name, *map(float, values)) for feature, *values in columns]


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
    documents = [one for one in reader.documents(ids) if is_there(one)]
    parts, start = [_Admitted([], occurrences.joined([], len(asked.terms)))], 0
    for tokens in reader.blocks([one.id for one in documents]):
        here = documents[start : start + len(tokens.offsets) // len(FIELDS)]
        start += len(here)
        if query.conditions:
            rows = np.flatnonzero(satisfied(query.conditions, here, tokens, reader.words()))
            here, tokens = [here[row] for row in rows], _chosen(tokens, rows)
        parts.append(_Admitted(here, occurrences.find(asked, tokens, reader.store.stop_count)))
    return _joined(parts)


def _first_admitted(reader: Reader, query: Query, asked: QueryText, ids: Sequence[int]) -> tuple[_Admitted, list[int]]:
    """The first TOP_K documents that satisfy the conditions and exist, and the candidates behind them."""
    found, start = _admit(reader, query, asked, ids[:TOP_K]), TOP_K
    while len(found.documents) < TOP_K and start < len(ids):
        missing = TOP_K - len(found.documents)
        found = _joined([found, _admit(reader, query, asked, ids[start : start + missing])])
        start += missing
    return found, list(ids[start:])


def _with_remembered(reader: Reader, query: Query, asked: QueryText, found: _Admitted, context: Context) -> _Admitted:
    """Adds remembered documents that match the query and its conditions but are no candidates."""
    known = {key_of(one) for one in found.documents}
    missing = [one.document for one in context.remembered if one.document not in known]
    extra = [_admit(reader, query, asked, [number]) for key in missing for number in reader.documents_of(key)]
    return _joined([found, *(one for one in extra if not asked.terms or one.found.matched.any())])


def _features(reader: Reader, asked: QueryText, found: _Admitted, context: Context) -> Array:
    """[n, features] raw. Without terms there is nothing to compare."""
    if not asked.terms or not found.documents:
        return np.zeros((len(found.documents), len(NAMES)))
    known = facts(found.documents, context)
    return matching.of_occurrences(asked, found.found, reader.store.collection(), known)


def scale(raw: Array, model: Model) -> Array:
    """[n, features of the model] as the model sees them."""
    return matching.scale(raw[:, model.columns], model.features)


def _scores(scaled: Array, model: Model) -> Array:
    return (scaled * model.weights).sum(axis=1)  # row by row: a matrix product may round a row by its place


def facts(documents: Sequence[Document], context: Context) -> Facts:
    """What is known beyond words. Ages are whole days, so that a list does not change while it is read."""
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


def _chosen(tokens: Tokens, rows: Array) -> Tokens:
    """The words of some of the documents."""
    starts, ends = tokens.offsets[rows * len(FIELDS)], tokens.offsets[(rows + 1) * len(FIELDS)]
    words = [tokens.words[start:end] for start, end in zip(starts, ends, strict=True)]
    lengths = np.diff(tokens.offsets).reshape(-1, len(FIELDS))[rows].ravel()
    return Tokens(np.concatenate([tokens.words[:0], *words]), np.concatenate([[0], np.cumsum(lengths)]))


def _joined(parts: Sequence[_Admitted]) -> _Admitted:
    if len(parts) == 1:
        return parts[0]
    terms = len(parts[0].found.member)
    documents = [document for part in parts for document in part.documents]
    return _Admitted(documents, occurrences.joined([part.found for part in parts], terms))
