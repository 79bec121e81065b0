"""Quality of rankings: by hand, against a plain function, and against ir_measures."""

import itertools
import math
import re
from functools import partial
from types import SimpleNamespace

import ir_measures
import numpy as np
import pytest
from by_hand import far, pattern_probability, patterns
from hypothesis import example, given
from hypothesis import strategies as st

from foltr import metrics
from foltr._kernels.metrics import evaluate, highest_grades, ideal_dcg
from foltr.clicks import Users, click_model, clicks_on
from foltr.errors import SpecError
from foltr.lab.data import catalog
from foltr.metrics import (
    CUT,
    METRICS,
    discounted,
    err,
    expected_max_rr,
    gain_table,
    ndcg,
    on_scale,
    order,
    parse_metric,
    rr,
)
from foltr.rng import stream


def queries(lists):
    """Labels and offsets of queries, each given by the grades of its documents."""
    offsets = np.concatenate([[0], np.cumsum([len(grades) for grades in lists])]).astype(np.int64)
    return np.concatenate([np.asarray(grades, dtype=np.int8) for grades in lists]), offsets


def quality(scores, lists, **more):
    """Of one ranker or several, whose scores [documents] or [documents, rankers] are the features."""
    labels, offsets = queries(lists)
    return evaluated(np.asarray(scores), labels, offsets, grades=5, **more)


def evaluated(scores, labels, offsets, *, empty="skip", **more):
    """The scores stand in for the features, and scoring hands them through in single precision."""
    top = highest_grades(labels, offsets)
    counted = max(len(top) if empty == "zero" else np.count_nonzero(top), 1)
    means = by_query(scores, labels, offsets, **more).totals / counted
    return SimpleNamespace(ndcg=means[0], mrr=means[1])


def by_query(scores, labels, offsets, **more):
    features = scores if scores.ndim == 2 else scores[:, None]
    ideal = ideal_dcg(labels, offsets, more["grades"])
    return evaluate(partial(np.ascontiguousarray, dtype=np.float32), features, labels, offsets, ideal=ideal, **more)


def tied_orders(scores):
    """All orders of the documents by falling score; tied ones stand in every order."""
    groups = [[i for i, score in enumerate(scores) if score == value] for value in sorted(set(scores), reverse=True)]
    for orders in itertools.product(*map(itertools.permutations, groups)):
        yield list(itertools.chain.from_iterable(orders))


def brute_force(value, scores, grades):
    """The mean of a metric of ranked grades over all orders of tied documents."""
    values = [value([grades[i] for i in documents]) for documents in tied_orders(scores)]
    return sum(values) / len(values)


def dcg_of(ranked):
    return sum((2**g - 1) / math.log2(rank + 1) for rank, g in enumerate(ranked[:10], start=1))


def rr_of(ranked, rel=1, cut=10):
    return next((1 / rank for rank, grade in enumerate(ranked[:cut], start=1) if grade >= rel), 0.0)


def err_of(ranked, cut=10):
    total, reaches = 0.0, 1.0
    for rank, grade in enumerate(ranked[:cut], start=1):
        stop = (2**grade - 1) / 2**4
        total, reaches = total + reaches * stop / rank, reaches * (1 - stop)
    return total


def ap_of(ranked, rel, cut):
    good = [rank for rank, grade in enumerate(ranked, start=1) if grade >= rel]
    return sum(n / rank for n, rank in enumerate(good, start=1) if rank <= cut) / len(good) if good else 0.0


def retrieved_of(ranked, rel, cut):
    return sum(grade >= rel for grade in ranked[:cut])


def of_ranked(metric, ranked):
    """A metric of grades in their order, as its definition has it."""
    cut = metric.cut or len(ranked)
    best = sum((2**g - 1) / math.log2(rank + 1) for rank, g in enumerate(sorted(ranked)[::-1][:cut], start=1))
    dcg = sum((2**g - 1) / math.log2(rank + 1) for rank, g in enumerate(ranked[:cut], start=1))
    return {
        "nDCG": lambda: dcg / best if best else 0.0,
        "AP": lambda: ap_of(ranked, metric.rel, cut),
        "RR": lambda: rr_of(ranked, metric.rel, cut),
        "ERR": lambda: err_of(ranked, cut),
        "P": lambda: retrieved_of(ranked, metric.rel, cut) / cut,
        "R": lambda: retrieved_of(ranked, metric.rel, cut) / max(retrieved_of(ranked, metric.rel, len(ranked)), 1),
    }[metric.kind]()


EVERY = [
    parse_metric(name)
    for name in (
        "nDCG", "nDCG@2", "nDCG@10", "AP", "AP(rel=2)@3", "AP@10", "RR", "RR(rel=2)@2", "ERR(max_rel=4)",
        "ERR(max_rel=4)@2", "P(rel=1)@5", "P(rel=2)@1", "R@3", "R(rel=3)@4",
    )
]  # fmt: skip


