"""The one writer of the index: batches of documents in, statistics exact, all or nothing.

A batch is one transaction: new words, removed documents, added documents, states of their files, the change of the
statistics and the next generation. A process that is killed leaves the state before or after a batch. A lock file,
held until the process ends, keeps a second writer out.

An error is either the storage's (a full disk, a damaged database: StorageError, indexing stops) or a file's: then its
batch is written file by file, and the file that cannot be written is stored as failed.
"""

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from foltr.errors import StorageError
from foltr.node.extract.file_version import bounded_size, bounded_time, reason_of, reason_text, signed
from foltr.node.extract.formats import kind_of_name
from foltr.node.index import sequences, statistics, vocabulary
from foltr.node.index.files import CUT
from foltr.node.index.store import Store, printable
from foltr.text import analysis as text_analysis
from foltr.text.analysis import TextAnalysis
from foltr.text.fields import FIELDS
from foltr.types import Array

_BODY_LEVEL = 4  # level 6 takes twice as long for 4 % less
_LATEST = 253402300800.0  # the year 10000: a date beyond it, or none at all (NaN), is that of the file
_FIELD = {field: i for i, field in enumerate(FIELDS)}


class Content(Protocol):
    """A document as extraction returns it."""

    title: str
    body: str
    kind: str
    date: float | None
    sender: str
    recipients: str
    part: str


class Result(NamedTuple):
    """Result of indexing a file. Without documents it is found by its name where it is `named`."""

    file: int
    state: str
    reason: str | None
    size: int
    mtime_ns: int
    inode: int
    documents: Sequence[Content] = ()
    named: bool = False


class _New(NamedTuple):
    file: int
    row: tuple[str, str, str, float, str, str]  # part, title, kind, date, sender, recipients
    words: Array
    lengths: Array
    body: bytes | None  # None: only the name is known
    is_cut: bool  # some words are not indexed


def _with_note(result: Result) -> Result:
    """A result whose reason says that the text is cut."""
    if result.reason and CUT in result.reason:
        return result
    return result._replace(reason="; ".join(filter(None, (CUT, result.reason))))


