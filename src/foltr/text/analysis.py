"""The tokeniser: splits documents, titles and queries of all parties into terms.

A term is a run of Unicode letters, digits and underscores, in NFKC form and lower case. Stop words and English stems
are options; all parties of a federation must use the same, since hashes of terms only match if the terms are equal.

    terms("The ﬁrst Straße")                             -> ["the", "first", "straße"]
    terms("The ﬁrst Straße", TextAnalysis(stop=True))     -> ["first", "straße"]
"""

import contextlib
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module

import msgspec

from foltr.errors import SpecError

_RUN = re.compile(r"\w+")
_CACHED_STEMS = 1 << 17

_STOP_LIST = """
    a about above after again all also am an and any are as at be because been before being below between both but by
    can could did do does doing down during each either few for from further had has have having he her here hers him
    his how i if in into is it its itself just may me might more most must my neither no nor not now of off on once
    only onto or other our ours out over own per same shall she should since so some such than that the their theirs
    them then there these they this those though through to too under until up upon us very was we were what when
    where whether which while who whom whose why will with within without would yet you your yours
"""
STOP_WORDS = frozenset(_RUN.findall(_STOP_LIST))


class TextAnalysis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    stop: bool = False  # leave out STOP_WORDS
    stem: bool = False  # English stems (Snowball)


PLAIN = TextAnalysis()


def terms(text: str, analysis: TextAnalysis = PLAIN) -> list[str]:
    """The terms of a text, in order and as often as they occur; stop words are removed before stemming."""
    found = _RUN.findall(_folded(text))
    if analysis.stop:
        found = [term for term in found if term not in STOP_WORDS]
    if analysis.stem:
        found = list(map(_stem_of(), found))
    return found


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    # lower case may leave sequences that NFKC composes
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())


@lru_cache(maxsize=1)
def _stem_of() -> Callable[[str], str]:
    """Snowball's English stemmer, from PyStemmer (compiled) or snowballstemmer (Python): equal stems."""
    for package, factory in (("Stemmer", "Stemmer"), ("snowballstemmer", "stemmer")):
        with contextlib.suppress(ImportError):
            stemmer = getattr(import_module(package), factory)("english")
            return lru_cache(maxsize=_CACHED_STEMS)(stemmer.stemWord)
    raise SpecError("stem = true needs PyStemmer or snowballstemmer: pip install 'foltr[text]', or use stem = false")
