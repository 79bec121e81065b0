"""Exact statistics of the collection, kept as a sum of changes.

Every batch of added and removed documents writes one record of what it changed (documents per stem, documents per stem
and field, occurrences, documents per word), in the transaction that writes the documents. The statistics are the sum
of the records; from time to time they are replaced by their sum. A batch thus writes what it touched and nothing else,
and a reader in another process reads the records that it has not yet seen.

Documents of which only the name is known count in `names` and `uses` alone: pictures beside the texts must not change
what is rare, nor how long a text usually is.

A test computes them a second time, from the word sequences alone.
"""

import sqlite3
import zlib
from typing import NamedTuple

import numpy as np

from foltr.text.fields import FIELDS
from foltr.types import Array

_MAX_RECORDS = 64  # more are replaced by their sum
_FIELDS, _BODY = len(FIELDS), FIELDS.index("body")
HEAD_FIELDS = [FIELDS.index("title"), FIELDS.index("name")]


class Change(NamedTuple):
    """Changes by a batch; also the sum of several. Counts are signed."""

    stems: Array  # [s] int32 rising
    document_frequency: Array  # [s] int32
    field_frequency: Array  # [s, fields] int32
    collection_frequency: Array  # [s] int32
    words: Array  # [w] int32 rising
    stem_of: Array  # [w] int32
    uses: Array  # [w] int32 documents with the word, also those without a text
    names: Array  # [s] int32 documents without a text that have the stem


class Sequence(NamedTuple):
    """One document that is added (+1) or removed (-1)."""

    words: Array  # [total] int32
    lengths: Array  # [fields]
    sign: int
    has_text: bool = True  # False: only its name is known


def change(batch: list[Sequence], stem_of: Array) -> Change:
    """The counts of a batch; documents that are added and removed again cancel."""
    total = [len(one.words) for one in batch]
    document = np.repeat(np.arange(len(batch)), total)
    field = np.concatenate([np.repeat(np.arange(_FIELDS), one.lengths) for one in batch])
    words = np.concatenate([one.words for one in batch]).astype(np.int64)
    signs = np.array([one.sign for one in batch])
    of_texts = signs * np.array([one.has_text for one in batch])
    span = int(words.max(initial=0)) + 1
    keys, counts = np.unique((document * span + words) * _FIELDS + field, return_counts=True)
    pair, field = np.divmod(keys, _FIELDS)
    document, words = np.divmod(pair, span)
    stems, sign = stem_of[words].astype(np.int64), signs[document]
    first = np.diff(pair, prepend=-1) != 0
    used_words, uses = _sums(words[first], sign[first])
    counted = _by_stem(document, stems, field, counts * of_texts[document], of_texts, signs - of_texts)
    return Change(*counted[:4], used_words, stem_of[used_words], uses, counted[4])


