"""Count sketch and count-min: term counts of documents in z x w cells each, and estimates read back.

Source: S3 equations 2 and 3; Charikar, Chen and Farach-Colton 2004 (count sketch); Cormode and Muthukrishnan 2005
(count-min). Adding a term t `count` times adds to one cell of every row a:

    count       g_a(t) * count at (a, h_a(t))     estimate: median over rows of g_a(t) * C(a, h_a(t)), unbiased
    count-min           count at (a, h_a(t))      estimate: least over rows of C(a, h_a(t)), never below the count

Sketches are sums: the sketch of two documents together is the sum of theirs, and a negative count takes a term away.

Differs from the paper: its equation 3 forgets the sign on reading, without which an estimate says nothing. Theorem 2
(an error below sqrt(64 F2res / w) in a row with probability 5/8, hence in the median but for e^-O(z)) holds for the
sketch. It does not hold with the paper's noise: one draw is shared by all rows, so its share of the error stays above
4 / epsilon with probability e^-4 = 1.8 %, for any z.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from foltr._kernels.sketch import add_documents, fill_least, fill_medians
from foltr.errors import SpecError
from foltr.silo.hashing import Hashes, Shape, same_shape
from foltr.text.counts import Counts
from foltr.types import Array

KINDS = ("count", "count-min")
MOST = 2**31 - 1  # of a cell


class Sketch(NamedTuple):
    kind: str
    shape: Shape
    cells: Array  # [z, w] of one document or of a sum; [documents, z, w] of many


def empty(kind: str, shape: Shape, documents: int | None = None) -> Sketch:
    """Nothing counted yet; with `documents` one sketch for each."""
    if kind not in KINDS:
        raise SpecError(f"no sketch {kind!r}; there are {', '.join(KINDS)}")
    size = (shape.rows, shape.columns)
    return Sketch(kind, shape, np.zeros(size if documents is None else (documents, *size), np.int32))


def add(sketch: Sketch, hashes: Hashes, counts: Array) -> None:
    """Counts each of the terms that often, in place; negative counts take away."""
    same_shape(sketch.shape, hashes.shape)
    if sketch.cells.ndim != 2 or len(counts) != len(hashes.columns):
        raise SpecError(
            f"{len(counts)} counts of {len(hashes.columns)} terms for cells {sketch.cells.shape}; "
            "give one sketch and a count for every term"
        )
    amounts = np.asarray(counts, dtype=np.int64)
    _refuse_overflow(int(np.abs(sketch.cells).max(initial=0)) + int(np.abs(amounts).sum()))
    signs, whole = _signs(sketch.kind, hashes), np.array([0, len(amounts)])
    add_documents(whole, np.arange(len(amounts)), amounts, hashes.columns, signs, sketch.cells[None])


def sketch_documents(kind: str, documents: Counts, hashes: Hashes) -> Sketch:
    """One sketch a document; the hashes are those of the whole vocabulary, in its order."""
    fits_vocabulary(documents, hashes)
    made = empty(kind, hashes.shape, len(documents.lengths))
    _refuse_overflow(int(documents.lengths.max(initial=0)))
    signs = _signs(kind, hashes)
    add_documents(documents.offsets, documents.terms, documents.counts, hashes.columns, signs, made.cells)
    return made


def estimate(sketch: Sketch, hashes: Hashes) -> Array:
    """[terms] of one sketch, [documents, terms] of many: how often each term was counted, about."""
    same_shape(sketch.shape, hashes.shape)
    cells = sketch.cells if sketch.cells.ndim == 3 else sketch.cells[None]
    found = np.empty((len(cells), len(hashes.columns)))
    if sketch.kind == "count":
        fill_medians(cells, hashes.columns, hashes.signs, np.empty(sketch.shape.rows), found)
    else:
        fill_least(cells, hashes.columns, found)
    return found if sketch.cells.ndim == 3 else found[0]


def merge(sketches: Sequence[Sketch]) -> Sketch:
    """The sketch of everything that these counted."""
    if not sketches:
        raise SpecError("no sketch to merge; give at least one")
    first = sketches[0]
    for other in sketches[1:]:
        same_shape(first.shape, other.shape)
        if (first.kind, first.cells.shape) != (other.kind, other.cells.shape):
            raise SpecError(
                f"a {first.kind} sketch {first.cells.shape} and a {other.kind} sketch {other.cells.shape} "
                "have no sum; merge sketches of one kind and size"
            )
    _refuse_overflow(sum(int(np.abs(sketch.cells).max(initial=0)) for sketch in sketches))
    total = first.cells.copy()
    for other in sketches[1:]:
        total += other.cells
    return first._replace(cells=total)


def fits_vocabulary(documents: Counts, hashes: Hashes) -> None:
    if documents.vocabulary_size != len(hashes.columns):
        raise SpecError(
            f"documents over {documents.vocabulary_size:,} terms, but hashes of {len(hashes.columns):,}; "
            "hash the vocabulary that the documents were counted with"
        )
    if np.any(documents.terms < 0) or np.any(documents.terms >= documents.vocabulary_size):
        raise SpecError(
            f"documents name terms beyond their vocabulary of {documents.vocabulary_size:,}; count them again"
        )


def _signs(kind: str, hashes: Hashes) -> Array:
    return hashes.signs if kind == "count" else np.ones_like(hashes.signs)


def _refuse_overflow(largest: int) -> None:
    if largest > MOST:
        raise SpecError(f"a cell could reach {largest:,}, beyond {MOST:,}; sketch fewer terms at a time")