class Writer:
    """Writes the index in a file. Use `files.held` around it."""

    def __init__(
        self, path: Path, analysis: TextAnalysis | None = None, *, max_words: int = 400_000, last_number: int = 0
    ) -> None:
        """The documents of a new index have numbers beyond `last_number`: those of an index that it replaces may still
        be in use, and must not mean another document."""
        self.store = Store(path, write=True)
        self.connection = self.store.connection
        self.max_words = max_words
        if self.store.meta("fingerprint", "") == "":
            _begin(self.connection, analysis or TextAnalysis(), last_number)
            self.store = Store(path, write=True)
            self.connection.close()
            self.connection = self.store.connection
        self._restart()

    def _restart(self) -> None:
        """Forgets everything that is in memory only."""
        self.store.statistics = statistics.Statistics(self.store.stop_count)
        self.store.statistics.refresh(self.connection)
        self._numbering = vocabulary.Numbering(self.connection, self.store.analysis, self.store.statistics)
        self._last_path: tuple[str, object, Array] = ("", None, np.zeros(0, np.int32))

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.connection.close()

    def expect_many(self) -> None:
        """Before many files: reads the vocabulary once instead of asking for every new word."""
        self._numbering.expect_many()

    def clean(self) -> None:
        """Frees the space of deleted documents and empties the journal, which holds earlier pages."""
        self.connection.execute("PRAGMA incremental_vacuum").fetchall()
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction; after an error it is rolled back, and memory and database agree again."""
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            yield self.connection
            self.connection.execute("COMMIT")
        except BaseException as problem:
            with contextlib.suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")
            with contextlib.suppress(sqlite3.Error):
                self._restart()
            of_storage = storage_error(self.store.path, problem)
            if of_storage is not None:
                raise of_storage from None
            raise

    def write_batch(self, results: Sequence[Result], removed_files: Sequence[int] = ()) -> None:
        """Writes one batch as `write` does. Where it fails, its files are written one by one: those that cannot be
        written have failed, and all others are in."""
        try:
            self.write(results, removed_files)
        except StorageError:
            raise
        except Exception:
            for file in removed_files:
                self.write([], [file])
            for result in results:
                self._write_one(result)

    def _write_one(self, result: Result) -> None:
        try:
            self.write([result])
        except StorageError:
            raise
        except Exception as problem:
            self._write_failed(result, reason_of(problem))

    def _write_failed(self, result: Result, reason: str) -> None:
        version = bounded_size(result.size), bounded_time(result.mtime_ns), signed(result.inode)
        try:
            self.write([Result(result.file, "failed", reason, *version)])
        except StorageError:
            raise
        except Exception as problem:  # not even its state can be stored
            raise _damaged(self.store.path, problem) from None

    def note(self, key: str, value: str) -> None:
        """Stores a fact about the index, where it is new."""
        if self.store.meta(key, "") != value:
            with self.transaction() as connection:
                connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def write(self, results: Sequence[Result], removed_files: Sequence[int] = ()) -> None:
        """Writes one batch: the documents of each result replace those of its file; removed files vanish."""
        try:
            added = [new for result in results for new in self._new(result)]
        except BaseException:
            self._restart()  # words of documents that are not stored must not be numbered
            raise
        cut = {new.file for new in added if new.is_cut}
        results = [_with_note(result) if result.file in cut else result for result in results]
        with self.transaction() as connection:
            generation = self.store.generation + 1
            self._write_vocabulary()
            # a file that waits again, such as one that changed while it was read, keeps its documents until then
            replaced = [result.file for result in results if result.state != "waiting"]
            gone = self._remove(replaced + list(removed_files), generation)
            self._insert(added, generation)
            connection.executemany(
                "UPDATE files SET state = ?, reason = ?, size = ?, mtime_ns = ?, inode = ? WHERE id = ?",
                [(r.state, r.reason and reason_text(r.reason), *r[3:6], r.file) for r in results],
            )
            connection.executemany("DELETE FROM files WHERE id = ?", [(file,) for file in removed_files])
            self._finish_batch(gone + list(map(_sequence, added)), generation)

    def add_names(self, files: Sequence[int]) -> None:
        """Makes files that have no document yet findable by their names, in the caller's `transaction`; their states
        stay as they are."""
        if files:
            generation = self.store.generation + 1
            added = [self._name_only(file, *self._place(file)) for file in files]
            self._write_vocabulary()
            self._insert(added, generation)
            self._finish_batch(list(map(_sequence, added)), generation)

    def _finish_batch(self, batch: list[statistics.Sequence], generation: int) -> None:
        if batch:
            self._count(batch)
            self.connection.execute("UPDATE meta SET value = ? WHERE key = 'generation'", (generation,))

    def _place(self, file: int) -> tuple[str, str, int]:
        """The name of a file, its folder below the root (with the name of the root itself), and its time."""
        folder, name, root, mtime_ns = self.connection.execute(
            "SELECT o.path, f.name, r.path, f.mtime_ns FROM files f JOIN folders o ON o.id = f.folder "
            "JOIN roots r ON r.id = o.root WHERE f.id = ?",
            (file,),
        ).fetchone()
        below = os.fsdecode(folder)[len(os.fsdecode(root).rpartition("/")[0]) :]
        return printable(os.fsdecode(name)), printable(below), mtime_ns

    def _name_only(self, file: int, name: str, below: str, mtime_ns: int) -> _New:
        fields = [np.zeros(0, np.int32)] * len(FIELDS)
        fields[_FIELD["name"]] = self._numbering.sequence(_clean(name))[: self.max_words]
        fields[_FIELD["path"]] = self._path_words(below)[: self.max_words]
        row = ("", "", kind_of_name(name), mtime_ns / 1e9, "", "")
        return _New(file, row, np.concatenate(fields), np.array([len(field) for field in fields]), None, False)

    def _path_words(self, below: str) -> Array:
        """The words of a folder's path; those of the last one are remembered, since its files come together."""
        if self._last_path[0] != below or self._last_path[1] is not self._numbering.known_tokens:
            words = self._numbering.sequence(_clean(below))
            self._last_path = below, self._numbering.known_tokens, words
        return self._last_path[2]

    def _new(self, result: Result) -> Iterator[_New]:
        if not result.documents:
            if result.named:
                name, below, _ = self._place(result.file)
                yield self._name_only(result.file, name, below, result.mtime_ns)
            return
        name, below, _ = self._place(result.file)
        of_file = {"name": name, "path": below}
        for one in result.documents:
            texts = {"title": one.title, "sender": one.sender, "recipients": one.recipients, "body": one.body} | of_file
            whole = [self._numbering.sequence(_clean(texts[field])) for field in FIELDS]
            fields = [words[: self.max_words] for words in whole]
            date = one.date if one.date is not None and abs(one.date) < _LATEST else result.mtime_ns / 1e9
            row = (one.part, one.title, one.kind, date, one.sender, one.recipients)
            yield _New(
                result.file,
                tuple(_clean(value) if isinstance(value, str) else value for value in row),  # type: ignore[arg-type]
                np.concatenate(fields),
                np.array([len(field) for field in fields]),
                zlib.compress(_clean(one.body).encode("utf-8"), _BODY_LEVEL),
                any(len(words) > self.max_words for words in whole),
            )

    def _write_vocabulary(self) -> None:
        numbering = self._numbering
        self.connection.executemany("INSERT INTO words VALUES (?, ?, ?)", sorted(numbering.new_words))
        self.connection.executemany("INSERT INTO stems VALUES (?, ?)", sorted(numbering.new_stems))
        self.connection.executemany(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)",
            [("words", numbering.next_word), ("stems", numbering.next_stem)],
        )
        numbering.written()

    def _remove(self, files: Sequence[int], generation: int) -> list[statistics.Sequence]:
        """Deletes the documents of files and returns their words, to be subtracted."""
        gone: list[statistics.Sequence] = []
        for file in files:
            rows = self.connection.execute(
                "SELECT d.id, d.has_text, s.content FROM documents d JOIN sequences s ON s.document = d.id "
                "WHERE d.file = ?",
                (file,),
            ).fetchall()
            for number, has_text, content in rows:
                gone.append(statistics.Sequence(*self._decoded(content), -1, bool(has_text)))
                self.connection.execute("INSERT INTO removed VALUES (?, ?)", (number, generation))
                for table in ("sequences", "bodies"):
                    self.connection.execute(f"DELETE FROM {table} WHERE document = ?", (number,))  # noqa: S608
            if rows:
                self.connection.execute("DELETE FROM documents WHERE file = ?", (file,))
        return gone

    def _decoded(self, content: bytes) -> tuple[Array, Array]:
        try:
            return sequences.decode(content)
        except Exception as problem:  # the statistics cannot be exact any more
            raise _damaged(self.store.path, problem) from None

    def _insert(self, added: list[_New], generation: int) -> None:
        for new in added:
            number = self.connection.execute(
                "INSERT INTO documents (file, part, title, kind, date, sender, recipients, generation, has_text) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (new.file, *new.row, generation, new.body is not None),
            ).lastrowid
            content = sequences.encode(new.words, new.lengths)
            self.connection.execute("INSERT INTO sequences VALUES (?, ?)", (number, content))
            if new.body is not None:
                self.connection.execute("INSERT INTO bodies VALUES (?, ?)", (number, new.body))

    def _count(self, batch: list[statistics.Sequence]) -> None:
        """Statistics and sums of a batch; words that no document has any more are deleted."""
        counts = self.store.statistics
        one = statistics.change(batch, counts.stem_of)
        counts.write(self.connection, one)
        sums = field_sums(batch, self.store.stop_count)
        self.connection.executemany(
            "UPDATE sums SET length = length + ?, documents = documents + ? WHERE field = ?",
            [(int(length), int(documents), field) for field, (length, documents) in sums.items()],
        )
        stop = self.store.stop_count
        words = one.words[(counts.uses[one.words] == 0) & (one.words >= stop)]
        stems = one.stems[~counts.in_use(one.stems) & (one.stems >= stop)]
        vocabulary.delete(self.connection, words, stems)
        if len(words):
            self._numbering.forget()


