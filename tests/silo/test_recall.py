"""Exact reverse top-K, and rates that know ties."""

import numpy as np
import pytest

from foltr.errors import SpecError
from foltr.lab.silo.retrieval import counts_by_term, postings, recall, recall_at_k
from foltr.text.counts import count

VOCABULARY = {"a": 0, "b": 1, "c": 2}
DOCUMENTS = count([{"a": 1, "b": 2}, {"a": 3}, {}, {"a": 3, "b": 1}], VOCABULARY)


def test_postings_are_by_count_then_by_number():
    lists = postings(DOCUMENTS)
    assert lists.starts.tolist() == [0, 3, 5, 5]
    assert lists.documents.tolist() == [1, 3, 0, 0, 3]
    assert lists.counts.tolist() == [3, 3, 1, 2, 1]
    assert [one.tolist() for one in counts_by_term(lists, [1, 2], 4)] == [[2, 0, 0, 1], [0, 0, 0, 0]]


def test_a_tie_at_the_last_place_may_be_broken_either_way():
    counts = np.array([5, 2, 2, 2, 1])
    for found in ([0, 1], [0, 3], [2, 0], [1, 2]):
        assert recall_at_k(np.array(found), counts, 2) == recall(np.array(found), counts, 2) == 1
    assert recall_at_k(np.array([0, 4]), counts, 2) == 1 / 2


def test_a_rare_term_is_covered_by_anything_but_found_only_by_its_documents():
    counts = np.array([0, 0, 4, 0, 0])
    assert recall_at_k(np.array([0, 1, 3]), counts, 3) == 1
    assert recall(np.array([0, 1, 3]), counts, 3) == 0
    assert recall(np.array([0, 2]), counts, 3) == 1
    assert recall_at_k(np.array([], np.int32), counts, 3) == 1
    assert recall(np.array([], np.int32), np.zeros(5), 3) == 1


def test_empty_places_cost_where_documents_were_to_be_had():
    assert recall_at_k(np.array([1]), np.array([1, 2, 3]), 2) == 1 / 2


@pytest.mark.parametrize("top", [0, 6])
def test_a_top_beyond_the_collection_is_refused(top):
    with pytest.raises(SpecError, match="use 1 to 5"):
        recall_at_k(np.array([0]), np.zeros(5), top)


def test_a_document_named_twice_is_refused():
    with pytest.raises(SpecError, match="twice"):
        recall(np.array([1, 1]), np.ones(5), 2)
