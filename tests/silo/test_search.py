"""What a party finds among its documents."""

import math

import numpy as np
import pytest
from texts import corpus

from foltr.errors import SpecError
from foltr.text.analysis import PLAIN
from foltr.text.counts import count_corpus, known_terms
from foltr.text.features import exact
from foltr.text.search import best

COUNTED = count_corpus(corpus([("", text) for text in ("a b b", "a", "b c", "a b b", "d")]), PLAIN)


def found(query, owned, top_k=10, score="counts"):
    words = known_terms(query, COUNTED.vocabulary, PLAIN)
    answer = best(exact(COUNTED.body), np.array(owned), words, top_k=top_k, score=score)
    return answer.documents.tolist(), answer.scores.tolist()


def test_documents_are_ranked_by_counts_and_rarity():
    documents, scores = found("b c", [4, 3, 2, 1, 0])
    assert documents == [2, 3, 0]  # equal ones in the order in which they are owned; the others have no such term
    assert scores == pytest.approx([math.log(5 / 3) + math.log(5), 2 * math.log(5 / 3), 2 * math.log(5 / 3)])


def test_bm25_looks_at_lengths_too():
    documents, scores = found("b", [0, 2], score="bm25")
    # of all documents 10 terms, 2 on average: twice among three, and once among two
    of_three, of_two = (n * 3.5 / (n + 2.5 * (0.2 + 0.8 * length / 2)) for n, length in ((2, 3), (1, 2)))
    assert documents == [0, 2]
    assert scores == pytest.approx([math.log(5 / 3) * of_three, math.log(5 / 3) * of_two])
    with pytest.raises(SpecError, match="there are counts, bm25"):
        found("b", [0], score="best")


def test_only_owned_documents_are_found_and_no_more_than_asked_for():
    assert found("a", [1, 2])[0] == [1]
    assert found("b", [0, 2, 3], top_k=1)[0] == [0]
    assert found("b", [0, 2, 3], top_k=100)[0] == [0, 3, 2]


def test_a_query_of_unknown_words_finds_nothing():
    assert found("unheard of", [0, 1]) == ([], [])
    with pytest.raises(SpecError, match="top_k=0"):
        found("a", [0], top_k=0)