def plain_ndcg(scores, grades):
    """With the mean gain of its ties at every rank."""
    gains = [2**g - 1 for g in grades]
    ranked = sorted(range(len(grades)), key=lambda i: -scores[i])
    tied = [[gains[j] for j in range(len(grades)) if scores[j] == scores[i]] for i in ranked]
    dcg = sum(sum(tie) / len(tie) / math.log2(rank + 1) for rank, tie in enumerate(tied[:10], start=1))
    best = dcg_of(sorted(grades, reverse=True))
    return dcg / best if best else 0.0


GRADED = st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3).map(float)), min_size=1, max_size=25)
SHORT = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2).map(float)), min_size=1, max_size=6)


@given(SHORT)
@example([(4, 0.0), (0, 0.0), (1, 0.0), (0, 0.0), (2, 0.0), (0, 0.0)])
def test_metrics_with_ties_are_the_mean_over_all_orders_of_tied_documents(documents):
    grades, scores = zip(*documents, strict=True)
    got, best = np.array(scores), dcg_of(sorted(grades, reverse=True)) or 1.0
    labels = np.array(grades)
    assert ndcg(got, labels) == pytest.approx(brute_force(dcg_of, scores, grades) / best, abs=1e-12)
    for rel, cut in ((1, 10), (2, 2)):
        mean = brute_force(lambda ranked, rel=rel, cut=cut: rr_of(ranked, rel, cut), scores, grades)
        assert rr(got, labels, rel=rel, cut=cut) == pytest.approx(mean, abs=1e-12)
    for cut in (2, 10):
        mean = brute_force(lambda ranked, cut=cut: err_of(ranked, cut), scores, grades)
        assert err(got, labels, max_rel=4, cut=cut) == pytest.approx(mean, abs=1e-12)
    compiled = quality(got, [grades])
    assert compiled.ndcg[0] == pytest.approx(ndcg(got, labels), abs=1e-12)
    assert compiled.mrr[0] == pytest.approx(rr(got, labels), abs=1e-12)


def test_every_metric_of_the_table_is_tried():
    assert {metric.kind for metric in EVERY} == set(METRICS)


@given(SHORT)
@example([(4, 0.0), (0, 0.0), (1, 0.0), (0, 0.0), (2, 0.0), (0, 0.0)])
@example([(2, 1.0), (0, 1.0), (1, 1.0), (0, 0.0), (4, 0.0)])
def test_every_metric_is_the_mean_over_all_orders_of_tied_documents(documents):
    grades, scores = zip(*documents, strict=True)
    labels, offsets = queries([grades])
    compiled = by_query(np.array(scores), labels, offsets, grades=5, further=EVERY).totals[2:, 0]
    for metric, value in zip(EVERY, compiled, strict=True):
        mean = brute_force(partial(of_ranked, metric), scores, grades)
        assert metric.value(np.array(scores), labels) == pytest.approx(mean, abs=1e-12), str(metric)
        assert value == pytest.approx(mean, abs=1e-12), f"compiled {metric}"


@given(st.lists(GRADED, min_size=1, max_size=5))
@example([[(0, math.nan), (1, -math.inf), (2, math.inf)], [(0, 0.0)] * 9 + [(0, -1.0), (3, -1.0)]])
def test_compiled_metrics_are_those_of_the_reference_for_every_query_and_ranker(lists):
    labels, offsets = queries([[grade for grade, _ in documents] for documents in lists])
    first = np.array([score for documents in lists for _, score in documents])
    several = np.stack([first, np.roll(first, 1)], axis=1)
    got = by_query(several, labels, offsets, grades=5, further=EVERY)
    known = np.nan_to_num(several, nan=-math.inf, posinf=math.inf, neginf=-math.inf)
    expected = np.array([[[metric.value(known[a:b, ranker], labels[a:b]) for metric in EVERY] for ranker in range(2)]
                         for a, b in itertools.pairwise(offsets)])  # fmt: skip
    assert got.totals[2:] == pytest.approx(expected.sum(axis=0).T, abs=1e-11)
    assert got.last[2:] == pytest.approx(expected[:, 1].T, abs=1e-12)


def test_metrics_by_hand():
    # shown: grades 0, 2, 1, 0, 1
    scores, labels = -np.arange(5.0), np.array([0, 2, 1, 0, 1])
    expected = {
        "AP": (1 / 2 + 2 / 3 + 3 / 5) / 3,
        "AP@3": (1 / 2 + 2 / 3) / 3,  # of all three relevant documents
        "AP(rel=2)@10": 1 / 2,
        "P@4": 2 / 4,
        "P@10": 3 / 10,  # the list is shorter
        "P(rel=2)@2": 1 / 2,
        "R@3": 2 / 3,
        "R(rel=2)@1": 0,
        "RR": 1 / 2,
    }
    for name, value in expected.items():
        assert parse_metric(name).value(scores, labels) == pytest.approx(value), name


