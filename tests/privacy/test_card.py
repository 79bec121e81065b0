"""The card: every figure by hand, every kind of privacy, and nothing that JSON does not know."""

import json
import math
import subprocess
import sys

import msgspec
import pytest
from scipy.special import comb

from foltr.lab.runs.card import card_of, ledgers_of
from foltr.lab.spec.parse import plan
from foltr.privacy import ledger
from foltr.privacy.accounting import epsilon
from foltr.privacy.adversaries import Circumstances
from foltr.privacy.calibration import gaussian_epsilon, noise_multiplier
from foltr.privacy.card import card as make_card
from foltr.privacy.events import Event, pure_epsilon
from foltr.privacy.mechanisms import Fpdgd, RandomizedResponse, ReleaseContext

FEATURES = 46
FOLTR_ES = {"learner": {"kind": "foltr-es"}}


def setting(privacy=None, federation=None, **more):
    tables = {"data": {"name": "synthetic-mq2007"}, "federation": {"rounds": 20, **(federation or {})}, **more}
    (resolved,) = plan(tables | ({"privacy": privacy} if privacy else {})).settings
    return resolved


def card(*arguments, delta=None, **more):
    found = card_of(setting(*arguments, **more), FEATURES, delta=delta)
    assert json.loads(json.dumps(found, allow_nan=False)) == found  # plain data
    return found


def against(found, name):
    (found,) = [one for one in found["adversaries"] if one["id"] == name]
    return found


KINDS = {
    "none": ({}, {}),
    "foltr-es": ({}, FOLTR_ES),
    "fpdgd": ({"kind": "fpdgd"}, {}),
    "half-delta": ({"kind": "fpdgd", "clip": "half-delta"}, {}),
    "response": ({"kind": "randomized-response"}, FOLTR_ES),
    "no lies": ({"kind": "randomized-response", "p": 1}, FOLTR_ES),
    "mostly lies": ({"kind": "randomized-response", "p": 0.01}, FOLTR_ES),
    "gaussian": ({"kind": "gaussian"}, {}),
    "not secure": ({"kind": "gaussian", "secure_aggregation": False}, {}),
    "laplace": ({"kind": "laplace"}, {}),
    "local": ({"kind": "gaussian", "trust": "local"}, {}),
    "local laplace": ({"kind": "laplace", "trust": "local"}, {}),
    "two servers": ({"kind": "gaussian"}, {"secagg": {"mode": "two-servers"}}),
}


