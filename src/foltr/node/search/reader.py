"""The index as ranking reads it: a query's terms and conditions handed to the store and to the candidates."""

import math
import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from foltr.node.index import files, vocabulary
from foltr.node.index.away import away
from foltr.node.index.candidates import Candidates
from foltr.node.index.sequences import joined
from foltr.node.index.store import Document, Store
from foltr.node.learning import habits, memory
from foltr.node.learning.habits import NO_OPENINGS, Openings
from foltr.node.search.conditions import Words, field_check, seconds_of
from foltr.node.search.query import Clause, Query
from foltr.text import analysis
from foltr.text.fields import Collection, QueryText, Term, Tokens
from foltr.types import Array

_MAX_HELD_WORDS = 2_000_000  # 8 MB
_MAX_HELD_CHARACTERS = 1_000_000
_MAX_HELD_DOCUMENTS = 1_000
_MAX_WITH_NAME = 20  # documents whose file name is the query
MAX_BLOCK = 500_000  # words that are looked through at a time

Held = TypeVar("Held")


class _Recent(Generic[Held]):
    """Cache of what was read last, up to a total size: a query that is typed on asks for most of it again."""

    def __init__(self, largest: int) -> None:
        self._largest, self._total = largest, 0
        self._held: OrderedDict[Any, tuple[Held, int]] = OrderedDict()

    def get(self, key: Any) -> Held | None:
        if key not in self._held:
            return None
        self._held.move_to_end(key)
        return self._held[key][0]

    def put(self, key: Any, value: Held, size: int) -> None:
        self._held[key] = value, size
        self._total += size
        while self._total > self._largest and len(self._held) > 1:
            _, (_, freed) = self._held.popitem(last=False)
            self._total -= freed

    def clear(self) -> None:
        self._held.clear()
        self._total = 0


class _Described(NamedTuple):
    """Fields of a document that conditions look at."""

    id: int
    path: str
    title: str
    kind: str
    date: float
    sender: str
    recipients: str


class CandidateLists(NamedTuple):
    """Candidates of a query, best first; those whose file name is the query come before all others."""

    texts: list[int]
    names: list[int]  # of which only the name is known


