"""RTK-sketch: for a term's hashes, the documents that have it most often, without querying every document.

Source: S3 section V-B, algorithms 4 (update) and 5 (query, "soft intersection"). z rows of w cells, each with a
capacity of alpha * K entries of 8 bytes. The owner does `read`, the asker `rank`; the protocol and its noise stand
between the two. `query` does both. Three variants:

    paper     A cell stores the largest signed counts. Candidates: documents in at least beta * z of the term's z cells;
              ranked by the median of the counts found there, as they stand (equation 3).
    sound     A cell stores the counts of the largest magnitude. The same candidates; ranked by the rows whose sign and
              count agree less the rows where they disagree, then by the sum of signed counts.
    sampled   A row stores the complete top K of some terms, other terms in every row: exact where it answers, and it
              says where it cannot. A document is found in at least half of the cells that are complete for the term's
              tag; ranked by count. Where no cell is complete: found in any. A row stores a share
              p = alpha K w / sum over terms of min(df, K) of the terms, so about 1 - (1 - p)^z of all terms are stored
              somewhere: near 1 for small collections, less than `sound` finds where p z is below 1. For reproductions
              on public texts only: see below.

**What cells show.** A cell holds entries of every term of its column, and an asker, who has the hash key, sorts them by
term with a dictionary. After 20 questions to an owner of nfcorpus (K = 150, the owner's vocabulary as dictionary,
`foltr reproduce silo/disclosure`), `sampled` names 84 % of the owner's terms and 57 % of all (term, document, count)
entries: the tags in its cells tell the terms apart. `sound` shows 37 % of the documents of terms that were never asked
(40 % of such claims are right). So parties answer from an index (`index`), which shows the asked term only; `owners`
refuses `sampled` between parties, and counts every number of a sketch in the asker's allowance.

Documents of equal rank are in the order of their numbers. The count reported with a document is the median of its
signed counts where it was found (`paper`: unsigned). In a heap that is what survived eviction, so it is biased upwards.
A deletion frees places but cannot restore what they had evicted; build again after many.

Differs from the paper: `paper` only in ties, which the paper leaves open (`_kernels.rtk`). As printed it stores the
smallest counts wherever g_a(t) = -1, and ranks noise found in three rows above counts found in every row; hence
`sound`. `sampled` is ours, in the paper's 8 bytes an entry; counts above 65,535 are stored as 65,535.
"""

import math
from typing import NamedTuple

import numpy as np

from foltr._kernels import rtk as kernels
from foltr._kernels.rtk import MAX_COUNT, NO_LIMIT, Added, Lists, Table, Votes, Workspace
from foltr.errors import SpecError
from foltr.silo.sketches import Hashes, SketchShape, require_same_shape, require_vocabulary
from foltr.text.counts import Counts
from foltr.types import Array

VARIANTS = ("paper", "sound", "sampled")
MAX_NUMBER = 2**31 - 1  # a document's number; a count
MAX_BYTES = 1 << 36


class RtkSketch(NamedTuple):
    variant: str
    shape: SketchShape
    top: int  # K
    members: set[int]  # documents added and not deleted
    entries: Array  # [z, w, capacity] int64 of the heaps, uint64 of `sampled`: see `_kernels.rtk`
    sizes: Array  # [z, w] int32 entries of each cell
    limits: Array  # [z, w] int32; used by `sampled`


class Cells(NamedTuple):
    """An owner's answer: one cell of every row."""

    documents: Array  # [z, capacity] int32
    counts: Array  # [z, capacity] with the owner's noise
    tags: Array  # [z, capacity] uint16; [z, 0] unless `sampled`
    sizes: Array  # [z] entries of each
    limits: Array  # [z] int32; used by `sampled`


class TopDocuments(NamedTuple):
    documents: Array  # [found] int32, the best first
    counts: Array  # [found] estimates of the term's count
    rows: Array  # [found] int32 cells in which the document was found
    complete: int  # `sampled`: rows that store the term's complete list; 0: an empty answer says nothing


def empty(shape: SketchShape, *, variant: str = "sound", top: int = 150, alpha: float = 5.0) -> RtkSketch:
    """A sketch without documents, with a capacity of alpha * K in every cell."""
    if variant not in VARIANTS:
        raise SpecError(f"no variant {variant!r}; there are {', '.join(VARIANTS)}")
    if top < 1 or not alpha >= 1:
        raise SpecError(f"top = {top} and alpha = {alpha}; use a top of 1 or more and an alpha of 1 or more")
    capacity = int(alpha * top)
    cells = (shape.rows, shape.columns)
    if 8 * capacity * cells[0] * cells[1] > MAX_BYTES:
        raise SpecError(
            f"{cells[0]} x {cells[1]} cells of {capacity:,} entries are beyond 64 GiB; use a smaller top or alpha"
        )
    entries: Array = np.zeros((*cells, capacity), entry_type(variant))
    return RtkSketch(variant, shape, top, set(), entries, np.zeros(cells, np.int32), np.full(cells, NO_LIMIT, np.int32))


