"""Memory of choices and counts of openings: pure functions over plain data, for the node and for simulated people.

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
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from foltr.node.learning.openings import NO_HABITS, Habits, document_lift, folder_lift, habits
from foltr.text.normalization import normalize
from foltr.types import Array

DAY = 86_400.0  # seconds
KEEP, DECAY, DAYS = 0.9, 0.975, 90  # of a count at the next choice, of a count a day, without use
SHORTEST_BEGINNING = 3  # letters
PLACES = 2  # documents that memory may lift
QUICK_RETURN = 10.0  # seconds until the page is visible again
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


def quick_return(opened: float, visible_again: float) -> bool:
    """Whether a document was left so soon that its choice was a mistake, once something else is opened."""
    return 0 <= visible_again - opened <= QUICK_RETURN


class Openings(NamedTuple):
    """Decayed counts of openings, and what they say about the next one once the sizes of folders are known."""

    documents: dict[str, float]
    folders: dict[str, float]
    total: float
    sizes: dict[str, int] = {}  # noqa: RUF012 - documents of every folder with openings
    indexed: int = 0  # documents of the index
    habits: Habits = NO_HABITS


NO_OPENINGS = Openings({}, {}, 0.0)


def count_openings(openings: Iterable[tuple[str | None, str, float]], now: float) -> Openings:
    """Counts of (typed text, document, time) at a day: an opening counts .975^days; of those with the same text and
    document the newest. Openings without a text count each."""
    newest: dict[object, tuple[str, float]] = {}
    for number, (typed, document, time) in enumerate(openings):
        pair = number if typed is None else (typed, document)
        newest[pair] = document, max(time, newest.get(pair, (document, time))[1])
    documents: dict[str, float] = {}
    folders: dict[str, float] = {}
    for document, time in newest.values():
        weight, folder = DECAY ** days_between(time, now), folder_of(document)
        documents[document] = documents.get(document, 0.0) + weight
        folders[folder] = folders.get(folder, 0.0) + weight
    return Openings(documents, folders, sum(documents.values()))


def weighed(counted: Openings, sizes: Mapping[str, int], indexed: int) -> Openings:
    """The counts against the documents in each of their folders and in the index. Documents that are gone from the
    index still count for their folder."""
    if not counted.documents:
        return counted
    places = {folder: place for place, folder in enumerate(counted.folders)}
    folder = np.array([places[folder_of(one)] for one in counted.documents])
    known = np.maximum(np.bincount(folder), [sizes.get(one, 0) for one in places])
    total = max(indexed, int(known.sum()))
    found = habits(np.array(list(counted.documents.values())), folder, known, total)
    return counted._replace(sizes=dict(zip(places, known.tolist(), strict=True)), indexed=total, habits=found)


def opened(counted: Openings, documents: Sequence[str]) -> Array:
    """[documents] how many times likelier than chance each is to be opened next within its folder, minus 1."""
    counts = np.array([counted.documents.get(one, 0.0) for one in documents])
    in_folder, sizes = _by_folder(counted, documents)
    return np.where(in_folder > 0, document_lift(counted.habits, counts, in_folder, sizes) - 1, 0.0)


def folder_opened(counted: Openings, documents: Sequence[str]) -> Array:
    """[documents] how many times likelier than chance the next opening lies in the document's folder, minus 1."""
    in_folder, sizes = _by_folder(counted, documents)
    lift = folder_lift(counted.habits, in_folder, sizes / max(counted.indexed, 1), counted.total)
    return lift - 1 if counted.total > 0 else np.zeros(len(lift))


def _by_folder(counted: Openings, documents: Sequence[str]) -> tuple[Array, Array]:
    """Openings in the folder of each document, and how many documents it has; 1 where none was opened: it does not
    matter then."""
    folders = [folder_of(one) for one in documents]
    counts = np.array([counted.folders.get(one, 0.0) for one in folders])
    return counts, np.array([counted.sizes.get(one, 1) for one in folders], dtype=np.float64)
