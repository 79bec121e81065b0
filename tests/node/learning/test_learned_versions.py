"""Learned weights: versions, refits every ten clicks, the trial of a new version, and the way back."""

import json

import msgspec
import numpy as np
import pytest
from logged_lists import NOW, taught

from foltr.errors import DataError, InputError
from foltr.learners.softmax import SoftmaxMap, fit
from foltr.node.learning import erasure, guard, versions
from foltr.node.learning.guard import NEW, OLD
from foltr.node.learning.impressions import Impression
from foltr.node.learning.log import Log
from foltr.node.learning.versions import LEARNER, Weights, feature_names, start_weights, values_of
from foltr.privacy.mechanisms import NoPrivacy
from foltr.rng import stream

NAMES = feature_names(start_weights())
WIDTH, OPENED = len(NAMES), [one.name for one in start_weights().features].index("opened")


@pytest.fixture
def log(tmp_path):
    with Log(tmp_path / "log.db") as opened:
        yield opened


def search(log, number, *, query=None, opens=None, teams=None, version=0):
    """A list of the start weights; somebody opens what was opened most before, or the document at a place."""
    features = stream(9, round=number, purpose="data").uniform(30 * WIDTH).reshape(30, WIDTH)
    scores = features @ values_of(start_weights(), NAMES)
    order = np.argsort(-scores)
    documents = [f"/d/{number}/{place}" for place in range(10)]
    shown = Impression(query or f"query {number}", NOW + number, documents, np.ones(10), scores[order],
                       features[order], NAMES, version, teams)  # fmt: skip
    place = int(np.argmax(features[order][:10, OPENED])) if opens is None else opens
    log.choose_position(log.record(shown), place, NOW + number)


def searches(log, first, last, **more):
    with log.transaction():
        for number in range(first, last):
            search(log, number, **more)


def lost(log, first, last, *, by=NEW, version=1, query=None):
    """Interleaved lists whose opened document the other order brought."""
    teams = np.array([OLD, NEW] * 5)
    place = 0 if by == NEW else 1
    with log.transaction():
        for number in range(first, last):
            search(log, number, teams=teams, opens=place, version=version, query=query and f"{query} {number}")


# ---- weights


def test_start_weights_are_a_version_of_their_own(log):
    weights = start_weights()
    assert (weights.version, weights.parent) == (0, "start")
    assert versions.serving(log) == (weights, None)
    assert json.loads(msgspec.json.encode(weights))["from"] == "start"


@pytest.mark.parametrize(
    "change",
    [
        lambda plain: plain["features"].clear(),
        lambda plain: plain["features"].append(plain["features"][0]),
        lambda plain: plain["features"][0].update(weight=1e9),
        lambda plain: plain["features"][0].update(weight="1"),
        lambda plain: plain["features"][0].pop("scaling"),
        lambda plain: plain.update(kind="forest"),
        lambda plain: plain.update({"from": [1]}),
        lambda plain: plain.pop("version"),
    ],
)
def test_weights_that_are_none_are_refused(change):
    plain = json.loads(msgspec.json.encode(start_weights()))
    change(plain)
    with pytest.raises(DataError, match=r"weights\.json"):
        versions.parse_weights(json.dumps(plain), where="weights.json")


def test_a_version_of_another_package_takes_the_features_of_this_one(log):
    features = (*start_weights().features[:2], versions.WeightedFeature("gone", "none", 3.0))
    features = tuple(msgspec.structs.replace(one, weight=7.0) for one in features)
    versions.adopt(log, Weights(5, "linear", features, "start", "2026-01-01"))
    current = versions.serving(log).current
    assert feature_names(current) == NAMES
    assert values_of(current, NAMES).tolist() == [7.0, 7.0, *values_of(start_weights(), NAMES)[2:]]


# ---- refits


def fitted(log):
    """[features] the fit of the whole log from the start weights."""
    is_history = np.isin(np.arange(WIDTH), versions.history_indices(start_weights()))
    prior = np.where(is_history, LEARNER.history_prior, LEARNER.prior)
    return fit(taught(log, NAMES), values_of(start_weights(), NAMES), prior, unshown=LEARNER.unshown)


def test_nothing_is_learned_before_ten_clicks(log):
    searches(log, 0, 9)
    assert not versions.refit_due(log)
    assert versions.refit(log, NOW, force=True).version is None
    searches(log, 9, 10)
    assert versions.refit_due(log)


def test_every_ten_clicks_make_a_version_fitted_to_the_whole_log(log):
    searches(log, 0, 10)
    first = versions.refit(log, NOW)
    assert first.version == 1
    assert not versions.refit_due(log)
    assert versions.refit(log, NOW).version is None
    searches(log, 10, 20)
    assert versions.refit(log, NOW).version == 2
    current = versions.serving(log).current
    assert np.allclose(values_of(current, NAMES), fitted(log))
    assert (current.version, current.parent, current.date) == (2, 1, "2027-01-15")
    assert [(one.weights.version, one.state, one.clicks) for one in versions.versions(log)] == [
        (2, "trial", 20),
        (1, "replaced", 10),
    ]


