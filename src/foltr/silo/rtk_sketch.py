"""RTK-sketch: for a term's hashes, the documents that have it most often, without asking every document.

Source: S3 section V-B, algorithms 4 (update) and 5 (query). z rows of w cells, each with room for alpha * K entries of
8 bytes. Three variants:

    paper     A cell keeps the largest signed counts. An answer: documents in at least beta * z of the term's z cells,
              by the median of what was found there.
    sound     Both ends are kept, by the size of the count. An answer: by rows that speak for the document less rows
              that speak against it; a row where it was not found counts as zero. The default.
    sampled   A row keeps the complete top K of some terms, other terms in every row (`rtk_samples`): exact where it
              answers, and it says where it cannot. A row keeps a share p = alpha K w / sum over terms of min(df, K) of
              the terms, so about 1 - (1 - p)^z of all terms are kept somewhere: near 1 for small collections, less
              than `sound` finds where p z is below 1. Its cells say more to the asker than mixed counts do: each shows
              the documents of the few terms that it keeps, though not which terms.

The owner does `read`, the asker `rank`; between the two there is room for a protocol and its noise. `query` does both.
A deletion frees places but cannot bring back what they had pushed out; build again after many.

Differs from the paper: `paper` in nothing but ties (`rtk_heaps`). As printed it keeps the wrong end wherever
g_a(t) = -1, and noise that was found three times beats counts that were found in every row; hence `sound`.
"""

from typing import NamedTuple

import numpy as np

from foltr._kernels.rtk_heaps import add_to_heaps, delete_from_heaps
from foltr._kernels.rtk_samples import add_to_samples, delete_from_samples
from foltr.errors import SpecError
from foltr.silo import rtk_heaps, rtk_samples
from foltr.silo.hashing import Hashes, Shape, same_shape
from foltr.silo.rtk_query import Cells, Found, rank
from foltr.silo.rtk_samples import NO_LIMIT
from foltr.silo.sketch import fits_vocabulary
from foltr.text.counts import Counts
from foltr.types import Array

VARIANTS = ("paper", "sound", "sampled")
MOST = 2**31 - 1  # a document's number; a count
MOST_BYTES = 1 << 36


class RtkSketch(NamedTuple):
    variant: str
    shape: Shape
    top: int  # K
    members: set[int]  # documents added and not deleted
    entries: Array  # [z, w, room] int64 of the heaps, uint64 of `sampled`: see `rtk_heaps` and `rtk_samples`
    sizes: Array  # [z, w] int32 entries of each cell
    limits: Array  # [z, w] int32; used by `sampled`


def empty(shape: Shape, *, variant: str = "sound", top: int = 150, alpha: float = 5.0) -> RtkSketch:
    """No document yet, with room for alpha * K in every cell."""
    if variant not in VARIANTS:
        raise SpecError(f"no variant {variant!r}; there are {', '.join(VARIANTS)}")
    if top < 1 or not alpha >= 1:
        raise SpecError(f"top = {top} and alpha = {alpha}; use a top of 1 or more and an alpha of 1 or more")
    room = int(alpha * top)
    cells = (shape.rows, shape.columns)
    if 8 * room * cells[0] * cells[1] > MOST_BYTES:
        raise SpecError(
            f"{cells[0]} x {cells[1]} cells of {room:,} entries are beyond 64 GiB; use a smaller top or alpha"
        )
    entries: Array = np.zeros((*cells, room), entry_type(variant))
    return RtkSketch(variant, shape, top, set(), entries, np.zeros(cells, np.int32), np.full(cells, NO_LIMIT, np.int32))


def entry_type(variant: str) -> type:
    return np.uint64 if variant == "sampled" else np.int64


def add(sketch: RtkSketch, document: int, hashes: Hashes, counts: Array) -> None:
    """Enters one document, in place: its different terms and how often it has each."""
    if len(counts) != len(hashes.columns):
        raise SpecError(f"{len(counts)} counts of {len(hashes.columns)} terms; give a count for every term")
    amounts = np.asarray(counts, dtype=np.int64)
    lengths = np.array([amounts.sum()])
    terms, offsets = np.arange(len(amounts), dtype=np.int32), np.array([0, len(amounts)])
    add_documents(sketch, Counts(offsets, terms, amounts, lengths, len(amounts)), hashes, np.array([document]))


