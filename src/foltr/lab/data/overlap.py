"""Queries that two parts of a collection share, by their ids and by their content.

Training on test queries makes test values too high. The same query can have another id in another file, so documents
and grades are compared too, in any order of documents. Queries whose documents all have the same features tell a ranker
nothing and are left out of the comparison of contents.
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from foltr.types import Array, Dataset


class Overlap(NamedTuple):
    queries: int  # of the second part
    ids: int  # of them, queries whose id is in the first part
    contents: int  # queries with the documents and grades of one of the first part, under any id
    shared: int  # by id or by content


def overlap(first: Dataset, second: Dataset) -> Overlap:
    """Queries of the second part that are in the first part too."""
    by_id = np.isin(second.queries.astype(str), first.queries.astype(str))
    # few queries have the same number of documents and the same grades: only these are read whole
    of_first, of_second = _shapes(first), _shapes(second)
    common = set(of_first) & set(of_second)
    contents = {_content(first, place) for place, shape in enumerate(of_first) if shape in common} - {b""}
    by_content = np.array(
        [shape in common and _content(second, place) in contents for place, shape in enumerate(of_second)], dtype=bool
    )
    return Overlap(len(second.queries), int(by_id.sum()), int(by_content.sum()), int((by_id | by_content).sum()))


def reused_ids(parts: Sequence[Dataset]) -> int:
    """Ids that name different queries in different parts, such as those of folds that each count from 1.

    A query is taken for the same where its sorted grades are the same: features may be scaled differently in each fold.
    """
    grades: dict[str, set[bytes]] = {}
    for part in parts:
        for query, shape in zip(part.queries.astype(str), _shapes(part), strict=True):
            grades.setdefault(str(query), set()).add(shape)
    return sum(len(shapes) > 1 for shapes in grades.values())


def _shapes(data: Dataset) -> list[bytes]:
    """The sorted grades of every query, as bytes."""
    return [np.sort(data.labels[a:b]).tobytes() for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]


def _content(data: Dataset, query: int) -> bytes:
    """A digest of a query's documents and grades, in any order; empty where features tell no document apart."""
    rows = slice(data.offsets[query], data.offsets[query + 1])
    features: Array = np.ascontiguousarray(data.features[rows])
    if not (features != features[:1]).any():
        return b""
    documents = sorted(row.tobytes() + bytes([int(g)]) for row, g in zip(features, data.labels[rows], strict=True))
    return hashlib.blake2b(b"".join(documents), digest_size=16).digest()
