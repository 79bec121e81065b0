"""Words that are spelt nearly the same."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foltr.node.search.spelling import Vocabulary, distance, max_edits, nearest, one_edit


def edits(word, other):
    """The definition, letter by letter."""

    @cache
    def between(i, j):
        if not i or not j:
            return i + j
        least = min(between(i - 1, j) + 1, between(i, j - 1) + 1, between(i - 1, j - 1) + (word[i - 1] != other[j - 1]))
        if i > 1 and j > 1 and word[i - 1] == other[j - 2] and word[i - 2] == other[j - 1]:
            least = min(least, between(i - 2, j - 2) + 1)
        return least

    return between(len(word), len(other))


WORDS = st.text(alphabet="abcé", max_size=8)


@given(WORDS, WORDS, st.integers(1, 3))
def test_distance_equals_its_definition(word, other, limit):
    assert distance(word, other, limit=limit) == min(edits(word, other), limit + 1)


@given(WORDS, WORDS)
def test_generated_spellings_are_those_at_one_edit(word, other):
    if set(other) <= set(word) | set("abc") and other:
        assert (other in one_edit(word)) == (edits(word, other) == 1)


@pytest.mark.parametrize(("word", "allowed"), [("tree", 0), ("trees", 1), ("document", 1), ("documents", 2)])
def test_short_words_are_taken_as_typed(word, allowed):
    assert max_edits(word) == allowed


def vocabulary(**frequencies):
    return Vocabulary(
        known=lambda words: {word: frequencies[word] for word in words if word in frequencies},
        similar=lambda start, lengths, parts: [
            word
            for word in frequencies
            if word.startswith(start) and lengths[0] <= len(word) <= lengths[1] and any(part in word for part in parts)
        ],
    )


def test_the_nearest_then_the_most_frequent_comes_first():
    known = vocabulary(document=3, documents=9, documenting=5, monument=50)
    assert [one.word for one in nearest("documnets", known, edits=2)] == ["documents", "document"]
    assert nearest("zzzzz", known, edits=1) == []
