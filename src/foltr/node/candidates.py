"""Candidates for a query: the documents with the highest BM25 over all fields as one, from a tantivy index.

The index holds numbers only: of documents, and of stems in place of words. It is a cache of the store, brought up to
date from it and rebuilt from it, and what is forgotten in the store leaves no word here.

    id     number of the document
    stem   stems of all fields, stop words left out
    head   stems of title and file name: a beginning of few letters has many matches, those in names come first
    stop   stop words, for queries that consist of them

`candidates.json` beside the index names the live folder and the generation of the store that is in it. It is replaced
after a commit: an index that stopped in between is caught up from the generation before.
"""

import contextlib
import math
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from foltr.errors import StorageError
from foltr.node import sequences
from foltr.node.places import private_folder, private_json
from foltr.node.store import Store
from foltr.text.fields import FIELDS, QueryText, Term
from foltr.text.memory_index import SHORTEST_BEGINNING
from foltr.types import Array

_ALPHABET = np.frombuffer(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_", np.uint8)
_DIGITS = 5  # of 6 bits: numbers below 2^30
_SHIFTS = 6 * np.arange(_DIGITS - 1, -1, -1)
_HEAD_FIELDS = [FIELDS.index("title"), FIELDS.index("name")]
_HEAP = 48_000_000  # bytes; more gives fewer segments to merge
_AT_ONCE = 256  # documents read from the store
_MAX_SCORED = 128  # completions of a beginning that are scored one by one; the others count alike
_MAX_STEMS = 4096  # completions that are looked for at all, the most frequent ones
_MAX_STEMS_SHORT = 512  # the same for one or two letters, after which somebody types on
_MORE_FOR_TIES = 50  # hits beyond the list, so that documents of equal scores do not depend on the order of segments
_MAX_DELETED = 0.2  # share of documents in the index that were deleted; more: it is rebuilt


class Stamp(msgspec.Struct, frozen=True):
    """Which folder is live, and what is in it."""

    folder: str
    generation: int
    written: int  # documents added since the folder was new, deleted ones included


class Candidates:
    """The tantivy index in a cache folder; `write=True` for the one process that holds the lock of the store."""

    def __init__(self, cache: Path, *, write: bool = False) -> None:
        self.cache, self.write = cache, write
        self._writer: Any = None
        self._index: Any = None
        self.stamp: Stamp | None = None
        self._reopen()

    def close(self) -> None:
        """Waits for merges, so that no half-merged files stay behind."""
        if self._writer is not None:
            self._writer.wait_merging_threads()
            self._writer = None
        self._index = None

    def update(self, store: Store) -> None:
        """Brings the index to the generation of the store: adds, deletes, or rebuilds where that is cheaper."""
        generation = store.refresh()
        if self.stamp is None or self.is_unrelated_to(store) or self._is_worn(store):
            self.rebuild(store)
        elif generation > self.stamp.generation:
            with self._failures_undone():
                self._catch_up(store, generation)

    def is_unrelated_to(self, store: Store) -> bool:
        """Whether the index cannot be caught up. A power cut can take back the last transactions of the store, whose
        numbers are then given again; or the last stamp, after the store has dropped the list of what was removed."""
        if self.stamp is None:
            return False
        return not int(store.meta("purged", "0")) <= self.stamp.generation <= store.generation

    @contextmanager
    def _failures_undone(self) -> Iterator[None]:
        """After an error, such as a full disk, the index is again the one of the last stamp."""
        try:
            yield
        except (OSError, ValueError, RuntimeError, SystemError) as problem:
            self._writer = self._index = self.stamp = None
            self._reopen()
            raise StorageError(
                f"{self.cache}: candidates cannot be written ({problem}); free some space and index again"
            ) from None

    def _is_worn(self, store: Store) -> bool:
        assert self.stamp is not None
        pending = store.connection.execute(
            "SELECT count(*) FROM documents WHERE generation > ?", (self.stamp.generation,)
        ).fetchone()[0]
        written = self.stamp.written + pending
        return written - store.collection().documents > max(64, _MAX_DELETED * written)

    def rebuild(self, store: Store) -> None:
        """Writes a new index beside the old one, which serves until the new one is complete."""
        if not self.write:
            raise StorageError(f"{self.cache}: opened for reading; the indexing process writes")
        with self._failures_undone():
            self._rebuild(store)

    def _rebuild(self, store: Store) -> None:
        generation = store.refresh()
        old = self.stamp.folder if self.stamp else ""
        number = int(old.rpartition("-")[2] or 0) + 1 if old else 1
        name = f"candidates-{number}"
        shutil.rmtree(self.cache / name, ignore_errors=True)
        self.close()
        self._index = _new_index(self.cache / name)
        self._finish(store, Stamp(name, generation, self._add(store, 0, generation)))
        for folder in self.cache.glob("candidates-*"):
            if folder.name != name:
                shutil.rmtree(folder, ignore_errors=True)

    def _catch_up(self, store: Store, generation: int) -> None:
        stamp = self.stamp
        assert stamp is not None
        writer = self._the_writer()
        gone = store.connection.execute("SELECT document FROM removed WHERE generation > ?", (stamp.generation,))
        # documents that a stopped process may have committed already are deleted before they are added
        again = store.connection.execute("SELECT id FROM documents WHERE generation > ?", (stamp.generation,))
        for (number,) in [*gone.fetchall(), *again.fetchall()]:
            writer.delete_documents_by_term("id", number)
        added = self._add(store, stamp.generation, generation)
        self._finish(store, Stamp(stamp.folder, generation, stamp.written + added))

    def _add(self, store: Store, after: int, until: int) -> int:
        import tantivy

        writer, added = self._the_writer(), 0
        for number, words, lengths in _documents(store, after, until):
            stems = store.statistics.stem_of[words]
            field = np.repeat(np.arange(len(FIELDS)), lengths)
            is_stop = words < store.stop_count
            document = tantivy.Document()
            document.add_integer("id", number)
            document.add_text("stem", codes(stems[~is_stop]))
            document.add_text("head", codes(stems[~is_stop & np.isin(field, _HEAD_FIELDS)]))
            document.add_text("stop", codes(np.unique(words[is_stop])))
            writer.add_document(document)
            added += 1
        return added

    def _finish(self, store: Store, stamp: Stamp) -> None:
        self._the_writer().commit()
        self._index.reload()
        private_json(self.cache / "candidates.json", msgspec.to_builtins(stamp))
        self.stamp = stamp
        # a list of what is gone, also from here; at worst it stays
        with contextlib.suppress(sqlite3.Error), store.connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM removed WHERE generation <= ?", (stamp.generation,))
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('purged', ?)", (stamp.generation,))

    def _the_writer(self) -> Any:
        if self._writer is None:
            self._writer = self._index.writer(_HEAP, 1)
        return self._writer

    def _reopen(self) -> None:
        """Opens the live folder where it is another one than before; readers do so before they search."""
        for _ in range(3):  # the folder may be replaced between the two looks
            stamp = _read_stamp(self.cache / "candidates.json")
            if stamp == self.stamp:
                return
            try:
                if self.stamp is None or stamp is None or stamp.folder != self.stamp.folder:
                    self._index = None if stamp is None else self._opened(stamp.folder)
                else:
                    self._index.reload()
            except (OSError, ValueError):  # damaged: rebuilt by the next writer
                self._index = stamp = None
            self.stamp = stamp
            if stamp is not None:
                return

    def _opened(self, name: str) -> Any:
        import tantivy

        index = tantivy.Index.open(str(self.cache / name))
        index.config_reader("manual")
        return index

    def search(
        self,
        store: Store,
        query: QueryText,
        *,
        top_k: int = 100,
        must: Sequence[Term] = (),
        must_not: Sequence[Term] = (),
        allowed: Array | None = None,
    ) -> list[int]:
        """Numbers of documents, best first. `allowed` restricts them to these numbers (rising)."""
        if not self.write:
            self._reopen()
        if self._index is None or (allowed is not None and not len(allowed)):
            return []
        lists = [_query(store, query, "stem", must, must_not)]
        if any(len(stems_of(store, term)) > 1 for term in query.terms):
            lists.append(_query(store, query, "head", must, must_not))
        found = [self._top(one, top_k, allowed) for one in lists if one is not None]
        return _merged(found, top_k)

    def _top(self, query: Any, top_k: int, allowed: Array | None) -> list[int]:
        searcher, limit = self._index.searcher(), top_k
        while True:
            hits = searcher.search(query, limit + _MORE_FOR_TIES, count=False).hits
            numbers = np.array(searcher.fast_field_values("id", [address for _, address in hits]), np.int64)
            scores = np.array([score for score, _ in hits], np.float64)
            numbers = numbers[np.lexsort((numbers, -scores))]  # equal scores: by number
            if allowed is not None:
                numbers = numbers[np.isin(numbers, allowed)]
            if len(numbers) >= top_k or len(hits) < limit + _MORE_FOR_TIES:
                return [int(number) for number in numbers[:top_k]]
            limit *= 8


def stems_of(store: Store, term: Term) -> Array:
    """The stems of a term's words, rising."""
    stems = store.statistics.stem_of[term.words]
    if not len(stems):
        return stems
    there = np.zeros(int(stems.max()) + 1, bool)  # ten times faster than sorting the words of one letter
    there[stems] = True
    return np.flatnonzero(there)


def codes(numbers: Array) -> str:
    """Numbers as text of fixed width, separated by spaces."""
    text = np.full((len(numbers), _DIGITS + 1), ord(" "), np.uint8)
    text[:, :_DIGITS] = _ALPHABET[(np.asarray(numbers, np.int64)[:, None] >> _SHIFTS) & 63]
    return text.tobytes().decode("ascii")


def _new_index(folder: Path) -> Any:
    import tantivy

    index = tantivy.Index(_schema(), path=str(private_folder(folder)))
    index.config_reader("manual")
    return index


@lru_cache(maxsize=1)
def _schema() -> Any:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("id", indexed=True, fast=True)
    for field, option in (("stem", "freq"), ("head", "freq"), ("stop", "basic")):
        builder.add_text_field(field, tokenizer_name="whitespace", index_option=option)
    return builder.build()


def _read_stamp(path: Path) -> Stamp | None:
    try:
        stamp = msgspec.json.decode(path.read_bytes(), type=Stamp)
    except (OSError, msgspec.MsgspecError):
        return None
    return stamp if stamp.folder.startswith("candidates-") and "/" not in stamp.folder else None


def _documents(store: Store, after: int, until: int) -> Iterator[tuple[int, Array, Array]]:
    """Number, words and lengths of the documents of some generations."""
    last = 0
    while True:
        rows = store.connection.execute(
            "SELECT d.id, s.content FROM documents d JOIN sequences s ON s.document = d.id "
            "WHERE d.id > ? AND d.generation > ? AND d.generation <= ? ORDER BY d.id LIMIT ?",
            (last, after, until, _AT_ONCE),
        ).fetchall()
        if not rows:
            return
        for number, content in rows:
            yield number, *sequences.decode(content)
        last = rows[-1][0]


def _query(store: Store, query: QueryText, field: str, must: Sequence[Term], must_not: Sequence[Term]) -> Any:
    import tantivy

    parts = [(tantivy.Occur.Should, part) for term in query.terms for part in _parts(store, term, field)]
    if not parts and not must:
        return None
    scored = tantivy.Query.boolean_query(parts) if parts else tantivy.Query.all_query()
    required = [(tantivy.Occur.Must, scored)]
    for occur, terms in ((tantivy.Occur.Must, must), (tantivy.Occur.MustNot, must_not)):
        required += [(occur, one) for one in (_any_of(store, term) for term in terms)]
    return tantivy.Query.boolean_query(required) if len(required) > 1 else scored


def _parts(store: Store, term: Term, field: str) -> Iterator[Any]:
    """The queries of one term, to be added up. Several stems count as one term: each gets the weight of all of them,
    since a rare completion is no better than a frequent one."""
    import tantivy

    schema, make = _schema(), tantivy.Query
    stop, stems = _split(store, term)
    if len(stop):
        yield make.term_set_query(schema, "stop", codes(stop).split())
    if len(stems) == 1:
        yield make.term_query(schema, field, codes(stems)[:-1], "freq")
        return
    if not len(stems):
        return
    frequency = store.statistics.document_frequency[stems]
    documents = max(store.collection().documents, int(frequency.max()), 1)
    whole = _idf(min(int(frequency.sum()), documents), documents)
    most = _MAX_STEMS if len(term.text) >= SHORTEST_BEGINNING else _MAX_STEMS_SHORT
    order = np.argsort(-frequency, kind="stable")[:most]
    names = codes(stems[order]).split()
    for name, own in zip(names[:_MAX_SCORED], frequency[order[:_MAX_SCORED]], strict=True):
        one = make.term_query(schema, field, name, "freq")
        yield make.boost_query(one, whole / _idf(int(own), documents))
    if len(names) > _MAX_SCORED:
        yield make.const_score_query(make.term_set_query(schema, field, names[_MAX_SCORED:]), whole)


def _any_of(store: Store, term: Term) -> Any:
    """Documents with an occurrence of a term, without a score."""
    import tantivy

    stop, stems = _split(store, term)
    schema, make = _schema(), tantivy.Query
    fields = (("stem", stems), ("stop", stop))
    sets = [make.term_set_query(schema, field, codes(some).split()) for field, some in fields if len(some)]
    if not sets:
        return make.empty_query()
    return make.const_score_query(make.boolean_query([(tantivy.Occur.Should, one) for one in sets]), 0.0)


def _split(store: Store, term: Term) -> tuple[Array, Array]:
    """The stop words and the other stems of a term."""
    stems = stems_of(store, term)
    return stems[stems < store.stop_count], stems[stems >= store.stop_count]


def _idf(frequency: int, documents: int) -> float:
    return math.log(1.0 + (documents - frequency + 0.5) / (frequency + 0.5))


def _merged(lists: list[list[int]], top_k: int) -> list[int]:
    """Several lists in turn, each document once."""
    found: dict[int, None] = {}
    for place in range(max(map(len, lists), default=0)):
        for one in lists:
            if place < len(one):
                found.setdefault(one[place])
    return list(found)[:top_k]
