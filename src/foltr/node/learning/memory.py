"""Memory of choices: pure functions over plain data, for the node and for simulated people.

Memory maps what was typed to what was opened, by Firefox's rule for the address bar (`moz_inputhistory`): a choice
makes the count of (typed text, document) count x .9 + 1, counts decay by x .975 a day, an entry that was not used for
90 days is gone. A lookup takes every remembered text that begins with what is typed now, from three letters on, and
doubles the count where the whole text is equal; of several texts the strongest counts.

Differs from Firefox: days are days of the calendar (UTC), so that nothing changes between two searches of a day;
Firefox removes an entry when its count has decayed to .975^90, which keeps often used ones longer than 90 days; it
doubles only where the equal text has the largest count, and rounds to one digit.

A document is a key (`document_key`): the absolute path of its file and, inside a mailbox, the part. Keys stay equal
when the index is rebuilt. They are stored as text and not hashed: a folder must be forgettable by its path after the
index is gone, memory moves to another machine with its paths, and a hash of a path that can be guessed hides nothing.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, TypeVar

from foltr.text.normalization import normalize

DAY = 86_400.0  # seconds
KEEP, DECAY, DAYS = 0.9, 0.975, 90  # of a count at the next choice, of a count a day, without use
SHORTEST_BEGINNING = 3  # letters
PLACES = 2  # documents that memory may lift
LONGEST_TEXT = 1_000  # characters of a query that are stored

_PART = "\0"  # no path contains it
D = TypeVar("D")


class Use(NamedTuple):
    """One choice: what was typed, what was opened, when (seconds since 1970)."""

    typed: str
    document: str
    time: float


class Entry(NamedTuple):
    """A remembered pair of typed text and document."""

    use_count: float
    time: float  # of its last use


class Remembered(NamedTuple):
    document: str
    strength: float  # decayed count, doubled where the whole text is equal
    use_count: float  # decayed
    typed: str  # the remembered text


def document_key(path: str, part: str = "") -> str:
    return f"{path}{_PART}{part}" if part else path


def split_key(key: str) -> tuple[str, str]:
    """Path and part."""
    path, _, part = key.partition(_PART)
    return path, part


def folder_of(key: str) -> str:
    """The folder of a file; for a part of a mailbox, the mailbox."""
    path, part = split_key(key)
    return path if part else path.rpartition("/")[0]


def typed_text(query: str) -> str:
    """A query as memory compares it: case, width and spaces do not matter."""
    return " ".join(normalize("NFKC", stored_text(query)).casefold().split())


def stored_text(query: str) -> str:
    """A query as the log stores it: valid Unicode of bounded length."""
    return query[:LONGEST_TEXT].encode("utf-8", "replace").decode("utf-8")


def days_between(earlier: float, later: float) -> int:
    """Whole days of the calendar; 0 where the clock went back."""
    return max(0, math.floor(later / DAY) - math.floor(earlier / DAY))


def after_choice(entry: Entry | None, time: float) -> Entry:
    """The entry after one more choice."""
    return Entry(1.0 if entry is None else decayed(entry, time) * KEEP + 1.0, time)


def decayed(entry: Entry, now: float) -> float:
    days = days_between(entry.time, now)
    return entry.use_count * DECAY**days if days <= DAYS else 0.0


def entries(uses: Iterable[Use]) -> dict[tuple[str, str], Entry]:
    """(typed, document) -> entry, from choices in the order of time."""
    found: dict[tuple[str, str], Entry] = {}
    for typed, document, time in uses:
        found[typed, document] = after_choice(found.get((typed, document)), time)
    return found


def lookup(remembered: Iterable[tuple[tuple[str, str], Entry]], query: str, now: float) -> list[Remembered]:
    """Documents that were opened for what is typed now, the strongest first; equal ones: the newest first."""
    typed_now = typed_text(query)
    best: dict[str, tuple[Remembered, float]] = {}
    for (typed, document), entry in remembered:
        if not counts(typed, typed_now):
            continue
        count = decayed(entry, now)
        found = Remembered(document, count * (2 if typed == typed_now else 1), count, typed)
        known = best.get(document)
        if count > 0 and (known is None or (found.strength, entry.time) > (known[0].strength, known[1])):
            best[document] = found, entry.time
    ranked = sorted(best.values(), key=lambda one: (-one[0].strength, -one[1], one[0].document))
    return [found for found, _ in ranked]


def counts(typed: str, typed_now: str) -> bool:
    """Whether a remembered text counts for what is typed now."""
    return typed == typed_now != "" or (len(typed_now) >= SHORTEST_BEGINNING and typed.startswith(typed_now))


def place(order: Sequence[D], remembered: Iterable[D], exact_name: Collection[D] = ()) -> tuple[list[D], list[D]]:
    """The order with remembered documents first, and those that memory moved.

    `order` has the documents that match the query and its filters, best first: what is not among them is not shown.
    At most two documents are lifted. Of the documents whose file name is the query itself the first stays above them,
    unless memory knows one of these.
    """
    matching = set(order)
    lifted = [one for one in dict.fromkeys(remembered) if one in matching][:PLACES]
    if not lifted:
        return list(order), []
    exact = [one for one in order if one in exact_name]
    first = [one for one in lifted if one in exact_name] or exact[:1]
    top = list(dict.fromkeys([*first, *lifted]))
    chosen = set(top)
    placed = [*top, *(one for one in order if one not in chosen)]
    return placed, [one for one in lifted if order.index(one) != placed.index(one)]
