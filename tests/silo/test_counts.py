"""Counts of terms, and statistics that add up over parties."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts import corpus

from foltr.errors import SpecError
from foltr.text.analysis import PLAIN, terms
from foltr.text.counts import count, count_corpus, counts_of, known_terms, statistics, sum_statistics, take

WORDS = st.lists(st.sampled_from("abcdef"), max_size=12).map(" ".join)
TEXTS = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6)


@given(TEXTS)
def test_counts_are_those_of_the_words(texts):
    counted = count_corpus(corpus(texts), PLAIN)
    for place, text in enumerate(zip(*texts, strict=True)):
        field = counted[1 + place]
        assert field.lengths.tolist() == [len(terms(one, PLAIN)) for one in text]
        for document, one in enumerate(text):
            part = slice(field.offsets[document], field.offsets[document + 1])
            found = {
                list(counted.vocabulary)[term]: n for term, n in zip(field.terms[part], field.counts[part], strict=True)
            }
            assert found == Counter(terms(one, PLAIN))
            assert np.all(np.diff(field.terms[part]) > 0)


@given(TEXTS, st.data())
def test_looking_up_is_what_a_dictionary_says(texts, data):
    counted = count_corpus(corpus(texts), PLAIN)
    size = len(counted.vocabulary)
    documents = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=8))
    wanted = data.draw(st.lists(st.integers(0, size - 1), max_size=8)) if size else []
    names = list(counted.vocabulary)
    expected = [[Counter(terms(texts[document][1], PLAIN))[names[term]] for term in wanted] for document in documents]
    found = counts_of(counted.body, np.array(documents, dtype=np.int64), np.array(wanted, dtype=np.int32))
    assert found.tolist() == expected


@given(TEXTS, st.data())
def test_statistics_of_parties_add_up_to_those_of_all(texts, data):
    body = count_corpus(corpus(texts), PLAIN).body
    owner = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(texts), max_size=len(texts))))
    parties = [take(body, np.flatnonzero(owner == party)) for party in range(3)]
    summed, whole = sum_statistics(map(statistics, parties)), statistics(body)
    assert summed[:2] == whole[:2] == (len(texts), body.lengths.sum())
    assert np.array_equal(summed.document_frequency, whole.document_frequency)
    assert np.array_equal(summed.collection_frequency, whole.collection_frequency)


def test_statistics_by_hand():
    found = statistics(count_corpus(corpus([("", "a b a"), ("", ""), ("", "b")]), PLAIN).body)
    assert (found.documents, found.length) == (3, 4)
    assert (found.document_frequency.tolist(), found.collection_frequency.tolist()) == ([1, 2], [2, 2])


def test_taking_documents_keeps_their_counts():
    body = count_corpus(corpus([("", "a b a"), ("", ""), ("", "c b")]), PLAIN).body
    some = take(body, np.array([2, 1]))
    assert (some.offsets.tolist(), some.terms.tolist(), some.counts.tolist()) == ([0, 2, 2], [1, 2], [1, 1])
    assert some.lengths.tolist() == [2, 0]


def test_words_that_no_document_has_are_left_out_of_a_query():
    counted = count_corpus(corpus([("c", "a b")]), PLAIN)
    assert known_terms("b unheard A b", counted.vocabulary, PLAIN).tolist() == [1, 0, 1]
    assert known_terms("of unknown words", counted.vocabulary, PLAIN).tolist() == []


def test_a_document_of_a_million_terms():
    long = "common " * 900_000 + " ".join(f"w{place}" for place in range(100_000))
    body = count_corpus(corpus([("", long), ("", "common")]), PLAIN).body
    assert body.lengths.tolist() == [1_000_000, 1]
    assert body.counts.max() == 900_000
    assert len(body.terms) == 100_002


def test_a_term_outside_the_vocabulary_is_an_error():
    with pytest.raises(SpecError, match="'b' is not in the vocabulary"):
        count([{"b": 1}], {"a": 0})


def test_statistics_of_different_vocabularies_cannot_be_added():
    one, other = (statistics(count_corpus(corpus([("", text)]), PLAIN).body) for text in ("a", "a b"))
    with pytest.raises(SpecError, match=r"vocabularies of \[1, 2\] terms"):
        sum_statistics([one, other])


def test_counts_of_a_document_without_terms_or_of_no_documents_are_zeros():
    nothing = count_corpus(corpus([("", ""), ("", "")]), PLAIN).body
    assert counts_of(nothing, np.array([1, 0]), np.array([3])).tolist() == [[0], [0]]
    some = count_corpus(corpus([("", "a c c"), ("", ""), ("", "c e")]), PLAIN).body
    assert counts_of(some, np.array([2, 1, 0]), np.array([1, 0, 2, 1])).tolist() == [
        [1, 0, 1, 1],
        [0] * 4,
        [2, 1, 0, 2],
    ]
    assert counts_of(some, np.array([], int), np.array([0])).shape == (0, 1)
    assert counts_of(some, np.array([0]), np.array([], int)).shape == (1, 0)