def test_what_people_prefer_is_learned_and_history_learns_fastest(log):
    searches(log, 0, 100)
    versions.refit(log, NOW)
    change = values_of(versions.serving(log).current, NAMES) - values_of(start_weights(), NAMES)
    assert int(np.argmax(change)) == OPENED
    assert change[OPENED] > 0.5


def test_the_same_log_gives_the_same_weights(log, tmp_path):
    searches(log, 0, 30)
    versions.refit(log, NOW)
    with Log(tmp_path / "other.db") as other:
        searches(other, 0, 30)
        versions.refit(other, NOW)
        assert versions.serving(other) == versions.serving(log)


def test_a_version_that_ranks_the_log_worse_is_refused(log):
    """Current weights that know what was opened; a fit that is tied to the start cannot reach them."""
    with log.transaction():
        for number in range(30):
            search(log, number, opens=int(stream(number, purpose="choice").integers(10, 1)[0]))
    stronger = [msgspec.structs.replace(one, weight=0.0) for one in start_weights().features]
    logged = taught(log, NAMES)
    best = fit(logged, values_of(start_weights(), NAMES), 1e-3)
    named = tuple(msgspec.structs.replace(one, weight=float(w)) for one, w in zip(stronger, best, strict=True))
    versions.adopt(log, Weights(9, "linear", named, "start", "2026-01-01"))
    result = versions.refit(log, NOW)
    assert result.version is None
    assert "refused" in result.reason
    assert result.replay.new < result.replay.old
    assert versions.serving(log).current.version == 1
    assert [one.state for one in versions.versions(log)] == ["refused", "trusted"]
    assert not versions.refit_due(log)  # not again before ten more clicks


WEAK = SoftmaxMap(prior=0.1, history_prior=0.1, min_clicks=10)  # fits every accident of a short log


def opened_by_the_start(log, first, last):
    """People who mostly want what the start weights put first: whatever is learned beside it is an accident."""
    with log.transaction():
        for number in range(first, last):
            search(log, number, opens=0 if number % 3 else 5)


def test_a_fit_that_only_knows_its_own_log_is_refused(log):
    """The log that was fitted ranks better, texts that were left out rank worse: replaying the log would accept it."""
    opened_by_the_start(log, 0, 30)
    start, logged = values_of(start_weights(), NAMES), taught(log, NAMES)
    own = fit(logged, start, WEAK.prior, unshown=WEAK.unshown)
    assert guard.replay(logged, start, own).new > guard.replay(logged, start, own).old
    result = versions.refit(log, NOW, learner=WEAK)
    assert result.version is None
    assert "refused: texts that it was not fitted to rank worse than version 0" in result.reason
    assert result.replay.clearly_worse
    assert versions.serving(log) == (start_weights(), None)
    assert [one.state for one in versions.versions(log)] == ["refused"]


def test_weights_that_turn_out_to_lose_to_the_start_leave_with_the_fit_that_shows_it(log):
    """A version from the first ten choices ranks; forty more show that fits to this log lose to the start weights."""
    searches(log, 0, 10)
    assert versions.refit(log, NOW, learner=WEAK).version == 1
    opened_by_the_start(log, 100, 150)
    assert versions.refit(log, NOW, learner=WEAK).version is None
    assert versions.serving(log) == (start_weights(), None)
    assert [one.state for one in versions.versions(log)] == ["refused", "returned"]
    searches(log, 200, 240)
    assert not versions.refit_due(log)  # learning waits


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e6])
def test_weights_beyond_use_make_no_version(log, monkeypatch, value):
    searches(log, 0, 10)
    monkeypatch.setattr(versions, "fit", lambda interactions, start, prior, unshown: np.full(WIDTH, value))
    assert versions.refit(log, NOW).version is None
    assert versions.versions(log) == []
    assert versions.serving(log) == (start_weights(), None)


def test_deleting_from_the_log_does_not_stop_learning(log):
    searches(log, 0, 20)
    versions.refit(log, NOW)
    erasure.erase(log, erasure.ALL_SEARCHES)
    searches(log, 20, 30)
    assert versions.refit_due(log)
    searches(log, 30, 100)  # enough that the fit outranks version 1 on them
    assert versions.refit(log, NOW).version == 2
    current = versions.serving(log).current
    assert current.version == 2
    assert np.allclose(values_of(current, NAMES), fitted(log))


@pytest.mark.parametrize("reset", [False, True])
def test_a_fit_to_a_log_that_is_erased_meanwhile_is_not_stored(log, monkeypatch, reset):
    searches(log, 0, 20)
    fit = versions.fit

    def fit_during_an_erasure(*arguments, **options):
        erasure.erase(log, erasure.ALL_SEARCHES, reset_weights=reset)
        return fit(*arguments, **options)

    monkeypatch.setattr(versions, "fit", fit_during_an_erasure)
    assert versions.refit(log, NOW).version is None
    assert versions.versions(log) == []
    assert versions.serving(log) == (start_weights(), None)


