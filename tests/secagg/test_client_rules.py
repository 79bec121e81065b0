"""The client's decisions: arithmetic by eye, and every one of them is asked in a round."""

import pytest
from small_rounds import answers, asked, content, federation, run, until

from foltr.errors import SecureAggregationError
from foltr.secagg import messages, rules
from foltr.secagg.client import answer
from foltr.secagg.messages import REQUESTS, STAGES

FED = federation(5, length=2)
DECISIONS = {
    "takes_part": "share", "in_cohort": "share", "enough_members": "share", "own_keys_counted": "share",
    "enough_neighbours": "share", "survives": "agree", "survivors_took_part": "agree", "survivors_are_held": "agree",
    "enough_survivors": "agree", "enough_surviving_neighbours": "agree", "enough_signers": "unmask",
    "certified": "unmask",
}  # fmt: skip


@pytest.mark.parametrize("name", DECISIONS)
def test_a_client_refuses_where_a_rule_says_no(name, monkeypatch):
    _, states, requests = until(FED, DECISIONS[name])
    monkeypatch.setattr(rules, name, lambda *_: False)
    with pytest.raises(SecureAggregationError, match="nothing is sent"):
        answers(states, requests)


def test_without_the_right_to_open_nothing_is_opened(monkeypatch):
    _, states, requests = until(FED, "unmask")
    monkeypatch.setattr(rules, "may_open", lambda *_: False)
    assert not any(content(answers(states, requests)[10], messages.Revealed).shares)


def test_every_rule_is_tried_here():
    named = {name for name, one in vars(rules).items() if getattr(one, "__module__", "") == rules.__name__}
    of_draws = {"tries_left", "own_value_counted", "few_missing", "values_fit"}  # test_draw_attacks
    assert named == {*DECISIONS, "usable_keys", "may_open", "share_to_open"} | of_draws


def test_keys_under_two_names_are_used_for_neither():
    own, keys = (b"a", b"b"), {1: (b"c", b"d"), 2: (b"e", b"f"), 3: (b"f", b"g"), 4: (b"h", b"h"), 5: (b"a", b"i")}
    assert rules.usable_keys(own, keys) == {1}
    assert rules.usable_keys(own, {}) == set()


@pytest.mark.parametrize(
    ("holds", "fails"),
    [
        (rules.takes_part(1, {1, 2}), rules.takes_part(3, {1, 2})),
        (rules.in_cohort({1, 2}, {1, 2, 3}), rules.in_cohort({1, 4}, {1, 2, 3})),
        (rules.enough_members(900, 900), rules.enough_members(899, 900)),
        (rules.own_keys_counted(b"x", b"x"), rules.own_keys_counted(b"x", b"y")),
        (rules.enough_neighbours(3, 3), rules.enough_neighbours(2, 3)),
        (rules.survives(1, {1}), rules.survives(1, {2})),
        (rules.survivors_took_part({1}, {1, 2}), rules.survivors_took_part({1, 3}, {1, 2})),
        (rules.survivors_are_held({1}, {1: b"", 2: b""}), rules.survivors_are_held({1, 3}, {1: b"", 2: b""})),
        (rules.enough_survivors(4, 4), rules.enough_survivors(3, 4)),
        (rules.enough_surviving_neighbours(3, 3), rules.enough_surviving_neighbours(2, 3)),
        (rules.enough_signers(3, 3), rules.enough_signers(2, 3)),
        (rules.certified({1, 2}, {1, 2}), rules.certified({1, 2}, {1})),
        (rules.may_open(1, {1}, {1}), rules.may_open(1, {1}, {2})),
        (rules.may_open(2, {1}, set()), False),  # a mask key needs no proof
        (rules.tries_left(4, 5), rules.tries_left(5, 5)),
        (rules.own_value_counted(b"x", b"x"), rules.own_value_counted(b"x", b"y")),
        (rules.few_missing(50, 50), rules.few_missing(51, 50)),
        (rules.values_fit(b"x", b"x"), rules.values_fit(b"x", b"y")),
    ],
)
def test_each_rule_by_eye(holds, fails):
    assert holds
    assert not fails


def test_one_secret_of_a_neighbour():
    assert rules.share_to_open(1, {1}) == "seed"
    assert rules.share_to_open(2, {1}) == "mask"


def test_an_honest_round_passes_all_of_them():
    assert run(FED).included == tuple(FED.identities)
    _, states, requests = until(FED, "share")
    body = content(requests[10], REQUESTS["share"])
    assert answer(states[10], asked(FED, "share", 10, body))[0].done == STAGES.index("share") + 1
