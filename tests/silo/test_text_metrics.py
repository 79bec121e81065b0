"""Metrics of rankers, the BM25 baseline, and which parties gain or lose."""

import math
from types import SimpleNamespace

import ir_measures
import numpy as np
import pytest
from texts import corpus

from foltr.errors import SpecError
from foltr.lab.data import corpora
from foltr.lab.silo.evaluation import METRICS, bm25_metrics, bm25_ranker, change, ranker_metrics, score_metrics
from foltr.metrics import err, ndcg
from foltr.rng import stream
from foltr.silo.pairs import judged
from foltr.text.memory_index import MemoryIndex
from foltr.types import Dataset


def collection(grades, seed=1):
    """A list of grades a query; one feature, at random."""
    labels = np.concatenate([np.asarray(one, dtype=np.int8) for one in grades])
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in grades])])
    features = stream(seed, purpose="data").normal(len(labels))[:, None].astype(np.float32)
    return Dataset(features, labels, offsets, np.arange(len(grades)))


LISTS = [[2, 0, 1, 0], [0, 0], [1] * 12 + [2, 0, 0], [0, 1]]


def test_metrics_are_err_ndcg_at_10_and_ndcg_of_queries_with_something_relevant():
    data = collection(LISTS)
    found = score_metrics(data.features[:, 0], data, top_grade=2)
    assert METRICS == ("ERR", "nDCG@10", "nDCG")
    assert found.shape == (3, 3)
    scores, grades = data.features[6:21, 0], data.labels[6:21]
    assert found[1].tolist() == [
        err(scores, grades, max_rel=2, cut=15),
        ndcg(scores, grades),
        ndcg(scores, grades, cut=15),
    ]


def test_err_is_that_of_ir_measures():
    """gdeval's ERR@20 has a top grade of 4."""
    grades = [stream(query, purpose="clicks").integers(5, 9).tolist() for query in range(6)]
    data = collection(grades)
    found = score_metrics(data.features[:, 0], data, top_grade=4)[:, 0]
    judged, ranked = [], []
    for query, one in enumerate(grades):
        for place, grade in enumerate(one):
            row = data.offsets[query] + place
            judged.append(ir_measures.Qrel(str(query), str(row), grade))
            ranked.append(ir_measures.ScoredDoc(str(query), str(row), float(data.features[row, 0])))
    values = {one.query_id: one.value for one in ir_measures.iter_calc([ir_measures.ERR @ 20], judged, ranked)}
    assert found == pytest.approx([values[str(query)] for query in range(6)], abs=1e-4)  # five digits are printed


def test_every_ranker_is_tested_on_every_part_and_equal_ones_alike():
    tests = [collection(LISTS), collection(LISTS, seed=2)]
    rankers = np.array([[1.0], [-1.0], [1.0]])
    found = ranker_metrics(rankers, tests, top_grade=2)
    for ranker, row in zip(rankers, found, strict=True):
        for data, part in zip(tests, row, strict=True):
            assert part.tolist() == score_metrics(data.features @ ranker, data, top_grade=2).tolist()
    assert found[0] is found[2]


def test_a_change_by_hand():
    # differences .1 and .3: mean .2, standard deviation .1 * sqrt 2, standard error .1
    found = change(np.array([0.5, 0.5]), np.array([0.6, 0.8]))
    assert found[:3] == pytest.approx((0.2, 0.2 - 0.196, 0.2 + 0.196))
    assert found.verdict == "gains"
    assert change(np.array([0.6, 0.8]), np.array([0.5, 0.5])).verdict == "loses"
    assert change(np.array([0.5, 0.5]), np.array([0.4, 0.7])).verdict == "same"
    assert change(np.ones(3), np.ones(3)) == (0, 0, 0, "same")


def test_queries_that_cannot_be_paired_are_an_error():
    with pytest.raises(SpecError, match="3 and 2 queries"):
        change(np.ones(3), np.ones(2))


TEXTS = [
    ("Running shoes", "The shoes of a runner"),
    ("", "the runner runs"),
    ("shoe", "leather"),
    ("of the", "and a"),
]


def test_bm25_is_the_formula_over_title_and_body_with_stems_and_without_stop_words():
    """By hand: stems of one field, k1 = 1.2, b = .75, Lucene's idf, statistics of the parties' documents."""
    stems = [["run", "shoe", "shoe", "runner"], ["runner", "run"], ["shoe", "leather"], []]
    parties = [0, 1, 2]  # the last document belongs to a share that no party holds
    held = [stems[document] for document in parties]
    mean_length = sum(map(len, held)) / len(held)
    scores = []
    for document in stems:
        terms = (("run", document.count("run")), ("shoe", document.count("shoe")))
        norm = 1.2 * (1 - 0.75 + 0.75 * len(document) / mean_length)
        frequency = {word: sum(word in text for text in held) for word, _ in terms}
        idf = {word: math.log(1 + (3 - df + 0.5) / (df + 0.5)) for word, df in frequency.items()}
        scores.append(sum(idf[word] * n / (n + norm) for word, n in terms))
    texts = corpus(TEXTS, ["the running shoes"], [(0, 2, 1)])
    owned = [np.array([0, 1]), np.array([2])]
    assert bm25_ranker(texts, owned)(0) == pytest.approx(scores)
    index = MemoryIndex({"title": texts.titles[:3], "body": texts.bodies[:3]})
    assert index.scores(index.query_text("the running shoes")) == pytest.approx(scores[:3])  # a node has the same
    data = Dataset(np.zeros((4, 1), np.float32), np.array([0, 0, 1, 0], np.int8), np.array([0, 4]), np.array([0]))
    (found,) = bm25_metrics(SimpleNamespace(corpus=texts, owned=owned), [data], top_grade=1)
    assert found.tolist() == score_metrics(np.array(scores), data, top_grade=1).tolist()


@pytest.mark.data
@pytest.mark.usefixtures("real_data")
def test_bm25_without_labels_on_nfcorpus():
    """All 323 published test queries over all documents; `silo/table1` has the same to three digits."""
    texts = corpora.load_corpus("nfcorpus")
    everything = np.arange(len(texts.ids))
    pairs = judged(texts, texts.parts["test"], everything, num_negatives=None)
    queries, starts = np.unique(pairs.queries, return_index=True)
    offsets = np.append(starts, len(pairs.queries))
    data = Dataset(np.zeros((len(pairs.queries), 1), np.float32), pairs.grades, offsets, queries)
    (found,) = bm25_metrics(SimpleNamespace(corpus=texts, owned=[everything]), [data], top_grade=3)
    assert len(found) == 323
    assert found[:, 1].mean() == pytest.approx(0.331, abs=0.001)
