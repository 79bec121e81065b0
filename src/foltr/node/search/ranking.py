"""From a query to a list: candidates, conditions, features, a linear score, the memory of choices.

    1  candidates    the best TOP_K documents by BM25 over all text, as the index returns them, and the best files of
                     which only the name is known
    2  conditions    phrases, exclusions and fields; files that are gone
    3  score         sum of weight x scaled feature, in logits
    4  placement     files whose name is the query; then at most two documents that were chosen for this text before

A file of which only the name is known counts as a text of the usual length, and scores beyond those of the texts are
cut, so that it changes no score of a text. Equal scores are ordered by path, so that the same query over unchanged
documents gives the same list. Behind the candidates that were scored the list goes on in the order of the index.
"""

import math
import os
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from foltr.node.index.store import Document, printable
from foltr.node.learning import guard, habits, memory
from foltr.node.learning.habits import Openings
from foltr.node.learning.memory import DAY, Remembered
from foltr.node.learning.versions import Weights
from foltr.node.search.conditions import satisfied
from foltr.node.search.query import Query
from foltr.node.search.reader import Reader
from foltr.text import matching, occurrences
from foltr.text.analysis import fold
from foltr.text.fields import FIELDS, Facts, QueryText, Tokens
from foltr.text.names import missing_endings, name_words, stands_in, whole_names
from foltr.text.occurrences import Occurrences
from foltr.types import Array

TOP_K = 100  # candidates that are scored
TOP_NAMES = 40  # files that are scored by their name alone, and more where there are fewer than TOP_K texts
LIFTED_NAMES = 3  # files whose name is the query that are placed first
LISTED = 1_000  # documents of a list, unless more are asked for
NAMES = tuple(feature.name for feature in matching.FEATURES)
_NAME_EXACT, _TITLE_EXACT = NAMES.index("name_exact"), NAMES.index("title_exact")
_BY_RANGE = np.array([place for place, feature in enumerate(matching.FEATURES) if feature.scaling == "range"])
_BODY = FIELDS.index("body")


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
    missing: int = 0  # candidates whose file does not exist, or is away


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
    missing: int = 0  # documents whose file does not exist, or is away


def rank(reader: Reader, query: Query, context: Context) -> Ranking:
    """The ranking of a query as it is spelt."""
    asked = reader.asked(query)
    if asked.terms:
        admitted, tail = _found(reader, query, asked, context.depth)
    else:
        admitted, tail = _first_admitted(reader, query, asked, reader.recent(query, context.depth), TOP_K)
    admitted = _with_remembered(reader, query, asked, admitted, context)
    documents = admitted.documents
    raw = _features(reader, asked, admitted, context)
    if matching.is_body_word(context.text, raw):
        raw = _with_habits_of_body_words(raw, documents, context)
    raw = matching.with_bounded_history(raw)
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
        missing=admitted.missing,
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
    unbounded = _features(reader, ranking.asked, admitted, context)
    if matching.is_body_word(context.text, ranking.raw):
        unbounded = _with_habits_of_body_words(unbounded, admitted.documents, context)
    raw = matching.with_bounded_history(np.concatenate([ranking.raw, unbounded]))
    raw, scaled = raw[n:], scale(raw, context.model)[n:]
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
    """Whether the file exists. One that is missing is shown only while its whole root is away (`index.away`)."""
    try:
        os.stat(document.path)  # noqa: PTH116 - a hundred times a query
    except (OSError, ValueError):
        return False
    return True


