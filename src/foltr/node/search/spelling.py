"""Words of the index that are spelt nearly as a word of the query: one edit from five letters, two from nine.

An edit inserts, deletes or replaces a letter, or exchanges two neighbours (Damerau, "A technique for computer detection
and correction of spelling errors", 1964; restricted to one edit a place, as optimal string alignment). Words at one
edit are generated and looked up. Words at two edits are found among those with the same first letter, since typing
errors are rare there, and with a third of the word unchanged.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_ONE_EDIT, _TWO_EDITS = 5, 9  # letters
MAX_WORDS = 20  # nearest words that stand for a misspelt one


class Vocabulary(NamedTuple):
    """What is asked of the index."""

    known: Callable[[Iterable[str]], dict[str, int]]  # those of the words that occur, with their document frequency
    similar: Callable[[str, tuple[int, int], tuple[str, ...]], Iterable[str]]
    # (beginning, shortest and longest, parts) -> words with this beginning that have one of the parts


class Near(NamedTuple):
    word: str
    distance: int
    document_frequency: int


def max_edits(word: str) -> int:
    return 0 if len(word) < _ONE_EDIT else 1 if len(word) < _TWO_EDITS else 2


def nearest(word: str, vocabulary: Vocabulary, *, edits: int) -> list[Near]:
    """Known words within a number of edits: nearest first, then the more frequent, then by spelling."""
    found: dict[str, int] = {}
    if edits >= 1:
        found = dict.fromkeys(vocabulary.known(one_edit(word)), 1)
    if edits >= 2:
        third = len(word) // 3
        parts = word[:third], word[third : 2 * third], word[2 * third :]
        for other in vocabulary.similar(word[:1], (len(word) - 2, len(word) + 2), parts):
            if distance(word, other, limit=2) <= 2:
                found.setdefault(other, 2)
    found.pop(word, None)
    frequencies = vocabulary.known(found)
    every = [Near(other, edits_of, frequencies[other]) for other, edits_of in found.items() if frequencies.get(other)]
    return sorted(every, key=lambda one: (one.distance, -one.document_frequency, one.word))[:MAX_WORDS]


def one_edit(word: str) -> set[str]:
    """Every spelling at one edit over the letters of English, digits and those of the word itself."""
    letters = sorted(set(_LETTERS) | set(word))
    halves = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    deleted = {left + right[1:] for left, right in halves if right}
    exchanged = {left + right[1] + right[0] + right[2:] for left, right in halves if len(right) > 1}
    replaced = {left + letter + right[1:] for left, right in halves if right for letter in letters}
    inserted = {left + letter + right for left, right in halves for letter in letters}
    return (deleted | exchanged | replaced | inserted) - {word, ""}


def distance(word: str, other: str, *, limit: int) -> int:
    """Edits between two words; limit + 1 when there are more than `limit`."""
    too_far = limit + 1
    if abs(len(word) - len(other)) > limit or len(set(word) ^ set(other)) > 2 * limit:
        return too_far
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, start=1):
        older, before, row = before, row, [i]
        for j, second in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != second))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == second:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > limit and min(before) > limit:
            return too_far
    return min(row[-1], too_far)