class Reader:
    """A store and its candidates, opened for reading; `names`: those of which only the name is known."""

    def __init__(self, store: Store, candidates: Candidates, names: Candidates) -> None:
        self.store, self._candidates, self._names = store, candidates, names
        self._sequences: _Recent[tuple[Array, Array]] = _Recent(_MAX_HELD_WORDS)
        self._texts: _Recent[str] = _Recent(_MAX_HELD_CHARACTERS)
        self._documents: _Recent[Document] = _Recent(_MAX_HELD_DOCUMENTS)
        self._is_cut: dict[int, bool] = {}
        self.usual_spellings: dict[tuple[int, str], str | None] = {}  # by generation and word, for `spelling`
        self._documents_as_of = -1  # a number that SQLite changes with every change that somebody else makes
        self._last_allowed: tuple[Any, Array] | None = None
        self._weighed: tuple[Openings, int, Openings] = (NO_OPENINGS, -1, NO_OPENINGS)

    def state(self) -> tuple[int, int]:
        """The generation of the index and SQLite's data version: one of them changes with every change."""
        return self.store.refresh(), self._data_version()

    def _data_version(self) -> int:
        return int(self.store.connection.execute("PRAGMA data_version").fetchone()[0])

    def asked(self, query: Query) -> QueryText:
        """The terms of a query; alternatives of one word each are one term."""
        clauses = [clause for group in query.positive for clause in group]
        found = self.store.query_text(" ".join(clause.text for clause in clauses), prefix=query.prefix)
        for group in query.positive:
            if len(group) > 1:
                texts = [self.store.query_text(one.text, prefix=query.prefix).terms for one in group]
                found = merged(found, {terms[0].text for terms in texts if len(terms) == 1}, self.store.collection())
        return found

    def candidates(self, query: Query, asked: QueryText, top_k: int) -> CandidateLists:
        must, must_not = self._word_conditions(query)
        allowed = self._allowed(query)
        lists: list[list[int]] = []
        for part in (self._candidates, self._names):
            if part is self._names and not any(term.names for term in asked.terms):
                lists.append([])
                continue
            best = part.search(self.store, asked, top_k=top_k, must=must, must_not=must_not, allowed=allowed)
            named = part.with_name(asked, _MAX_WITH_NAME, allowed)
            if len(asked.terms) > 1 and not (must or must_not):
                named += part.best_names(self.store, asked, _MAX_WITH_NAME, allowed)
            lists.append(list(dict.fromkeys([*named, *best]))[:top_k])
        return CandidateLists(*lists)

    def with_all_words(self, query: Query, asked: QueryText, most: int) -> Array:
        """[m] numbers of the documents that have all words, m at most `most`."""
        must, must_not = self._word_conditions(query)
        allowed = self._allowed(query)
        both = [
            part.with_all_terms(self.store, asked, most, must=must, must_not=must_not, allowed=allowed)
            for part in (self._candidates, self._names)
        ]
        return np.concatenate(both)[:most]

    def count_with_all_words(self, query: Query, asked: QueryText) -> int | None:
        """The number of documents that have all words; None for a query with conditions on fields."""
        if self._allowed(query) is not None:
            return None
        must, must_not = self._word_conditions(query)
        both = (self._candidates, self._names)
        return sum(part.count_with_all_terms(self.store, asked, must=must, must_not=must_not) for part in both)

    def cut(self, ids: Sequence[int]) -> set[int]:
        """Those of some documents (of `documents`) whose file is longer than the limits: its beginning is indexed."""
        unknown = [number for number in ids if number not in self._is_cut]
        if unknown:
            if len(self._is_cut) > _MAX_HELD_DOCUMENTS:
                self._is_cut.clear()
                unknown = list(ids)
            marks = ", ".join("?" * len(unknown))
            rows = self.store.connection.execute(
                f"SELECT d.id, f.reason FROM documents d JOIN files f ON f.id = d.file WHERE d.id IN ({marks})",  # noqa: S608
                unknown,
            )
            self._is_cut |= {number: files.CUT in (reason or "") for number, reason in rows}
        return {number for number in ids if self._is_cut.get(number)}

    def recent(self, query: Query, top_k: int) -> list[int]:
        """Documents without a query: the newest first. Without a condition only those with a text: a new album of
        pictures would hide everything else."""
        allowed = self._allowed(query)
        limit, with_text = (-1, "") if query.conditions else (top_k, "WHERE has_text = 1")
        statement = f"SELECT id FROM documents {with_text} ORDER BY date DESC, id LIMIT ?"  # noqa: S608 - fixed texts
        rows = self.store.connection.execute(statement, (limit,))
        numbers = [number for (number,) in rows]
        if allowed is not None:
            known = set(allowed.tolist())
            numbers = [number for number in numbers if number in known]
        return numbers[:top_k]

    def roots_away(self, roots: Iterable[str]) -> set[str]:
        """Those of some roots that are away, such as a disk that is not mounted."""
        return {root for root in roots if away(self.store.connection, root)}

    def weighed(self, counted: Openings) -> Openings:
        """Counts of openings against the sizes of their folders in this index. The last result is held: while somebody
        types, neither the counts (the log returns the same object) nor the index change."""
        generation = self.store.generation
        if self._weighed[0] is not counted or self._weighed[1] != generation:
            sizes = self.store.folder_sizes(counted.folders)
            indexed = self.store.collection().documents + self.store.count_names()
            self._weighed = counted, generation, habits.weighed(counted, sizes, indexed)
        return self._weighed[2]

    def documents(self, ids: Sequence[int]) -> list[Document]:
        """Documents in the order of the ids; those that are gone are left out."""
        as_of = self._data_version()
        if as_of != self._documents_as_of:
            self._documents.clear()
            self._is_cut.clear()
            self._documents_as_of = as_of
        found = {number: self._documents.get(number) for number in map(int, ids)}
        for one in self.store.documents([number for number, document in found.items() if document is None]):
            found[one.id] = one
            self._documents.put(one.id, one, 1)
        return [document for document in found.values() if document is not None]

    def text(self, document: int) -> str:
        """The body of a document; empty if it is gone. A document whose text changes gets another number."""
        found = self._texts.get(document)
        if found is None:
            found = self.store.text(document)
            self._texts.put(document, found, len(found))
        return found

    def blocks(self, ids: Sequence[int]) -> Iterator[Tokens]:
        """Word sequences of consecutive documents, a bounded number of words at a time, at least one document."""
        numbers = [int(one) for one in ids]
        held = {number: one for number in numbers if (one := self._sequences.get(number)) is not None}
        sizes = self.store.sequence_sizes([number for number in numbers if number not in held])
        sizes |= {number: len(one[0]) for number, one in held.items()}
        start = words = 0
        for place, number in enumerate(numbers):
            size = sizes.get(number, 0)
            if words + size > MAX_BLOCK and place > start:
                yield joined(self._read(numbers[start:place], held))
                start, words = place, 0
            words += size
        if numbers:
            yield joined(self._read(numbers[start:], held))

    def _read(self, numbers: list[int], held: dict[int, tuple[Array, Array]]) -> list[tuple[Array, Array]]:
        missing = [number for number in numbers if number not in held]
        read = dict(zip(missing, self.store.sequences(missing), strict=True))
        for number, one in read.items():
            self._sequences.put(number, one, len(one[0]))
        return [held[number] if number in held else read[number] for number in numbers]

    def documents_of(self, key: str) -> list[int]:
        """The number of a document by its key; none when it is not indexed."""
        path, part = memory.split_key(key)
        found = self.store.documents(self.store.documents_of(path))
        return [one.id for one in found if one.part == part]

    def words(self) -> Words:
        return Words(
            occurrences=lambda text: [term.words for term in self.store.query_text(text).terms],
            numbers=self._numbers,
        )

    def _numbers(self, text: str) -> list[int] | None:
        found = [vocabulary.word_number(self.store.connection, word) for word in analysis.words(text)]
        numbers = [one for one in found if one is not None]
        return numbers if len(numbers) == len(found) else None

    def known_words(self, words: Iterable[str]) -> dict[str, int]:
        """Those of the words that occur in the index, with their document frequency."""
        uses, every = self.store.statistics.uses, sorted(words)
        found: dict[str, int] = {}
        for start in range(0, len(every), 500):
            part = every[start : start + 500]
            marks = ",".join("?" * len(part))
            statement = f"SELECT word, id FROM words WHERE word IN ({marks})"  # noqa: S608 - marks only
            rows = self.store.connection.execute(statement, part)
            found |= {word: int(uses[number]) for word, number in rows if number < len(uses) and uses[number] > 0}
        return found

    def similar_words(self, beginning: str, lengths: tuple[int, int], parts: tuple[str, ...]) -> list[str]:
        """Words with this beginning, of a length within the limits, that have one of the parts."""
        having = " OR ".join("instr(word, ?)" for _ in parts)
        rows = self.store.connection.execute(
            f"SELECT word FROM words WHERE word >= ? AND word < ? AND length(word) BETWEEN ? AND ? AND ({having})",  # noqa: S608
            (beginning, beginning + "\U0010ffff", *lengths, *parts),
        )
        return [word for (word,) in rows]

    def _word_conditions(self, query: Query) -> tuple[list[Term], list[Term]]:
        """Terms that every document must have, or must not have, by the conditions without alternatives."""
        must: list[Term] = []
        must_not: list[Term] = []
        for clause in _lone_clauses(query):
            if not clause.field:
                terms = self.store.query_text(clause.text).terms
                if not clause.negated:
                    must += terms
                elif len(terms) == 1 and not clause.quoted:
                    must_not += terms
        return must, must_not

    def _allowed(self, query: Query) -> Array | None:
        """Numbers of the documents that satisfy the conditions on fields, rising; None without such conditions."""
        groups = tuple(group for group in query.conditions if all(clause.field for clause in group))
        if not groups:
            return None
        wanted = (self.store.refresh(), groups)
        if self._last_allowed is None or self._last_allowed[0] != wanted:
            check = field_check(groups)
            numbers = [one.id for one in self._described(groups) if check(one)]
            self._last_allowed = wanted, np.array(numbers, np.int64)
        return self._last_allowed[1]

    def _described(self, groups: tuple[tuple[Clause, ...], ...]) -> Iterator[_Described]:
        """Every document, as far as conditions ask for it: in the order of numbers, within the dates that all need."""
        limits = {"after": -math.inf, "before": math.inf}
        for (clause,) in (group for group in groups if len(group) == 1):
            if clause.field in limits and not clause.negated:
                limits[clause.field] = seconds_of(clause.text)
        with_path = any(clause.field in ("path", "type") for group in groups for clause in group)
        path = "o.path, f.name" if with_path else "x'', x''"
        joined = "JOIN files f ON f.id = d.file JOIN folders o ON o.id = f.folder" if with_path else ""
        statement = (
            f"SELECT d.id, {path}, d.title, d.kind, d.date, d.sender, d.recipients FROM documents d {joined} "  # noqa: S608
            "WHERE d.date >= ? AND d.date < ? ORDER BY d.id"
        )
        for number, folder, name, *rest in self.store.connection.execute(statement, (*limits.values(),)):
            yield _Described(number, os.fsdecode(folder.rstrip(b"/") + b"/" + name), *rest)


