"""The passage of a document that shows a query best, and text that is safe to print.

A snippet is plain text with the ranges of the query's words as offsets, never markup: a terminal colours them, a page
escapes the text and wraps them. Documents are other people's text, so that every character that is not printed as
itself is left out: control characters and terminal escapes, marks that reverse the direction of writing, towers of
accents. Paths are escaped instead, since two names that differ must not look the same.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from foltr.text.normalization import normalize

WIDTH = 200  # characters of a passage
_CHUNK = 60_000  # characters searched at a time
_MAX_CHUNKS = 10
_MAX_HITS = 50  # of one word in a chunk
_LOOK_BACK = 50  # characters before the first word of the query
_MAX_MARKS = 2  # accents on one letter beyond those that are part of it

_RUN = re.compile(r"\w+")
_OTHER = re.compile(r"[^\x00-\x7f]+")
_LONGEST_RUN = 64  # letters before a sign that is not ASCII
_LETTERS = re.compile(r"[^\W_]+")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]"
)


class Snippet(NamedTuple):
    text: str
    highlights: tuple[tuple[int, int], ...]  # [start, end) in text, rising, disjoint


class Wanted(NamedTuple):
    """A term of a query as it is looked for in raw text."""

    stems: tuple[str, ...]
    beginning: str  # folded, of a word that may go on; "": none
    weight: float  # worth of a passage that has it


class Hit(NamedTuple):
    start: int
    end: int
    term: int


Stem = Callable[[str], str]  # of a raw word: folded, then stemmed
Fold = Callable[[str], str]


class Matcher(NamedTuple):
    """Finds the words of a query in raw text."""

    terms: tuple[Wanted, ...]
    heads: tuple[str, ...]  # what every word of a term begins with
    by_stem: dict[str, int]  # stem -> the first term that has it
    beginnings: tuple[str, ...]  # of the terms that may go on
    unspaced: tuple[tuple[str, int], ...]  # texts in scripts without spaces, with their term
    stem: Stem
    fold: Fold
    known: dict[str, int | None]  # word -> its term
    runs: dict[str, tuple[int, int] | None]  # letters from a place on -> how many are a word, and its term


def matcher(terms: Sequence[Wanted], *, stem: Stem, fold: Fold) -> Matcher:
    heads = {_head(stem) for one in terms for stem in (*one.stems, one.beginning) if stem}
    by_stem = {stem: number for number, one in reversed(list(enumerate(terms))) for stem in one.stems}
    beginnings = tuple(one.beginning for one in terms if one.beginning)
    texts = ((text, number) for number, one in enumerate(terms) for text in {*one.stems, one.beginning})
    unspaced = tuple((text, number) for text, number in texts if _UNSPACED.match(text))
    return Matcher(tuple(terms), tuple(sorted(heads)), by_stem, beginnings, unspaced, stem, fold, {}, {})


def best_snippet(text: str, words: Matcher, *, width: int = WIDTH) -> Snippet:
    """The passage with the most of the query's weight; the beginning where no word occurs."""
    best = _best_match(text, words, width)
    chosen = text[: 2 * width] if best is None else _passage(best.chunk, best.start, width)
    return highlighted(_cut(printable(chosen), width), words)


def text_before_match(text: str, words: Matcher, *, width: int = WIDTH) -> str | None:
    """The text up to the first word of the passage that shows a query best; None where no word occurs."""
    best = _best_match(text, words, width)
    return text[: best.offset] + best.chunk[: best.start] if best is not None and best.worth > 0 else None


class _Match(NamedTuple):
    worth: float
    chunk: str
    offset: int  # of the chunk in the text
    start: int  # of the passage in the chunk


def _best_match(text: str, words: Matcher, width: int) -> _Match | None:
    best: _Match | None = None
    for offset, chunk in _chunks(text):
        hits = _plain_hits(chunk, words)
        if len({hit.term for hit in hits}) < len(words.terms):
            hits = _with_others(hits, chunk, words)
        worth, start = _best_window(hits, words, width)
        if best is None or worth > best.worth:
            best = _Match(worth, chunk, offset, start)
        if worth > 0 and len({hit.term for hit in hits}) == len(words.terms):
            break
    return best


def highlighted(text: str, words: Matcher) -> Snippet:
    """A text that is shown whole, such as a title, with the query's words marked."""
    ranges: list[tuple[int, int]] = []
    for hit in find_hits(text, words):
        if not ranges or hit.start >= ranges[-1][1]:
            ranges.append((hit.start, hit.end))
    return Snippet(text, tuple(ranges))


def find_hits(text: str, words: Matcher) -> list[Hit]:
    """Occurrences in order of place."""
    return _with_others(_plain_hits(text, words), text, words)


def printable(text: str) -> str:
    """Text for one line: whitespace as single spaces, nothing that is not printed as itself."""
    one_line = " ".join(normalize("NFC", text).split())
    if one_line.isascii() and one_line.isprintable():
        return one_line
    marks, letters = 0, []
    for letter in one_line:
        marks = marks + 1 if unicodedata.category(letter) in ("Mn", "Me") else 0
        if letter.isprintable() and marks <= _MAX_MARKS:
            letters.append(letter)
    return " ".join("".join(letters).split())


