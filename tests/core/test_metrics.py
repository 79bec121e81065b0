"""Quality of rankings: by hand, against a plain function, and against ir_measures."""

import itertools
import math

import ir_measures
import numpy as np
import pytest
from by_hand import far, pattern_probability, patterns
from hypothesis import example, given
from hypothesis import strategies as st

from foltr._kernels.metrics import evaluate, ideal_dcg
from foltr.clicks import Users, click_model, clicks_on
from foltr.lab.data import catalog
from foltr.metrics import CUT, discounted, err, expected_max_rr, gain_table, ndcg, order
from foltr.rng import stream


def queries(lists):
    """Labels and offsets of queries, each given by the grades of its documents."""
    offsets = np.concatenate([[0], np.cumsum([len(grades) for grades in lists])]).astype(np.int64)
    return np.concatenate([np.asarray(grades, dtype=np.int8) for grades in lists]), offsets


def quality(scores, lists, **more):
    """Of one ranker or several, whose scores [documents] or [documents, rankers] are the features."""
    labels, offsets = queries(lists)
    return evaluated(np.asarray(scores), labels, offsets, grades=5, **more)


def evaluated(scores, labels, offsets, **more):
    """The scores stand in for the features, and scoring hands them through in single precision."""
    features = scores if scores.ndim == 2 else scores[:, None]
    return evaluate(lambda rows: np.ascontiguousarray(rows, dtype=np.float32), features, labels, offsets, **more)


def plain_ndcg(scores, grades):
    """Sorted with Python's own stable sort."""
    ranked = [grades[i] for i in sorted(range(len(grades)), key=lambda i: -scores[i])]

    def dcg(list_of_grades):
        return sum((2**g - 1) / math.log2(rank + 1) for rank, g in enumerate(list_of_grades[:10], start=1))

    best = dcg(sorted(grades, reverse=True))
    return dcg(ranked) / best if best else 0.0


GRADED = st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3).map(float)), min_size=1, max_size=25)


@given(GRADED)
@example([(0, 0.0)] * 3)
@example([(1, 0.0)])
@example([(0, 0.0)] * 10 + [(4, 0.0)])  # the only good one is eleventh
def test_ndcg_of_a_list_is_the_sum_written_out(documents):
    grades, scores = zip(*documents, strict=True)
    assert ndcg(np.array(scores), np.array(grades)) == pytest.approx(plain_ndcg(scores, grades), abs=1e-12)


@given(st.lists(GRADED, min_size=1, max_size=8), st.integers(1, 3))
def test_evaluation_of_many_rankers_is_the_mean_of_single_lists(lists, rankers):
    grades = [[grade for grade, _ in documents] for documents in lists]
    scores = np.array([score for documents in lists for _, score in documents])
    several = np.stack([np.roll(scores, r) for r in range(rankers)], axis=1)
    counted = [q for q, found in enumerate(grades) if any(found)]
    bounds = np.concatenate([[0], np.cumsum([len(found) for found in grades])])
    got, zeroed = quality(several, grades), quality(several, grades, empty="zero")
    for r in range(rankers):
        each = [plain_ndcg(several[bounds[q] : bounds[q + 1], r], grades[q]) for q in counted]
        first = [first_good(several[bounds[q] : bounds[q + 1], r], grades[q]) for q in counted]
        assert got.ndcg[r] == pytest.approx(sum(each) / max(len(counted), 1))
        assert got.mrr[r] == pytest.approx(sum(first) / max(len(counted), 1))
        assert zeroed.ndcg[r] == pytest.approx(sum(each) / len(lists))
        assert zeroed.mrr[r] == pytest.approx(sum(first) / len(lists))


SINGLE = st.floats(allow_nan=False, width=32)


@given(st.lists(SINGLE | st.sampled_from([0.0, -0.0, -1.0, math.inf, -math.inf]), min_size=1, max_size=14), st.data())
def test_evaluation_orders_any_scores_and_keeps_ties(scores, data):
    """One good document at a time: its reciprocal rank is where a stable sort puts it."""
    best = data.draw(st.integers(0, len(scores) - 1))
    place = sorted(range(len(scores)), key=lambda i: -scores[i]).index(best) + 1
    grades = [int(i == best) for i in range(len(scores))]
    assert quality(scores, [grades]).mrr.tolist() == [1 / place if place <= 10 else 0.0]


