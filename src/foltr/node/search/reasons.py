"""Why a document stands where it stands, in words: one reason about its text, one about what was opened before."""

from collections.abc import Mapping
from typing import NamedTuple

_COUNTS = ("never", "once", "twice", "three times", "four times", "five times", "six times", "seven times")
_OFTEN = 1.0  # a folder is used often where its next opening is twice as likely as its size alone says


class Opened(NamedTuple):
    """A choice that placed a document."""

    query: str  # as it was typed then, printable
    times: int


def reason(features: Mapping[str, float], *, terms: int, opened: Opened | None = None, corrected: bool = False) -> str:
    """At most two reasons, from the raw features of a document and the memory of choices."""
    text = "similar spelling" if corrected else _text_reason(features, terms)
    history = _memory_reason(opened) if opened else _history_reason(features)
    found = (history, text) if opened else (text, history)
    return "; ".join(one for one in found if one)


def _memory_reason(opened: Opened) -> str:
    return f"you opened this {times(opened.times)} for '{opened.query}'"


def times(count: int) -> str:
    return _COUNTS[count] if 0 <= count < len(_COUNTS) else f"{count} times"


def _history_reason(features: Mapping[str, float]) -> str:
    if features.get("opened", 0.0) > 0:
        return "you opened this before"
    if features.get("folder", 0.0) >= _OFTEN:
        return "in a folder you use often"
    return ""


def _text_reason(features: Mapping[str, float], terms: int) -> str:
    if not terms:
        return "recent"
    whole, every = ("the word", "is") if terms == 1 else ("all words", "are")
    checks = (
        ("name_exact", 1.0, "the name is what you typed"),
        ("title_exact", 1.0, "the title is what you typed"),
        ("cov_name", 1.0, f"{whole} {every} in the name"),
        ("phrase_title", 1.0, "the words stand together in the title"),
        ("cov_title", 1.0, f"{whole} {every} in the title"),
        ("prefix_name", 1.0, "the name begins with what you typed"),
        ("prefix_title", 1.0, "the title begins with what you typed"),
        ("cov_path", 1.0, f"{whole} {every} in the path"),
        ("phrase_body", 1.0, "the words stand together in the text"),
        ("cov_body", 1.0, f"{whole} {every} in the text"),
        ("idfcov_any", 1.0, "all words, in several fields"),
    )
    for name, least, words in checks:
        if features.get(name, 0.0) >= least - 1e-9 and (terms > 1 or not name.startswith("phrase")):
            return words
    return "some of the words"
