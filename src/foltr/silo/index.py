"""Keyed inverted index: answers for the keyed hash of one word with that word's list, and with nothing of another word.

The default between parties. The asker sends the 64-bit keyed hash of a word (`sketches.hash_words`); the owner looks it
up and returns the K documents that have the word most often, or its counts in documents that the asker names. An answer
has K entries, used or not, so that all answers have one size.

A sketch answers with cells in which the words of a whole column are mixed; a member, who has the hash key, separates
them again with a dictionary. Measured on four corpora (`foltr reproduce silo/disclosure`), an index is exact, shows no
document of a word that was not asked, and sends a hundredth of the bytes. It takes more space: 146 MB for 36,400
documents of 1,000 words, where the paper's sketch takes 36. What it gives up is the obfuscation of the asked word: an
owner finds the word by hashing a dictionary. With five real rows or more it does so with a sketch as well (`leakage`).

**Noise** (`one_shot`). Every (word, document) has one draw of Laplace noise of scale 1 / epsilon, which follows from a
secret of the owner, the hash of the word and the content of the document: words that the document lacks have one too,
and the choice of the K largest comes after the noise. One occurrence of a word changes one of these numbers by one, so
all answers together cost epsilon (unit word, zero-out). A sketch with z rows needs z times the scale.

Content is a digest of a document's words and counts under the group's key. Copies of a document have the same noise,
under any name, which shows that they are copies: the unit is one occurrence in a document and its exact copies.

Differs from the paper: all of it is ours.
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.silo import noise
from foltr.silo.sketches import MAX_CELL, Family, SketchShape, hash_words, shape_of
from foltr.text.counts import Counts
from foltr.types import Array

WORD_BYTES = 8  # of a keyed hash of a word
VERSION_BYTES = 16


class Index(NamedTuple):
    """Word i is in documents[starts[i] : starts[i + 1]], the largest count first, then the lowest number."""

    shape: SketchShape  # of the group's hash functions: a question under another key is refused
    top: int  # K
    hashes: Array  # [words] uint64, rising
    starts: Array  # [words + 1] int64
    documents: Array  # [entries] int32
    counts: Array  # [entries] int32
    versions: Array  # [documents, 16] uint8: digest of each document's content


def build_index(documents: Counts, words: Sequence[str], family: Family, *, top: int = 150) -> Index:
    """The index of counted documents; `words` are those of the counts' vocabulary."""
    if documents.vocabulary_size != len(words):
        raise SpecError(f"documents over {documents.vocabulary_size:,} terms, but {len(words):,} words; give the same")
    if top < 1:
        raise SpecError(f"top = {top}; use 1 or more")
    every = hash_words(words, family)
    owners = np.repeat(np.arange(len(documents.lengths), dtype=np.int32), np.diff(documents.offsets))
    hashes = every[documents.terms]
    order = np.lexsort((owners, -documents.counts.astype(np.int64), hashes))
    held, starts = np.unique(hashes[order], return_index=True)
    return Index(
        shape_of(family), min(top, max(len(documents.lengths), 1)), held, np.append(starts, len(order)),
        owners[order], documents.counts[order].astype(np.int32), _versions(documents, hashes),
    )  # fmt: skip


def postings(index: Index, word: int) -> tuple[Array, Array]:
    """Documents and counts of the word of this hash, the largest count first."""
    place = int(np.searchsorted(index.hashes, np.uint64(word)))
    if place == len(index.hashes) or int(index.hashes[place]) != word:
        return index.documents[:0], index.counts[:0]
    held = slice(index.starts[place], index.starts[place + 1])
    return index.documents[held], index.counts[held]


def all_counts(index: Index, word: int) -> Array:
    """[documents] float64 counts of one word, 0 where a document lacks it."""
    counts = np.zeros(len(index.versions))
    documents, amounts = postings(index, word)
    counts[documents] = amounts
    return counts


def noisy_counts(index: Index, word: int, epsilon: float, secret: bytes) -> Array:
    """[documents] whole numbers: counts with the noise that belongs to this word in each document's content."""
    keyed = hashlib.blake2b(word.to_bytes(WORD_BYTES, "little"), key=secret, digest_size=8)
    digests = bytearray()
    for version in index.versions:
        each = keyed.copy()
        each.update(version.tobytes())
        digests += each.digest()
    uniforms = noise.uniforms_of(bytes(digests))
    drawn = noise.laplace((len(index.versions),), 1 / epsilon, lambda size: uniforms[:size])
    return np.clip(np.rint(all_counts(index, word) + drawn), -MAX_CELL, MAX_CELL)


def largest(counts: Array, top: int) -> tuple[Array, Array]:
    """Documents and counts of the K largest of noisy counts, equal ones in the order of documents."""
    order = np.argsort(-counts, kind="stable")[:top].astype(np.int32)
    return order, counts[order]


def size_bytes(index: Index) -> int:
    return sum(part.nbytes for part in (index.hashes, index.starts, index.documents, index.counts, index.versions))


def _versions(documents: Counts, hashes: Array) -> Array:
    """[documents, 16] digests of every document's words and counts, whatever their order."""
    versions = np.empty((len(documents.lengths), VERSION_BYTES), np.uint8)
    for number, (first, last) in enumerate(zip(documents.offsets[:-1], documents.offsets[1:], strict=True)):
        order = np.argsort(hashes[first:last])
        content = np.ascontiguousarray(hashes[first:last][order], "<u8").tobytes()
        content += np.ascontiguousarray(documents.counts[first:last][order], "<i8").tobytes()
        versions[number] = np.frombuffer(hashlib.blake2b(content, digest_size=VERSION_BYTES).digest(), np.uint8)
    return versions
