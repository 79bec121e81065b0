"""The index as a reader sees it: documents, word sequences, statistics, query terms, states of files.

SQLite holds the truth (`schema`), one process writes it (`writing`), any number of processes read it. Statistics are
held in memory and follow the writer: every call looks whether the index has a new generation.
"""

import os
import time
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from foltr.errors import StorageError
from foltr.node.index import schema, sequences, vocabulary
from foltr.node.index.statistics import Statistics
from foltr.text import analysis as text_analysis
from foltr.text.analysis import TextAnalysis
from foltr.text.fields import FIELDS, Collection, Facts, QueryText, Term, Tokens
from foltr.text.memory_index import SHORTEST_BEGINNING
from foltr.types import Array

MAX_WORDS = 100  # of a query that are searched for; a clause without spaces may have a thousand

_AT_ONCE = 500  # numbers in one statement
_DAY = 86400.0
_REMEMBERED, _REMEMBERED_WORDS = 64, 1_000_000  # terms, and words of all of them; a single letter may have 60,000


class Document(NamedTuple):
    """Fields of a document that are shown."""

    id: int
    path: str  # of the file, as the operating system takes it (surrogateescape)
    part: str  # "" for a whole file
    title: str
    kind: str
    date: float
    sender: str
    recipients: str
    root: str
    folder: int
    size: int
    has_text: bool = True  # False: found by its name, path, kind and date only


