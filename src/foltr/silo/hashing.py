"""Keyed hashes of terms: for every term and every row of a sketch a column, a sign and a tag.

Source: S3 section IV-A and IV-B step 1: z functions h_a: term -> column and z functions g_a: term -> +1 or -1, the same
at all parties, keyed so that the server cannot compute them.

    keyed   one BLAKE2b a term, under the key, to 64 bits; row a mixes it with a constant of its own
    md5     MD5 of key, row and term: z digests a term, as the paper's experiments

Equal keys give equal hashes on every machine. A tag is sixteen further bits, which only the layout `sampled` of
`rtk_sketch` uses; it is never sent by whoever asks.

Differs from the paper: one keyed hash a term instead of z (as `md5` has it), and tags. Two terms of 64 equal bits would
share all rows: among a million terms that happens once in 37 million keys.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from foltr._kernels.hashing import cut, mix_rows
from foltr.errors import SpecError
from foltr.types import Array

KEY_BYTES = 32
KINDS = ("keyed", "md5")
MOST_ROWS, MOST_COLUMNS = 1000, 1 << 24


class Shape(NamedTuple):
    """What two sketches must share to be added or asked alike; holds no key."""

    rows: int  # z
    columns: int  # w
    hash: str
    fingerprint: str  # of the key


@dataclass(frozen=True)
class Family:
    """The z pairs of functions that the parties agreed on."""

    key: bytes = field(repr=False)
    rows: int
    columns: int
    hash: str


class Hashes(NamedTuple):
    shape: Shape
    columns: Array  # [terms, z] int32
    signs: Array  # [terms, z] int8: +1 or -1
    tags: Array  # [terms, z] uint16


def new_key() -> bytes:
    """A key from the operating system."""
    return secrets.token_bytes(KEY_BYTES)


def family(key: bytes, *, rows: int = 30, columns: int = 200, hash: str = "keyed") -> Family:
    """Hash functions under this key; the paper's z = 30 rows of w = 200 columns."""
    if len(key) != KEY_BYTES:
        raise SpecError(f"the key has {len(key)} bytes; the parties must share one of {KEY_BYTES} bytes")
    if hash not in KINDS:
        raise SpecError(f"no hash {hash!r}; there are {', '.join(KINDS)}")
    if not 1 <= rows <= MOST_ROWS or not 1 <= columns <= MOST_COLUMNS:
        raise SpecError(
            f"a sketch of {rows} x {columns} cells; use 1 to {MOST_ROWS} rows and 1 to {MOST_COLUMNS:,} columns"
        )
    return Family(key, rows, columns, hash)


def shape_of(family: Family) -> Shape:
    digest = hashlib.blake2b(key=family.key, digest_size=8, person=b"foltr-key-print")
    return Shape(family.rows, family.columns, family.hash, digest.hexdigest())


def same_shape(one: Shape, other: Shape) -> None:
    """An error that names both where they differ."""
    if one != other:
        raise SpecError(
            f"two sketches that do not belong together: {spoken(one)}, and {spoken(other)}; "
            "build both with the same key, rows, columns and hash"
        )


def spoken(shape: Shape) -> str:
    return f"{shape.rows} x {shape.columns} ({shape.hash}, key {shape.fingerprint})"


def hash_terms(terms: Sequence[str], family: Family) -> Hashes:
    """Column, sign and tag of every term in every row."""
    words = _md5_words(terms, family) if family.hash == "md5" else _mixed_words(terms, family)
    size = words.shape
    hashes = Hashes(shape_of(family), np.empty(size, np.int32), np.empty(size, np.int8), np.empty(size, np.uint16))
    cut(words, family.columns, hashes.columns, hashes.signs, hashes.tags)
    return hashes


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
    return term.encode("utf-8", "surrogatepass")  # half a character, as broken files have it, is a term of its own
