"""Losses against differences, the walk over parties, and what every regime learns from."""

import math

import numpy as np
import pytest

from foltr.errors import SpecError
from foltr.rng import stream
from foltr.silo.pairs import Pairs
from foltr.silo.train import LOSSES, REGIMES, Sgd, Work, alone, together, walk
from foltr.text.features import Labelled, dataset, join
from foltr.types import Dataset

TRUTH = np.array([1.0, -2.0, 0.5, 0.0])


def drawn(seed, queries=12, documents=8, truth=TRUTH):
    """Labelled pairs whose grades follow a known linear ranker."""
    count = queries * documents
    features = stream(seed, purpose="data").uniform(count * len(truth)).reshape(count, -1).astype(np.float32)
    wishes = features @ truth
    grades = np.digitize(wishes, np.quantile(wishes, [0.6, 0.9])).astype(np.int8)
    rows = np.arange(count)
    return Labelled(Pairs(rows // documents, rows + 1000 * seed, grades), features)


VALUES = {
    "pointwise": lambda s, y: sum((a - b) ** 2 / 2 for a, b in zip(s, y, strict=True)) / len(s),
    "pairwise": lambda s, y: np.mean(
        [math.log(1 + math.exp(s[j] - s[i])) for i in range(len(s)) for j in range(len(s)) if y[i] > y[j]]
    ),
    "listwise": lambda s, y: (
        -sum(
            math.exp(b) / sum(map(math.exp, y)) * (a - math.log(sum(map(math.exp, s))))
            for a, b in zip(s, y, strict=True)
        )
    ),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_the_slope_of_a_loss_is_that_of_its_value(loss):
    scores, grades = np.array([0.3, -1.2, 2.0, 0.3, 0.0]), np.array([0, 2, 1, 0, 1])
    small = 1e-6
    for place in range(len(scores)):
        bump = small * (np.arange(len(scores)) == place)
        slope = (VALUES[loss](scores + bump, grades) - VALUES[loss](scores - bump, grades)) / (2 * small)
        assert LOSSES[loss](scores, grades)[place] == pytest.approx(slope, abs=1e-8)


def test_the_kernel_of_pairs_is_the_matrix_of_pairs():
    scores, grades = stream(3, purpose="data").normal(40), stream(4, purpose="data").integers(3, 40).astype(np.int8)
    better = grades[:, None] > grades[None, :]
    pull = np.where(better, 1 / (1 + np.exp(scores[:, None] - scores[None, :])), 0.0)
    assert LOSSES["pairwise"](scores, grades) == pytest.approx((pull.sum(axis=0) - pull.sum(axis=1)) / better.sum())


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_stay_finite_far_out(loss):
    slopes = LOSSES[loss](np.array([1e4, -1e4, 0.0]), np.array([0, 2, 1], dtype=np.int8))
    assert np.isfinite(slopes).all()


def test_a_list_of_one_grade_teaches_pairs_nothing():
    assert LOSSES["pairwise"](np.array([1.0, 2.0]), np.array([1, 1])).tolist() == [0, 0]


def test_least_squares_come_near_the_closed_form():
    data = dataset(drawn(1, queries=60), "none")
    columns = np.column_stack([data.features, np.ones(len(data.labels))]).astype(float)
    best = np.linalg.lstsq(columns, data.labels.astype(float), rcond=None)[0][:-1]
    got = walk([(0, data)], Sgd(rate=0.5, epochs=200), seed=1)
    assert got == pytest.approx(best, abs=0.05)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_finds_the_direction(loss):
    found = walk([(0, dataset(drawn(2, queries=60)))], Sgd(loss=loss, rate=0.5, epochs=30), seed=1)
    assert found @ TRUTH / np.linalg.norm(found) / np.linalg.norm(TRUTH) > 0.95


def test_a_walk_over_one_party_is_training_alone():
    work = [drawn(3)]
    assert np.array_equal(together(work, Sgd(), seed=4), alone(work, Sgd(), seed=4))


def test_the_ranker_goes_from_party_to_party():
    """Two parties, one query each, one epoch: the second starts where the first has left the ranker."""
    parties = [dataset(drawn(seed, queries=1)) for seed in (5, 6)]
    expected = np.zeros(5)
    for data in parties:
        columns = np.column_stack([data.features, np.ones(len(data.labels))]).astype(float)
        expected -= 0.1 * (columns @ expected - data.labels) @ columns / len(columns)
    got = walk(list(enumerate(parties)), Sgd(epochs=1), seed=1)
    assert got == pytest.approx(expected[:-1], rel=1e-5)


def test_a_visit_takes_some_queries_and_an_epoch_all(monkeypatch):
    seen = []

    def noted(scores, grades):
        seen.append(int(grades[0]))
        return np.zeros(len(scores))

    monkeypatch.setitem(LOSSES, "pointwise", noted)
    parties = [(number, constant(number, queries)) for number, queries in enumerate((5, 2, 0))]
    walk(parties, Sgd(epochs=2, visit=2), seed=1)
    assert seen == [0, 0, 1, 1, 0, 0, 0] * 2


def constant(grade, queries):
    return Dataset(
        np.zeros((queries, 3), dtype=np.float32),
        np.full(queries, grade, dtype=np.int8),
        np.arange(queries + 1),
        np.arange(queries),
    )


def test_each_regime_learns_from_what_it_may():
    own, cross = [drawn(7), drawn(8)], [drawn(9), drawn(10)]
    work, sgd = Work(own, cross, drawn(11)), Sgd(epochs=2)
    both = [join(one, other) for one, other in zip(own, cross, strict=True)]
    expected = {
        "local": alone(own, sgd, seed=1),
        "local_plus": alone(both, sgd, seed=1),
        "global": together(own, sgd, seed=1),
        "cs_f_ltr": together(both, sgd, seed=1),
        "pooled": np.tile(walk([(0, dataset(work.pooled))], sgd, seed=1), (2, 1)),
    }
    assert set(expected) == set(REGIMES)
    for name, regime in REGIMES.items():
        assert np.array_equal(regime(work, sgd, seed=1), expected[name])
        assert regime(work, sgd, seed=1).shape == (2, 4)


def test_seeds_change_the_order_only():
    one, again, other = (alone([drawn(12)], Sgd(), seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert one == pytest.approx(other, abs=0.1)


def test_parties_with_other_features_are_refused():
    with pytest.raises(SpecError, match=r"parties have \[2, 3\] features"):
        walk([(0, constant(0, 1)), (1, constant(0, 1)._replace(features=np.zeros((1, 2))))], Sgd(), seed=1)
