"""Whatever the scores, parameters stay finite: engines on data that is hard on floating point."""

import numpy as np
import pytest
from by_hand import ragged, updates_of

from foltr.clicks import Users, click_model
from foltr.lab.simulation import compiled, plain
from foltr.lab.simulation.rounds import run
from foltr.lab.simulation.task import Central, Federated, Task
from foltr.learners.foltr_es import FoltrEs
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import Fpdgd, NoPrivacy
from foltr.rankers import Linear, Mlp
from foltr.types import Dataset

USERS = (click_model(Users("informational"), grades=3),)
COUNTS = [1, 2, 12, 30, 41]
RANKERS = [Linear(), Mlp(4), Mlp(4, "relu")]


def make_task(data, ranker=RANKERS[0], learner=None, federation=None, privacy=None):
    return Task(
        data, 3, USERS, ranker, learner or Pdgd(), federation or Federated(6, 4, 2), privacy or NoPrivacy(), seed=2
    )


def final(task, make_engine):
    *_, last = run(task, make_engine(task))
    return last.parameters


@pytest.mark.parametrize("make_engine", [plain.engine, compiled.engine], ids=["plain", "compiled"])
@pytest.mark.parametrize("negatives", ["one-below-last-click", "all-shown"])
@pytest.mark.parametrize("size", [1.0, 1e2, 1e3, 1e4])
def test_steps_from_scores_of_any_size_are_finite(make_engine, negatives, size):
    """Scores between -size and size: features lie in [0, 1), and the weights +size and -size pull both ways."""
    data = ragged(COUNTS, width=2, grades=3)
    task = make_task(data, learner=Pdgd(negatives=negatives))
    start = np.array([size, -size])
    updates, online = updates_of(make_engine(task), start, np.arange(20), np.full(20, 5))
    assert np.isfinite(updates.values).all()
    # a pair weighs at most 1/4, a list has at most 25 pairs, a feature is below 1, the rate .1, and there are 5 steps
    assert np.abs(updates.values).max() <= 5 * 0.1 * 25 / 4
    assert ((online.ndcg >= 0) & (online.ndcg <= 1)).all()


@pytest.mark.parametrize("make_engine", [plain.engine, compiled.engine], ids=["plain", "compiled"])
@pytest.mark.parametrize("ranker", RANKERS[1:], ids=str)
def test_hidden_units_far_in_saturation_stay_finite(make_engine, ranker):
    data = ragged(COUNTS, width=3, grades=3)
    start = np.resize([1e4, -1e4, 3e3, 0.5], ranker.size(3))
    updates, _ = updates_of(make_engine(make_task(data, ranker)), start, np.arange(6), np.full(6, 3))
    assert np.isfinite(updates.values).all()


@pytest.mark.parametrize("make_engine", [plain.engine, compiled.engine], ids=["plain", "compiled"])
@pytest.mark.parametrize("ranker", RANKERS, ids=str)
@pytest.mark.parametrize("learner", [Pdgd(), FoltrEs()], ids=["pdgd", "foltr-es"])
def test_one_document_a_query_teaches_nothing_but_breaks_nothing(make_engine, ranker, learner):
    task = make_task(ragged([1, 1, 1], width=3, grades=3), ranker, learner)
    end = final(task, make_engine)
    assert np.isfinite(end).all()
    if isinstance(learner, Pdgd):
        assert end == pytest.approx(ranker.init(3, 2), abs=1e-15)  # there is no pair; averaging may round


@pytest.mark.parametrize("make_engine", [plain.engine, compiled.engine], ids=["plain", "compiled"])
def test_equal_documents_cannot_move_a_linear_ranker(make_engine):
    task = make_task(ragged(COUNTS, width=3, grades=3))
    nothing = task.train._replace(features=np.zeros_like(task.train.features))
    assert final(task._replace(train=nothing), make_engine).tolist() == [0.0, 0.0, 0.0]
    same = task.train._replace(features=np.full_like(task.train.features, 0.75))
    assert final(task._replace(train=same), make_engine) == pytest.approx(np.zeros(3), abs=1e-12)


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_documents_of_zeros_leave_every_ranker_finite(ranker):
    data = ragged(COUNTS, width=3, grades=3)
    task = make_task(data._replace(features=np.zeros_like(data.features)), ranker)
    assert np.isfinite(final(task, compiled.engine)).all()


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("ranker", RANKERS[:2], ids=str)
def test_large_batches_on_large_features_never_end_in_nan(ranker, scale):
    """Summed batches throw scores hundreds and thousands apart: a running mass would lose all its digits there."""
    data = ragged([10, 25, 41, 8, 60], width=6, grades=3, scale=scale)
    task = make_task(data, ranker, federation=Central(batch=200, rounds=60))
    ends = [step.parameters for step in run(task, compiled.engine(task))]
    assert np.isfinite(ends).all()
    if isinstance(ranker, Linear):  # sigmoid units saturate instead
        assert np.ptp(ranker.score(ends[-1], data.features)) > 10 * scale  # the scores did go apart


def test_noise_far_larger_than_the_ranker_stays_finite():
    task = make_task(ragged(COUNTS, width=3, grades=3), privacy=Fpdgd(epsilon=1e-6, sensitivity=5.0))
    end = final(task, compiled.engine)
    assert np.isfinite(end).all()
    assert np.abs(end).max() > 1e3


def test_scores_that_differ_in_the_last_digit_only():
    data = Dataset(
        np.array([[1.0], [np.nextafter(np.float32(1), np.float32(2))], [1.0]], np.float32),
        np.array([0, 1, 2], np.int8), np.array([0, 3]), np.arange(1),
    )  # fmt: skip
    updates, _ = updates_of(compiled.engine(make_task(data)), np.array([1e4]), np.arange(50), np.ones(50))
    assert np.isfinite(updates.values).all()
