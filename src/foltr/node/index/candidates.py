"""Candidates for a query: the documents with the highest BM25 over all fields as one, from a tantivy index.

The index holds numbers only: of documents, and of stems in place of words. It is a cache of the store, brought up to
date from it and rebuilt from it, and what is forgotten in the store leaves no word here.

    id     number of the document
    stem   stems of all fields, stop words left out
    head   stems of title and file name: a beginning of few letters has many matches, those in names come first
    stop   stop words, for queries that consist of them
    whole  digests of the file name with and without its endings

Documents of which only the name is known have an index of their own, so that they change no score of a text.

`candidates.json` (`names.json`) beside the index names the live folder and the generation of the store that is in it.
It is replaced after a commit: an index that stopped in between is caught up from the generation before.

A document that cannot be added is left out and named to the caller, who stores that its file has failed.
"""

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from foltr.errors import StorageError
from foltr.files import private_files, private_folder, write_json
from foltr.node.extract.file_version import reason_of
from foltr.node.index import sequences
from foltr.node.index.candidate_queries import SHORTEST_IN_BODIES, Queries, codes, name_code, schema, with_name
from foltr.node.index.statistics import HEAD_FIELDS
from foltr.node.index.store import Store, printable
from foltr.text.analysis import fold
from foltr.text.fields import FIELDS, QueryText, Term
from foltr.text.names import whole_names
from foltr.types import Array

_HEAP = 48_000_000  # bytes; more gives fewer segments to merge
_AT_ONCE = 256  # documents read from the store
_ENOUGH = 100  # documents with a beginning in title or name: for one or two letters, bodies are not searched then
_MORE_FOR_TIES = 50  # hits beyond the list, so that documents of equal scores do not depend on the order of segments
_MAX_DELETED = 0.2  # share of documents in the index that were deleted; more: it is rebuilt
_MAX_DELETED_NAMES = 0.5  # names go as texts are read; to write those that are left is cheap
_NAME_HEAP = 15_000_000  # the least that tantivy takes
_STAMPS = {False: "candidates.json", True: "names.json"}  # by whether only names are known
_ATTEMPTS = 5  # to write, each after a document was rejected
_MOST_REFUSED = 100  # documents at once; more: the store is at fault, not they

_FIELDS = 5

Refused = dict[int, str]  # document -> why it cannot be added


class Stamp(msgspec.Struct, frozen=True):
    """Which folder is live, and what is in it."""

    folder: str
    generation: int
    written: int  # documents added since the folder was new, deleted ones included
    fields: int = 4  # of the index; those before version 4 of the tables have no `whole`


class _Rejected(Exception):
    """Raised where tantivy refuses a document."""

    def __init__(self, document: int, problem: Exception) -> None:
        super().__init__(str(problem))
        self.document, self.problem = document, problem