class Store:
    """Reads the index in a file; `statistics` may be shared with a writer in the same process."""

    def __init__(self, path: Path, *, write: bool = False) -> None:
        self.connection = schema.connect(path, write=write)
        self.version = schema.version(self.connection)
        if self.version != schema.SCHEMA and (write or not schema.is_readable(self.connection)):
            self.close()
            raise StorageError(
                f"{path}: index version {self.version}, this program reads {schema.SCHEMA}; "
                "index again (`foltr node index`), which builds it anew"
            )
        self.path = path
        self._seen = -1
        self.analysis = TextAnalysis(language=self.meta("language", "english"))
        self.stop_count = len(text_analysis.stop_words(self.analysis.language))
        self.statistics = Statistics(self.stop_count)
        self._terms: dict[tuple[text_analysis.QueryWord, ...], Term] = {}  # of this generation

    def close(self) -> None:
        self.connection.close()

    def meta(self, key: str, default: str) -> str:
        found = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return default if found is None else str(found[0])

    @property
    def generation(self) -> int:
        """A number that grows with every batch of changed documents."""
        return int(self.meta("generation", "0"))

    def refresh(self) -> int:
        """Reads statistics that another process has written since; returns the generation."""
        generation = self.generation
        if generation != self._seen:
            self.statistics.refresh(self.connection)
            self._terms.clear()
            self._seen = generation
        return generation

    def collection(self) -> Collection:
        rows = {row[0]: row[1:] for row in self.connection.execute("SELECT field, length, documents FROM sums")}
        lengths, with_field = np.array([rows[field] for field in FIELDS], np.int64).T
        return Collection(int(rows[""][1]), lengths, with_field, self.stop_count)

    def count_names(self) -> int:
        """Documents of which only the name is known; they are no part of `collection`."""
        row = self.connection.execute("SELECT documents FROM sums WHERE field = 'names'").fetchone()
        return 0 if row is None else int(row[0])

    def query_text(self, text: str, *, prefix: bool = False) -> QueryText:
        """The terms of a query with their statistics. With `prefix` the last word may be unfinished."""
        self.refresh()
        collection = self.collection()
        words = text_analysis.query_words(text, self.analysis, prefix=prefix)[:MAX_WORDS]
        distinct, order = text_analysis.by_term(words)
        terms = tuple(self._known_term(tuple(forms), collection) for forms in distinct)
        return QueryText(terms, np.array(order, np.int64), text_analysis.fold(text))

    def _known_term(self, forms: tuple[text_analysis.QueryWord, ...], collection: Collection) -> Term:
        """Looks a term up, or remembers it: while somebody types, all words but the last stay the same."""
        if forms not in self._terms:
            term = self._term(forms, collection)
            sizes = [len(one.words) + len(one.beginning) for one in (*self._terms.values(), term)]
            while len(sizes) > 1 and (len(sizes) > _REMEMBERED or sum(sizes) > _REMEMBERED_WORDS):
                self._terms.pop(next(iter(self._terms)))  # the oldest
                sizes.pop(0)
            self._terms[forms] = term
        return self._terms[forms]

    def _term(self, forms: tuple[text_analysis.QueryWord, ...], collection: Collection) -> Term:
        """One term from the query's words that have its stem. Its frequencies are exact for one stem. For several they
        are sums, at most the number of documents: a document with two of the stems counts twice, which only makes a
        short beginning weigh less."""
        counts = self.statistics
        completions = {word.text: self._completions(word.text) for word in forms}
        stems = np.unique(np.concatenate([self._stems(word, completions[word.text]) for word in forms]))
        stems = stems[stems < len(counts.document_frequency)].astype(np.int64)
        begun = [completions[word.text] for word in forms if len(word.text) >= SHORTEST_BEGINNING]
        return Term(
            text=next((word.text for word in forms if word.prefix), forms[0].stems[0]),
            repeats=len(forms),
            words=counts.words_of(stems),
            document_frequency=min(collection.documents, int(counts.document_frequency[stems].sum())),
            field_frequency=np.minimum(collection.with_field, counts.field_frequency[stems].sum(axis=0)),
            collection_frequency=int(counts.collection_frequency[stems].sum()),
            beginning=np.unique(np.concatenate([np.zeros(0, np.int32), *begun])),
            names=int(counts.names[stems].sum()),
        )

    def _completions(self, beginning: str) -> Array:
        """Words in use that begin with a text; another process may have added some that are not counted yet."""
        found = vocabulary.completions(self.connection, beginning)
        found = found[found < len(self.statistics.stem_of)]
        return found[self.statistics.stem_of[found] >= 0]

    def _stems(self, word: text_analysis.QueryWord, completions: Array) -> Array:
        """Numbers of the stems that are an occurrence of a query's word; stop words only in a query of stop words."""
        completed = self.statistics.stem_of[completions]
        found = [vocabulary.stem_number(self.connection, stem) for stem in word.stems]
        stems = np.array([number for number in found if number is not None], np.int32)
        if word.prefix:
            stems = np.concatenate([stems, completed if word.with_stop else completed[completed >= self.stop_count]])
        if word.with_stop:  # a stop word is its own stem
            number = vocabulary.word_number(self.connection, word.text)
            if number is not None and number < self.stop_count:
                stems = np.append(stems, np.int32(number))
        return stems

    def tokens(self, ids: Sequence[int]) -> Tokens:
        """The word sequences of documents, in the order of the ids; one that is gone has no words."""
        return sequences.joined(self.sequences(ids))

    def sequences(self, ids: Sequence[int]) -> list[tuple[Array, Array]]:
        """Yields the documents one by one: words, and lengths of the fields."""
        content = dict(self._rows("SELECT document, content FROM sequences WHERE document IN ({})", ids))
        empty = (np.zeros(0, np.int32), np.zeros(len(FIELDS), np.int64))
        return [sequences.decode(content[one]) if one in content else empty for one in map(int, ids)]

    def sequence_sizes(self, ids: Sequence[int]) -> dict[int, int]:
        """About how many words documents have, without reading them."""
        rows = self._rows("SELECT document, length(content) FROM sequences WHERE document IN ({})", ids)
        return {number: size // 2 for number, size in rows}

    def documents(self, ids: Sequence[int]) -> list[Document]:
        """Documents in the order of the ids; those that are gone are left out."""
        rows = self._rows(
            "SELECT d.id, o.path, f.name, d.part, d.title, d.kind, d.date, d.sender, d.recipients, r.path, o.id, "
            "f.size, d.has_text FROM documents d JOIN files f ON f.id = d.file JOIN folders o ON o.id = f.folder "
            "JOIN roots r ON r.id = o.root WHERE d.id IN ({})",
            ids,
        )
        found = {row[0]: _document(row) for row in rows}
        return [found[one] for one in map(int, ids) if one in found]

    def facts(self, ids: Sequence[int], opened: Array, folder_opened: Array, *, now: float | None = None) -> Facts:
        """Facts about documents beyond their words, in the order of the ids, all of which must exist."""
        found = self.documents(ids)
        now = time.time() if now is None else now
        return Facts(
            titles=tuple(text_analysis.fold(one.title) for one in found),
            names=tuple(text_analysis.fold(printable(Path(one.path).stem)) for one in found),
            age_days=np.array([max(0.0, now - one.date) / _DAY for one in found]),
            depth=np.array([one.path.count("/") - one.root.rstrip("/").count("/") - 1 for one in found], np.float64),
            opened=np.asarray(opened, np.float64),
            folder_opened=np.asarray(folder_opened, np.float64),
        )

    def text(self, document: int) -> str:
        """The body of a document, for snippets; empty if it is gone."""
        found = self.connection.execute("SELECT content FROM bodies WHERE document = ?", (int(document),)).fetchone()
        return zlib.decompress(found[0]).decode("utf-8") if found else ""

    def present(self, ids: Sequence[int]) -> list[int]:
        """The ids that still exist, in the given order."""
        found = {row[0] for row in self._rows("SELECT id FROM documents WHERE id IN ({})", ids)}
        return [one for one in map(int, ids) if one in found]

    def documents_of(self, path: str) -> list[int]:
        """The documents of a file, in the order in which they stand in it."""
        folder, _, name = os.fsencode(path).rpartition(b"/")
        rows = self.connection.execute(
            "SELECT d.id FROM documents d JOIN files f ON f.id = d.file JOIN folders o ON o.id = f.folder "
            "WHERE o.path = ? AND f.name = ? ORDER BY d.id",
            (folder or b"/", name),
        )
        return [row[0] for row in rows]

    def folder_sizes(self, folders: Iterable[str]) -> dict[str, int]:
        """Number of documents directly in each folder; for a mailbox, its mails."""
        statement = (
            "SELECT (SELECT count(*) FROM folders o JOIN files f ON f.folder = o.id JOIN documents d ON d.file = f.id "
            "WHERE o.path = ? AND d.part = '') + (SELECT count(*) FROM folders o JOIN files f ON f.folder = o.id "
            "JOIN documents d ON d.file = f.id WHERE o.path = ? AND f.name = ? AND d.part != '')"
        )
        sizes = {}
        for folder in folders:
            path = os.fsencode(folder)
            above, _, name = path.rpartition(b"/")
            row = self.connection.execute(statement, (path or b"/", above or b"/", name)).fetchone()
            sizes[folder] = int(row[0])
        return sizes

    def states(self) -> dict[str, int]:
        """Number of files in each state; an excluded folder counts once."""
        rows = dict(self.connection.execute("SELECT state, count(*) FROM files GROUP BY state").fetchall())
        return {state: int(rows.get(state, 0)) for state in schema.STATES}

    def _rows(self, statement: str, ids: Iterable[int]) -> list[tuple]:  # type: ignore[type-arg]
        numbers = [int(one) for one in ids]
        found: list[tuple] = []  # type: ignore[type-arg]
        for start in range(0, len(numbers), _AT_ONCE):
            part = numbers[start : start + _AT_ONCE]
            found += self.connection.execute(statement.format(",".join("?" * len(part))), part).fetchall()
        return found


def printable(name: str) -> str:
    """A path or name as text: bytes that are no UTF-8 become U+FFFD."""
    return os.fsencode(name).decode("utf-8", "replace")


def joined(folder: bytes, name: bytes) -> str:
    return os.fsdecode(folder.rstrip(b"/") + b"/" + name)


def _document(row: tuple) -> Document:  # type: ignore[type-arg]
    number, folder, name, part, title, kind, date, sender, recipients, root, folder_id, size, has_text = row
    described = (number, joined(folder, name), part, title, kind, date, sender, recipients)
    return Document(*described, os.fsdecode(root), folder_id, size, bool(has_text))