def entry_type(variant: str) -> type:
    return np.uint64 if variant == "sampled" else np.int64


def add(sketch: RtkSketch, document: int, hashes: Hashes, counts: Array) -> None:
    """Adds one document, in place: its different terms and the count of each."""
    if len(counts) != len(hashes.columns):
        raise SpecError(f"{len(counts)} counts of {len(hashes.columns)} terms; give a count for every term")
    amounts = np.asarray(counts, dtype=np.int64)
    lengths = np.array([amounts.sum()])
    terms, offsets = np.arange(len(amounts), dtype=np.int32), np.array([0, len(amounts)])
    add_documents(sketch, Counts(offsets, terms, amounts, lengths, len(amounts)), hashes, np.array([document]))


def add_documents(sketch: RtkSketch, documents: Counts, hashes: Hashes, numbers: Array | None = None) -> None:
    """Adds many, in place; the hashes are those of the vocabulary. Numbered 0, 1, ... unless numbers are given."""
    require_same_shape(sketch.shape, hashes.shape)
    require_vocabulary(documents, hashes)
    given = np.arange(len(documents.lengths)) if numbers is None else np.asarray(numbers)
    _check_new(sketch, documents, given)
    added = Added(documents.offsets, documents.terms, documents.counts, given.astype(np.int32))
    if sketch.variant == "sampled":
        kernels.add_to_samples(_table(sketch), sketch.top, added, hashes.columns, hashes.tags)
    else:
        sums = np.zeros(sketch.sizes.shape, np.int64)
        kernels.add_to_heaps(_table(sketch), sketch.variant == "sound", added, hashes.columns, hashes.signs, sums)
    sketch.members.update(given.tolist())


def delete(sketch: RtkSketch, document: int) -> None:
    """Removes a document from every cell, in place."""
    if document not in sketch.members:
        raise SpecError(f"document {document} is not in the sketch; {len(sketch.members):,} others are")
    if sketch.variant == "sampled":
        kernels.delete_from_samples(_table(sketch), document)
    else:
        kernels.delete_from_heaps(_table(sketch), sketch.variant == "sound", document)
    sketch.members.remove(document)


def read(sketch: RtkSketch, columns: Array) -> Cells:
    """The cells that the owner reads for one column of every row."""
    wanted = np.asarray(columns)
    if wanted.shape != (sketch.shape.rows,) or not np.all((wanted >= 0) & (wanted < sketch.shape.columns)):
        raise SpecError(
            f"asked for columns {wanted.shape}; give one for each of {sketch.shape.rows} rows, "
            f"from 0 to {sketch.shape.columns - 1}"
        )
    each = np.arange(len(wanted)), wanted
    if sketch.variant == "sampled":
        documents, counts, tags = unpack_samples(sketch.entries[each])
    else:
        documents, counts = unpack_heaps(sketch.entries[each])
        tags = np.empty((len(wanted), 0), np.uint16)
    return Cells(documents, counts, tags, sketch.sizes[each], sketch.limits[each])


def query(
    sketch: RtkSketch, hashes: Hashes, *, top: int | None = None, beta: float = 0.1, rows: Array | None = None
) -> TopDocuments:
    """The K documents that have this one term most often, as far as the sketch knows; `rows`: use only these."""
    require_same_shape(sketch.shape, hashes.shape)
    if len(hashes.columns) != 1:
        raise SpecError(f"{len(hashes.columns)} terms asked for; ask for one at a time")
    wanted = sketch.top if top is None else top
    if not 1 <= wanted <= sketch.top:
        raise SpecError(f"top = {wanted} asked of a sketch that was built for {sketch.top}; use 1 to {sketch.top}")
    cells = read(sketch, hashes.columns[0])
    return rank(sketch.variant, cells, hashes.signs[0], hashes.tags[0], top=wanted, beta=beta, rows=rows)


def rank(
    variant: str, cells: Cells, signs: Array, tags: Array, *, top: int, beta: float, rows: Array | None = None
) -> TopDocuments:
    """The best `top` documents; signs [z] and tags [z] are the term's.

    `rows` are the z1 of z rows of an obfuscated query that show the term; the others are ignored, and beta is a share
    of z1.
    """
    if not 0 <= beta <= 1:
        raise SpecError(f"beta = {beta}; use a share of the rows, from 0 to 1")
    if np.any(cells.sizes < 0) or np.any(cells.sizes > cells.documents.shape[1]):
        raise SpecError(f"a cell of {cells.documents.shape[1]} entries says that it holds another number; ask again")
    used = np.arange(len(cells.sizes)) if rows is None else np.asarray(rows)
    of_rows = Cells(*(part[used] for part in cells))
    if variant == "sampled":
        return _rank_samples(of_rows, tags[used], top)
    return _rank_heaps(of_rows, signs[used], top, math.ceil(beta * len(used) - 1e-9), printed=variant == "paper")