class Candidates:
    """The tantivy index in a cache folder; `write=True` for the one process that holds the lock of the store.
    `names`: of the documents of which only the name is known, else of those with a text."""

    def __init__(self, cache: Path, *, write: bool = False, names: bool = False) -> None:
        self.cache, self.write, self.names = cache, write, names
        self._prefix = _STAMPS[names].removesuffix(".json")
        self._writer: Any = None
        self._index: Any = None
        self._queries = Queries(names=names)
        self.stamp: Stamp | None = None
        self._reopen()

    def close(self) -> None:
        """Waits for merges, so that no half-merged files stay behind."""
        if self._writer is not None:
            self._writer.wait_merging_threads()
            self._writer = None
            for folder in self.cache.glob(f"{self._prefix}-*"):
                private_files(folder)
        self._index = None

    def update(self, store: Store) -> Refused:
        """Brings the index to the generation of the store: adds, deletes, or rebuilds where that is cheaper. Returns
        the documents that were left out."""
        generation = store.refresh()
        outdated = self.stamp is not None and self.stamp.fields < _FIELDS
        if self.stamp is None or outdated or self.is_unrelated_to(store) or self._is_worn(store):
            return self.rebuild(store)
        if generation > self.stamp.generation:
            return self._written(lambda refused: self._catch_up(store, generation, refused))
        return {}

    def is_unrelated_to(self, store: Store) -> bool:
        """Whether the index must be rebuilt instead of updated. After a power cut the store may have lost its last
        transactions, whose numbers are then used again, or the stamp may be older than the store's list of removals."""
        if self.stamp is None:
            return False
        return not int(store.meta("purged", "0")) <= self.stamp.generation <= store.generation

    @contextmanager
    def _failures_undone(self) -> Iterator[None]:
        """After an error, such as a full disk, the index is again the one of the last stamp."""
        try:
            yield
        except (OSError, ValueError, RuntimeError, SystemError, _Rejected) as problem:
            self._writer = self._index = self.stamp = None
            self._reopen()
            if isinstance(problem, _Rejected):
                raise
            raise self._storage_error(problem) from None

    def _storage_error(self, problem: Exception) -> StorageError:
        return StorageError(f"{self.cache}: candidates cannot be written ({problem}); free some space and index again")

    def _written(self, write: Callable[[Refused], None]) -> Refused:
        """Calls `write` until it succeeds. A document that is rejected twice in a row is left out: a full disk rejects
        whatever is added, so that the attempt without the document fails too."""
        refused: Refused = {}
        suspect: _Rejected | None = None
        for _ in range(_ATTEMPTS):
            try:
                with self._failures_undone():
                    write(refused)
                return refused
            except _Rejected as rejected:
                if suspect is not None and rejected.document == suspect.document:
                    refused[rejected.document] = reason_of(rejected.problem)
                suspect = rejected
        assert suspect is not None
        raise self._storage_error(suspect)

    def _is_worn(self, store: Store) -> bool:
        assert self.stamp is not None
        pending = store.connection.execute(
            "SELECT count(*) FROM documents WHERE generation > ? AND has_text = ?",
            (self.stamp.generation, not self.names),
        ).fetchone()[0]
        written = self.stamp.written + pending
        present = store.count_names() if self.names else store.collection().documents
        return written - present > max(64, (_MAX_DELETED_NAMES if self.names else _MAX_DELETED) * written)

    def rebuild(self, store: Store) -> Refused:
        """Writes a new index beside the old one, which serves until the new one is complete. Returns the documents
        that were left out."""
        if not self.write:
            raise StorageError(f"{self.cache}: opened for reading; the indexing process writes")
        return self._written(lambda refused: self._rebuild(store, refused))

    def _rebuild(self, store: Store, refused: Refused) -> None:
        generation = store.refresh()
        old = self.stamp.folder if self.stamp else ""
        number = int(old.rpartition("-")[2] or 0) + 1 if old else 1
        name = f"{self._prefix}-{number}"
        shutil.rmtree(self.cache / name, ignore_errors=True)
        self.close()
        self._index = _new_index(self.cache / name)
        self._finish(store, Stamp(name, generation, self._add(store, 0, generation, refused), _FIELDS))
        for folder in self.cache.glob(f"{self._prefix}-*"):
            if folder.name != name:
                shutil.rmtree(folder, ignore_errors=True)

    def _catch_up(self, store: Store, generation: int, refused: Refused) -> None:
        stamp = self.stamp
        assert stamp is not None
        writer = self._the_writer()
        gone = store.connection.execute("SELECT document FROM removed WHERE generation > ?", (stamp.generation,))
        # documents that a stopped process may have committed already are deleted before they are added
        again = store.connection.execute(
            "SELECT id FROM documents WHERE generation > ? AND has_text = ?", (stamp.generation, not self.names)
        )
        for (number,) in [*gone.fetchall(), *again.fetchall()]:
            writer.delete_documents_by_term("id", number)
        added = self._add(store, stamp.generation, generation, refused)
        self._finish(store, Stamp(stamp.folder, generation, stamp.written + added, stamp.fields))

    def _add(self, store: Store, after: int, until: int, refused: Refused) -> int:
        """Adds the documents of some generations, but those that are refused, and returns how many; more may be
        refused."""
        writer, added = self._the_writer(), 0
        for number, name, content in _contents(store, after, until, has_text=not self.names):
            if number in refused:
                continue
            try:
                document = _document(store, number, name, content)
            except Exception as problem:
                if len(refused) >= _MOST_REFUSED:
                    raise ValueError(f"more than {_MOST_REFUSED} documents are damaged: {problem}") from None
                refused[number] = reason_of(problem)
                continue
            try:
                writer.add_document(document)
            except Exception as problem:
                raise _Rejected(number, problem) from None
            added += 1
        return added

    def _finish(self, store: Store, stamp: Stamp) -> None:
        self._the_writer().commit()
        self._index.reload()
        private_files(self.cache / stamp.folder)
        write_json(self.cache / _STAMPS[self.names], msgspec.to_builtins(stamp), private=True)
        self.stamp = stamp
        both = [found for file in _STAMPS.values() if (found := _read_stamp(self.cache / file)) is not None]
        purged = min(one.generation for one in both)
        # a list of what is gone, also from here; at worst it stays
        with contextlib.suppress(sqlite3.Error), store.connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM removed WHERE generation <= ?", (purged,))
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('purged', ?)", (purged,))

    def _the_writer(self) -> Any:
        if self._writer is None:
            self._writer = self._index.writer(_NAME_HEAP if self.names else _HEAP, 1)
        return self._writer

    def _reopen(self) -> None:
        """Opens the live folder where it is another one than before; readers do so before they search."""
        for _ in range(3):  # the folder may be replaced between the two looks
            stamp = _read_stamp(self.cache / _STAMPS[self.names])
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
        searcher = self._index.searcher()

        def top(field: str, *, rare: bool) -> Array:
            asked = self._queries.query(store, query, field, must, must_not, rare=rare)
            return _top(searcher, asked, top_k, allowed)

        if not self._queries.has_several_stems(store, query):
            return _merged([top("stem", rare=True)], top_k)
        heads = top("head", rare=True)
        if len(heads) >= _ENOUGH and len(query.terms) == 1 and len(query.terms[0].text) < SHORTEST_IN_BODIES:
            return _merged([heads], top_k)
        found = top("stem", rare=False)
        if len(found) < top_k and self._queries.has_rare_stems(store, query):
            every = top("stem", rare=True)
            found = np.concatenate([found, every[~np.isin(every, found)]])[:top_k]
        return _merged([found, heads], top_k)

    def with_name(self, query: QueryText, top_k: int, allowed: Array | None = None) -> list[int]:
        """Numbers of documents whose file name is the query, perhaps without endings; to be called after `search`."""
        if self._index is None or self.stamp is None or self.stamp.fields < _FIELDS or not query.folded:
            return []
        return _top(self._index.searcher(), with_name(whole_names(query.folded)[:2]), top_k, allowed).tolist()

    def best_names(self, store: Store, query: QueryText, top_k: int, allowed: Array | None = None) -> list[int]:
        """Numbers of the documents with the best titles and file names, unless `search` has looked for them: a name is
        a short text among long ones. To be called after `search`."""
        if self._index is None or self._queries.has_several_stems(store, query):
            return []
        asked = self._queries.query(store, query, "head", (), (), rare=False)
        return _top(self._index.searcher(), asked, top_k, allowed).tolist()

    def with_all_terms(
        self, store: Store, query: QueryText, most: int, *,
        must: Sequence[Term] = (), must_not: Sequence[Term] = (), allowed: Array | None = None,
    ) -> Array:  # fmt: skip
        """[m] numbers of documents that have every term, m at most `most`."""
        asked = self._every_term(store, query, must, must_not)
        if asked is None or (allowed is not None and not len(allowed)):
            return np.empty(0, np.int64)
        return _top(self._index.searcher(), asked, most, allowed)

    def count_with_all_terms(
        self, store: Store, query: QueryText, *, must: Sequence[Term] = (), must_not: Sequence[Term] = ()
    ) -> int:
        """The number of documents that have every term."""
        asked = self._every_term(store, query, must, must_not)
        return 0 if asked is None else int(self._index.searcher().search(asked, 1, count=True).count)

    def _every_term(self, store: Store, query: QueryText, must: Sequence[Term], must_not: Sequence[Term]) -> Any:
        if not self.write:
            self._reopen()
        return None if self._index is None else self._queries.every_term(store, query, must, must_not)