def _lone_clauses(query: Query) -> Sequence[Clause]:
    return [group[0] for group in query.conditions if len(group) == 1]


def merged(asked: QueryText, texts: set[str], collection: Collection) -> QueryText:
    """Joins several terms of a query into one. Its frequencies are sums, at most the number of documents."""
    together = [i for i, term in enumerate(asked.terms) if term.text in texts]
    if len(together) < 2:
        return asked
    first, parts = together[0], [asked.terms[i] for i in together]
    one = Term(
        text=" ".join(part.text for part in parts),
        repeats=max(part.repeats for part in parts),
        words=np.unique(np.concatenate([part.words for part in parts])),
        document_frequency=min(collection.documents, sum(part.document_frequency for part in parts)),
        field_frequency=np.minimum(collection.with_field, np.sum([part.field_frequency for part in parts], axis=0)),
        collection_frequency=sum(part.collection_frequency for part in parts),
        beginning=np.unique(np.concatenate([part.beginning for part in parts])),
        names=sum(part.names for part in parts),
    )
    others = [i for i in range(len(asked.terms)) if i not in together[1:]]
    terms = tuple(one if i == first else asked.terms[i] for i in others)
    place = {i: others.index(i if i not in together else first) for i in range(len(asked.terms))}
    return QueryText(terms, np.array([place[int(i)] for i in asked.order], np.int64), asked.folded)
