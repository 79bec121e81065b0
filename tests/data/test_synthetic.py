"""Synthetic collections: repeatable, of the right shape, as hard as the real ones."""

import numpy as np
import pytest
from scipy.optimize import minimize

from foltr.errors import SpecError
from foltr.lab.data import catalog, synthetic
from foltr.lab.data.catalog import select
from foltr.rng import stream


def ndcg_at_10(scores, data):
    """Mean over queries with a relevant document; gain 2^grade - 1, discount log2(rank + 1)."""
    values = []
    discounts = 1 / np.log2(np.arange(2, 12))
    for first, last in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        gains = 2.0 ** data.labels[first:last] - 1
        if gains.any():
            shown = gains[np.argsort(-scores[first:last], kind="stable")[:10]]
            best = np.sort(gains)[::-1][:10]
            values.append(shown @ discounts[: len(shown)] / (best @ discounts[: len(best)]))
    return float(np.mean(values))


def linear_ranker(data):
    """Weights that minimise listwise cross-entropy between softmaxed scores and gains."""
    starts, sizes = data.offsets[:-1], np.diff(data.offsets)
    gains = 2.0**data.labels - 1
    total = np.add.reduceat(gains, starts)
    target = gains / np.repeat(np.maximum(total, 1), sizes)
    used = np.repeat(total > 0, sizes)
    features = data.features.astype(np.float64)
    scale = 1 / np.maximum(features.std(axis=0), 1e-6)

    def loss(weights):
        scores = features @ (weights * scale)
        scores -= np.repeat(np.maximum.reduceat(scores, starts), sizes)
        mass = np.repeat(np.add.reduceat(np.exp(scores), starts), sizes)
        slope = features.T @ (np.exp(scores) / mass * used - target) * scale / len(starts)
        value = -(target * (scores - np.log(mass))).sum() / len(starts)
        return value + 0.01 * weights @ weights, slope + 0.02 * weights

    return minimize(loss, np.zeros(features.shape[1]), jac=True, options={"maxiter": 30}).x * scale


# the real figures, as in the module's docstring: random ranking, best single feature, linear ranker
@pytest.mark.parametrize(
    ("name", "train", "test", "random", "single", "linear"),
    [("synthetic-mq2007", 1000, 2000, 0.323, 0.508, 0.526), ("synthetic-mslr", 300, 700, 0.183, 0.300, 0.43)],
)
def test_as_hard_as_the_real_collection(name, train, test, random, single, linear):
    data = synthetic.generate(name, queries=train + test, seed=1)
    seen, unseen = select(data, np.arange(train)), select(data, np.arange(train, train + test))
    shuffled = stream(0, purpose="ranking").uniform(len(unseen.labels))
    # the mean over 2,000 or 700 queries has an sd of about .005
    assert ndcg_at_10(shuffled, unseen) == pytest.approx(random, abs=0.02)
    assert ndcg_at_10(unseen.features @ linear_ranker(seen), unseen) == pytest.approx(linear, abs=0.02)
    few = select(unseen, np.arange(300))
    best = max(ndcg_at_10(few.features[:, feature], few) for feature in range(few.features.shape[1]))
    assert best == pytest.approx(single, abs=0.04)


@pytest.mark.parametrize(
    ("name", "length", "features", "shares", "barren", "zeros"),
    [
        ("synthetic-mq2007", 41.1, 46, (0.742, 0.203, 0.055), 0.153, 0.44),
        ("synthetic-mslr", 120.0, 136, (0.567, 0.286, 0.128, 0.014, 0.005), 0.020, 0.46),
    ],
)
def test_the_shape_of_the_real_collection(name, length, features, shares, barren, zeros):
    data = synthetic.generate(name, queries=1500, seed=2)
    best = np.maximum.reduceat(data.labels, data.offsets[:-1])
    assert data.features.shape[1] == features
    assert len(data.labels) / 1500 == pytest.approx(length, rel=0.04)
    assert np.bincount(data.labels) / len(data.labels) == pytest.approx(shares, abs=0.02)
    assert (best == 0).mean() == pytest.approx(barren, abs=0.03)
    assert (data.features == 0).mean() == pytest.approx(zeros, abs=0.03)
    assert data.features.min() == 0
    assert data.features.max() == 1
    assert data.queries.tolist() == list(range(1, 1501))


def test_a_seed_is_one_collection_of_any_size():
    small, large = (synthetic.generate("synthetic-mq2007", queries=n, seed=5) for n in (30, 900))
    assert np.array_equal(large.features[: len(small.labels)], small.features)
    assert np.array_equal(large.labels[: len(small.labels)], small.labels)
    other = synthetic.generate("synthetic-mq2007", queries=30, seed=6)
    assert not np.array_equal(other.offsets, small.offsets)


def test_folds_share_the_hidden_truth():
    one, two = (catalog.load("synthetic-mq2007", fold=fold) for fold in (1, 2))
    ours, theirs = linear_ranker(one.train), linear_ranker(two.train)
    assert ndcg_at_10(two.test.features @ ours, two.test) == pytest.approx(
        ndcg_at_10(two.test.features @ theirs, two.test), abs=0.03
    )
    assert one.checksum != two.checksum


def test_the_catalog_loads_any_size():
    fold = catalog.load("synthetic-mslr@50", fold=3)
    assert (fold.name, fold.note, fold.grades, fold.fold) == ("synthetic-mslr@50", "synthetic", 5, 3)
    assert [len(part.queries) for part in (fold.train, fold.validation, fold.test)] == [30, 10, 10]
    assert fold.test.queries.tolist() == list(range(41, 51))
    assert catalog.load("synthetic-mslr@50", fold=3).checksum == fold.checksum
    scaled = catalog.load("synthetic-mslr@50", fold=3, normalize="zscore")
    assert scaled.train.features.mean() == pytest.approx(0, abs=1e-3)
    described = catalog.describe("synthetic-mq2007@20")
    assert (described.where, described.note, described.folds[1]["train"].queries) == ("built in", "synthetic", 12)


@pytest.mark.parametrize("name", ["synthetic-mslr@4", "synthetic-mslr@-5", "synthetic-mslr@x"])
def test_a_wrong_size_is_refused(name):
    with pytest.raises(SpecError, match="@QUERIES"):
        catalog.load(name)


def test_wrong_names_and_folds_are_refused():
    with pytest.raises(SpecError, match="there are 1, 2, 3, 4, 5"):
        catalog.load("synthetic-mq2007", fold=6)
    with pytest.raises(SpecError, match="synthetic-mq2007, synthetic-mslr"):
        synthetic.generate("mq2007", queries=1, seed=0)
    with pytest.raises(SpecError, match="at least 1"):
        synthetic.generate("synthetic-mslr", queries=0, seed=0)
