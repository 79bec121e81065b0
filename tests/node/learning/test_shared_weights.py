"""Weights of a federation on a node: they arrive on trial, become the prior of its refits, and leave with what lost."""

import msgspec
import numpy as np
import pytest
from logged_lists import NOW
from test_learned_versions import NAMES, WIDTH, lost, searches

from foltr.errors import DataError
from foltr.learners import softmax
from foltr.learners.softmax import fit
from foltr.node.learning import teaching, versions
from foltr.node.learning.guard import NEW
from foltr.node.learning.log import Log
from foltr.node.learning.versions import FEDERATED, LEARNER, SHARED, Trial, WeightedFeature, start_weights, values_of
from foltr.privacy.mechanisms import NoPrivacy

FEDERATION = "f" * 32


@pytest.fixture
def log(tmp_path):
    with Log(tmp_path / "log.db") as opened:
        yield opened


def shared(version, change=0.3):
    """A ranker of the federation: the start weights, each moved by `change`."""
    moved = tuple(
        WeightedFeature(one.name, one.scaling, one.weight + change * (-1) ** place)
        for place, one in enumerate(start_weights().features)
    )
    return msgspec.structs.replace(
        start_weights(), features=moved, parent=SHARED, origin=f"{FEDERATION}/{version}", version=version
    )


def values(weights):
    return values_of(weights, NAMES)


def test_shared_weights_rank_on_trial_and_stay_so_without_clicks(log):
    number = versions.adopt_shared(log, shared(1))
    assert versions.serving(log).trusted.version == 0  # lists are interleaved with it
    assert values(versions.serving(log).current).tolist() == values(shared(1)).tolist()
    assert versions.judge(log) == "open"
    assert versions.trial(log) == Trial(number, 0, True, 0, 0)


def test_a_version_of_a_federation_is_taken_over_once(log):
    first = versions.adopt_shared(log, shared(1))
    assert versions.adopt_shared(log, shared(1)) is None
    versions.go_back(log, 0)  # the person decided against it: a repeated message does not bring it back
    assert versions.adopt_shared(log, shared(1)) is None
    assert versions.serving(log).current.version == 0
    assert [version.weights.version for version in versions.versions(log)] == [first]


def test_shared_weights_that_lose_are_sent_back_and_are_no_prior_any_more(log):
    searches(log, 0, 12)
    number = versions.adopt_shared(log, shared(1))
    assert versions.refit(log, NOW).version  # fitted around the shared weights, still on trial against the start
    lost(log, 100, 140, by=NEW, version=number + 1)
    assert versions.judge(log) == "return"
    assert versions.serving(log) == (start_weights(), None)
    searches(log, 200, 200 + versions.WAIT)
    fitted = versions.version(log, versions.refit(log, NOW).version)
    assert fitted.prior == 0
    assert np.abs(values(fitted) - around(log, values(start_weights()))).max() < 1e-9


def test_the_next_choice_fits_the_log_around_the_shared_weights(log):
    searches(log, 0, 20)
    versions.refit(log, NOW)
    assert not versions.refit_due(log)
    number = versions.adopt_shared(log, shared(1))
    assert versions.refit_due(log)
    found = versions.refit(log, NOW)
    fitted = versions.version(log, found.version)
    assert fitted.prior == number
    assert np.abs(values(fitted) - around(log, values(shared(1)))).max() < 1e-9
    assert np.abs(values(fitted) - around(log, values(start_weights()))).max() > 0.01


def around(log, prior):
    """The maximum a posteriori weights of the whole log for a prior."""
    interactions = teaching.interactions(log, NAMES, teaching.lessons(log))
    learner = msgspec.structs.replace(LEARNER, history=versions.history_indices(start_weights()))
    return fit(interactions, prior, learner.priors(WIDTH), unshown=LEARNER.unshown)


def test_the_prior_outlives_a_hundred_refits(log):
    number = versions.adopt_shared(log, shared(1))
    searches(log, 0, 20)
    with log.transaction():
        for _ in range(versions.STORED_VERSIONS + 5):
            versions.refit(log, NOW, force=True)
    current = versions.serving(log).current
    assert current.version > number + versions.STORED_VERSIONS
    assert current.prior == number
    assert versions.version(log, number).origin == f"{FEDERATION}/1"


def test_shared_weights_that_rank_the_own_log_clearly_worse_than_the_start_never_rank(log):
    searches(log, 0, 40)
    reversed_ = msgspec.structs.replace(
        shared(1),
        features=tuple(
            WeightedFeature(one.name, one.scaling, -9.0 if one.name == "opened" else one.weight)
            for one in start_weights().features
        ),
    )
    versions.adopt_shared(log, reversed_)
    assert versions.serving(log) == (start_weights(), None)
    assert [version.state for version in versions.versions(log)] == ["refused"]


def test_a_shared_ranker_that_the_log_could_not_read_again_changes_nothing(log):
    with pytest.raises(DataError, match="the ranker of the federation"):
        versions.adopt_shared(log, shared(1, change=1e4))
    assert versions.serving(log) == (start_weights(), None)
    assert versions.versions(log) == []


def test_weights_of_an_export_bring_no_number_of_the_other_machine(log):
    versions.adopt(log, msgspec.structs.replace(shared(1), prior=7))
    assert versions.serving(log).trusted is None
    assert (versions.serving(log).current.prior, versions.serving(log).current.origin) == (0, "")


def test_an_update_is_one_fit_however_long_the_log(log, monkeypatch):
    searches(log, 0, 60)
    fits = []

    def counted(*given, **more):
        fits.append(1)
        return posterior_mode(*given, **more)

    posterior_mode = softmax.posterior_mode
    monkeypatch.setattr(softmax, "posterior_mode", counted)
    values_by_one = versions.update(log, shared(1), mechanism=NoPrivacy(), noise=None).values
    assert len(fits) == 1
    often = msgspec.structs.replace(FEDERATED, refit_every=10)
    values_by_six = versions.update(log, shared(1), mechanism=NoPrivacy(), noise=None, learner=often).values
    assert len(fits) > 6
    assert values_by_one.tolist() == values_by_six.tolist()