def _top(searcher: Any, query: Any, top_k: int, allowed: Array | None) -> Array:
    """[m] numbers of the best documents, m at most top_k."""
    limit = top_k
    while query is not None:
        hits = searcher.search(query, limit + _MORE_FOR_TIES, count=False).hits
        numbers = np.array(searcher.fast_field_values("id", [address for _, address in hits]), np.int64)
        scores = np.array([score for score, _ in hits], np.float64)
        numbers = numbers[np.lexsort((numbers, -scores))]  # equal scores: by number
        if allowed is not None:
            numbers = numbers[np.isin(numbers, allowed)]
        if len(numbers) >= top_k or len(hits) < limit + _MORE_FOR_TIES:
            return numbers[:top_k]
        limit *= 8
    return np.empty(0, np.int64)


def _new_index(folder: Path) -> Any:
    import tantivy

    index = tantivy.Index(schema(), path=str(private_folder(folder)))
    index.config_reader("manual")
    return index


def _read_stamp(path: Path) -> Stamp | None:
    try:
        stamp = msgspec.json.decode(path.read_bytes(), type=Stamp)
    except (OSError, msgspec.MsgspecError):
        return None
    return stamp if stamp.folder.startswith(f"{path.stem}-") and "/" not in stamp.folder else None


def _contents(store: Store, after: int, until: int, *, has_text: bool) -> Iterator[tuple[int, bytes, bytes]]:
    """Numbers, names of files and word sequences, as they are stored, of the documents of some generations. A mailbox
    has many documents: none of them is the file of that name."""
    last = 0
    while True:
        rows = store.connection.execute(
            "SELECT d.id, CASE d.part WHEN '' THEN f.name ELSE x'' END, s.content FROM documents d "
            "JOIN sequences s ON s.document = d.id JOIN files f ON f.id = d.file "
            "WHERE d.id > ? AND d.generation > ? AND d.generation <= ? AND d.has_text = ? ORDER BY d.id LIMIT ?",
            (last, after, until, has_text, _AT_ONCE),
        ).fetchall()
        if not rows:
            return
        yield from rows
        last = rows[-1][0]


def _document(store: Store, number: int, name: bytes, content: bytes) -> Any:
    import tantivy

    words, lengths = sequences.decode(content)
    stems = store.statistics.stem_of[words]
    field = np.repeat(np.arange(len(FIELDS)), lengths)
    is_stop = words < store.stop_count
    document = tantivy.Document()
    document.add_integer("id", number)
    document.add_text("stem", codes(stems[~is_stop]))
    document.add_text("head", codes(stems[~is_stop & np.isin(field, HEAD_FIELDS)]))
    document.add_text("stop", codes(np.unique(words[is_stop])))
    document.add_text("whole", " ".join(map(name_code, whole_names(fold(printable(os.fsdecode(name)))))))
    return document


def _merged(lists: list[Array], top_k: int) -> list[int]:
    """Interleaves several lists; each document is kept once."""
    columns = np.full((max(map(len, lists), default=0), len(lists)), -1, np.int64)
    for column, one in enumerate(lists):
        columns[: len(one), column] = one
    every = columns[columns >= 0]
    first = np.sort(np.unique(every, return_index=True)[1])
    return every[first][:top_k].tolist()
