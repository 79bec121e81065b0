"""Known-item queries: words that somebody remembers of one document, its target.

A query has words of the target's title, of its file name and folder, or of its body; every kind that the target has is
equally likely. Words of the body are drawn in proportion to their inverse document frequency, as people remember what
sets a text apart (Azzopardi, de Rijke and Balog 2007, "Building simulated queries for known-item topics"); words of
titles and names are drawn evenly. One query in five has a wrong word, which is of another document and not of the
target. These are `mixed` words. People with other habits:

    one-word      one right word
    question      four to seven words of title and body with the small words of a question between them
    beginnings    mixed words, each of which ends after half of its letters, but not before the third
    typos         mixed words, two neighbouring letters of the longest of which are exchanged

Differs from the paper: words are drawn without replacement and keep their order in the text.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from foltr.lab.people.corpora import Texts
from foltr.lab.people.settings import Words
from foltr.rng import Stream
from foltr.text.analysis import TextAnalysis, stop_words, tokens, words_of
from foltr.types import Array

ANALYSIS = TextAnalysis(language="english", stop=True, stem=True)
WRONG = 0.2  # share of the queries with a wrong word
LENGTHS = {"title": (1, 4), "name": (1, 3), "body": (2, 4)}  # words of a query, fewest and most
QUESTION = (4, 7)
_SMALL_WORDS = ("how does", "and the", "with a", "for", "when it is", "in", "or")  # before each word of a question
_DRAWS = 64  # numbers of a stream that one query may use
_BODY = 4000  # characters of a body from which words are remembered

Idf: TypeAlias = Callable[[str], float]  # word -> its inverse document frequency


class KnownItem(NamedTuple):
    text: str
    target: int  # document
    kind: str  # field that the words are of
    wrong: str  # the wrong word, or ""


def known_item(texts: Texts, target: int, idf: Idf, draws: Stream, words: Words = "mixed") -> KnownItem:
    """The query that the numbers of a stream make for a target, by the habits of a person."""
    if words == "question":
        return _question(texts, target, idf, draws)
    query = _mixed(texts, target, idf, draws, most=1 if words == "one-word" else None)
    typed = {"beginnings": _beginnings, "typos": _mistyped}.get(words)
    return query._replace(text=typed(query.text)) if typed else query


def _mixed(texts: Texts, target: int, idf: Idf, draws: Stream, *, most: int | None = None) -> KnownItem:
    """A query with words of one field; with `most` of at most so many words, none of them wrong."""
    fields = {
        kind: found for kind in LENGTHS if len(found := remembered_words(texts, target, kind)) >= LENGTHS[kind][0]
    } or {"body": ["empty"]}
    kind = list(fields)[int(draws.integers(len(fields), 1)[0])]
    draws = draws.skip(1)
    fewest, longest = LENGTHS[kind]
    count = min(fewest + int(draws.integers(longest - fewest + 1, 1)[0]), most or longest)
    weights = np.array([idf(word) for word in fields[kind]]) if kind == "body" else np.ones(len(fields[kind]))
    chosen = [fields[kind][place] for place in _drawn(weights, count, draws.skip(1))]
    wrong = ""
    draws = draws.skip(1 + len(weights))
    if most is None and draws.uniform(1)[0] < WRONG:
        wrong = _wrong_word(texts, target, draws.skip(1))
        place = int(draws.skip(_DRAWS).integers(len(chosen), 1)[0])
        chosen = [*chosen, wrong] if len(chosen) == 1 else [*chosen[:place], wrong, *chosen[place + 1 :]]
    return KnownItem(" ".join(chosen), target, kind, wrong)


def _question(texts: Texts, target: int, idf: Idf, draws: Stream) -> KnownItem:
    found = [word for kind in ("title", "body") for word in remembered_words(texts, target, kind)] or ["empty"]
    distinct = list(dict.fromkeys(found))
    count = QUESTION[0] + int(draws.integers(QUESTION[1] - QUESTION[0] + 1, 1)[0])
    chosen = [distinct[one] for one in _drawn(np.array([idf(word) for word in distinct]), count, draws.skip(1))]
    text = " ".join(f"{small} {word}" for small, word in zip(_SMALL_WORDS, chosen, strict=False))
    return KnownItem(text, target, "question", "")


def _beginnings(text: str) -> str:
    return " ".join(word[: max(3, (len(word) + 1) // 2)] for word in text.split())


def _mistyped(text: str) -> str:
    """Two letters in the middle of the longest word change places, where it has four letters or more."""
    words = text.split()
    place = max(range(len(words)), key=lambda one: len(words[one]))
    word, half = words[place], len(words[place]) // 2
    if len(word) >= 4:
        words[place] = word[: half - 1] + word[half] + word[half - 1] + word[half + 1 :]
    return " ".join(words)


def remembered_words(texts: Texts, target: int, kind: str) -> list[str]:
    """Distinct words of a field as people type them, in order, without stop words and single characters."""
    text = field_text(texts, target, kind)
    unwanted = set(stop_words(ANALYSIS.language))
    typed = (word for token in tokens(text) for word in _as_typed(token))
    return [word for word in dict.fromkeys(typed) if len(word) > 1 and word not in unwanted]


def field_text(texts: Texts, target: int, kind: str) -> str:
    """The part of a document that words of a kind come from; with a file name its folder."""
    if kind == "name" and texts.names[target]:
        return f"{texts.paths[target].rpartition('/')[2]} {texts.names[target]}"
    return {"title": texts.titles, "name": texts.names, "body": texts.bodies}[kind][target][:_BODY]


def _as_typed(token: str) -> tuple[str, ...]:
    """Nobody types snake_case without its bars, but its parts; camelCase is typed as one word."""
    compound, *parts = words_of(token) or ("",)
    return tuple(parts) if parts and "_" in token else (compound,)


def _drawn(weights: Array, count: int, draws: Stream) -> list[int]:
    """Places of up to `count` words without replacement, in proportion to their weights, in rising order."""
    times = -np.log1p(-draws.uniform(len(weights))) / np.maximum(weights, 1e-9)
    return sorted(np.argsort(times, kind="stable")[:count].tolist())


def _wrong_word(texts: Texts, target: int, draws: Stream) -> str:
    """A word of another document's body that the target does not have."""
    own = {word for kind in LENGTHS for word in remembered_words(texts, target, kind)}
    for number in draws.integers(len(texts.titles), _DRAWS // 2).tolist():
        foreign = [word for word in remembered_words(texts, number, "body") if word not in own]
        if foreign:
            return foreign[int(draws.skip(_DRAWS // 2).integers(len(foreign), 1)[0])]
    return "nothing"
