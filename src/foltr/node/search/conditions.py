"""Conditions of a query, checked on documents one by one: the last word on what a list may show.

The index narrows candidates down where it can; whatever it returns is checked here again, so that no document is ever
shown that a phrase, a minus or a field rules out.
"""

import datetime
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from foltr.node.search.query import Clause, date_of
from foltr.text.analysis import fold
from foltr.text.fields import FIELDS, Tokens
from foltr.types import Array

Groups = tuple[tuple[Clause, ...], ...]


class Described(Protocol):
    """A document as the store describes it."""

    @property
    def path(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def date(self) -> float: ...
    @property
    def sender(self) -> str: ...
    @property
    def recipients(self) -> str: ...


class Words(NamedTuple):
    """Entries of the vocabulary for the words of clauses."""

    occurrences: Callable[[str], list[Array]]  # text -> for each of its terms, the numbers that are occurrences
    numbers: Callable[[str], list[int] | None]  # text -> its words as they are; None: a word is in no document


def satisfied(groups: Groups, documents: Sequence[Described], tokens: Tokens, words: Words) -> Array:
    """[documents] bool: every group has an alternative that holds."""
    holds = np.ones(len(documents), np.bool_)
    for group in groups:
        alternatives = [_holds(clause, documents, tokens, words) for clause in group]
        holds &= np.logical_or.reduce(alternatives)
    return holds


def field_check(groups: Sequence[Sequence[Clause]]) -> Callable[[Described], bool]:
    """Whether a document satisfies groups of conditions that are all on fields."""
    checks = [[(_CHECKS[one.field](one.text), one.negated) for one in group] for group in groups]
    return lambda document: all(any(check(document) != negated for check, negated in group) for group in checks)


def _holds(clause: Clause, documents: Sequence[Described], tokens: Tokens, words: Words) -> Array:
    if clause.field:
        check = _CHECKS[clause.field](clause.text)
        found = np.array([check(document) for document in documents], np.bool_)
    elif clause.quoted:
        numbers = words.numbers(clause.text)
        found = np.array([_has_phrase(tokens, i, numbers) for i in range(len(documents))], np.bool_)
    else:
        terms = words.occurrences(clause.text)
        found = np.array([has_terms(tokens, i, terms) for i in range(len(documents))], np.bool_)
    return ~found if clause.negated else found


def has_terms(tokens: Tokens, document: int, terms: list[Array]) -> bool:
    """Whether a document has an occurrence of every term."""
    first, last = tokens.offsets[document * len(FIELDS)], tokens.offsets[(document + 1) * len(FIELDS)]
    sequence = tokens.words[first:last]
    return bool(terms) and all(bool(np.isin(sequence, one).any()) for one in terms)


def _has_phrase(tokens: Tokens, document: int, numbers: list[int] | None) -> bool:
    """Whether the words stand one after the other in one field."""
    if not numbers:
        return False
    for field in range(len(FIELDS)):
        first, last = tokens.offsets[document * len(FIELDS) + field : document * len(FIELDS) + field + 2]
        sequence = tokens.words[first:last]
        starts = np.flatnonzero(sequence[: max(0, len(sequence) - len(numbers) + 1)] == numbers[0])
        for place, number in enumerate(numbers[1:], start=1):
            starts = starts[sequence[starts + place] == number]
        if len(starts):
            return True
    return False


Check = Callable[[Described], bool]


def _path(text: str) -> Check:
    wanted = fold(text)
    return lambda document: wanted in fold(_printable(document.path))


def _type(text: str) -> Check:
    """The kind of a document, or the ending of its file's name; alternatives are separated by commas."""
    wanted = {fold(one).strip().lstrip(".") for one in text.split(",")} - {""}
    return lambda document: bool(wanted & {fold(document.kind), fold(_printable(document.path)).rpartition(".")[2]})


def _sender(text: str) -> Check:
    wanted = fold(text)
    return lambda document: wanted in fold(document.sender)


def _recipients(text: str) -> Check:
    wanted = fold(text)
    return lambda document: wanted in fold(document.recipients)


def _subject(text: str) -> Check:
    wanted = fold(text)
    return lambda document: wanted in fold(document.title)


def _before(text: str) -> Check:
    limit = seconds_of(text)
    return lambda document: document.date < limit


def _after(text: str) -> Check:
    limit = seconds_of(text)
    return lambda document: document.date >= limit


def seconds_of(text: str) -> float:
    """The start of a day in local time, in seconds since 1970."""
    date = date_of(text) or datetime.date(1970, 1, 1)
    days = date.toordinal() - datetime.date(1970, 1, 1).toordinal()
    try:
        return datetime.datetime(date.year, date.month, date.day).astimezone().timestamp()
    except (OverflowError, OSError, ValueError):  # years that the operating system does not know
        return days * 86_400.0


def _printable(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")


_CHECKS: dict[str, Callable[[str], Check]] = {
    "path": _path,
    "type": _type,
    "from": _sender,
    "to": _recipients,
    "subject": _subject,
    "before": _before,
    "after": _after,
}
