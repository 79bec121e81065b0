"""NAIVE asked one by one and all at once: the same answer, what it sends, what it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foltr.errors import SpecError
from foltr.lab.silo.naive import ask_all, ask_each, by_cell
from foltr.silo.sketches import HASHES, empty, family, hash_terms, sketch_documents
from foltr.text.counts import count

WORDS = {word: number for number, word in enumerate("abcdef")}
bags = st.lists(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 9)), min_size=1, max_size=8)


def sketched(documents, hash="keyed", rows=6, columns=4):
    functions = family(bytes(32), rows=rows, columns=columns, hash=hash)
    return sketch_documents("count", count(documents, WORDS), hash_terms(list(WORDS), functions)), functions


@pytest.mark.parametrize("hash", HASHES)
@given(bags=bags, term=st.sampled_from([*"abcdef", "unknown"]))
def test_both_ways_give_the_same_answer(hash, bags, term):
    sketches, functions = sketched(bags, hash)
    one = ask_each(sketches, term, functions, len(bags))
    for layout in (sketches, by_cell(sketches)):
        other = ask_all(layout, term, functions, len(bags))
        assert np.array_equal(one.documents, other.documents)
        assert np.array_equal(one.counts, other.counts)


def test_wide_sketches_find_the_documents_that_have_the_term_most():
    sketches, functions = sketched([{"a": 2}, {"b": 9, "a": 1}, {}, {"a": 5, "c": 1}], rows=30, columns=200)
    answer = ask_all(sketches, "a", functions, 3)
    assert answer.documents.tolist() == [3, 0, 1]
    assert answer.counts.tolist() == [5, 2, 1]


def test_bytes_are_columns_there_and_cells_back():
    sketches, functions = sketched([{"a": 1}] * 5)
    assert ask_each(sketches, "a", functions, 1).bytes == 5 * (6 * 4 + 6 * 4)
    assert ask_all(sketches, "a", functions, 1).bytes == 6 * 4 + 5 * 6 * 4


def test_what_cannot_be_is_refused():
    sketches, functions = sketched([{"a": 1}])
    with pytest.raises(SpecError, match="top = 2 of 1 documents; use 1 to 1"):
        ask_all(sketches, "a", functions, 2)
    with pytest.raises(SpecError, match="one count sketch a document"):
        ask_each(empty("count", sketches.shape), "a", functions, 1)
    with pytest.raises(SpecError, match="do not belong together"):
        ask_all(sketches, "a", family(bytes(32), rows=6, columns=5), 1)
