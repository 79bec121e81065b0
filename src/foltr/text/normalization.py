"""Unicode normalisation in linear time, for texts that other people wrote.

Normalising sorts every run of combining marks. CPython's insertion sort takes n^2 steps for a run of n marks: 56 s for
60,000 characters that gzip packs into 1,280 bytes. Runs are therefore cut to MAX_MARKS marks before they are sorted,
the bound of Unicode's stream-safe format (UAX 15), which no orthography exceeds.

Differs from the stream-safe format: marks beyond the bound are dropped, not moved to a base character of their own.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Literal

import numpy as np

from foltr.types import Array

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
MAX_MARKS = 30  # on one letter
_LONG = 1_000  # characters from which on counting marks first is faster than searching for runs of them


def normalize(form: Form, text: str) -> str:
    """The normal form of a text in which at most MAX_MARKS marks stand on one letter."""
    if text.isascii():
        return text
    if len(text) > MAX_MARKS and (len(text) < _LONG or _perhaps_marks(text) > MAX_MARKS):
        text = _long_run().sub(_cut, text)
    return unicodedata.normalize(form, text)


def _perhaps_marks(text: str) -> int:
    """At least the number of marks: characters above U+FFFF count as two each."""
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2")
    return int(np.count_nonzero(_table().take(units)))


@lru_cache(maxsize=1)
def _marks() -> str:
    """Every mark up to U+FFFF."""
    return "".join(filter(_is_mark, map(chr, range(0x300, 0x10000))))


@lru_cache(maxsize=1)
def _table() -> Array:
    """[65536] bool: units of UTF-16 that are marks, or half of a character that may be one."""
    table = np.zeros(0x10000, np.bool_)
    table[[*map(ord, _marks()), *range(0xD800, 0xE000)]] = True
    return table


@lru_cache(maxsize=1)
def _long_run() -> re.Pattern[str]:
    """Runs that may hold too many marks. Above U+FFFF every character counts: with a list of the marks there, `re`
    walks through ranges at every character. The first character stands alone, since `re` searches for a class much
    faster than for a repetition."""
    either = f"[{_marks()}\U00010000-\U0001ffff]"
    return re.compile(f"{either}{either}{{{MAX_MARKS},}}")


def _cut(run: re.Match[str]) -> str:
    letters: list[str] = []
    marks = 0
    for character in run.group():
        marks = marks + 1 if _is_mark(character) else 0
        if marks <= MAX_MARKS:
            letters.append(character)
    return "".join(letters)


def _is_mark(character: str) -> bool:
    """Whether a character becomes marks only. Some with combining class 0 do: U+0F73 is two vowel signs."""
    if unicodedata.combining(character):
        return True
    parts = unicodedata.normalize("NFKD", character)
    return parts != character and all(map(unicodedata.combining, parts))
