"""NAIVE: one count sketch a document, all of them queried. The baseline of the RTK-sketch.

Source: S3 algorithm 3, which runs algorithm 1 once a document.

    ask_each   as printed, one exchange a document: hash the term, send z columns, receive z cells, take the median
    ask_all    implemented well: hash once, read the same cells of all sketches as one array; fastest with `by_cell`

Both rank by the estimate, then by the document's number, and give the same answer. Bytes are those of the numbers
alone: z columns of 4 bytes to the owner and z cells of 4 bytes back for every document; `ask_all` sends columns once.

Differs from the paper: only in the sign on reading (`silo.sketches`). Messages are function calls here.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.silo.sketches import Family, Sketch, estimate, hash_terms
from foltr.types import Array

_NUMBER = 4  # bytes of a column, of a cell and of a document's number


class NaiveAnswer(NamedTuple):
    documents: Array  # [K] int32, the best first
    counts: Array  # [K] estimates
    bytes: int  # sent both ways


def ask_each(sketches: Sketch, term: str, family: Family, top: int) -> NaiveAnswer:
    """One exchange a document."""
    _check(sketches, top)
    sent = 0
    estimates = np.empty(len(sketches.cells))
    for document in range(len(sketches.cells)):
        estimates[document], size = _exchange(_owner(sketches, document), term, family)
        sent += size
    return NaiveAnswer(*_best(estimates, top), sent)


def ask_all(sketches: Sketch, term: str, family: Family, top: int) -> NaiveAnswer:
    """One exchange for all documents."""
    _check(sketches, top)
    found = estimate(sketches, hash_terms([term], family))[:, 0]
    rows = sketches.shape.rows
    return NaiveAnswer(*_best(found, top), _NUMBER * rows * (1 + len(found)))


def by_cell(sketches: Sketch) -> Sketch:
    """Copies sketches so that the values of one cell are adjacent in memory: a query reads z stretches."""
    return sketches._replace(cells=np.ascontiguousarray(sketches.cells.transpose(1, 2, 0)).transpose(2, 0, 1))


def _owner(sketches: Sketch, document: int) -> Callable[[Array], Array]:
    """The owner of a document: z columns in, z cells out."""
    cells, each = sketches.cells[document], np.arange(sketches.shape.rows)
    return lambda columns: cells[each, columns]


def _exchange(owner: Callable[[Array], Array], term: str, family: Family) -> tuple[float, int]:
    hashes = hash_terms([term], family)
    cells = owner(hashes.columns[0])
    return float(np.median(hashes.signs[0] * cells)), _NUMBER * (len(cells) + len(hashes.columns[0]))


def _best(found: Array, top: int) -> tuple[Array, Array]:
    order = np.lexsort((np.arange(len(found)), -found))[:top].astype(np.int32)
    return order, found[order]


def _check(sketches: Sketch, top: int) -> None:
    if sketches.kind != "count" or sketches.cells.ndim != 3:
        raise SpecError(f"NAIVE asks one count sketch a document, not a {sketches.kind} sketch {sketches.cells.shape}")
    if not 1 <= top <= len(sketches.cells):
        raise SpecError(f"top = {top} of {len(sketches.cells)} documents; use 1 to {len(sketches.cells)}")
