"""Who holds what, which pairs are judged, and which are guessed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts import corpus

from foltr.errors import SpecError
from foltr.silo.pairs import guessed, judged, merged, split
from foltr.text.search import Hits

CORPUS = corpus(
    [("", "")] * 10,
    ["one", "two", "three"],
    [(0, 1, 2), (0, 4, 1), (0, 9, 0), (1, 5, 1), (2, 0, 0)],
)
ALL = np.arange(10)


@given(st.integers(1, 3), st.integers(0, 50))
def test_everything_is_divided_evenly(parties, seed):
    held = split(CORPUS, parties, seed=seed)
    for owners, count in ((held.documents, 10), (held.queries, 3)):
        sizes = np.bincount(owners, minlength=parties)
        assert sizes.sum() == count
        assert sizes.max() - sizes.min() <= 1


def test_a_split_depends_on_its_seed_alone():
    one, again, other = (split(CORPUS, 3, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.documents, again.documents)
    assert not np.array_equal(one.documents, other.documents)


@pytest.mark.parametrize("parties", [0, 4])
def test_a_party_without_a_query_is_refused(parties):
    with pytest.raises(SpecError, match=r"needs 1 \.\. 3 parties"):
        split(CORPUS, parties, seed=1)


def test_judged_pairs_have_their_grades_and_all_others_0():
    found = judged(CORPUS, np.array([1, 0]), ALL, num_negatives=None)
    assert found.queries.tolist() == [0] * 10 + [1] * 10
    assert found.documents.tolist() == [*range(10), *range(10)]
    assert {int(place): int(found.grades[place]) for place in np.flatnonzero(found.grades)} == {1: 2, 4: 1, 15: 1}


def test_a_party_knows_only_its_own_documents():
    found = judged(CORPUS, np.array([0, 1]), np.array([1, 2, 3, 9]), num_negatives=None)
    assert (found.queries.tolist(), found.documents.tolist()) == ([0] * 4, [1, 2, 3, 9])  # query 1 has nothing here
    assert found.grades.tolist() == [2, 0, 0, 0]


def test_a_query_without_a_relevant_document_is_left_out():
    assert len(judged(CORPUS, np.array([2]), ALL, num_negatives=None).queries) == 0


def test_some_others_are_drawn_by_the_seed():
    one, again, other = (judged(CORPUS, np.array([0]), ALL, num_negatives=3, seed=seed) for seed in (1, 1, 3))
    assert len(one.documents) == 3 + 3  # the judged ones of grade 2, 1 and 0, and three more
    assert {1, 4, 9} < set(one.documents.tolist())
    assert len(set(one.documents.tolist())) == 6
    assert one.documents.tolist() == again.documents.tolist()
    assert one.documents.tolist() != other.documents.tolist()


def test_answers_are_merged_by_score():
    answers = [Hits(np.array([7, 3]), np.array([5.0, 1.0])), Hits(np.array([8, 2, 4]), np.array([5.0, 3.0, 0.5]))]
    assert merged(answers, top_k=4).tolist() == [7, 8, 2, 3]
    assert merged([], top_k=4).tolist() == []
    with pytest.raises(SpecError, match="top_k=0"):
        merged(answers, top_k=0)


def test_the_first_ten_are_highly_relevant_and_the_rest_relevant():
    def search(query):
        return [Hits(np.arange(20), -np.arange(20.0))] if query else []

    found = guessed(np.array([1, 0]), search, top_k=12)  # query 0 finds nothing
    assert found.queries.tolist() == [1] * 12
    assert found.documents.tolist() == list(range(12))
    assert found.grades.tolist() == [2] * 10 + [1] * 2
    assert len(guessed(np.array([], dtype=int), search, top_k=5).queries) == 0


def test_documents_that_were_not_found_can_be_guessed_irrelevant():
    def search(_):
        return [Hits(np.array([5, 2]), np.array([2.0, 1.0]))]

    found = guessed(np.array([4]), search, top_k=2, num_negatives=3, among=np.arange(8), seed=1)
    assert found.documents[:2].tolist() == [5, 2]
    assert found.grades.tolist() == [2, 2, 0, 0, 0]
    assert len(set(found.documents.tolist())) == 5
    assert set(found.documents.tolist()) <= set(range(8))
