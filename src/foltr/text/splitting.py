"""Texts into tokens and tokens into folded words: Unicode, identifiers and scripts without spaces.

A token is a run of letters, digits and underscores with their marks, joined by apostrophes and by points between
digits. `analysis` describes what becomes of it and remembers it.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from foltr.text.normalization import normalize

LONGEST = 64  # characters of a word: longer ones are data, and nobody types them
_ASCII_TOKEN = re.compile(r"\w+(?:(?:'|(?<=\d)\.(?=\d))\w+)*", re.ASCII)
_POINTED = re.compile(r"((?<!\d)\d++(?:\.\d++)+)")  # tried once a run of digits, not at each digit of it
_ENDINGS = frozenset(["s", "t", "ll", "re", "ve", "d", "m"])  # after an apostrophe
_WITHOUT_SPACES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua9e0-\ua9ff\uaa60-\uaa7f\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN_WITHOUT_SPACES = re.compile(f"([{_WITHOUT_SPACES}]+)")
_PLAIN_LETTERS = str.maketrans(
    {"ø": "o", "đ": "d", "ł": "l", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "ŧ": "t", "ð": "d", "þ": "th", "ŀ": "l"}
)
_LETTERS_OF_THEIR_OWN = frozenset(["и\u0306", "у\u0306", "і\u0308"])  # no accents to readers of Cyrillic


def tokens(text: str) -> list[str]:
    """Tokens as `words_of` takes them: a caller who keeps its own table of tokens pays a look-up for each."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text)
    return _token_pattern().findall(normalize("NFKC", text))


@lru_cache(maxsize=1)
def _token_pattern() -> re.Pattern[str]:
    """Runs of letters, digits and underscores with the marks and invisible characters that Python's \\w leaves out.

    Those above U+FFFF are left out: with them `re` walks through a list of ranges at every character.
    """
    inside = [chr(code) for code in (0xAD, *range(0x300, 0x10000)) if _joins(chr(code))]
    word = f"\\w+(?:[{''.join(inside)}]+\\w*)*"  # not one class with \\w: that is ten times slower
    return re.compile(f"{word}(?:(?:['\u2019\uff07]|(?<=\\d)\\.(?=\\d)){word})*")


def _joins(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf")


def fold_letters(text: str) -> str:
    """Case, accents, widths and invisible characters removed."""
    if text.isascii():
        return text.lower()
    letters: list[str] = []
    for character in normalize("NFKD", normalize("NFKC", text).casefold()):
        if _is_accent(character):
            if not (letters and letters[-1] + character in _LETTERS_OF_THEIR_OWN):
                continue
        elif unicodedata.category(character) == "Cf" or character == "\u0640":
            continue
        letters.append(str(unicodedata.decimal(character)) if character.isdecimal() else character)
    return normalize("NFKC", "".join(letters)).translate(_PLAIN_LETTERS)


def _is_accent(character: str) -> bool:
    """Marks above and below letters; vowel signs and voicing marks of other scripts have other combining classes."""
    combining = unicodedata.combining(character)
    return 10 <= combining <= 36 or combining >= 200


def split_token(token: str) -> Iterator[str]:
    first, *rest = re.split("['\u2019\uff07]", token)
    if rest and rest[0].lower() == "t" and first.lower().endswith("n") and first.lower() != "can":
        first = first[:-1]  # "doesn't" is "does", a stop word
    for part in (first, *(part for part in rest if part.lower() not in _ENDINGS)):
        for piece in _POINTED.split(part):
            yield from [fold_letters(piece)[:LONGEST]] if "." in piece else _identifier(piece)


def _identifier(name: str) -> Iterator[str]:
    """The compound of snake_case and its parts, each of them perhaps in camelCase."""
    parts = [part for part in name.split("_") if part]
    if len(parts) > 1 and sum(map(len, parts)) <= LONGEST:
        yield from _by_script(fold_letters("".join(parts)))
    for part in parts:
        yield from _by_script(fold_letters(part))
        if len(part) <= LONGEST:
            for hump in _humps(part):
                yield from (_by_script(fold_letters(hump)) if len(hump) > 1 else ())


def _humps(name: str) -> list[str]:
    """The parts of camelCase, cut before a capital after a small letter and before the last capital of several; of
    "PDFs" the singular, which Snowball does not find."""
    if name.islower() or name.isupper() or name[1:].islower():
        return []
    if len(name) > 2 and name[-1] == "s" and name[:-1].isupper():
        return [name[:-1]]
    cuts = [0]
    for place in range(1, len(name)):
        before, here, after = name[place - 1], name[place], name[place + 1 : place + 3]
        if here.isupper() and (before.islower() or (before.isalnum() and len(after) == 2 and after.islower())):
            cuts.append(place)
    if len(cuts) == 1:
        return []
    return [name[start:end] for start, end in zip(cuts, [*cuts[1:], len(name)], strict=True)]


def _by_script(folded: str) -> Iterator[str]:
    if folded.isascii():
        if folded:
            yield folded[:LONGEST]
        return
    for number, run in enumerate(_RUN_WITHOUT_SPACES.split(folded)):
        if number % 2:
            characters = _characters(run)
            yield from (first + second for first, second in zip(characters, [*characters[1:], ""], strict=True))
        elif run:
            yield run[:LONGEST]


def _characters(run: str) -> list[str]:
    """Characters with the marks that belong to them."""
    characters: list[str] = []
    for character in run:
        if characters and unicodedata.category(character)[0] == "M" and len(characters[-1]) < LONGEST // 2:
            characters[-1] += character
        else:
            characters.append(character)
    return characters


def is_one_character(word: str) -> bool:
    return _RUN_WITHOUT_SPACES.fullmatch(word) is not None and len(_characters(word)) == 1