def _admit(reader: Reader, query: Query, asked: QueryText, ids: Sequence[int]) -> _Admitted:
    """Documents that exist, or are away, and satisfy the conditions; their words are read block by block."""
    indexed = reader.documents(ids)
    missing = {document.id for document in indexed if not is_there(document)}
    away = reader.roots_away({document.root for document in indexed if document.id in missing})
    documents = [document for document in indexed if document.id not in missing or document.root in away]
    parts, start = [_Admitted([], occurrences.joined([], len(asked.terms)))], 0
    for tokens in reader.blocks([document.id for document in documents]):
        here = documents[start : start + len(tokens.offsets) // len(FIELDS)]
        start += len(here)
        if query.conditions:
            rows = np.flatnonzero(satisfied(query.conditions, here, tokens, reader.words()))
            here, tokens = [here[row] for row in rows], _tokens_of(tokens, rows)
        parts.append(_Admitted(here, occurrences.find(asked, tokens, reader.store.stop_count)))
    return _joined(parts)._replace(missing=len(missing))


def _found(reader: Reader, query: Query, asked: QueryText, depth: int) -> tuple[_Admitted, list[int]]:
    """The candidates that are scored, and those behind them."""
    texts, names = reader.candidates(query, asked, depth)
    admitted, tail = _first_admitted(reader, query, asked, texts, TOP_K)
    if not names:
        return admitted, tail
    most = TOP_K + TOP_NAMES - len(admitted.documents)
    named, other_names = _first_admitted(reader, query, asked, names, most)
    both = _joined([admitted, named])
    behind = [*tail, *other_names]
    return both, behind[: max(0, depth - len(both.documents))]


def _first_admitted(
    reader: Reader, query: Query, asked: QueryText, ids: Sequence[int], most: int
) -> tuple[_Admitted, list[int]]:
    """The first documents that satisfy the conditions and exist, and the candidates behind them."""
    admitted, start = _admit(reader, query, asked, ids[:most]), most
    while len(admitted.documents) < most and start < len(ids):
        missing = most - len(admitted.documents)
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
    return _joined([admitted, *that_match])._replace(missing=admitted.missing + sum(part.missing for part in extra))


def _features(reader: Reader, asked: QueryText, admitted: _Admitted, context: Context) -> Array:
    """[n, features] raw, history not bounded; zero for a query without terms."""
    if not asked.terms or not admitted.documents:
        return np.zeros((len(admitted.documents), len(NAMES)))
    known, collection = facts(admitted.documents, context), reader.store.collection()
    has_text, found = np.array([document.has_text for document in admitted.documents]), admitted.occurrences
    if not has_text.all():
        usual = round(collection.lengths[_BODY] / max(collection.with_field[_BODY], 1))
        found = found._replace(lengths=found.lengths.copy())
        found.lengths[~has_text, _BODY] = usual
    raw = matching.of_occurrences(asked, found, collection, known)
    exact = [row for row, one in enumerate(admitted.documents) if _missing_endings(one, asked) is not None]
    raw[exact, _NAME_EXACT] = 1.0
    if has_text.any() and not has_text.all():
        texts, names = raw[has_text][:, _BY_RANGE], np.ix_(~has_text, _BY_RANGE)
        raw[names] = np.clip(raw[names], texts.min(axis=0), texts.max(axis=0))
    return raw


def _with_habits_of_body_words(raw: Array, documents: Sequence[Document], context: Context) -> Array:
    """[n, features] raw, where only openings that followed a search for a single word of bodies count."""
    counted = context.openings.by_body_word or habits.NO_OPENINGS
    keys, counted_anew = [key_of(document) for document in documents], raw.copy()
    counted_anew[:, NAMES.index("opened")] = habits.opened(counted, keys)
    counted_anew[:, NAMES.index("folder")] = habits.folder_opened(counted, keys)
    return counted_anew


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
        names=tuple(_folded(_name(one).rpartition(".")[0] or _name(one)) for one in documents),
        age_days=np.maximum(0.0, np.floor(context.now / DAY) - np.floor(dates / DAY)),
        depth=np.array([one.path.count("/") - one.root.rstrip("/").count("/") - 1 for one in documents], np.float64),
        opened=habits.opened(context.openings, keys),
        folder_opened=habits.folder_opened(context.openings, keys),
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
    exact = _by_name(asked, documents, raw, order) or _by_part_of_name(asked, documents, raw, order)
    named_first = [*exact, *(row for row in order if row not in exact)]
    placed, _ = memory.place(named_first, known, exact)
    top = len(exact) + memory.PLACES
    lifted = [place for place, row in enumerate(placed[:top]) if row in known or row in exact]
    remembered = [placed[place] for place in lifted if placed[place] in known][: memory.PLACES]
    return placed, lifted, {documents[row].id: known[row] for row in remembered}


def _by_name(asked: QueryText, documents: Sequence[Document], raw: Array, order: list[int]) -> list[int]:
    """Rows whose file name is the query, at most LIFTED_NAMES: those that lack the fewest endings first."""
    missing = {row: _missing_endings(documents[row], asked) for row in order if raw[row, _NAME_EXACT] > 0}
    counted = [(math.inf if number is None else number, row) for row, number in missing.items()]
    return [row for _, row in sorted(counted, key=lambda pair: pair[0])][:LIFTED_NAMES]  # equals keep their order


def _by_part_of_name(asked: QueryText, documents: Sequence[Document], raw: Array, order: list[int]) -> list[int]:
    """The best row in whose name the words of the query stand together, the last one perhaps unfinished ("cherry-p"),
    unless a title is the query. After a space a single letter is a word of its own ("vitamin c")."""
    typed = name_words(asked.folded)
    if len(typed) < 2 or raw[:, _TITLE_EXACT].any():
        return []
    is_word = len(typed[-1]) == 1 and asked.folded[-2:-1] == " "
    for row in order:
        name = _folded(_name(documents[row]))
        if typed[0] not in name:  # nearly every document
            continue
        words = whole_names(name)[-1]
        if stands_in(typed, words) and not (is_word and typed[-1] not in words):
            return [row]
    return []


def _missing_endings(document: Document, asked: QueryText) -> int | None:
    """How many endings of a file's name a query leaves out; None: it is another name."""
    if document.part or not asked.folded:
        return None
    name = _folded(_name(document))
    return missing_endings(asked.folded, name) if name[:1] == asked.folded[:1] else None  # nearly always another


@lru_cache(maxsize=4096)
def _folded(name: str) -> str:
    return fold(printable(name))


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
    missing = sum(part.missing for part in parts)
    return _Admitted(documents, occurrences.joined([part.occurrences for part in parts], terms), missing)