def first_good(scores, grades):
    ranked = [grades[i] for i in sorted(range(len(grades)), key=lambda i: -scores[i])][:10]
    return next((1 / rank for rank, grade in enumerate(ranked, start=1) if grade > 0), 0.0)


def test_ndcg_by_hand():
    # shown: grades 0, 2, 1; best: 2, 1, 0
    expected = (0 / math.log2(2) + 3 / math.log2(3) + 1 / math.log2(4)) / (3 / math.log2(2) + 1 / math.log2(3))
    assert ndcg(np.array([0.1, 0.5, 0.3]), np.array([1, 0, 2])) == pytest.approx(expected)
    assert quality([0.1, 0.5, 0.3], [[1, 0, 2]]).ndcg[0] == pytest.approx(expected)


def test_the_ideal_is_over_all_documents_not_only_the_shown():
    # eleven documents, the best one last: it is not among the ten, and the list is short of the ideal by it
    grades, scores = [1] * 10 + [2], -np.arange(11.0)
    discounts = [1 / math.log2(rank + 1) for rank in range(1, 11)]
    expected = sum(discounts) / (3 * discounts[0] + sum(discounts[1:]))
    assert ndcg(scores, np.array(grades)) == pytest.approx(expected)
    assert quality(scores, [grades]).ndcg[0] == pytest.approx(expected)


def test_ideal_dcg_by_hand():
    labels, offsets = queries([[0, 2, 1], [0, 0], [1] * 12, []])
    tenth = sum(1 / math.log2(rank + 1) for rank in range(1, 11))
    assert ideal_dcg(labels, offsets, 3) == pytest.approx([3 + 1 / math.log2(3), 0, tenth, 0])


def test_gains_and_discounts_by_hand():
    table = gain_table(5)
    assert table[:, 0].tolist() == [0, 1, 3, 7, 15]
    assert table[2, :3] == pytest.approx([3, 3 / math.log2(3), 3 / 2])
    assert table.shape == (5, CUT)


def test_equal_scores_keep_the_order_of_the_documents():
    assert order([1.0, 2.0, 1.0, 2.0]).tolist() == [1, 3, 0, 2]
    assert quality([0.0, 0.0, 0.0], [[0, 0, 1]]).mrr.tolist() == [1 / 3]
    assert quality([0.0, 0.0, 0.0], [[1, 0, 0]]).mrr.tolist() == [1]


def test_queries_without_a_relevant_document_are_skipped_or_count_as_zero():
    lists, scores = [[1, 0], [0, 0], [0, 0]], [1.0, 0.0, 3.0, 4.0, 5.0, 6.0]
    assert quality(scores, lists).ndcg.tolist() == [1.0]
    assert quality(scores, lists, empty="zero").ndcg == pytest.approx([1 / 3])
    assert quality(scores, lists, empty="zero").mrr == pytest.approx([1 / 3])


def test_a_collection_without_any_relevant_document_has_quality_zero():
    for empty in ("skip", "zero"):
        assert quality([1.0, 2.0], [[0], [0]], empty=empty).ndcg.tolist() == [0.0]


def test_mrr_by_hand():
    # first document of grade >= 1 at rank 2, at rank 1, and at rank 11, which is past the cut
    lists = [[0, 1, 4], [3, 0], [0] * 10 + [4]]
    scores = np.concatenate([[3, 2, 1], [2, 1], -np.arange(11)])
    assert quality(scores, lists).mrr == pytest.approx([(1 / 2 + 1 + 0) / 3])


def test_collections_larger_than_a_block_are_evaluated_whole():
    sizes = [7, 9_000, 9_000, 20_000, 3]
    labels, offsets = queries([stream(1, client=q, purpose="data").integers(5, n) for q, n in enumerate(sizes)])
    scores = stream(2, purpose="data").normal(len(labels)).astype(np.float32)
    got = evaluated(scores, labels, offsets, grades=5)
    each = [plain_ndcg(scores[a:b], labels[a:b].tolist()) for a, b in itertools.pairwise(offsets)]
    assert got.ndcg[0] == pytest.approx(np.mean(each))


