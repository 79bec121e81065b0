"""The matrix of pairs, and the collection that the lab's learners take."""

import numpy as np
import pytest
from reference_lexical import reference_features
from texts import corpus

from foltr.errors import SpecError
from foltr.text.analysis import terms
from foltr.text.corpus import Pairs
from foltr.text.counts import count_corpus, known_terms, statistics, sum_statistics, take
from foltr.text.features import NAMES, WIDTH, Field, dataset, exact, join, label

TEXTS = [
    ("blue whale", "the whale sings a song"),
    ("", ""),
    ("red fox", "a fox is red and quick"),
    ("song", "whale song"),
]
QUERIES = ["whale song", "quick unheard fox"]


def labelled(queries, documents, grades=None, fields=None):
    counted = count_corpus(corpus(TEXTS))
    asked = [known_terms(text, counted.vocabulary) for text in QUERIES]
    title, body = fields or (exact(counted.title), exact(counted.body))
    pairs = Pairs(
        np.array(queries, dtype=int),
        np.array(documents, dtype=int),
        np.array(grades or [0] * len(queries), dtype=np.int8),
    )
    return label(pairs, title, body, asked)


def test_a_row_is_the_title_and_the_body_of_its_document():
    queries, documents = [0, 0, 0, 1, 1], [3, 1, 0, 2, 0]
    found = labelled(queries, documents).features
    titles, bodies = ([terms(text) for text in field] for field in zip(*TEXTS, strict=True))
    for row, query, document in zip(found, queries, documents, strict=True):
        words = terms(QUERIES[query])
        expected = reference_features(words, titles[document], titles) + reference_features(
            words, bodies[document], bodies
        )
        assert row == pytest.approx(expected, rel=1e-6)


def test_there_are_sixteen_named_features():
    assert WIDTH == 16
    assert NAMES[:2] == ("title length", "title TF")
    assert NAMES[12] == "body BM25"


def test_estimates_go_through_the_same_formulas():
    """Somebody else's answer that happens to be right gives the same features."""
    counted = count_corpus(corpus(TEXTS))
    asked = []

    def answered(field):
        def look_up(documents, wanted):
            asked.append(wanted.tolist())
            return exact(field).look_up(documents, wanted) + 0.0

        return Field(look_up, field.lengths, np.diff(field.offsets), statistics(field))

    found = labelled([0, 0], [0, 3], fields=(answered(counted.title), answered(counted.body)))
    assert np.array_equal(found.features, labelled([0, 0], [0, 3]).features)
    assert len(asked) == 2  # one question a field and a query


def test_statistics_may_be_those_of_all_parties():
    body = count_corpus(corpus(TEXTS)).body
    parties = [take(body, np.array(held)) for held in ([0, 1], [2, 3])]
    reported = sum_statistics(map(statistics, parties))
    documents, wanted = np.array([0, 1]), np.array([1, 2])
    assert np.array_equal(
        exact(parties[1], reported).look_up(documents, wanted), exact(body).look_up(documents + 2, wanted)
    )
    assert exact(parties[1], reported).statistics.documents == 4


def test_a_collection_is_scaled_within_its_queries():
    found = dataset(labelled([0, 0, 0, 1, 1], [0, 1, 3, 0, 2], [2, 0, 1, 0, 1]))
    assert found.offsets.tolist() == [0, 3, 5]
    assert found.queries.tolist() == [0, 1]
    assert found.labels.tolist() == [2, 0, 1, 0, 1]
    assert found.features.dtype == np.float32
    for first, last in ((0, 3), (3, 5)):
        part = found.features[first:last]
        assert set(part.min(axis=0).tolist()) == {0.0}
        assert set(part.max(axis=0).tolist()) <= {0.0, 1.0}


def test_without_scaling_the_features_are_as_they_were():
    raw = labelled([0, 0], [0, 3])
    assert np.array_equal(dataset(raw, "none").features, raw.features)
    scaled = dataset(raw)
    assert not np.array_equal(scaled.features, raw.features)  # and the raw ones were not touched by it
    with pytest.raises(SpecError, match="zscore needs a training set"):
        dataset(raw, "zscore")


def test_joined_pairs_of_a_query_are_adjacent():
    one, other = labelled([0, 1], [0, 2], [2, 1]), labelled([0, 0, 1], [3, 1, 0], [1, 1, 2])
    both = join(one, other)
    assert both.pairs.queries.tolist() == [0, 0, 0, 1, 1]
    assert both.pairs.documents.tolist() == [0, 3, 1, 2, 0]
    assert both.pairs.grades.tolist() == [2, 1, 1, 1, 2]
    assert np.array_equal(both.features[[0, 3]], one.features)


def test_pairs_of_a_query_that_are_not_adjacent_are_refused_until_joined():
    apart = labelled([1, 0, 1], [0, 0, 2])
    with pytest.raises(SpecError, match="not adjacent"):
        dataset(apart)
    assert dataset(join(apart)).offsets.tolist() == [0, 1, 3]


def test_no_pairs_make_an_empty_collection():
    found = dataset(labelled([], []))
    assert (found.features.shape, found.offsets.tolist(), len(found.queries)) == ((0, 16), [0], 0)