def escaped(text: str) -> str:
    """Every character that is not printed as itself as a backslash sequence: for paths and messages."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


def _head(stem: str) -> str:
    """The beginning of every word with this stem: Snowball writes a final y as i."""
    return stem[:-1] if len(stem) > 2 and stem.endswith(("i", "y")) else stem


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    """Parts of a text in composed form with their places, overlapping by the width of a passage."""
    for number in range(_MAX_CHUNKS):
        start = max(0, number * _CHUNK - WIDTH)
        if start and number * _CHUNK >= len(text):
            return
        chunk = text[start : (number + 1) * _CHUNK]
        yield start, normalize("NFC", chunk)


def _lowered(text: str) -> str:
    """In lower case, with every letter at its place."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)


def _plain_hits(text: str, words: Matcher) -> list[Hit]:
    """Those of ASCII letters. Looking for the others takes as long again."""
    lowered = _lowered(text)
    return sorted({hit for head in words.heads for hit in _ascii_hits(text, lowered, head, words)})  # heads overlap


def _with_others(plain: list[Hit], text: str, words: Matcher) -> list[Hit]:
    if text.isascii():
        return plain
    return sorted({*plain, *(hit for run in _other_runs(text) for hit in _folded_hits(run, words))})


def _ascii_hits(text: str, lowered: str, head: str, words: Matcher) -> list[Hit]:
    """Words that begin with a head: after a sign that is no letter, or as a part of camelCase."""
    hits: list[Hit] = []
    find, letters, runs = lowered.find, _LETTERS.match, words.runs
    at = find(head)
    for _ in range(_MAX_HITS):
        if at < 0:
            break
        before = text[at - 1] if at else " "
        if not before.isalnum() or (text[at].isupper() and not before.isupper()):
            match = letters(text, at)
            if match is not None:
                run = match[0]
                found = runs[run] if run in runs else _word_at_start(run, words)
                if found is not None:
                    hits.append(Hit(at, at + found[0], found[1]))
        at = find(head, at + 1)
    return hits


def _word_at_start(run: str, words: Matcher) -> tuple[int, int] | None:
    """Length and term of the word that a run of letters is, or begins with."""
    if run not in words.runs:
        part = _PART.match(run) if run.isascii() else None
        forms = (part[0], run) if part and part[0] != run else (run,) if run.isascii() else ()
        terms = ((len(form), _term_of(form, words)) for form in forms)
        words.runs[run] = next(((length, term) for length, term in terms if term is not None), None)
    return words.runs[run]


def _other_runs(text: str) -> Iterator[re.Match[str]]:
    """Runs of letters that are not all ASCII, found from their first other sign on."""
    end = 0
    for found in _OTHER.finditer(text):
        start = found.start()
        if start < end:
            continue
        while (
            start > end
            and found.start() - start < _LONGEST_RUN
            and (text[start - 1].isalnum() or text[start - 1] == "_")
        ):
            start -= 1
        run = _RUN.match(text, start)
        if run is not None:
            end = run.end()
            yield run


def _folded_hits(run: re.Match[str], words: Matcher) -> Iterator[Hit]:
    """Words with accents, and scripts without spaces, in which a term may stand anywhere in a run."""
    if not _UNSPACED.search(run[0]):
        term = _term_of(run[0], words)
        if term is not None:
            yield Hit(run.start(), run.end(), term)
        return
    folded = words.fold(run[0])
    if len(folded) != len(run[0]):
        return
    for text, number in words.unspaced:
        at = folded.find(text)
        for _ in range(_MAX_HITS):
            if at < 0:
                break
            yield Hit(run.start() + at, run.start() + at + len(text), number)
            at = folded.find(text, at + len(text))


def _term_of(word: str, words: Matcher) -> int | None:
    if word not in words.known:
        words.known[word] = _computed_term(word, words)
    return words.known[word]


def _computed_term(word: str, words: Matcher) -> int | None:
    stem, folded = words.stem(word), words.fold(word)
    found = words.by_stem.get(stem)
    if folded.startswith(words.beginnings):
        begun = (number for number, one in enumerate(words.terms) if one.beginning and folded.startswith(one.beginning))
        found = min(next(begun), len(words.terms) if found is None else found)
    return found


def _best_window(hits: list[Hit], words: Matcher, width: int) -> tuple[float, int]:
    """Worth and start of the best passage: the weight of the distinct terms, then how many words it has."""
    best, start, first = 0.0, 0, 0
    counts = [0] * len(words.terms)
    present, worths = 0, {0: 0.0}  # a bit for each term; the weight of such sets
    for place, hit in enumerate(hits):
        counts[hit.term] += 1
        present |= 1 << hit.term
        while first < place and hit.end - hits[first].start > width - _LOOK_BACK:
            left = hits[first].term
            counts[left] -= 1
            present &= ~(1 << left) if not counts[left] else -1
            first += 1
        if present not in worths:
            terms = sorted({inside.term for inside in hits[first : place + 1]})
            worths[present] = sum(words.terms[term].weight for term in terms)
        worth = worths[present] + 1e-3 * min(place - first + 1, 10)
        if worth > best:
            best, start = worth, hits[first].start
    return best, start


def _passage(text: str, start: int, width: int) -> str:
    """From shortly before the first word on, at the start of a line or a sentence where one is near."""
    earliest = max(0, start - _LOOK_BACK)
    before = text[earliest:start]
    breaks = [before.rfind(mark) + len(mark) for mark in ("\n", ". ") if mark in before]
    skipped = max(breaks) if breaks else before.find(" ") + 1 if earliest else 0
    begin = earliest + skipped
    return text[begin : begin + 2 * width]


def _cut(text: str, width: int) -> str:
    """At most `width` characters, between words where possible."""
    if len(text) <= width:
        return text
    space = text.rfind(" ", 0, width)
    return text[: space if space > width // 2 else width - 1] + "…"
