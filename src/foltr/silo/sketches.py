"""Keyed hashes of terms, and count sketches: term counts of documents in z x w cells each, and estimates read back.

Source: S3 section IV-A, IV-B step 1 and equations 2 and 3; Charikar, Chen and Farach-Colton 2004 (count sketch);
Cormode and Muthukrishnan 2005 (count-min).

**Hashes.** z functions h_a: term -> column and z functions g_a: term -> +1 or -1, the same at all parties, keyed so
that the server cannot compute them. Equal keys give equal hashes on every machine.

    keyed   one BLAKE2b a term, under the key, to 64 bits; row a mixes it with a constant of its own
    md5     MD5 of key, row and term: z digests a term, as in the paper's experiments

**Sketches.** Adding a term t `count` times adds to one cell of every row a:

    count       g_a(t) * count at (a, h_a(t))     estimate: median over rows of g_a(t) * C(a, h_a(t)), unbiased
    count-min           count at (a, h_a(t))      estimate: minimum over rows of C(a, h_a(t)), never below the count

Sketches are linear: the sketch of two documents together is the sum of theirs, and a negative count removes a term.

Differs from the paper: one keyed hash a term instead of z (`md5` has z); two terms of 64 equal bits would share all
rows, which among a million terms happens once in 37 million keys. Tags are ours: sixteen further bits that only the
variant `sampled` of `rtk` uses; the asker never sends them. Equation 3 omits the sign on reading, without which an
estimate is meaningless. Theorem 2 (an error below sqrt(64 F2res / w) in a row with probability 5/8, hence in the median
except with probability e^-O(z)) holds for the sketch. It does not hold with the paper's noise: one draw is shared by
all rows, so its part of the error stays above 4 / epsilon with probability e^-4 = 1.8 %, for any z.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from foltr._kernels.sketches import add_counts, mix_rows, row_medians, row_minima, split_bits
from foltr.errors import SpecError
from foltr.text.counts import Counts
from foltr.types import Array

KEY_BYTES = 32
HASHES = ("keyed", "md5")
MAX_ROWS, MAX_COLUMNS = 1000, 1 << 24
KINDS = ("count", "count-min")
MAX_CELL = 2**31 - 1


class SketchShape(NamedTuple):
    """Shape that two sketches must share to be added or queried alike; holds no key."""

    rows: int  # z
    columns: int  # w
    hash: str
    fingerprint: str  # of the key


@dataclass(frozen=True)
class Family:
    """The z pairs of hash functions that the parties agreed on."""

    key: bytes = field(repr=False)
    rows: int
    columns: int
    hash: str


class Hashes(NamedTuple):
    shape: SketchShape
    columns: Array  # [terms, z] int32
    signs: Array  # [terms, z] int8: +1 or -1
    tags: Array  # [terms, z] uint16


class Sketch(NamedTuple):
    kind: str
    shape: SketchShape
    cells: Array  # [z, w] of one document or of a sum; [documents, z, w] of many


def new_key() -> bytes:
    """A key from the operating system."""
    return secrets.token_bytes(KEY_BYTES)


def family(key: bytes, *, rows: int = 30, columns: int = 200, hash: str = "keyed") -> Family:
    """Hash functions under this key; the paper's z = 30 rows of w = 200 columns."""
    if len(key) != KEY_BYTES:
        raise SpecError(f"the key has {len(key)} bytes; the parties must share one of {KEY_BYTES} bytes")
    if hash not in HASHES:
        raise SpecError(f"no hash {hash!r}; there are {', '.join(HASHES)}")
    if not 1 <= rows <= MAX_ROWS or not 1 <= columns <= MAX_COLUMNS:
        raise SpecError(
            f"a sketch of {rows} x {columns} cells; use 1 to {MAX_ROWS} rows and 1 to {MAX_COLUMNS:,} columns"
        )
    return Family(key, rows, columns, hash)


def shape_of(family: Family) -> SketchShape:
    digest = hashlib.blake2b(key=family.key, digest_size=8, person=b"foltr-key-print")
    return SketchShape(family.rows, family.columns, family.hash, digest.hexdigest())


def require_same_shape(one: SketchShape, other: SketchShape) -> None:
    """Raises an error that names both where they differ."""
    if one != other:
        raise SpecError(
            f"two sketches that do not belong together: {describe_shape(one)}, and {describe_shape(other)}; "
            "build both with the same key, rows, columns and hash"
        )


def describe_shape(shape: SketchShape) -> str:
    return f"{shape.rows} x {shape.columns} ({shape.hash}, key {shape.fingerprint})"


