"""The softmax learner in the lab: specs run it on the plain engine; what it cannot do is refused."""

import numpy as np
import pytest

import foltr
from foltr.errors import SpecError
from foltr.lab.spec.parse import plan

SPEC = {
    "data": {"name": "synthetic-mq2007@60", "folds": 1},
    "federation": {"clients": 4, "interactions": 10, "rounds": 4},
    "users": {"clicks": "perfect"},
}


def spec(learner=None, **tables):
    return SPEC | {"learner": {"kind": "softmax", "prior": 1.0} | (learner or {})} | tables


def test_a_spec_with_the_softmax_learner_runs_and_learns(tmp_path, monkeypatch):
    monkeypatch.setenv("FOLTR_CACHE", str(tmp_path / "cache"))
    result = foltr.run(spec(), out=tmp_path / "runs")
    parameters = result.ranker.parameters
    assert np.isfinite(parameters).all()
    assert np.linalg.norm(parameters) > 0.1
    curve = result.curves
    ndcg = curve.filter(curve["metric"] == "offline_ndcg@10").sort("round")["mean"].to_list()
    assert ndcg[-1] > ndcg[0] + 0.02


def test_a_federation_clips_and_steps_as_its_learner_says(tmp_path, monkeypatch):
    """From zero, one round: the mean of updates of norm at most .05, times 2."""
    monkeypatch.setenv("FOLTR_CACHE", str(tmp_path / "cache"))
    one_round = {"federation": {"clients": 4, "interactions": 10, "rounds": 1}}
    steps = [
        foltr.run(
            spec({"clip": 0.05, "server_learning_rate": rate}, **one_round), out=tmp_path / "runs"
        ).ranker.parameters
        for rate in (1.0, 2.0)
    ]
    assert 0 < np.linalg.norm(steps[0]) <= 0.05
    assert np.allclose(steps[1], 2 * steps[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("tables", "complaint"),
    [
        ({"federation": {"kind": "central", "rounds": 5}}, "trains pdgd"),
        ({"audit": {"messages": 5}}, "pdgd"),
        ({"privacy": {"kind": "randomized-response"}}, "protects outcomes"),
        ({"learner": {"kind": "softmax", "prior": 0.0}}, "prior"),
        ({"learner": {"kind": "softmax", "clip": -1.0}}, "clip"),
    ],
)
def test_what_the_learner_cannot_do_is_refused(tables, complaint):
    with pytest.raises(SpecError, match=complaint):
        plan(spec() | tables)