def test_a_verdict_on_lists_that_are_erased_meanwhile_is_not_stored(log, monkeypatch):
    searches(log, 0, 20)
    versions.refit(log, NOW)

    def verdict_during_a_reset(points):
        versions.reset(log)
        return "trust"

    monkeypatch.setattr(versions.guard, "verdict", verdict_during_a_reset)
    assert versions.judge(log) == "open"
    assert versions.serving(log) == (start_weights(), None)  # and not a version that is deleted


def test_withdrawn_choices_do_not_teach(log):
    searches(log, 0, 10)
    log.take_back(1, log.displayed(1).choices[0].document)
    assert not versions.refit_due(log)


# ---- trial


def test_a_new_version_is_interleaved_with_the_trusted_one(log):
    searches(log, 0, 10)
    versions.refit(log, NOW)
    current, trusted = versions.serving(log)
    assert (current.version, trusted.version) == (1, 0)


def test_a_version_that_loses_goes_back_by_itself_and_learning_waits(log):
    searches(log, 0, 10)
    versions.refit(log, NOW)
    lost(log, 100, 120)
    assert versions.judge(log) == "return"
    assert versions.serving(log) == (start_weights(), None)
    assert [one.state for one in versions.versions(log)] == ["returned"]
    searches(log, 200, 240)
    assert not versions.refit_due(log)
    searches(log, 240, 250)
    assert versions.refit_due(log)
    assert versions.refit(log, NOW).version == 2  # numbers rise
    assert versions.judge(log) == "open"  # lists of the old trial do not count again


def test_a_version_that_wins_is_trusted(log):
    searches(log, 0, 10)
    versions.refit(log, NOW)
    lost(log, 100, 120, by=OLD)
    assert versions.judge(log) == "trust"
    current, trusted = versions.serving(log)
    assert (current.version, trusted) == (1, None)
    assert versions.versions(log)[0].state == "trusted"


def test_refits_during_a_trial_continue_it_against_the_same_trusted_version(log):
    searches(log, 0, 10)
    versions.refit(log, NOW)
    lost(log, 100, 107, version=1)
    versions.refit(log, NOW, force=True)
    lost(log, 107, 110, version=2)
    assert versions.serving(log).current.version == 2
    assert len(versions.trial_points(log)) == 10
    lost(log, 110, 125, version=2)
    versions.refit(log, NOW)
    assert versions.serving(log).current.version == 0


def test_equal_queries_under_a_version_count_once(log):
    searches(log, 0, 10)
    versions.refit(log, NOW)
    for _ in range(5):
        search(log, 100, query="Again  and again", teams=np.array([OLD, NEW] * 5), opens=0, version=1)
    assert versions.trial_points(log) == [-1]


def test_lists_without_teams_and_withdrawn_choices_say_nothing(log):
    searches(log, 0, 10)
    versions.refit(log, NOW)
    searches(log, 100, 105, version=1)
    lost(log, 105, 106)
    shown = log.history(limit=1)[0]
    log.take_back(shown.impression, shown.choices[0].document)
    assert versions.trial_points(log) == []


# ---- the way back


def test_going_back_is_a_button(log):
    for last in (10, 20, 30):
        searches(log, last - 10, last)
        versions.refit(log, NOW)
    second = versions.version(log, 2)
    assert versions.go_back(log, 2) == second
    assert versions.serving(log) == (second, None)
    assert [one.state for one in versions.versions(log)] == ["left", "replaced", "replaced"]
    versions.go_back(log, 0)
    assert versions.serving(log).current == start_weights()
    with pytest.raises(InputError, match="no version 77"):
        versions.go_back(log, 77)


def test_reset_returns_to_the_start_and_numbers_still_rise(log):
    searches(log, 0, 10)
    versions.refit(log, NOW)
    versions.reset(log)
    assert versions.versions(log) == []
    assert versions.serving(log) == (start_weights(), None)
    assert versions.refit(log, NOW).version == 2


def test_old_versions_are_dropped_and_those_in_use_stay(log, monkeypatch):
    monkeypatch.setattr(versions, "STORED_VERSIONS", 3)
    searches(log, 0, 10)
    for _ in range(8):
        versions.refit(log, NOW, force=True)
    versions.adopt(log, start_weights())  # 9 is trusted and in use
    for _ in range(8):
        versions.refit(log, NOW, force=True)
    assert [one.weights.version for one in versions.versions(log)] == [17, 16, 15, 9]


# ---- in a federation


def test_an_update_is_the_clipped_difference_to_the_shared_weights(log):
    searches(log, 0, 40)
    shared = start_weights()
    found = versions.update(log, shared, mechanism=NoPrivacy(), noise=lambda purpose: None, client=3)
    assert np.linalg.norm(found.values) <= 0.5 + 1e-12
    assert np.linalg.norm(found.values) > 0.1
    assert (found.weight, found.client, found.base_version) == (40.0, 3, 0)
    assert int(np.argmax(found.values)) == OPENED


def test_an_empty_log_sends_zeros(log):
    found = versions.update(log, start_weights(), mechanism=NoPrivacy(), noise=lambda purpose: None)
    assert not found.values.any()