@pytest.mark.parametrize(("privacy", "more"), KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("federation", [{}, {"cohort": 10, "round_robin": True}, {"cohort": 10}, {"clients": 1}])
def test_every_kind_has_a_card_that_names_its_adversaries(privacy, more, federation):
    found = card(privacy, federation, **more)
    assert {"recipients", "network"} <= {one["id"] for one in found["adversaries"]}
    assert sum(one["id"].startswith("server") and one["here"] for one in found["adversaries"]) == 1
    assert sum(one["id"].startswith("malicious") for one in found["adversaries"]) == bool(privacy)
    assert all(one["who"] and one["sees"] for one in found["adversaries"])
    assert found["sentences"]
    assert all(said.endswith(".") and "None" not in said and "nan" not in said for said in found["sentences"])
    if privacy:
        figures = (found["round"], found["run"], found["message"])
        assert all(one["epsilon"] == "infinite" or one["epsilon"] >= 0 for one in figures)
        named = [one for one in found["adversaries"] if one["id"] != "network"]
        assert all(one["unit"] == "user" and one["adjacency"] in ("zero-out", "replace") for one in named)


def test_without_a_mechanism_nothing_is_private():
    found = card()
    assert {one["epsilon"] for one in found["adversaries"] if one["id"] != "network"} == {"infinite"}
    assert found["nominal_epsilon"] is None


def test_who_learns_alone_tells_nobody():
    found = card(personal={"kind": "local_only"})
    assert [one["epsilon"] for one in found["adversaries"]] == [0.0]
    assert found["visible"] == []


def test_without_a_mechanism_the_accountant_is_not_even_loaded():
    words = (
        "import sys; from foltr.lab.runs.card import card_of; from foltr.lab.spec.parse import plan;"
        "card_of(plan({'data': {'name': 'mq2007'}}).settings[0], 46); print('dp_accounting' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True)
    assert said.stdout.strip() == "False", said.stderr


# --- the papers' mechanisms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("clip", "factor"), [("half-delta", 1), ("delta", 2)])
def test_a_round_of_fpdgd_costs_the_root_of_the_parameters_times_its_figure(clip, factor):
    found = card({"kind": "fpdgd", "epsilon": 1.2, "sensitivity": 3.0, "clip": clip}, {"clients": 1000})
    assert found["nominal_epsilon"] == 1.2
    assert found["round"] == {"epsilon": pytest.approx(factor * math.sqrt(46) * 1.2), "delta": 0.0}
    event = Fpdgd(1.2, 3.0, clip).event(ReleaseContext(1000, 20, 46))
    assert found["run"]["rdp"] == pytest.approx(epsilon({event: 20}, 1e-5).rdp)
    assert (found["run"]["pld"], found["run"]["quoted"]) == (None, "rdp")
    assert found["adjacency"] == "replace"


def test_the_server_of_fpdgd_sees_through_a_share_and_the_sum_holds():
    found = card({"kind": "fpdgd"}, {"clients": 1000})
    assert found["message"]["epsilon"] == "infinite"
    assert against(found, "server")["epsilon"] == "infinite"
    assert against(found, "server")["here"]
    assert against(found, "server-sums")["epsilon"] == found["run"]["epsilon"]
    assert not against(found, "server-sums")["here"]


def test_laplace_shares_hold_together_or_not_at_all():
    for kind in ("fpdgd", "laplace"):
        shares = card({"kind": kind}, {"clients": 100})["shares"]
        assert (shares["noise_contributors"], shares["present"], shares["all_or_void"]) == (100, 100, True)
        assert [(one["percent"], one["epsilon"]) for one in shares["fewer"]] == [(90, None), (50, "infinite")]


@pytest.mark.parametrize(
    "more",
    [
        {"attack": {"kind": "lie", "num_attackers": 2}},
        {"federation": {"clients": 10, "aggregator": "median"}},
        {"federation": {"clients": 10, "interactions": (1, 2)}},
        {"partition": {"kind": "labels", "amounts": [1, 3]}},
    ],
    ids=["attackers send no noise", "a median is no sum", "uneven weights are no sum", "uneven amounts are no sum"],
)
def test_fpdgd_without_the_sum_of_all_shares_protects_nobody(more):
    found = card({"kind": "fpdgd"}, **{"federation": {"clients": 10}, **more})
    assert found["run"]["epsilon"] == "infinite"
    assert found["shares"]["present"] < found["shares"]["noise_contributors"]


def test_responses_add_up_over_a_message_and_a_run():
    found = card({"kind": "randomized-response", "p": 0.5}, {"interactions": 4, "rounds": 3}, **FOLTR_ES)
    one = math.log(0.5 * 10 / 0.5)  # MaxRR has 11 outcomes
    assert found["nominal_epsilon"] == pytest.approx(one)
    assert found["message"]["epsilon"] == pytest.approx(4 * one)
    assert (found["interactions"], found["unit"]) == (12, "interaction")
    assert found["run"]["pure"] == pytest.approx(12 * one)
    assert found["run"]["epsilon"] <= 12 * one * 1.001
    assert against(found, "server-local")["epsilon"] == found["run"]["epsilon"]


def test_responses_that_never_lie_hide_nothing():
    found = card({"kind": "randomized-response", "p": 1}, **FOLTR_ES)
    assert {found["nominal_epsilon"], found["message"]["epsilon"], found["run"]["epsilon"]} == {"infinite"}


@pytest.mark.parametrize("p", [0.01, 0.05])
def test_lying_more_often_than_guessing_tells_as_much_as_its_odds(p):
    event = RandomizedResponse(p).event(ReleaseContext(1, 1, 1, outcomes=11))
    assert pure_epsilon(event) == pytest.approx(math.log((1 - p) / 10 / p), abs=1e-6)
    # two answers at the yes-or-no question that gives away as much: by enumeration, at delta 0.05
    lie, truth = 1 - event.noise, event.noise
    target = epsilon({event: 2}, 0.05).epsilon
    mass = [
        comb(2, k) * truth ** (2 - k) * lie**k - math.exp(target) * comb(2, k) * lie ** (2 - k) * truth**k
        for k in range(3)
    ]
    assert sum(max(0.0, one) for one in mass) <= 0.05 + 1e-6


# --- user-level DP --------------------------------------------------------------------------------------------------


def test_a_gaussian_run_spends_what_was_asked_for():
    found = card({"kind": "gaussian", "epsilon": 2.0}, {"clients": 100})
    assert found["run"]["quoted"] == "pld"
    assert 1.98 < found["run"]["epsilon"] <= 2.0 < found["run"]["rdp"] < 2.3
    assert found["round"]["epsilon"] < found["run"]["epsilon"]


def test_the_gaussian_figures_in_closed_form():
    found = card({"kind": "gaussian", "epsilon": 2.0}, {"clients": 100})
    mu = 1 / noise_multiplier(2.0, 1e-5, 20)
    of_run = {name: against(found, name)["epsilon"] for name in ("client", "server")}
    assert found["round"]["epsilon"] == pytest.approx(gaussian_epsilon(mu, 1e-5))
    assert found["message"]["epsilon"] == pytest.approx(gaussian_epsilon(mu * 10, 1e-5))  # one share of a hundred
    assert of_run["client"] == pytest.approx(gaussian_epsilon(mu * math.sqrt(20 * 100 / 99), 1e-5))
    assert of_run["server"] == pytest.approx(gaussian_epsilon(mu * math.sqrt(20 * 100), 1e-5))
    fewer = {one["percent"]: one["epsilon"] for one in found["shares"]["fewer"]}
    assert fewer[50] == pytest.approx(gaussian_epsilon(mu * math.sqrt(20 / 0.5), 1e-5))
    assert fewer[90] == pytest.approx(gaussian_epsilon(mu * math.sqrt(20 / 0.9), 1e-5))


def test_noise_for_the_ninety_percent_holds_when_ten_are_missing():
    found = card({"kind": "gaussian", "dropouts": 0.1}, {"clients": 100})
    assert {one["percent"]: one["epsilon"] <= 1.0 for one in found["shares"]["fewer"]} == {90: True, 50: False}
    assert found["shares"]["noise_contributors"] == 90


def test_the_server_is_as_far_away_as_secure_aggregation_says():
    for secure in (True, False):
        found = card({"kind": "gaussian", "secure_aggregation": secure}, {"clients": 100})
        assert against(found, "server-sums")["here"] is secure
        assert against(found, "server")["here"] is not secure
        assert against(found, "server")["epsilon"] > 10 * against(found, "server-sums")["epsilon"]


def test_local_noise_has_the_same_figure_against_everybody():
    found = card({"kind": "gaussian", "trust": "local"}, {"clients": 100})
    assert found["shares"] is None
    assert against(found, "server-local")["epsilon"] == against(found, "recipients")["epsilon"] <= 1.0


def test_laplace_holds_at_delta_zero():
    found = card({"kind": "laplace", "epsilon": 1.0}, {"clients": 100})
    assert found["run"]["pure"] == pytest.approx(1.0)
    assert found["run"]["epsilon"] < 1.0  # at delta 1e-5
    assert found["round"]["epsilon"] == pytest.approx(1 / 20)


def test_another_delta_gives_another_figure():
    usual, strict = (card({"kind": "gaussian"}, {"clients": 100}, delta=delta) for delta in (None, 1e-9))
    assert (usual["delta"], strict["delta"]) == (1e-5, 1e-9)
    assert strict["run"]["epsilon"] > usual["run"]["epsilon"]


def test_a_cohort_pays_for_the_rounds_it_takes_part_in_and_sampling_earns_nothing():
    found = card({"kind": "fpdgd"}, {"clients": 100, "cohort": 10, "round_robin": True, "rounds": 20})
    assert (found["max_rounds"], found["rounds"]) == (2, 20)
    assert found["amplification"] in found["sentences"]
    assert card({"kind": "fpdgd"}, {"clients": 100})["amplification"] is None


def test_the_seed_in_which_somebody_takes_part_most_counts():
    federation = {"clients": 30, "cohort": 3, "rounds": 20}
    found = card({"kind": "fpdgd"}, federation, runs={"seeds": 5})
    single = [card({"kind": "fpdgd"}, federation, runs={"first_seed": s})["max_rounds"] for s in range(1, 6)]
    assert found["max_rounds"] == max(single)
    assert single[found["seed"] - 1] == max(single)


# --- what a card claims, and what it does not -----------------------------------------------------------------------


PRIVATE = {name: case for name, case in KINDS.items() if case[0]}


@pytest.mark.parametrize(("privacy", "more"), PRIVATE.values(), ids=PRIVATE)
def test_a_card_of_the_lab_says_that_its_noise_follows_from_the_seed(privacy, more):
    assert any("follows from the seed" in said and "no release" in said for said in card(privacy, **more)["sentences"])


def test_without_noise_nothing_is_said_of_its_seed():
    assert not any("seed" in said for said in card()["sentences"])


class Sums(msgspec.Struct, frozen=True, tag_field="kind", tag="gaussian"):
    secure_aggregation: bool | str
    epsilon: float = 1.0
    delta: float = 1e-5


ABOUT = Circumstances(100, rounds=20, max_rounds=20, interactions=4, parameters=46, lab=True)
EVENT = Event("gaussian", "l2", 1.0, "l2", 17.0, noise_contributors=100, present=100)


@pytest.mark.parametrize(
    ("secure", "says"),
    [(True, "is simulated"), ("execute", "ran, with server and clients in one process"), (False, "")],
)
def test_a_card_says_how_sums_came_about_and_how_small_they_may_be(secure, says):
    words = " ".join(make_card(Sums(secure), EVENT, ABOUT._replace(dropped=10, colluders=7))["notes"])
    assert says in words
    assert ("no sum of fewer than 90 messages, of which at most 7" in words) is bool(secure)
    assert (("is simulated" in words), ("one process" in words)) == (secure is True, secure == "execute")


def test_local_noise_needs_no_secure_sums():
    local = msgspec.structs.replace(EVENT, noise_contributors=1, present=1)
    assert not any("ecure" in said for said in make_card(Sums(True), local, ABOUT)["notes"])


class Rounding(msgspec.Struct, frozen=True, tag_field="kind", tag="rounding"):
    """A plug-in that the card has never heard of."""

    def describe(self) -> str:
        return "it rounds every parameter to two digits."


def test_of_an_unknown_mechanism_no_guarantee_is_known():
    found = make_card(Rounding(), None, ABOUT)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["sentences"][0].startswith("No guarantee is known: the mechanism rounding")
    assert "The mechanism describes itself: it rounds every parameter to two digits." in found["sentences"]
    assert {one["epsilon"] for one in found["adversaries"]} == {None}
    assert not any("None" in said for said in found["sentences"])


def test_an_unknown_mechanism_that_declares_its_event_has_figures():
    found = make_card(Rounding(), EVENT, ABOUT)
    assert found["run"]["epsilon"] == pytest.approx(gaussian_epsilon(math.sqrt(20) / 17.0, 1e-5), rel=1e-3)
    assert found["sentences"][0] == "Nominal epsilon unknown, as the mechanism states it."


# --- the ledger of a run --------------------------------------------------------------------------------------------


def test_settings_of_one_kind_share_a_ledger_and_users_who_are_alike_a_row():
    private, open_ = setting({"kind": "gaussian"}), setting()
    (stored,) = ledgers_of([private, open_, private], [FEATURES] * 3)
    assert (stored["settings"], stored["users"], stored["alike"]) == ([0, 2], 1000, True)
    book = stored["ledger"]
    assert (book["counts"], book["user_has"]) == ([[20]], [0])
    event = msgspec.convert(book["events"][0], Event)
    assert ledger.closed_epsilon({event: 20}, book["delta"]) <= book["budget"] == 1.0


def test_users_who_differ_have_their_own_counts():
    (stored,) = ledgers_of([setting({"kind": "fpdgd"}, {"clients": 30, "cohort": 3})], [FEATURES])
    counts = [stored["ledger"]["counts"][row] for row in stored["ledger"]["user_has"]]
    assert len(counts) == 30
    assert sum(map(sum, counts)) == 20 * 3