def hash_terms(terms: Sequence[str], family: Family) -> Hashes:
    """Column, sign and tag of every term in every row."""
    words = _md5_words(terms, family) if family.hash == "md5" else _mixed_words(terms, family)
    size = words.shape
    hashes = Hashes(shape_of(family), np.empty(size, np.int32), np.empty(size, np.int8), np.empty(size, np.uint16))
    split_bits(words, family.columns, hashes.columns, hashes.signs, hashes.tags)
    return hashes


def hash_words(terms: Sequence[str], family: Family) -> Array:
    """[terms] uint64: a keyed hash of each, which no row of a sketch uses; names words without stating them."""
    key = hashlib.blake2b(key=family.key, digest_size=KEY_BYTES, person=b"foltr-statistics").digest()
    digests = b"".join(hashlib.blake2b(_bytes(term), key=key, digest_size=8).digest() for term in terms)
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def take_hashes(hashes: Hashes, terms: Array) -> Hashes:
    """Of only these terms, in this order."""
    return hashes._replace(columns=hashes.columns[terms], signs=hashes.signs[terms], tags=hashes.tags[terms])


def _mixed_words(terms: Sequence[str], family: Family) -> Array:
    """[terms, z] 64 bits each; all rows come from one keyed hash of the term."""
    digests = b"".join(hashlib.blake2b(_bytes(term), key=family.key, digest_size=8).digest() for term in terms)
    words = np.empty((len(terms), family.rows), np.uint64)
    mix_rows(np.frombuffer(digests, "<u8").astype(np.uint64), words)
    return words


def _md5_words(terms: Sequence[str], family: Family) -> Array:
    starts = [hashlib.md5(family.key + row.to_bytes(2, "little"), usedforsecurity=False) for row in range(family.rows)]
    words = np.empty((len(terms), family.rows), np.uint64)
    for place, term in enumerate(terms):
        for row, start in enumerate(starts):
            digest = start.copy()
            digest.update(_bytes(term))
            words[place, row] = int.from_bytes(digest.digest()[:8], "little")
    return words


def _bytes(term: str) -> bytes:
    return term.encode("utf-8", "surrogatepass")  # damaged files hold lone surrogates; each is a term of its own


def empty(kind: str, shape: SketchShape, documents: int | None = None) -> Sketch:
    """A sketch of zeros; with `documents` one for each."""
    if kind not in KINDS:
        raise SpecError(f"no sketch {kind!r}; there are {', '.join(KINDS)}")
    size = (shape.rows, shape.columns)
    return Sketch(kind, shape, np.zeros(size if documents is None else (documents, *size), np.int32))


def add(sketch: Sketch, hashes: Hashes, counts: Array) -> None:
    """Adds each of the terms that often, in place; negative counts remove."""
    require_same_shape(sketch.shape, hashes.shape)
    if sketch.cells.ndim != 2 or len(counts) != len(hashes.columns):
        raise SpecError(
            f"{len(counts)} counts of {len(hashes.columns)} terms for cells {sketch.cells.shape}; "
            "give one sketch and a count for every term"
        )
    amounts = np.asarray(counts, dtype=np.int64)
    _refuse_overflow(int(np.abs(sketch.cells).max(initial=0)) + int(np.abs(amounts).sum()))
    signs, whole = _signs(sketch.kind, hashes), np.array([0, len(amounts)])
    add_counts(whole, np.arange(len(amounts)), amounts, hashes.columns, signs, sketch.cells[None])


def sketch_documents(kind: str, documents: Counts, hashes: Hashes) -> Sketch:
    """One sketch a document; the hashes are those of the whole vocabulary, in its order."""
    require_vocabulary(documents, hashes)
    sketches = empty(kind, hashes.shape, len(documents.lengths))
    _refuse_overflow(int(documents.lengths.max(initial=0)))
    signs = _signs(kind, hashes)
    add_counts(documents.offsets, documents.terms, documents.counts, hashes.columns, signs, sketches.cells)
    return sketches


def estimate(sketch: Sketch, hashes: Hashes) -> Array:
    """Estimated counts: [terms] of one sketch, [documents, terms] of many."""
    require_same_shape(sketch.shape, hashes.shape)
    cells = sketch.cells if sketch.cells.ndim == 3 else sketch.cells[None]
    estimates = np.empty((len(cells), len(hashes.columns)))
    if sketch.kind == "count":
        row_medians(cells, hashes.columns, hashes.signs, np.empty(sketch.shape.rows), estimates)
    else:
        row_minima(cells, hashes.columns, estimates)
    return estimates if sketch.cells.ndim == 3 else estimates[0]


def require_vocabulary(documents: Counts, hashes: Hashes) -> None:
    """Raises unless the hashes are of the vocabulary that the documents were counted with."""
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
    if largest > MAX_CELL:
        raise SpecError(f"a cell could reach {largest:,}, beyond {MAX_CELL:,}; sketch fewer terms at a time")