def test_err_by_hand():
    # grades 2, 0, 1 of at most 2: stops with 3/4, 0, 1/4
    assert err(np.array([3.0, 2.0, 1.0]), np.array([2, 0, 1]), top_grade=2) == pytest.approx(3 / 4 + 1 / 4 * 1 / 4 / 3)
    assert err(np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1]), top_grade=2) == pytest.approx(1 / 4 + 3 / 4 * 3 / 4 / 3)
    assert err(np.zeros(3), np.zeros(3), top_grade=2) == 0
    assert err(-np.arange(11.0), np.array([0] * 10 + [2]), top_grade=2) == 0  # past the cut


USERS = [
    Users("perfect", k=10),
    Users("navigational", k=10),
    Users("informational", k=10),
    Users("informational", model="position", eta=1.0, k=10),
]


@pytest.mark.parametrize("users", USERS, ids=str)
@pytest.mark.parametrize("grades", [[0, 1, 2, 0, 2], [2], [0, 0, 0, 1, 0, 2, 1, 0]], ids=str)
def test_expected_max_rr_is_the_mean_over_all_patterns_of_clicks(users, grades):
    model = click_model(users, grades=3)
    expected = sum(
        pattern_probability(pattern, grades, model.click, model.stop) / (pattern.index(True) + 1)
        for pattern in patterns(len(grades))
        if any(pattern)
    )
    assert expected_max_rr(np.array(grades), model.click) == pytest.approx(expected, abs=1e-12)


def test_expected_max_rr_is_what_simulated_users_live_through():
    grades, model = np.array([0, 1, 0, 2, 1]), click_model(USERS[1], grades=3)
    uniforms = stream(81, purpose="clicks").uniform(5000 * 10).reshape(5000, 10)
    clicks = np.array([clicks_on(grades, model, row) for row in uniforms])
    reciprocals = np.where(clicks.any(axis=1), 1 / (clicks.argmax(axis=1) + 1), 0)
    error = reciprocals.std() / math.sqrt(len(reciprocals))
    assert abs(reciprocals.mean() - expected_max_rr(grades, model.click)) < far(1e-3) * error  # false alarm 1 in 1,000


def test_expected_max_rr_looks_no_further_than_ten():
    click = np.tile([0.0, 1.0], (12, 1))
    assert expected_max_rr(np.array([0] * 10 + [1]), click) == 0
    assert expected_max_rr(np.array([0] * 9 + [1]), click) == pytest.approx(1 / 10)


def test_discounted_sums_are_geometric():
    # 1 + q + ... + q^(n-1) = (1 - q^n) / (1 - q): 787 for 1,000 rounds, 190 for 200
    def series(rounds):
        return (1 - 0.9995**rounds) / (1 - 0.9995)

    for rounds in (1, 200, 1000):
        assert discounted(np.ones(rounds)) == pytest.approx(series(rounds))
    assert discounted(np.ones(50), first_round=151) == pytest.approx(series(200) - series(150))
    assert discounted(np.array([0.5, 0.0, 0.25])) == pytest.approx(0.5 + 0.25 * 0.9995**2)


@pytest.mark.data
@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize("empty", ["skip", "zero"])
def test_ndcg_on_mq2008_is_that_of_ir_measures(empty, tmp_path, monkeypatch):
    """With the gain 2^grade - 1 named: the usual nDCG of that package has linear gain."""
    monkeypatch.setenv("FOLTR_CACHE", str(tmp_path))
    data = catalog.load("mq2008", fold=1).test
    scores = stream(82, purpose="data").permutation(len(data.labels))  # no two alike, whole numbers
    got = evaluated(scores, data.labels, data.offsets, grades=3, empty=empty)
    judged, ranked = [], []
    for query, (first, last) in enumerate(itertools.pairwise(data.offsets)):
        for row in range(first, last):
            judged.append(ir_measures.Qrel(str(query), str(row), int(data.labels[row])))
            ranked.append(ir_measures.ScoredDoc(str(query), str(row), float(scores[row])))
    measure = ir_measures.nDCG(gains={0: 0, 1: 1, 2: 3}) @ 10
    values = {found.query_id: found.value for found in ir_measures.iter_calc([measure], judged, ranked)}
    relevant = np.maximum.reduceat(data.labels, data.offsets[:-1]) > 0
    assert 0 < relevant.sum() < len(relevant)  # both kinds of query are there
    counted = [value for query, value in values.items() if relevant[int(query)]]
    total = len(counted) if empty == "skip" else len(relevant)
    assert got.ndcg[0] == pytest.approx(sum(counted) / total, abs=1e-12)
