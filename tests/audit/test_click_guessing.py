"""The experiment: a spec with an audit trains, guesses and leaves numbers; what makes no sense is refused."""

import numpy as np
import pytest

from foltr.errors import SpecError
from foltr.lab.audit.click_guessing import GUESSES, check_audit, guess_each, guessed, guessing, score, training
from foltr.lab.audit.messages import Messages, send
from foltr.lab.runs.single import run_setting
from foltr.rng import stream

USUAL = {"messages": 40}


@pytest.fixture
def ranker(fold):
    return 0.1 * stream(1, purpose="start").normal(fold.train.features.shape[1])


def test_a_single_run_ends_with_the_numbers_of_every_attack(make_setting, fold):
    *_, single = run_setting(make_setting(audit=USUAL), fold, seed=1)
    numbers = dict(zip(single.names, single.more, strict=True))
    assert {f"{what}, {name}" for name in GUESSES for what in ("precision", "recall", "accuracy", "guessed")} <= set(
        numbers
    )
    assert 0 < numbers["precision, random"] < 1
    assert numbers["precision, least absolute"] > numbers["precision, random"]


def test_the_training_is_that_of_the_same_setting_without_an_audit(make_setting, fold):
    *_, single = run_setting(make_setting(audit=USUAL | {"trained_by": "informational"}), fold, seed=1)
    *_, plain = run_setting(make_setting(), fold, seed=1)
    assert np.array_equal(single.parameters, plain.parameters)
    assert np.array_equal(single.offline, plain.offline)


def test_the_ranker_is_trained_by_other_users_than_those_who_are_guessed(make_setting):
    taught = training(make_setting(audit=USUAL))
    assert taught.users.clicks == "perfect"
    assert not taught.audit.messages


def test_a_sum_of_one_is_the_message_itself(make_setting, fold, ranker):
    sent = send(make_setting(), fold, ranker, messages=20, queries=1, seed=1)
    for name in GUESSES:
        assert guessed(name, sent, 1) == score(sent.clicks, guess_each(name, sent.features, ranker, sent.sent))


def test_in_a_sum_everybody_is_guessed_from_the_same_change():
    features = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])  # two messages, one document each
    sent = np.array([[1.0, 0.0], [0.0, -3.0]])
    clicks = np.array([[True], [True]])
    messages = Messages(np.zeros(2), sent, sent, features, clicks)
    # the sum (1, -3) raises the first document and lowers the second
    assert guessed("higher score", messages, 2).recall == 0.5
    # without the first message its document does not move, without the second its own neither
    assert guessed("higher score", messages, 2, absent=True).recall == 0.0


def test_what_is_found_in_a_sum_is_reported_with_and_without_the_client(make_setting, fold, ranker):
    numbers = guessing(make_setting(audit={"messages": 40, "sum": 10}), fold, ranker, seed=1)
    assert "precision, least squares, absent" in numbers
    alone = guessing(make_setting(audit=USUAL), fold, ranker, seed=1)
    assert "precision, least squares, absent" not in alone


def test_sums_of_more_clients_than_take_part_are_refused(make_setting, fold):
    with pytest.raises(SpecError, match=r"audit.sum = 40: at most 20"):
        check_audit(make_setting(audit={"messages": 40, "sum": 40}), fold)


@pytest.mark.parametrize(
    ("tables", "complaint"),
    [
        ({"audit": {"messages": 45, "sum": 10}}, "45 messages do not make whole sums of 10"),
        ({"audit": USUAL | {"trained_by": "nobody"}}, "no users 'nobody'"),
        ({"audit": USUAL, "ranker": {"kind": "mlp"}}, "linear ranker"),
        ({"audit": USUAL, "learner": {"kind": "foltr-es"}, "privacy": {"kind": "none"}}, "pdgd"),
        ({"audit": USUAL, "attack": {"kind": "lie", "num_attackers": 2}}, "honest clients"),
        ({"audit": USUAL, "federation": {"kind": "central"}, "privacy": {"kind": "none"}}, "audit is about clients"),
    ],
)
def test_audits_that_make_no_sense_are_refused(make_setting, tables, complaint):
    with pytest.raises(SpecError, match=complaint):
        make_setting(**tables)