@pytest.mark.parametrize(
    "name", ["nDCG@10", "AP(rel=2)@10", "AP", "RR@10", "RR(rel=2)", "P(rel=2)@5", "R@20", "ERR@10"]
)
def test_names_parse_as_those_of_ir_measures(name):
    ours, theirs = parse_metric(name), ir_measures.parse_measure(name)
    assert ours.kind == theirs.NAME
    assert ours.cut == theirs.params.get("cutoff")
    assert ours.rel == theirs.params.get("rel", 1)
    assert parse_metric(str(ours)) == ours  # what is printed parses again
    if ours.kind != "ERR":
        assert ir_measures.parse_measure(str(ours)) == theirs


def test_printed_names_state_threshold_and_top_grade():
    assert str(parse_metric("AP@10")) == "AP(rel=1)@10"
    assert str(on_scale(parse_metric("ERR@10"), top_grade=2)) == "ERR(max_rel=2)@10"
    assert str(on_scale(parse_metric("ERR(max_rel=4)@10"), top_grade=2)) == "ERR(max_rel=4)@10"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nDGC@10", "no metric 'nDGC'; there are nDCG, AP, RR, ERR, P, R. Did you mean 'nDCG'?"),
        ("MAP", "Did you mean 'AP'?"),
        ("P", "P needs a cut, such as P@10"),
        ("AP(relevance=2)@10", "'relevance=2' is no parameter of this metric; there are: rel=1"),
        ("AP(rel=0)", "1 or more"),
        ("nDCG(rel=1)@10", "there are: none"),
        ("RR@0", "expected a cut of 1 or more"),
        ("AP@@10", "expected a metric such as"),
        ("", "expected a metric such as"),
    ],
)
def test_a_wrong_name_is_refused_with_what_is_right(name, words):
    with pytest.raises(SpecError, match=re.escape(words)):
        parse_metric(name)


def test_a_metric_beyond_the_grades_of_the_data_is_refused():
    with pytest.raises(SpecError, match="no document has grade 3; the data's top grade is 2"):
        on_scale(parse_metric("AP(rel=3)"), top_grade=2)
    with pytest.raises(SpecError, match="use max_rel=2 or more"):
        on_scale(parse_metric("ERR(max_rel=1)@5"), top_grade=2)


@given(GRADED)
@example([(0, 0.0)] * 9 + [(0, -1.0), (3, -1.0)])  # a tie across the cut
@example([(0, math.nan), (1, -math.inf), (2, math.inf)])
def test_compiled_values_with_ties_are_those_of_the_reference(documents):
    grades, scores = zip(*documents, strict=True)
    known = np.nan_to_num(np.array(scores), nan=-math.inf, posinf=math.inf, neginf=-math.inf)
    compiled = quality(np.array(scores), [grades])
    assert compiled.ndcg[0] == pytest.approx(ndcg(known, np.array(grades)), abs=1e-12)
    assert compiled.mrr[0] == pytest.approx(rr(known, np.array(grades)), abs=1e-12)


def test_a_file_sorted_by_label_gains_nothing_where_all_features_are_constant():
    grades = np.array([2, 2, 1, 0, 0, 0, 0, 0])
    sorted_file, reversed_file = quality(np.zeros(8), [grades]), quality(np.zeros(8), [grades[::-1]])
    assert sorted_file.ndcg[0] == pytest.approx(reversed_file.ndcg[0])
    assert sorted_file.mrr[0] == pytest.approx(reversed_file.mrr[0])
    assert sorted_file.ndcg[0] < 0.7


def test_err_of_thousands_of_tied_documents_is_finite_and_right():
    """One relevant document among n ties stands at every rank equally often: stop * H(n) / n."""
    n, labels = 4000, np.zeros(4000, dtype=int)
    labels[7] = 1
    harmonic = sum(1 / rank for rank in range(1, n + 1))
    assert err(np.zeros(n), labels, max_rel=1, cut=n) == pytest.approx(0.5 * harmonic / n, rel=1e-9)


def test_ties_of_documents_that_are_not_relevant_cost_err_nothing(monkeypatch):
    """A list over a whole corpus has thousands of such ties; each took the work of a relevant one."""
    computed = []
    mean_products = metrics._mean_products
    monkeypatch.setattr(metrics, "_mean_products", lambda factors: computed.append(factors) or mean_products(factors))
    labels = np.zeros(4000, dtype=int)
    labels[9] = 1
    pairs = np.repeat(np.arange(2000, 0, -1), 2)  # 2,000 ties of two documents; the fifth has the relevant one
    assert err(pairs, labels, max_rel=1, cut=4000) == pytest.approx(0.5 * (1 / 9 + 1 / 10) / 2, abs=1e-15)
    assert len(computed) == 1


