"""Results of a search as plain records, and the recent result lists that can be logged, chosen from and explained.

Equal lists are equal bytes and have the same search id.
"""

import hashlib
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from foltr.errors import InputError
from foltr.node.index.store import Document
from foltr.node.learning.impressions import Impression
from foltr.node.search.ranking import LinearModel, Ranking, RankingPage, key_of
from foltr.node.search.snippets import Snippet
from foltr.types import Array

_RECENT = 64  # lists that are held; people choose from a recent one


class Contribution(NamedTuple):
    """The points that one feature adds to a document's score."""

    feature: str
    value: float  # raw, before scaling
    scaled: float
    weight: float
    points: float  # weight x scaled
    words: str  # the feature in words


class Row(NamedTuple):
    id: int  # number of the document; the only way to name it from outside
    rank: int  # from 1
    title: str  # printable
    path: str  # as the file system has it: escape it before printing
    part: str  # of a file with several documents, such as a message of an mbox
    kind: str
    date: float | None  # seconds since 1970
    snippet: Snippet
    title_highlights: tuple[tuple[int, int], ...]
    reason: str
    score: float
    remembered: bool  # placed by the memory of choices
    away: bool = False  # its disk is not there now
    cut: bool = False  # the file is longer than the limits: only its beginning is searched


class Counts(NamedTuple):
    """How many documents match a query, as far as a list goes."""

    some_words: int  # with at least one of the words
    all_words: int | None  # None for a query of fewer than two words, and where other spellings are listed
    more: bool = False  # there are more with some words than the list has
    more_with_all: bool = False
    kind: str = "exactly"  # "at least": only names and titles were searched; "at most": phrases were not checked in all


class Results(NamedTuple):
    """One page of a list. `search_id` is a digest of the list, so that equal lists are equal bytes."""

    search_id: str
    query: str
    rows: tuple[Row, ...]
    offset: int
    total: int  # documents that can be paged through
    suggestion: str | None  # nearest spelling when nothing or little was found
    corrected: bool  # the rows match words that are spelt nearly as those of the query
    model_version: int
    counts: Counts = Counts(0, None)


def counted(counts: Counts) -> str:
    """Counts in words: "312 with all words, more than 1,000 with some"."""
    some = _number(counts.some_words, more=counts.more)
    if counts.more_with_all:
        return f"{some} with all words"
    if counts.all_words is not None and (counts.more or counts.all_words != counts.some_words):
        return f"{counts.all_words:,} with all words, {some} with some"
    many = f"{some} result" + "s" * (counts.some_words != 1)
    if counts.more:
        return f"perhaps {many}" if counts.kind == "at most" else many
    return many if counts.kind == "exactly" else f"{counts.kind} {many}"


def _number(count: int, *, more: bool) -> str:
    return f"more than {count:,}" if more else f"{count:,}"


def digest(query: str, documents: list[int], scores: list[float], model_version: int) -> str:
    text = "\0".join([query, *map(str, documents), *map(repr, scores), str(model_version)])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def to_plain(results: Results) -> dict[str, Any]:
    """As JSON has it; text that is no Unicode, such as a broken file name, is escaped."""
    rows = [_plain_row(row) for row in results.rows]
    return {**results._asdict(), "query": _unicode(results.query), "rows": rows, "counts": results.counts._asdict()}


def _plain_row(row: Row) -> dict[str, Any]:
    fields = {**row._asdict(), "path": _unicode(row.path), "part": _unicode(row.part)}
    fields["snippet"] = {"text": row.snippet.text, "highlights": [list(span) for span in row.snippet.highlights]}
    fields["title_highlights"] = [list(span) for span in row.title_highlights]
    return fields


def _unicode(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class ResultList(NamedTuple):
    """Results with what logging and explaining them needs; without what only their computation needed."""

    results: Results
    page: RankingPage
    other_scores: Array  # [m] candidates that were scored and are not on the page
    other_scaled: Array  # [m, features of the model]
    model: LinearModel
    impression: int | None = None  # its number in the log, once it is settled


def result_list(results: Results, page: RankingPage, ranking: Ranking, model: LinearModel) -> ResultList:
    others = page.others
    return ResultList(
        results, page, ranking.scores[others].astype(np.float32), ranking.scaled[others].astype(np.float32), model
    )


class RecentLists:
    """The most recent lists by their search id; equal lists share one."""

    def __init__(self) -> None:
        self._lists: OrderedDict[str, ResultList] = OrderedDict()

    def put(self, new: ResultList) -> None:
        name = new.results.search_id
        self._lists[name] = new
        self._lists.move_to_end(name)
        while len(self._lists) > _RECENT:
            self._lists.popitem(last=False)

    def get(self, search: Results | str) -> ResultList:
        name = search if isinstance(search, str) else search.search_id
        if name not in self._lists:
            raise InputError("this list is not known any more; search again")
        return self._lists[name]

    def find(self, search: Results | str) -> ResultList | None:
        """A list, or None where it is not known any more."""
        return self._lists.get(search if isinstance(search, str) else search.search_id)

    def clear(self) -> None:
        self._lists.clear()


def place_of(shown: ResultList, document: int) -> int:
    """The place of a document in a list, counted from 0."""
    for place, row in enumerate(shown.results.rows):
        if row.id == document:
            return place
    raise InputError(f"the list did not show document {document}; choose one of its rows")


def document_of(shown: ResultList, number: int) -> Document:
    """A document by its number; only one that the list shows."""
    return shown.page.documents[place_of(shown, number)]


def explanation(shown: ResultList, document: int) -> list[Contribution]:
    """The contribution of every feature to the score of a row; the points add up to the score."""
    row, page, model = place_of(shown, document), shown.page, shown.model
    raw, points = page.raw[row, model.columns], page.scaled[row] * model.weights
    columns = zip(model.features, raw, page.scaled[row], model.weights, points, strict=True)
    return [
        Contribution(feature.name, float(value), float(scaled), float(weight), float(added), feature.words)
        for feature, value, scaled, weight, added in columns
    ]


def empty_impression(results: Results, now: float) -> Impression:
    """The record for the log of a search that found nothing."""
    return Impression(
        query=results.query,
        time=now,
        documents=[],
        propensities=np.zeros(0),
        scores=np.zeros(0),
        features=np.zeros((0, 0)),
        feature_names=(),
        model_version=results.model_version,
    )


def impression(shown: ResultList, now: float) -> Impression:
    """The record for the log: displayed documents first, then the other candidates that were scored."""
    page, model = shown.page, shown.model
    return Impression(
        query=shown.results.query,
        time=now,
        documents=[key_of(document) for document in page.documents],
        propensities=page.propensities,
        scores=np.concatenate([page.scores, shown.other_scores]),
        features=np.concatenate([page.scaled, shown.other_scaled]),
        feature_names=tuple(f"{feature.name}:{feature.scaling}" for feature in model.features),
        model_version=model.version,
        teams=page.teams,
    )
