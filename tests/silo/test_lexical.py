"""The eight features of a field: by hand, and against loops over words."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_lexical import reference_features
from texts import corpus

from foltr.errors import SpecError
from foltr.text.analysis import PLAIN, terms
from foltr.text.counts import count_corpus, counts_of, known_terms, statistics
from foltr.text.lexical import LETOR, NAMES, Constants, features, term_facts

WORDS = st.lists(st.sampled_from("abcdef"), max_size=12).map(" ".join)


def of_texts(query, texts, **more):
    counted = count_corpus(corpus([("", text) for text in texts]), PLAIN)
    asked = known_terms(query, counted.vocabulary, PLAIN)
    found = counts_of(counted.body, np.arange(len(texts)), asked)
    facts = term_facts(statistics(counted.body), asked)
    return features(found, counted.body.lengths, np.diff(counted.body.offsets), facts, **more)


@given(st.lists(WORDS, min_size=1, max_size=6), WORDS)
def test_features_are_the_formulas_written_out(texts, query):
    collection = [terms(text, PLAIN) for text in texts]
    expected = [reference_features(terms(query, PLAIN), document, collection) for document in collection]
    assert of_texts(query, texts) == pytest.approx(np.array(expected), rel=1e-9, abs=1e-9)


def test_a_small_example_by_hand():
    # "b" is in one of two documents, twice among its three terms, and 2 of 4 terms of all
    found = of_texts("b", ["a b b", "a"])
    idf, mean = math.log(2), 2
    assert found[0] == pytest.approx(
        [
            3,
            2 / 3,
            idf,
            2 / 3 * idf,
            idf * 2 * 3.5 / (2 + 2.5 * (0.2 + 0.8 * 3 / mean)),
            math.log(1.3 / 3 + 0.7 * 2 / 3 * 0.5),
            math.log((2 + 1000) / 2003),
            math.log(0.9 * 2 / 3 + 0.1 * 0.5),
        ]
    )
    assert found[1, :5].tolist() == [1, 0, 0, 0, 0]


def test_the_constants_are_letors_and_can_be_changed():
    assert (LETOR.k1, LETOR.b, LETOR.delta, LETOR.mu, LETOR.lambda_) == (2.5, 0.8, 0.7, 2000, 0.1)
    flat = of_texts("b", ["a b b", "b", "a"], constants=Constants(b=0.0))[:, NAMES.index("BM25")]
    assert flat[:2] == pytest.approx([math.log(3 / 2) * n * 3.5 / (n + 2.5) for n in (2, 1)])


def test_a_repeated_word_of_a_query_counts_twice():
    once, twice = of_texts("b", ["a b", "b c"]), of_texts("b b", ["a b", "b c"])
    assert twice[:, 1:] == pytest.approx(2 * once[:, 1:])


def test_an_empty_document_has_the_collections_model():
    found = of_texts("a b", ["", "a b b"])
    model = math.log(1 / 3) + math.log(2 / 3)
    assert found[0] == pytest.approx([0, 0, 0, 0, 0, model, model, model + 2 * math.log(0.1)])


def test_a_query_of_unknown_words_says_only_the_length():
    assert of_texts("unheard of", ["a b", ""]).tolist() == [[2, *[0] * 7], [0] * 8]


def test_estimates_below_zero_are_zero_and_below_a_half_are_absent():
    counted = count_corpus(corpus([("", "a b c"), ("", "a")]), PLAIN).body
    facts, lengths, distinct = term_facts(statistics(counted), np.array([1])), np.array([3] * 4), np.array([3] * 4)
    found = features(np.array([[-2.0], [0.0], [0.4], [0.6]]), lengths, distinct, facts)
    assert np.array_equal(found[0], found[1])
    assert found[:, NAMES.index("IDF")].tolist() == pytest.approx([0, 0, 0, math.log(2)])
    assert np.all(np.diff(found[1:, NAMES.index("LMIR.JM")]) > 0)
    assert np.isfinite(found).all()


def test_estimated_statistics_stay_within_what_is_possible():
    found = statistics(count_corpus(corpus([("", "a b"), ("", "a")]), PLAIN).body)
    wild = found._replace(document_frequency=np.array([7.3, -2.0]), collection_frequency=np.array([2.5, -1.0]))
    facts = term_facts(wild, np.array([0, 1]))
    assert facts.idf == pytest.approx([0, math.log(2)])
    assert facts.share == pytest.approx([2.5 / 3, 0])


def test_counts_of_another_shape_are_an_error():
    found = statistics(count_corpus(corpus([("", "a b")]), PLAIN).body)
    with pytest.raises(SpecError, match=r"counts are \(1, 2\), but there are 1 documents and 1 terms"):
        features(np.ones((1, 2)), np.ones(1), np.ones(1), term_facts(found, np.array([0])))


def test_a_collection_without_any_word_has_finite_features():
    found = of_texts("a", ["", ""])
    assert found.tolist() == [[0] * 8] * 2
