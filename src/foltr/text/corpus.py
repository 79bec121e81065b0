"""A corpus as plain data: documents with title and body, queries, graded judgments.

Readers (`corpus_formats`) yield documents, queries and judgments one by one, each with the place it was read from;
`assemble` puts them together and refuses what would later be a wrong number in silence: two documents or two queries
with one id, two judgments of one pair that disagree, judgments none of which fits. Judgments of a document or a query
that is not there are left out and counted. A document without any text is a document of length 0.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np

from foltr.errors import DataError
from foltr.types import Array


class Place(NamedTuple):
    source: str
    line: int

    def __str__(self) -> str:
        return f"{self.source}:{self.line}"


class Document(NamedTuple):
    id: str
    title: str
    body: str
    place: Place


class Query(NamedTuple):
    id: str
    text: str
    place: Place


class Judgment(NamedTuple):
    query: str
    document: str
    grade: int
    place: Place


class Corpus(NamedTuple):
    name: str
    ids: tuple[str, ...]  # [documents]
    titles: tuple[str, ...]  # [documents]
    bodies: tuple[str, ...]  # [documents]
    query_ids: tuple[str, ...]  # [queries]
    query_texts: tuple[str, ...]  # [queries]
    judgments: Array  # [judgments, 3] int32: query, document (numbers of the above), grade; sorted, each pair once
    parts: dict[str, Array]  # "train", "test", ... -> judged queries, in order; "all" where nobody divided them
    unknown: int  # judgments left out, since their query or their document is not there


Named = TypeVar("Named", Document, Query)


def assemble(
    name: str,
    documents: Iterable[Document],
    queries: Iterable[Query] = (),
    judgments: Mapping[str, Iterable[Judgment]] | None = None,
) -> Corpus:
    """One corpus of what the readers found; judgments come part by part."""
    held, asked = _distinct(documents, "document"), _distinct(queries, "query")
    if not held:
        raise DataError(f"{name}: there is no document")
    graded, parts, unknown = _judged(judgments or {}, _numbers(asked), _numbers(held))
    if unknown and not graded:
        raise DataError(f"{name}: none of {unknown:,} judgments names a query and a document that are there")
    rows = [(*pair, grade) for pair, grade in sorted(graded.items())]
    return Corpus(
        name,
        tuple(document.id for document in held),
        tuple(document.title for document in held),
        tuple(document.body for document in held),
        tuple(query.id for query in asked),
        tuple(query.text for query in asked),
        np.array(rows, dtype=np.int32).reshape(-1, 3),
        parts,
        unknown,
    )


def _distinct(found: Iterable[Named], what: str) -> list[Named]:
    first: dict[str, Named] = {}
    for one in found:
        known = first.setdefault(one.id, one)
        if known is not one:
            raise DataError(f"{one.place}: a second {what} with the id {one.id!r}; the first is at {known.place}")
    return list(first.values())


def _numbers(named: list[Named]) -> dict[str, int]:
    return {one.id: number for number, one in enumerate(named)}


def _judged(
    judgments: Mapping[str, Iterable[Judgment]], queries: dict[str, int], documents: dict[str, int]
) -> tuple[dict[tuple[int, int], int], dict[str, Array], int]:
    """Grade of every known pair, judged queries of every part, and how many judgments fit nothing."""
    graded: dict[tuple[int, int], int] = {}
    parts, unknown = {}, 0
    for part, found in judgments.items():
        judged = set()
        for judgment in found:
            query, document = queries.get(judgment.query), documents.get(judgment.document)
            if query is None or document is None:
                unknown += 1
                continue
            if graded.setdefault((query, document), judgment.grade) != judgment.grade:
                raise DataError(
                    f"{judgment.place}: grade {judgment.grade} for query {judgment.query!r} and document "
                    f"{judgment.document!r}, which have grade {graded[query, document]} already"
                )
            judged.add(query)
        parts[part] = np.array(sorted(judged), dtype=np.int64)
    return graded, parts, unknown


def grade_of(corpus: Corpus, queries: Array, documents: Array) -> Array:
    """[pairs] grade of each (query, document); 0 where nobody judged them."""
    if not len(corpus.judgments):
        return np.zeros(len(queries), dtype=np.int8)
    keys = corpus.judgments[:, 0] * np.int64(len(corpus.ids)) + corpus.judgments[:, 1]
    wanted = np.asarray(queries, dtype=np.int64) * len(corpus.ids) + documents
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, corpus.judgments[places, 2], 0).astype(np.int8)