def test_a_long_list_with_ties_in_the_middle_has_the_sums_written_out():
    """4,000 documents with distinct scores, but for a tie of three at ranks 2 to 4: its six orders are averaged."""
    labels = stream(1, purpose="data").integers(3, 4000)
    falling = np.arange(4000, 0, -1).astype(float)
    tied = falling.copy()
    tied[1:4] = falling[1]
    by_order = []
    for middle in itertools.permutations((1, 2, 3)):
        grades = labels[[0, *middle, *range(4, 4000)]]
        gains, ranks = 2.0**grades - 1, np.arange(1, 4001)
        stops = gains / 4
        reaches = np.concatenate([[1.0], np.cumprod(1 - stops)[:-1]])
        best = float(np.sort(gains)[::-1] @ (1 / np.log2(ranks + 1)))
        by_order.append((gains @ (1 / np.log2(ranks + 1)) / best, (reaches * stops / ranks).sum()))
    expected = np.mean(by_order, axis=0)
    measured = ndcg(tied, labels, cut=4000), err(tied, labels, max_rel=2, cut=4000)
    assert measured == pytest.approx(expected, rel=1e-12)


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
def test_evaluation_orders_any_scores(scores, data):
    """One good document at a time: its reciprocal rank is the mean over the ranks of its tie."""
    best = data.draw(st.integers(0, len(scores) - 1))
    above, tied = sum(score > scores[best] for score in scores), sum(score == scores[best] for score in scores)
    ranks = [rank for rank in range(above + 1, above + tied + 1) if rank <= 10]
    grades = [int(i == best) for i in range(len(scores))]
    assert quality(scores, [grades]).mrr[0] == pytest.approx(sum(1 / rank for rank in ranks) / tied, abs=1e-12)


def first_good(scores, grades):
    return rr(np.asarray(scores), np.asarray(grades))


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


def test_displayed_lists_keep_the_order_of_documents_with_equal_scores():
    assert order([1.0, 2.0, 1.0, 2.0]).tolist() == [1, 3, 0, 2]


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
    assert err(np.array([3.0, 2.0, 1.0]), np.array([2, 0, 1]), max_rel=2) == pytest.approx(3 / 4 + 1 / 4 * 1 / 4 / 3)
    assert err(np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1]), max_rel=2) == pytest.approx(1 / 4 + 3 / 4 * 3 / 4 / 3)
    assert err(np.zeros(3), np.zeros(3), max_rel=2) == 0
    assert err(-np.arange(11.0), np.array([0] * 10 + [2]), max_rel=2) == 0  # past the cut


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


@pytest.mark.data
@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize("collection", ["mq2007", "mq2008"])
def test_every_metric_without_ties_is_that_of_ir_measures_on_every_query(collection, tmp_path, monkeypatch):
    """nDCG with its gains named, since ir_measures' own are linear; ERR with its top grade, which is 4 there."""
    monkeypatch.setenv("FOLTR_CACHE", str(tmp_path))
    data = catalog.load(collection, fold=1).test
    scores = stream(83, purpose="data").permutation(len(data.labels))  # no two alike, whole numbers
    metrics = [parse_metric(name) for name in ("nDCG@10", "nDCG", "AP(rel=2)@10", "AP", "RR(rel=2)@5", "P@5",
                                               "P(rel=2)@10", "R(rel=2)@5", "R@20", "ERR(max_rel=4)@20")]  # fmt: skip
    theirs = [ir_measures.parse_measure(str(metric)) for metric in metrics if metric.kind not in ("nDCG", "ERR")]
    gains = ir_measures.nDCG(gains={0: 0, 1: 1, 2: 3})
    theirs = [gains @ 10, gains, *theirs, ir_measures.ERR @ 20]
    got = by_query(scores, data.labels, data.offsets, grades=3, further=metrics).last[2:]
    judged, ranked = [], []
    for query, (first, last) in enumerate(itertools.pairwise(data.offsets)):
        for row in range(first, last):
            judged.append(ir_measures.Qrel(str(query), str(row), int(data.labels[row])))
            ranked.append(ir_measures.ScoredDoc(str(query), str(row), float(scores[row])))
    compared = 0
    for found in ir_measures.iter_calc(theirs, judged, ranked):
        place = theirs.index(found.measure)
        tolerance = 6e-6 if metrics[place].kind == "ERR" else 1e-9  # gdeval prints five digits
        assert got[place, int(found.query_id)] == pytest.approx(found.value, abs=tolerance), str(metrics[place])
        compared += 1
    assert compared == len(metrics) * len(data.queries)
