"""Losses against finite differences, the schedule of visits, and the training data of every regime."""

import math

import numpy as np
import pytest

from foltr.errors import SpecError
from foltr.rng import stream
from foltr.silo.training import (
    LOSSES,
    REGIMES,
    Sgd,
    TrainingPairs,
    learning_rate,
    schedule,
    train,
    train_jointly,
    train_separately,
    visit,
)
from foltr.text.corpus import Pairs
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
def test_the_gradient_of_a_loss_is_that_of_its_value(loss):
    scores, grades = np.array([0.3, -1.2, 2.0, 0.3, 0.0]), np.array([0, 2, 1, 0, 1])
    small = 1e-6
    for place in range(len(scores)):
        bump = small * (np.arange(len(scores)) == place)
        slope = (VALUES[loss](scores + bump, grades) - VALUES[loss](scores - bump, grades)) / (2 * small)
        assert LOSSES[loss](scores, grades)[place] == pytest.approx(slope, abs=1e-8)


def test_the_pairwise_gradient_is_the_sum_over_pairs():
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
    got = train({0: data}, Sgd(learning_rate=0.5, epochs=200), seed=1)
    assert got == pytest.approx(best, abs=0.05)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_finds_the_direction(loss):
    found = train({0: dataset(drawn(2, queries=60))}, Sgd(loss=loss, learning_rate=0.5, epochs=30), seed=1)
    assert found @ TRUTH / np.linalg.norm(found) / np.linalg.norm(TRUTH) > 0.95


def test_one_party_trains_as_alone():
    work = [drawn(3)]
    assert np.array_equal(train_jointly(work, Sgd(), seed=4), train_separately(work, Sgd(), seed=4))


def test_the_ranker_goes_from_party_to_party():
    """Two parties, one query each, one epoch: the second starts where the first has left the ranker."""
    parties = [dataset(drawn(seed, queries=1)) for seed in (5, 6)]
    expected = np.zeros(5)
    for data in parties:
        columns = np.column_stack([data.features, np.ones(len(data.labels))]).astype(float)
        expected -= 0.1 * (columns @ expected - data.labels) @ columns / len(columns)
    got = train(dict(enumerate(parties)), Sgd(epochs=1), seed=1)
    assert got == pytest.approx(expected[:-1], rel=1e-5)


def test_a_visit_takes_some_queries_and_an_epoch_all(monkeypatch):
    seen = []

    def noted(scores, grades):
        seen.append(int(grades[0]))
        return np.zeros(len(scores))

    monkeypatch.setitem(LOSSES, "pointwise", noted)
    parties = {number: constant(number, queries) for number, queries in enumerate((5, 2, 0))}
    train(parties, Sgd(epochs=2, visit=2), seed=1)
    assert seen == [0, 0, 1, 1, 0, 0, 0] * 2


def test_the_schedule_is_round_robin_and_every_epoch_has_its_own_order():
    visits = list(schedule({3: 5, 1: 2, 7: 0}, Sgd(epochs=2, visit=2), seed=1))
    assert [(one.epoch, one.party, len(one.queries)) for one in visits] == [
        (epoch, *rest) for epoch in (0, 1) for rest in ((3, 2), (1, 2), (3, 2), (3, 1))
    ]
    orders = [
        np.concatenate([one.queries for one in visits if (one.epoch, one.party) == (epoch, 3)]) for epoch in (0, 1)
    ]
    assert [sorted(order.tolist()) for order in orders] == [[0, 1, 2, 3, 4]] * 2
    assert not np.array_equal(*orders)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_visit_is_a_pure_function_of_parameters_and_data(loss):
    """Two steps by hand: the second starts where the first ended, and what was given stays as it was."""
    data, sent = dataset(drawn(13, queries=3)), np.array([0.5, -1.0, 0.0, 2.0, 0.25])
    before = sent.copy()
    update = visit(sent, data, np.array([2, 0]), loss=loss, learning_rate=0.3)
    expected = sent.copy()
    for query in (2, 0):
        columns = np.column_stack([data.features, np.ones(len(data.labels))])[8 * query : 8 * query + 8]
        expected -= 0.3 * LOSSES[loss](columns @ expected, data.labels[8 * query : 8 * query + 8]) @ columns
    assert np.array_equal(sent, before)
    assert sent + update == pytest.approx(expected, abs=1e-12)
    assert visit(sent, data, np.array([], dtype=int), loss=loss, learning_rate=0.3).tolist() == [0] * 5


def test_training_is_the_sum_of_visits():
    parties, sgd = (
        {number: dataset(drawn(20 + number, queries=3 + number)) for number in (0, 1)},
        Sgd(epochs=3, visit=2),
    )
    parameters = np.zeros(5)
    for epoch, party, queries in schedule({0: 3, 1: 4}, sgd, seed=5):
        rate = 0.1 / math.sqrt(1 + epoch)
        assert learning_rate(sgd, epoch) == rate
        parameters = parameters + visit(parameters, parties[party], queries, loss="pointwise", learning_rate=rate)
    assert np.array_equal(train(parties, sgd, seed=5), parameters[:-1])


def constant(grade, queries):
    return Dataset(
        np.zeros((queries, 3), dtype=np.float32),
        np.full(queries, grade, dtype=np.int8),
        np.arange(queries + 1),
        np.arange(queries),
    )


def test_each_regime_learns_from_what_it_may():
    own, cross = [drawn(7), drawn(8)], [drawn(9), drawn(10)]
    work, sgd = TrainingPairs(own, cross, drawn(11)), Sgd(epochs=2)
    both = [join(one, other) for one, other in zip(own, cross, strict=True)]
    expected = {
        "local": train_separately(own, sgd, seed=1),
        "local_plus": train_separately(both, sgd, seed=1),
        "global": train_jointly(own, sgd, seed=1),
        "cs_f_ltr": train_jointly(both, sgd, seed=1),
        "pooled": np.tile(train({0: dataset(work.pooled)}, sgd, seed=1), (2, 1)),
    }
    assert set(expected) == set(REGIMES)
    for name, regime in REGIMES.items():
        assert np.array_equal(regime(work, sgd, seed=1), expected[name])
        assert regime(work, sgd, seed=1).shape == (2, 4)


def test_seeds_change_the_order_only():
    one, again, other = (train_separately([drawn(12)], Sgd(), seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert one == pytest.approx(other, abs=0.1)


def test_parties_with_other_features_are_refused():
    with pytest.raises(SpecError, match=r"parties have \[2, 3\] features"):
        train({0: constant(0, 1), 1: constant(0, 1)._replace(features=np.zeros((1, 2)))}, Sgd(), seed=1)