def add_documents(sketch: RtkSketch, documents: Counts, hashes: Hashes, numbers: Array | None = None) -> None:
    """Enters many, in place; the hashes are those of the vocabulary. Numbered 0, 1, ... unless numbers are given."""
    same_shape(sketch.shape, hashes.shape)
    fits_vocabulary(documents, hashes)
    called = np.arange(len(documents.lengths)) if numbers is None else np.asarray(numbers)
    _check_new(sketch, documents, called)
    added = (documents.offsets, documents.terms, documents.counts, called.astype(np.int32), hashes.columns)
    if sketch.variant == "sampled":
        add_to_samples(sketch.entries, sketch.sizes, sketch.limits, sketch.top, *added, hashes.tags)
    else:
        table = np.zeros(sketch.sizes.shape, np.int64)
        add_to_heaps(sketch.entries, sketch.sizes, sketch.variant == "sound", *added, hashes.signs, table)
    sketch.members.update(called.tolist())


def delete(sketch: RtkSketch, document: int) -> None:
    """Takes a document out of every cell, in place."""
    if document not in sketch.members:
        raise SpecError(f"document {document} is not in the sketch; {len(sketch.members):,} others are")
    if sketch.variant == "sampled":
        delete_from_samples(sketch.entries, sketch.sizes, document)
    else:
        delete_from_heaps(sketch.entries, sketch.sizes, sketch.variant == "sound", document)
    sketch.members.remove(document)


def read(sketch: RtkSketch, columns: Array) -> Cells:
    """What the owner hands out for one column a row."""
    asked = np.asarray(columns)
    if asked.shape != (sketch.shape.rows,) or not np.all((asked >= 0) & (asked < sketch.shape.columns)):
        raise SpecError(
            f"asked for columns {asked.shape}; give one for each of {sketch.shape.rows} rows, "
            f"from 0 to {sketch.shape.columns - 1}"
        )
    each = np.arange(len(asked)), asked
    if sketch.variant == "sampled":
        documents, counts, tags = rtk_samples.unpack(sketch.entries[each])
    else:
        documents, counts = rtk_heaps.unpack(sketch.entries[each])
        tags = np.empty((len(asked), 0), np.uint16)
    return Cells(documents, counts, tags, sketch.sizes[each], sketch.limits[each])


def query(
    sketch: RtkSketch, hashes: Hashes, *, top: int | None = None, beta: float = 0.1, rows: Array | None = None
) -> Found:
    """The K documents that have this one term most often, as far as the sketch knows; `rows`: use only these."""
    same_shape(sketch.shape, hashes.shape)
    if len(hashes.columns) != 1:
        raise SpecError(f"{len(hashes.columns)} terms asked for; ask for one at a time")
    wanted = sketch.top if top is None else top
    if not 1 <= wanted <= sketch.top:
        raise SpecError(f"top = {wanted} asked of a sketch that was built for {sketch.top}; use 1 to {sketch.top}")
    cells = read(sketch, hashes.columns[0])
    return rank(sketch.variant, cells, hashes.signs[0], hashes.tags[0], top=wanted, beta=beta, rows=rows)


def kept_bytes(sketch: RtkSketch) -> int:
    return sketch.entries.nbytes + sketch.sizes.nbytes + sketch.limits.nbytes + 4 * len(sketch.members)


def _check_new(sketch: RtkSketch, documents: Counts, numbers: Array) -> None:
    if len(numbers) != len(documents.lengths) or len(np.unique(numbers)) != len(numbers):
        raise SpecError(f"{len(numbers)} numbers for {len(documents.lengths)} documents; give each its own")
    if np.any(numbers < 0) or np.any(numbers > MOST):
        raise SpecError(f"documents are numbered from 0 to {MOST:,}")
    there = sketch.members.intersection(numbers.tolist())
    if there:
        raise SpecError(f"document {min(there)} is already in the sketch; delete it before adding it again")
    if np.any(documents.counts < 1) or np.any(documents.lengths > MOST):
        raise SpecError(f"a document has each of its terms at least once, and up to {MOST:,} in all")