def _by_stem(
    document: Array, stems: Array, field: Array, occurrences: Array, of_texts: Array, of_names: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """Stems with documents, documents per field, occurrences, and documents without a text."""
    span = int(stems.max(initial=0)) + 1
    pair, fields = np.divmod(np.unique((document * span + stems) * _FIELDS + field), _FIELDS)
    documents, of_pair = np.divmod(pair, span)
    first = np.diff(pair, prepend=-1) != 0
    distinct, place = np.unique(of_pair, return_inverse=True)
    sign = of_texts[documents]
    document_frequency = np.bincount(place[first], sign[first], len(distinct))
    names = np.bincount(place[first], of_names[documents][first], len(distinct))
    field_frequency = np.bincount(place * _FIELDS + fields, sign, len(distinct) * _FIELDS).reshape(-1, _FIELDS)
    collection_frequency = np.bincount(np.searchsorted(distinct, stems), occurrences, len(distinct))
    changed = (field_frequency != 0).any(axis=1) | (document_frequency != 0) | (collection_frequency != 0)
    changed |= names != 0
    return (
        distinct[changed].astype(np.int32),
        document_frequency[changed].astype(np.int32),
        field_frequency[changed].astype(np.int32),
        collection_frequency[changed].astype(np.int32),
        names[changed].astype(np.int32),
    )


def _sums(numbers: Array, amounts: Array) -> tuple[Array, Array]:
    """Distinct numbers whose amounts do not add up to 0, with their sums."""
    distinct, place = np.unique(numbers, return_inverse=True)
    sums = np.bincount(place, amounts, len(distinct))
    changed = sums != 0
    return distinct[changed].astype(np.int32), sums[changed].astype(np.int32)


def _encode(one: Change) -> bytes:
    header = np.array([len(one.stems), len(one.words)], "<u4").tobytes()
    return header + zlib.compress(b"".join(np.ascontiguousarray(part, "<i4").tobytes() for part in one), 1)


def _decode(content: bytes) -> Change:
    s, w = (int(n) for n in np.frombuffer(content, "<u4", 2))
    values = np.frombuffer(zlib.decompress(memoryview(content)[8:]), "<i4")
    sizes = [s, s, s * _FIELDS, s, w, w, w]
    stems, df, ff, cf, words, stem_of, uses, names = np.split(values, np.cumsum(sizes))
    if not len(names):  # of version 3, whose documents all have a text
        names = np.zeros(s, np.int32)
    return Change(stems, df, ff.reshape(-1, _FIELDS), cf, words, stem_of, uses, names)


class FieldFrequency:
    """Documents per stem and field. Nearly all stems occur in bodies alone: these are an array over all stems, the
    other fields a rising array of stem * fields + field with the counts, a fifth of the memory of a full table."""

    def __init__(self) -> None:
        self._bodies = np.zeros(0, np.int32)  # [stems]
        self._keys = np.zeros(0, np.int64)  # [m]
        self._counts = np.zeros(0, np.int32)  # [m] not 0

    def reserve(self, stems: int) -> None:
        self._bodies = np.pad(self._bodies, (0, stems - len(self._bodies)))

    def add(self, stems: Array, change: Array) -> None:
        """`change` [s, fields] of these stems, which rise."""
        self._bodies[stems] += change[:, _BODY]
        rows, fields = np.nonzero(np.delete(change, _BODY, axis=1))
        fields += fields >= _BODY
        keys, counts = stems[rows].astype(np.int64) * _FIELDS + fields, change[rows, fields]
        places, known = self._places(keys)
        self._counts[places[known]] += counts[known]
        vanished = places[known][self._counts[places[known]] == 0]
        new = places[~known]
        self._keys = np.insert(self._keys, new, keys[~known])
        self._counts = np.insert(self._counts, new, counts[~known])
        if len(vanished):
            present = self._counts != 0
            self._keys, self._counts = self._keys[present], self._counts[present]

    def stems_in(self, fields: list[int]) -> Array:
        """[stems] bool: some document has the stem in one of these fields; not for bodies."""
        found = np.zeros(len(self._bodies), bool)
        found[self._keys[np.isin(self._keys % _FIELDS, fields)] // _FIELDS] = True
        return found

    def _places(self, keys: Array) -> tuple[Array, Array]:
        """Where keys are or would be, and whether they are there."""
        places = np.searchsorted(self._keys, keys)
        known = np.zeros(keys.shape, bool)
        inside = places < len(self._keys)
        known[inside] = self._keys[places[inside]] == keys[inside]
        return places, known

    def __getitem__(self, stems: Array) -> Array:
        """[..., fields] of some stems."""
        wanted = np.asarray(stems, np.int64)[..., None] * _FIELDS + np.arange(_FIELDS)
        places, known = self._places(wanted)
        found = np.zeros(wanted.shape, np.int32)
        found[known] = self._counts[places[known]]
        found[..., _BODY] = self._bodies[stems]
        return found


class Statistics:
    """All counts in memory, indexed by stem and by word number; a stop word is its own stem."""

    def __init__(self, stop_count: int) -> None:
        self._stop_count = stop_count
        self._clear()

    def _clear(self) -> None:
        stop = self._stop_count
        self.document_frequency = np.zeros(stop, np.int32)  # [stems]
        self.field_frequency = FieldFrequency()
        self.field_frequency.reserve(stop)
        self.collection_frequency = np.zeros(stop, np.int32)  # [stems]
        self.names = np.zeros(stop, np.int32)  # [stems]
        self.stem_of = np.arange(stop, dtype=np.int32)  # [words] -1: no document has the word
        self.uses = np.zeros(stop, np.int32)  # [words]
        self._first = self._last = 0  # records that are in the sums
        self._by_stem: tuple[Array, Array] | None = None  # words in the order of their stems, and these stems
        self._in_heads: Array | None = None

    def refresh(self, connection: sqlite3.Connection) -> None:
        """Adds the records that are new; starts again where old ones were replaced by their sum."""
        first = connection.execute("SELECT min(id) FROM changes").fetchone()[0] or 0
        if first != self._first:
            self._clear()
            self._first = first
        rows = connection.execute("SELECT id, content FROM changes WHERE id > ? ORDER BY id", (self._last,))
        for number, content in rows:
            self.apply(_decode(content))
            self._last = number

    def apply(self, one: Change) -> None:
        self._by_stem = self._in_heads = None
        self.reserve(int(one.stems.max(initial=-1)) + 1, int(one.words.max(initial=-1)) + 1)
        self.document_frequency[one.stems] += one.document_frequency
        self.field_frequency.add(one.stems, one.field_frequency)
        self.collection_frequency[one.stems] += one.collection_frequency
        self.names[one.stems] += one.names
        self.uses[one.words] += one.uses
        in_use = (self.uses[one.words] > 0) | (one.words < self._stop_count)
        self.stem_of[one.words] = np.where(in_use, one.stem_of, -1)

    def reserve(self, stems: int, words: int) -> None:
        """Makes space for numbers below these, with reserves, so that growth is linear in time."""
        if stems > len(self.document_frequency):
            more = max(stems * 9 // 8, 1024) - len(self.document_frequency)
            self.document_frequency = np.pad(self.document_frequency, (0, more))
            self.field_frequency.reserve(len(self.document_frequency))
            self.collection_frequency = np.pad(self.collection_frequency, (0, more))
            self.names = np.pad(self.names, (0, more))
        if words > len(self.uses):
            self._by_stem = None
            more = max(words * 9 // 8, 1024) - len(self.uses)
            self.uses = np.pad(self.uses, (0, more))
            self.stem_of = np.pad(self.stem_of, (0, more), constant_values=-1)

    def write(self, connection: sqlite3.Connection, one: Change) -> None:
        """Adds a record to the sums and to the database (in the caller's transaction)."""
        self.refresh(connection)
        self.apply(one)
        self._last = _insert(connection, one)
        self._first = self._first or self._last
        if connection.execute("SELECT count(*) FROM changes").fetchone()[0] > _MAX_RECORDS:
            connection.execute("DELETE FROM changes")
            self._first = self._last = _insert(connection, self.total())

    def total(self) -> Change:
        """Everything as one record."""
        stems, words = np.flatnonzero(self.in_use()), np.flatnonzero(self.uses)
        frequencies = (self.document_frequency[stems], self.field_frequency[stems], self.collection_frequency[stems])
        of_words = (words.astype(np.int32), self.stem_of[words], self.uses[words])
        return Change(stems.astype(np.int32), *frequencies, *of_words, self.names[stems])

    def in_use(self, stems: Array | slice = slice(None)) -> Array:
        """[m] bool: whether some document has each of these stems."""
        return (self.document_frequency[stems] > 0) | (self.names[stems] > 0)

    def in_heads(self, stems: Array) -> Array:
        """[m] bool: whether some title or file name has each of these stems."""
        if self._in_heads is None or len(self._in_heads) < len(self.document_frequency):
            self._in_heads = self.field_frequency.stems_in(HEAD_FIELDS)
        return self._in_heads[stems]

    def words_of(self, stems: Array) -> Array:
        """[m] int32 rising: every word with one of these stems that some document has."""
        if self._by_stem is None:
            order = np.argsort(self.stem_of, kind="stable").astype(np.int32)
            self._by_stem = order, self.stem_of[order]
        order, sorted_stems = self._by_stem
        starts, ends = (np.searchsorted(sorted_stems, stems.astype(np.int32), side) for side in ("left", "right"))
        lengths = ends - starts
        places = np.arange(lengths.sum()) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        return np.sort(order[places])


def _insert(connection: sqlite3.Connection, one: Change) -> int:
    number = connection.execute("INSERT INTO changes (content) VALUES (?)", (_encode(one),)).lastrowid
    assert number is not None
    return number
