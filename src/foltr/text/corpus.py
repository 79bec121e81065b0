"""A corpus as plain data: documents with title and body, queries, graded judgments; and a folder of text files as one.

Readers yield documents, queries and judgments one by one, each with the place it was read from: `text_folder` here,
those of published collections in the lab. `assemble` joins them and refuses input that would silently give wrong
numbers: two documents or two queries with one id, two judgments of one pair that disagree, judgments none of which
matches. Judgments of a missing document or query are left out and counted. A judgment of UNJUDGED (-1) says that
nobody judged the pair: it is counted and left out, so that a query with no other judgment is not a judged query. A
document without any text has length 0.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from foltr.errors import DataError
from foltr.types import Array

UNJUDGED = -1
TEXT_FILES = (".txt", ".text", ".md", ".rst")


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
    parts: dict[str, Array]  # "train", "test", ... -> judged queries, in order; "all" where they are not divided
    unknown: int  # judgments left out, since their query or their document is missing
    unjudged: int  # judgments of UNJUDGED, left out


class Pairs(NamedTuple):
    """Pairs of a query and a document, with grades."""

    queries: Array  # [pairs] int64, rising
    documents: Array  # [pairs] int64
    grades: Array  # [pairs] int8


def no_pairs() -> Pairs:
    empty = np.empty(0, dtype=np.int64)
    return Pairs(empty, empty, empty.astype(np.int8))


Named = TypeVar("Named", Document, Query)


def assemble(
    name: str,
    documents: Iterable[Document],
    queries: Iterable[Query] = (),
    judgments: Mapping[str, Iterable[Judgment]] | None = None,
) -> Corpus:
    """One corpus from what the readers yield; judgments come part by part."""
    texts, asked = _distinct(documents, "document"), _distinct(queries, "query")
    if not texts:
        raise DataError(f"{name}: there is no document")
    graded, parts, unknown, unjudged = _judged(judgments or {}, _numbers(asked), _numbers(texts))
    if unknown and not graded:
        raise DataError(f"{name}: none of {unknown:,} judgments names a query and a document of the corpus")
    rows = [(*pair, grade) for pair, grade in sorted(graded.items())]
    return Corpus(
        name,
        tuple(document.id for document in texts),
        tuple(document.title for document in texts),
        tuple(document.body for document in texts),
        tuple(query.id for query in asked),
        tuple(query.text for query in asked),
        np.array(rows, dtype=np.int32).reshape(-1, 3),
        parts,
        unknown,
        unjudged,
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
) -> tuple[dict[tuple[int, int], int], dict[str, Array], int, int]:
    """Grade of every known pair, judged queries of every part, and how many judgments are left out and why."""
    graded: dict[tuple[int, int], int] = {}
    parts, unknown, unjudged = {}, 0, 0
    for part, found in judgments.items():
        judged = set()
        for judgment in found:
            query, document = queries.get(judgment.query), documents.get(judgment.document)
            if query is None or document is None:
                unknown += 1
                continue
            if judgment.grade == UNJUDGED:
                unjudged += 1
                continue
            if graded.setdefault((query, document), judgment.grade) != judgment.grade:
                raise DataError(
                    f"{judgment.place}: grade {judgment.grade} for query {judgment.query!r} and document "
                    f"{judgment.document!r}, which have grade {graded[query, document]} already"
                )
            judged.add(query)
        parts[part] = np.array(sorted(judged), dtype=np.int64)
    return graded, parts, unknown, unjudged


def grade_of(corpus: Corpus, queries: Array, documents: Array) -> Array:
    """[pairs] grade of each (query, document); 0 where it was not judged."""
    if not len(corpus.judgments):
        return np.zeros(len(queries), dtype=np.int8)
    keys = corpus.judgments[:, 0] * np.int64(len(corpus.ids)) + corpus.judgments[:, 1]
    wanted = np.asarray(queries, dtype=np.int64) * len(corpus.ids) + documents
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, corpus.judgments[places, 2], 0).astype(np.int8)


def decoded_lines(source: str, lines: Iterable[bytes]) -> Iterator[tuple[Place, str]]:
    """Every line that is not blank as text, with its place."""
    for number, line in enumerate(lines, start=1):
        place = Place(source, number)
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{place}: not UTF-8 (byte {error.start} of the line); convert the file") from error
        if text.strip():
            yield place, text


def text_folder(root: str | Path) -> Iterator[Document]:
    """Every text file under a folder: its path is the id, its name the title, its text the body.

    In the order of their paths, so that the same files make the same corpus on every machine.
    """
    folder = Path(root)
    if not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder")
    found = (path for path in folder.rglob("*") if path.suffix.lower() in TEXT_FILES and path.is_file())
    for path in sorted(found, key=lambda path: path.relative_to(folder).as_posix()):
        yield Document(path.relative_to(folder).as_posix(), path.stem, _text_of(path), Place(str(path), 1))


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return "".join(text for _, text in decoded_lines(str(path), file))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error})") from error