def storage_error(path: Path, problem: BaseException) -> StorageError | None:
    """The error that stops indexing; None where a problem concerns what was to be written."""
    if isinstance(problem, StorageError):
        return problem
    if isinstance(problem, sqlite3.OperationalError | OSError):
        return StorageError(f"{path}: cannot be written ({problem}); free some space and index again")
    if type(problem) is sqlite3.DatabaseError:  # its subclasses are about values and statements
        return _damaged(path, problem)
    return None


def _damaged(path: Path, problem: BaseException) -> StorageError:
    return StorageError(f"{path}: is damaged ({problem}); delete {path.parent}, it is rebuilt")


def field_sums(batch: list[statistics.Sequence], stop_count: int) -> dict[str, tuple[int, int]]:
    """By field: words that are no stop words, and documents with such a word; under "" all words and documents; under
    "names" the documents of which only the name is known, which no other sum counts."""
    texts = [one for one in batch if one.has_text]
    lengths = np.array([content_lengths(one, stop_count) for one in texts]).reshape(-1, len(FIELDS))  # [texts, fields]
    signs = np.array([one.sign for one in texts], np.int64)
    sums, documents = signs @ lengths, signs @ (lengths > 0)
    return {field: (int(sums[i]), int(documents[i])) for field, i in _FIELD.items()} | {
        "": (int(sums.sum()), int(signs.sum())),
        "names": (0, sum(one.sign for one in batch if not one.has_text)),
    }


