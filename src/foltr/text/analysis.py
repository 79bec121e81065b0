"""The one analyser: documents, titles, paths and queries become words, and words become terms.

A *word* is folded (NFKC, case, accents) and unstemmed; a *term* is the Snowball stem of a word that is no stop word.
Words are what an index stores, so that a word that is still being typed can be matched by its beginning; terms are
what is counted.

    words("The Straße’s getHTTPName v3.1")   -> the strasse gethttpname get http name v 3.1
    words("path_join naïve 検索語")           -> pathjoin path join naive 検索 索語 語
    terms("The running cats")                -> run cat

- camelCase and snake_case give the compound and its parts; parts of one letter are left out of camelCase.
- A number with points (3.1, 3.11.4) is one word. What follows an apostrophe is a word, except English endings ('s, 't).
- Scripts without spaces, and Hangul, whose particles are attached to words, give pairs of neighbouring characters and
  the last character alone: a single character is found by the words that begin with it.
- Combining marks and invisible characters (up to U+FFFF) never divide a word; a word is cut after LONGEST characters.
- Stems are those of the folded form. All parties of a federation must use the same analysis: hashes of terms only
  match where the terms are equal.

Cost: one regular expression over the text and a look-up for each token; what a token becomes is remembered.
"""

import contextlib
import hashlib
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from importlib import import_module
from threading import Lock
from typing import Any, NamedTuple

import msgspec

from foltr.errors import SpecError
from foltr.text import stop_words as lists
from foltr.text.splitting import LONGEST, fold_letters, is_one_character, split_token
from foltr.text.splitting import tokens as tokens

LANGUAGES = (
    "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "finnish", "french", "german", "greek",
    "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian", "portuguese",
    "romanian", "russian", "serbian", "spanish", "swedish", "tamil", "turkish", "yiddish",
)  # fmt: skip
_REMEMBERED = 1 << 17  # tokens; hostile texts have ever new ones
_INFLECTIONS = {"english": ("s", "es", "ies", "ied", "ed", "ing", "ly")}


class TextAnalysis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    language: str = "english"  # of stop words and stems
    stop: bool = True  # leave out stop words
    stem: bool = True  # Snowball stems

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise SpecError(f"language={self.language!r} is unknown; there are {', '.join(LANGUAGES)}")


class QueryWord(NamedTuple):
    """A word of a query and what counts as its occurrence: a word with one of the stems, and where the query is still
    being typed (`prefix`) a word that begins with `text`, and every word that shares its stem with one that does."""

    text: str  # folded, unstemmed
    stems: tuple[str, ...]  # its own first; then those of inflections that may be on their way
    prefix: bool
    with_stop: bool  # stop words may be occurrences, since the query consists of them


VERSION = 1  # raise it when the same text gives other words or terms: indexes and sketches are built again then
ENGLISH = TextAnalysis()
PLAIN = TextAnalysis(stop=False, stem=False)
STOP_WORDS = lists.STOP_WORDS["english"]

_known: dict[str, tuple[str, ...]] = {}  # token -> its words
_stemming = Lock()  # PyStemmer's objects are not re-entrant


def stop_words(language: str = "english") -> tuple[str, ...]:
    """The stop words of a language in their fixed order; empty where there is no list."""
    return lists.STOP_WORDS.get(language, ())


def fingerprint(analysis: TextAnalysis) -> str:
    """Digest that an index or a sketch stores, to be used only with the words that it was built from."""
    label = msgspec.json.encode([VERSION, analysis, stop_words(analysis.language)])
    return hashlib.blake2b(label, digest_size=8, person=b"foltr-analysis").hexdigest()


def fold(text: str) -> str:
    """Case, accents, widths and invisible characters removed; runs of white space are one space."""
    return " ".join(fold_letters(text).split())


def between_signs(folded: str) -> list[str]:
    """Words between the signs of a folded text, stop words included, identifiers divided at their bars:
    "json.loads", "json_loads" and "json loads" are equal. A text of signs alone is one word."""
    return tokens(folded.replace("_", " ")) or [folded]


def words(text: str, analysis: TextAnalysis = ENGLISH) -> list[str]:
    """The words of a text in order, stop words included. They are the same for all languages."""
    del analysis
    found: list[str] = []
    for token in tokens(text):
        found += _known.get(token) or words_of(token)
    return found


