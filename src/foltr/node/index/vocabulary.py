"""Words and stems with their numbers: giving numbers while indexing, looking them up while searching.

The first numbers are the stop words of the language in their fixed order, each of them its own stem. A number is never
given twice, also when its word has vanished from the collection and comes back.
"""

import sqlite3
from functools import partial
from typing import Any

import numpy as np

from foltr.node.index.statistics import Statistics
from foltr.text import analysis as text_analysis
from foltr.text import splitting
from foltr.text.analysis import TextAnalysis
from foltr.types import Array

_MAX_TOKENS = 1 << 18  # remembered: frequent ones are soon learnt again, and texts have ever new rare ones
_SLOTS = 1 << 24
_MAX_COMPLETIONS = 60_000  # of a beginning: bounds the cost of one or two letters


class Numbering:
    """Numbers for the words of texts. New words and stems wait in `new_words` and `new_stems` for a transaction."""

    def __init__(self, connection: sqlite3.Connection, analysis: TextAnalysis, statistics: Statistics) -> None:
        self._connection, self._statistics = connection, statistics
        self._stem_of = partial(text_analysis.stem, analysis=analysis)
        self._stop = text_analysis.stop_words(analysis.language)
        self.new_words: list[tuple[str, int, int]] = []
        self.new_stems: list[tuple[str, int]] = []
        self.next_word, self.next_stem = (_counter(connection, key, len(self._stop)) for key in ("words", "stems"))
        self._perhaps_stored: bytearray | None = None
        self.forget()
        if self.next_word == len(self._stop):
            self.expect_many()

    def expect_many(self) -> None:
        """Notes which words are stored, by their hash in one byte each: most words of a new text are new, and a word
        that is certainly not stored need not be looked up."""
        if self._perhaps_stored is None:
            self._perhaps_stored = bytearray(_SLOTS)
            for (word,) in self._connection.execute("SELECT word FROM words"):
                self._perhaps_stored[hash(word) % _SLOTS] = 1
            for (stem,) in self._connection.execute("SELECT stem FROM stems"):
                self._perhaps_stored[~hash(stem) % _SLOTS] = 1

    def forget(self) -> None:
        """Drops what is remembered, such as numbers of words that have vanished."""
        self._token: dict[str, int] = {}  # token -> row of the three below
        self._starts = np.zeros(1024, np.int64)
        self._lengths = np.zeros(1024, np.int64)
        self._words = np.zeros(4096, np.int32)  # the words of all tokens, one after the other
        self._used = 0
        self._number: dict[str, int] = {word: i for i, word in enumerate(self._stop)}
        self._stem_number: dict[str, int] = {}

    @property
    def known_tokens(self) -> object:
        """An object that is replaced whenever numbers may have changed their meaning."""
        return self._token

    def sequence(self, text: str) -> Array:
        """[words] int32: the numbers of a text's words in order."""
        tokens = splitting.tokens(text)
        unseen = set(tokens).difference(self._token)
        if unseen:
            self._learn(sorted(unseen))  # in a fixed order, so that equal folders give equal indexes
        rows = np.fromiter(map(self._token.__getitem__, tokens), np.int64, len(tokens))
        lengths = self._lengths[rows]
        ends = np.cumsum(lengths)
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(self._starts[rows] - (ends - lengths), lengths)
        return self._words[places]

    def written(self) -> None:
        """Notes that the new words are in the database."""
        self.new_words.clear()
        self.new_stems.clear()
        if len(self._token) > _MAX_TOKENS:
            self.forget()

    def _learn(self, tokens: list[str]) -> None:
        """Adds the words of new tokens to the tables."""
        lengths, numbers = [], []
        known, row = self._number, len(self._token)
        for token in tokens:
            words = words_of(token)
            lengths.append(len(words))
            for word in words:
                number = known.get(word)
                numbers.append(self._number_of(word) if number is None else number)
        self._reserve(row + len(tokens), self._used + len(numbers))
        self._token.update(zip(tokens, range(row, row + len(tokens)), strict=True))
        self._lengths[row : row + len(tokens)] = lengths
        self._starts[row : row + len(tokens)] = self._used + np.cumsum(lengths) - lengths
        self._words[self._used : self._used + len(numbers)] = numbers
        self._used += len(numbers)

    def _reserve(self, rows: int, words: int) -> None:
        if rows > len(self._starts):
            self._starts, self._lengths = np.pad(self._starts, (0, rows)), np.pad(self._lengths, (0, rows))
        if words > len(self._words):
            self._words = np.pad(self._words, (0, words))

    def _number_of(self, word: str) -> int:
        """The number of a word that is not remembered."""
        number = self._stored("words", "word", word, hash(word) % _SLOTS)
        if number is None:
            number, self.next_word = self.next_word, self.next_word + 1
            stem = self._number_of_stem(self._stem_of(word))
            self._statistics.reserve(stem + 1, number + 1)
            self._statistics.stem_of[number] = stem
            self.new_words.append((word, number, stem))
        self._number[word] = number
        return number

    def _number_of_stem(self, stem: str) -> int:
        number = self._stem_number.get(stem)
        if number is None:
            number = self._stored("stems", "stem", stem, ~hash(stem) % _SLOTS)
        if number is None:
            number, self.next_stem = self.next_stem, self.next_stem + 1
            self.new_stems.append((stem, number))
        self._stem_number[stem] = number
        return number

    def _stored(self, table: str, column: str, text: str, slot: int) -> int | None:
        """The number in the database; what is certainly not there is noted, since it soon will be."""
        perhaps = self._perhaps_stored
        if perhaps is not None and not perhaps[slot]:
            perhaps[slot] = 1
            return None
        number = _row(self._connection, table, column, text)
        return None if number is None else int(number)