def _sequence(new: _New) -> statistics.Sequence:
    return statistics.Sequence(new.words, new.lengths, 1, new.body is not None)


def content_lengths(one: statistics.Sequence, stop_count: int) -> Array:
    """[fields] words that are no stop words."""
    field = np.repeat(np.arange(len(FIELDS)), one.lengths)
    return np.bincount(field[one.words >= stop_count], minlength=len(FIELDS))


def fingerprint(analysis: TextAnalysis) -> str:
    """Digest of the analysis of a sample text: it changes when the analysis gives other words or stems."""
    sample = (
        "The Straße’s getHTTPName snake_case_name v3.11 naïve 検索語 ภาษาไทย Running flies 'tis 한국어 ΑΒΓ ёлка PDFs "
        "e-mail studies generously caresses"
    )
    words = text_analysis.words(sample, analysis)
    parts = [*words, *(text_analysis.stem(word, analysis) for word in words)]
    parts += [*text_analysis.stop_words(analysis.language), repr(analysis)]
    return f"{zlib.crc32(' '.join(parts).encode()):08x}"


def _begin(connection: sqlite3.Connection, analysis: TextAnalysis, last_number: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM sqlite_sequence WHERE name = 'documents'")
    connection.execute("INSERT INTO sqlite_sequence VALUES ('documents', ?)", (last_number,))
    vocabulary.begin(connection, text_analysis.stop_words(analysis.language))
    connection.executemany(
        "INSERT OR REPLACE INTO meta VALUES (?, ?)",
        [("language", analysis.language), ("fingerprint", fingerprint(analysis))],
    )
    connection.execute("COMMIT")


def _clean(text: str) -> str:
    """Replaces lone surrogates, which UTF-8 cannot encode; extraction may pass them on from broken files."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