def words_of(token: str) -> tuple[str, ...]:
    """The words of one token."""
    found = _known.get(token)
    if found is None:
        found = tuple(map(sys.intern, split_token(token)))
        if len(token) <= LONGEST:
            if len(_known) >= _REMEMBERED:
                _known.clear()
            _known[token] = found
    return found


def terms(text: str, analysis: TextAnalysis = ENGLISH) -> list[str]:
    """The terms of a text, in order and as often as they occur; stop words are removed before stemming."""
    found = words(text)
    if analysis.stop:
        stop = _stop_set(analysis.language)
        found = [word for word in found if word not in stop]
    return list(map(stemmer(analysis.language), found)) if analysis.stem else found


def stem(word: str, analysis: TextAnalysis = ENGLISH) -> str:
    return stemmer(analysis.language)(word) if analysis.stem else word


def query_words(text: str, analysis: TextAnalysis = ENGLISH, *, prefix: bool = False) -> list[QueryWord]:
    """The words of a query that count: without stop words, unless it consists of them.

    With `prefix` the last token may be unfinished, unless white space follows it: a compound and its last part are
    beginnings then. A stop word at the end counts too, since it may become another word. One letter after other words
    stands for itself ("vitamin c"): as a beginning it would fit every text.
    """
    parts = [_asked(token) for token in tokens(text)]
    every = [word for part in parts for word in part]
    unfinished: set[int] = set()
    if prefix and every and not text[-1].isspace():
        ends = {len(every) - 1, len(every) - len(parts[-1])}
        unfinished = {place for place in ends if len(every[place]) > 1 or len(every) == 1}
    stop = _stop_set(analysis.language) if analysis.stop else frozenset()
    only_stop = all(word in stop for word in every)
    return [
        _query_word(word, analysis, prefix=place in unfinished or is_one_character(word), with_stop=only_stop)
        for place, word in enumerate(every)
        if only_stop or word not in stop or place in unfinished
    ]


def by_term(asked: list[QueryWord]) -> tuple[list[list[QueryWord]], list[int]]:
    """The words of a query by term, in the order of first occurrence (words with one stem are one term), and the number
    of the term at each place."""
    distinct: dict[str, list[QueryWord]] = {}
    for word in asked:
        distinct.setdefault(word.stems[0], []).append(word)
    numbers = {key: number for number, key in enumerate(distinct)}
    return list(distinct.values()), [numbers[word.stems[0]] for word in asked]


def _query_word(word: str, analysis: TextAnalysis, *, prefix: bool, with_stop: bool) -> QueryWord:
    stems = [stem(word, analysis)]
    if prefix and analysis.stem:
        coming = (stem(inflected, analysis) for inflected in _inflected(word, analysis.language))
        stems += [one for one in coming if not one.startswith(word)]  # the others begin with the word anyway
    return QueryWord(word, tuple(dict.fromkeys(stems)), prefix, with_stop)


def _inflected(word: str, language: str) -> Iterator[str]:
    """The forms that a beginning may be on its way to: "runn" and "runni" to "running"."""
    for ending in _INFLECTIONS.get(language, ()):
        for typed in range(len(ending)):
            if word.endswith(ending[:typed]) and len(word) > typed + 1:
                yield word + ending[typed:]


def _asked(token: str) -> tuple[str, ...]:
    """The words of a query's token: the last character alone is only there to be found."""
    found = words_of(token)
    if len(found) > 1 and is_one_character(found[-1]) and found[-2].endswith(found[-1]):
        return found[:-1]
    return found


@lru_cache(maxsize=64)
def stemmer(language: str) -> Callable[[str], str]:
    """Word -> stem, from PyStemmer (compiled) or snowballstemmer (Python): equal stems."""
    for package, factory in (("Stemmer", "Stemmer"), ("snowballstemmer", "stemmer")):
        with contextlib.suppress(ImportError, KeyError):
            snowball = getattr(import_module(package), factory)(language)
            return lru_cache(maxsize=_REMEMBERED)(partial(_stem_word, snowball))
    raise SpecError(
        f"stems of {language} need PyStemmer or snowballstemmer: pip install 'foltr[text]', or use stem = false"
    )


def _stem_word(snowball: Any, word: str) -> str:
    with _stemming:
        return str(snowball.stemWord(word))


@lru_cache(maxsize=64)
def _stop_set(language: str) -> frozenset[str]:
    return frozenset(stop_words(language))
