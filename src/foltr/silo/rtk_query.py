"""The asker's side of a reverse top-K query: from the term's z cells to a ranking of documents.

Source: S3 algorithm 5, "soft intersection". `rows` names the cells that were asked for in earnest, z1 of z in the
paper's obfuscated queries; the others are ignored and beta counts as a share of z1.

    paper     found in at least beta * z1 cells; by the median of the counts found, as they stand (equation 3)
    sound     the same candidates; by rows where sign and count agree less rows where they do not, then by their sum
    sampled   found in at least half of the cells that are complete for the term's tag; by count. Where no cell is
              complete: found in any.

Equal documents come in the order of their numbers. The count told with a document is the median of its signed counts
where it was found (`paper`: unsigned). Of a heap that is what survived eviction, so it errs upwards.

Differs from the paper: `paper` in nothing; the others are ours.
"""

import math
from typing import NamedTuple

import numpy as np

from foltr._kernels.rtk_query import tally
from foltr.errors import SpecError
from foltr.types import Array


class Cells(NamedTuple):
    """An owner's answer: one cell of every row."""

    documents: Array  # [z, room] int32
    counts: Array  # [z, room] perhaps noised
    tags: Array  # [z, room] uint16; [z, 0] but of `sampled`
    sizes: Array  # [z] entries of each
    limits: Array  # [z] int32; used by `sampled`


class Found(NamedTuple):
    documents: Array  # [found] int32, the best first
    counts: Array  # [found] about how often each has the term
    rows: Array  # [found] int32 cells in which it was found
    complete: int  # `sampled`: rows that keep the term's whole list; with 0 an empty answer says nothing


class _Votes(NamedTuple):
    """What the cells say about each document that is in any."""

    documents: Array  # [seen] int32
    rows: Array  # [seen] int32
    agreement: Array  # [seen] int32: rows for less rows against
    total: Array  # [seen] sum of signed counts
    middle: Array  # [seen] their median


def rank(
    variant: str, cells: Cells, signs: Array, tags: Array, *, top: int, beta: float, rows: Array | None = None
) -> Found:
    """The best `top` documents; signs [z] and tags [z] are the term's."""
    if not 0 <= beta <= 1:
        raise SpecError(f"beta = {beta}; use a share of the rows, from 0 to 1")
    if np.any(cells.sizes < 0) or np.any(cells.sizes > cells.documents.shape[1]):
        raise SpecError(f"a cell of {cells.documents.shape[1]} entries says that it holds another number; ask again")
    used = np.arange(len(cells.sizes)) if rows is None else np.asarray(rows)
    asked = Cells(*(part[used] for part in cells))
    if variant == "sampled":
        return _rank_samples(asked, tags[used], top)
    return _rank_heaps(asked, signs[used], top, math.ceil(beta * len(used) - 1e-9), printed=variant == "paper")


def _rank_heaps(cells: Cells, signs: Array, top: int, enough: int, *, printed: bool) -> Found:
    votes = _count_votes(cells, np.ones_like(signs) if printed else signs)
    candidates = np.flatnonzero(votes.rows >= max(enough, 1))
    votes = _Votes(*(part[candidates] for part in votes))
    if printed:
        order = np.lexsort((votes.documents, -votes.middle))
    else:
        order = np.lexsort((votes.documents, -votes.total, -votes.agreement))
    return _best(votes, order[:top], 0)


def _rank_samples(cells: Cells, tags: Array, top: int) -> Found:
    runs = _runs(cells, tags)
    complete = tags < cells.limits
    if np.any(complete):
        runs = Cells(*(part[complete] for part in runs))
    votes = _count_votes(runs, np.ones(len(runs.sizes), np.int8))
    enough = (np.count_nonzero(complete) + 1) // 2
    votes = _Votes(*(part[votes.rows >= enough] for part in votes))
    return _best(votes, np.lexsort((votes.documents, -votes.middle))[:top], int(np.count_nonzero(complete)))


def _runs(cells: Cells, tags: Array) -> Cells:
    """Only the entries with the row's own tag, moved to the front; a document counts once a row, with its most."""
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


def _best(votes: _Votes, chosen: Array, complete: int) -> Found:
    return Found(votes.documents[chosen], votes.middle[chosen], votes.rows[chosen], complete)


def _count_votes(cells: Cells, signs: Array) -> _Votes:
    entries = int(cells.sizes.sum())
    slots = np.full(1 << max(2 * entries, 2).bit_length(), -1, np.int32)
    votes = _Votes(
        np.empty(entries, np.int32),
        np.zeros(entries, np.int32),
        np.zeros(entries, np.int32),
        np.zeros(entries),
        np.empty(entries),
    )
    room = np.full(entries, -1, np.int32), np.empty(entries, np.int32), np.empty(entries), np.empty(entries)
    seen = tally(cells.documents, cells.counts, cells.sizes, signs, slots, *room, *votes)
    return _Votes(*(part[:seen] for part in votes))