def words_of(token: str) -> tuple[str, ...]:
    """As `analysis.words_of`, faster for the many tokens that are one plain word and occur once."""
    if token.isascii() and token.isalnum():
        if token.islower() or token.isdigit():
            return (token[: splitting.LONGEST],)
        if token[1:].islower():
            return (token.lower()[: splitting.LONGEST],)
    return text_analysis.words_of(token)


def begin(connection: sqlite3.Connection, stop: tuple[str, ...]) -> None:
    """Stores the stop words of a new index."""
    connection.executemany("INSERT INTO words VALUES (?, ?, ?)", [(word, i, i) for i, word in enumerate(stop)])


def stem_number(connection: sqlite3.Connection, stem: str) -> int | None:
    number = _row(connection, "stems", "stem", stem)
    return None if number is None else int(number)


def word_number(connection: sqlite3.Connection, word: str) -> int | None:
    number = _row(connection, "words", "word", word)
    return None if number is None else int(number)


def completions(connection: sqlite3.Connection, beginning: str) -> Array:
    """Numbers of the words that begin with a text, `_MAX_COMPLETIONS` at most. SQLite writes them into one text: as
    rows they take three times as long."""
    numbers = connection.execute(
        "SELECT group_concat(id) FROM (SELECT id FROM words WHERE word >= ? AND word < ? ORDER BY word LIMIT ?)",
        (beginning, beginning + "\U0010ffff", _MAX_COMPLETIONS),
    ).fetchone()[0]
    return np.fromstring(numbers, np.int32, sep=",") if numbers else np.empty(0, np.int32)


def delete(connection: sqlite3.Connection, words: Array, stems: Array) -> None:
    """Deletes vanished words and stems; numbers have no index, the tables are read once."""
    for table, numbers in (("words", words), ("stems", stems)):
        if len(numbers):
            connection.execute("CREATE TEMP TABLE IF NOT EXISTS vanished (id INTEGER PRIMARY KEY)")
            connection.execute("DELETE FROM vanished")
            connection.executemany("INSERT INTO vanished VALUES (?)", [(int(n),) for n in numbers])
            connection.execute(f"DELETE FROM {table} WHERE id IN (SELECT id FROM vanished)")  # noqa: S608
            connection.execute("DELETE FROM vanished")


def _row(connection: sqlite3.Connection, table: str, column: str, value: str) -> Any:
    found = connection.execute(f"SELECT id FROM {table} WHERE {column} = ?", (value,)).fetchone()  # noqa: S608
    return found[0] if found else None


def _counter(connection: sqlite3.Connection, key: str, default: int) -> int:
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return int(found[0]) if found else default