def size_bytes(sketch: RtkSketch) -> int:
    return sketch.entries.nbytes + sketch.sizes.nbytes + sketch.limits.nbytes + 4 * len(sketch.members)


def unpack_heaps(entries: Array) -> tuple[Array, Array]:
    """Documents and counts."""
    return entries.astype(np.int32), (entries >> 32).astype(np.int32)


def unpack_samples(entries: Array) -> tuple[Array, Array, Array]:
    """Documents, counts and tags."""
    counts = MAX_COUNT - (entries >> np.uint64(32) & np.uint64(MAX_COUNT)).astype(np.int32)
    return entries.astype(np.uint32).astype(np.int32), counts, (entries >> np.uint64(48)).astype(np.uint16)


def _table(sketch: RtkSketch) -> Table:
    return Table(sketch.entries, sketch.sizes, sketch.limits)


def _check_new(sketch: RtkSketch, documents: Counts, numbers: Array) -> None:
    if len(numbers) != len(documents.lengths) or len(np.unique(numbers)) != len(numbers):
        raise SpecError(f"{len(numbers)} numbers for {len(documents.lengths)} documents; give each its own")
    if np.any(numbers < 0) or np.any(numbers > MAX_NUMBER):
        raise SpecError(f"documents are numbered from 0 to {MAX_NUMBER:,}")
    there = sketch.members.intersection(numbers.tolist())
    if there:
        raise SpecError(f"document {min(there)} is already in the sketch; delete it before adding it again")
    if np.any(documents.counts < 1) or np.any(documents.lengths > MAX_NUMBER):
        raise SpecError(f"a document has each of its terms at least once, and up to {MAX_NUMBER:,} in all")


def _rank_heaps(cells: Cells, signs: Array, top: int, min_rows: int, *, printed: bool) -> TopDocuments:
    votes = _count_votes(cells, np.ones_like(signs) if printed else signs)
    candidates = np.flatnonzero(votes.rows >= max(min_rows, 1))
    votes = Votes(*(part[candidates] for part in votes))
    if printed:
        order = np.lexsort((votes.documents, -votes.median))
    else:
        order = np.lexsort((votes.documents, -votes.total, -votes.agreement))
    return _take(votes, order[:top], 0)


def _rank_samples(cells: Cells, tags: Array, top: int) -> TopDocuments:
    runs = _runs(cells, tags)
    complete = tags < cells.limits
    if np.any(complete):
        runs = Cells(*(part[complete] for part in runs))
    votes = _count_votes(runs, np.ones(len(runs.sizes), np.int8))
    min_rows = (np.count_nonzero(complete) + 1) // 2
    votes = Votes(*(part[votes.rows >= min_rows] for part in votes))
    return _take(votes, np.lexsort((votes.documents, -votes.median))[:top], int(np.count_nonzero(complete)))


def _runs(cells: Cells, tags: Array) -> Cells:
    """Only the entries with the row's own tag, moved to the front; a document counts once a row, with its largest."""
    inside = np.arange(cells.documents.shape[1]) < cells.sizes[:, None]
    matching = inside & (cells.tags == tags[:, None])
    sizes = matching.sum(axis=1)
    first = np.argsort(~matching, axis=1, kind="stable")[:, : max(int(sizes.max(initial=0)), 1)]
    return cells._replace(
        documents=np.take_along_axis(cells.documents, first, axis=1),
        counts=np.take_along_axis(cells.counts, first, axis=1),
        tags=np.take_along_axis(cells.tags, first, axis=1),
        sizes=sizes,
    )


def _take(votes: Votes, chosen: Array, complete: int) -> TopDocuments:
    return TopDocuments(votes.documents[chosen], votes.median[chosen], votes.rows[chosen], complete)


def _count_votes(cells: Cells, signs: Array) -> Votes:
    entries = int(cells.sizes.sum())

    def zeros() -> Array:
        return np.zeros(entries, np.int32)

    votes = Votes(zeros(), zeros(), zeros(), np.zeros(entries), np.empty(entries))
    slots = np.full(1 << max(2 * entries, 2).bit_length(), -1, np.int32)
    workspace = Workspace(slots, zeros() - 1, zeros(), np.empty(entries), np.empty(entries))
    seen = kernels.tally(Lists(cells.documents, cells.counts, cells.sizes), signs, workspace, votes)
    return Votes(*(part[:seen] for part in votes))
