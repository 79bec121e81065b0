"""The card: every figure by hand, every kind of privacy, and nothing that JSON does not know."""

import json
import math
import subprocess
import sys

import pytest
from foltr.privacy.papers import fpdgd_event, response_event
from scipy.special import comb

from foltr.lab.runs.card import card_of, ledgers_of
from foltr.lab.spec.parse import plan
from foltr.privacy import ledger
from foltr.privacy.accounting import epsilon
from foltr.privacy.calibration import gaussian_epsilon, noise_multiplier
from foltr.privacy.events import pure_epsilon
from foltr.privacy.mechanisms import Fpdgd, RandomizedResponse

FEATURES = 46
EVOLUTION = {"learner": {"kind": "foltr-es"}}


def setting(privacy=None, federation=None, **more):
    tables = {"data": {"name": "synthetic-mq2007"}, "federation": {"rounds": 20, **(federation or {})}, **more}
    (made,) = plan(tables | ({"privacy": privacy} if privacy else {})).settings
    return made


def card(*arguments, delta=None, **more):
    made = card_of(setting(*arguments, **more), FEATURES, delta=delta)
    assert json.loads(json.dumps(made, allow_nan=False)) == made  # plain data
    return made


def against(made, name):
    (found,) = [one for one in made["adversaries"] if one["id"] == name]
    return found


KINDS = {
    "none": ({}, {}),
    "evolution": ({}, EVOLUTION),
    "fpdgd": ({"kind": "fpdgd"}, {}),
    "half-delta": ({"kind": "fpdgd", "clip": "half-delta"}, {}),
    "response": ({"kind": "randomized-response"}, EVOLUTION),
    "no lies": ({"kind": "randomized-response", "p": 1}, EVOLUTION),
    "mostly lies": ({"kind": "randomized-response", "p": 0.01}, EVOLUTION),
    "gaussian": ({"kind": "gaussian"}, {}),
    "not secure": ({"kind": "gaussian", "secure_aggregation": False}, {}),
    "laplace": ({"kind": "laplace"}, {}),
    "local": ({"kind": "gaussian", "trust": "local"}, {}),
    "local laplace": ({"kind": "laplace", "trust": "local"}, {}),
}


@pytest.mark.parametrize(("privacy", "more"), KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("federation", [{}, {"cohort": 10, "round_robin": True}, {"cohort": 10}, {"clients": 1}])
def test_every_kind_has_a_card_that_names_its_adversaries(privacy, more, federation):
    made = card(privacy, federation, **more)
    assert {"recipients", "network"} <= {one["id"] for one in made["adversaries"]}
    assert sum(one["id"].startswith("server") and one["here"] for one in made["adversaries"]) == 1
    assert all(one["who"] and one["sees"] for one in made["adversaries"])
    assert made["sentences"]
    assert all(said.endswith(".") and "None" not in said and "nan" not in said for said in made["sentences"])
    if privacy:
        figures = (made["round"], made["run"], made["message"])
        assert all(one["epsilon"] == "infinite" or one["epsilon"] >= 0 for one in figures)
        named = [one for one in made["adversaries"] if one["id"] != "network"]
        assert all(one["unit"] == "user" and one["adjacency"] in ("zero-out", "replace") for one in named)


def test_without_a_mechanism_nothing_is_private():
    made = card()
    assert {one["epsilon"] for one in made["adversaries"] if one["id"] != "network"} == {"infinite"}
    assert made["nominal_epsilon"] is None


def test_who_learns_alone_tells_nobody():
    made = card(personal={"kind": "local_only"})
    assert [one["epsilon"] for one in made["adversaries"]] == [0.0]
    assert made["visible"] == []


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
    made = card({"kind": "fpdgd", "epsilon": 1.2, "sensitivity": 3.0, "clip": clip}, {"clients": 1000})
    assert made["nominal_epsilon"] == 1.2
    assert made["round"] == {"epsilon": pytest.approx(factor * math.sqrt(46) * 1.2), "delta": 0.0}
    event = fpdgd_event(Fpdgd(1.2, 3.0, clip), holders=1000, parameters=46)
    assert made["run"]["rdp"] == pytest.approx(epsilon({event: 20}, 1e-5).rdp)
    assert (made["run"]["pld"], made["run"]["quoted"]) == (None, "rdp")
    assert made["adjacency"] == "replace"


def test_the_server_of_fpdgd_sees_through_a_share_and_the_sum_holds():
    made = card({"kind": "fpdgd"}, {"clients": 1000})
    assert made["message"]["epsilon"] == "infinite"
    assert against(made, "server")["epsilon"] == "infinite"
    assert against(made, "server")["here"]
    assert against(made, "server-sums")["epsilon"] == made["run"]["epsilon"]
    assert not against(made, "server-sums")["here"]


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
    ],
    ids=["attackers send no noise", "a median is no sum", "uneven weights are no sum"],
)
def test_fpdgd_without_the_sum_of_all_shares_protects_nobody(more):
    made = card({"kind": "fpdgd"}, **{"federation": {"clients": 10}, **more})
    assert made["run"]["epsilon"] == "infinite"
    assert made["shares"]["present"] < made["shares"]["noise_contributors"]


def test_responses_add_up_over_a_message_and_a_run():
    made = card({"kind": "randomized-response", "p": 0.5}, {"interactions": 4, "rounds": 3}, **EVOLUTION)
    one = math.log(0.5 * 10 / 0.5)  # MaxRR has 11 outcomes
    assert made["nominal_epsilon"] == pytest.approx(one)
    assert made["message"]["epsilon"] == pytest.approx(4 * one)
    assert (made["interactions"], made["unit"]) == (12, "interaction")
    assert made["run"]["pure"] == pytest.approx(12 * one)
    assert made["run"]["epsilon"] <= 12 * one * 1.001
    assert against(made, "server-local")["epsilon"] == made["run"]["epsilon"]


def test_responses_that_never_lie_hide_nothing():
    made = card({"kind": "randomized-response", "p": 1}, **EVOLUTION)
    assert {made["nominal_epsilon"], made["message"]["epsilon"], made["run"]["epsilon"]} == {"infinite"}


@pytest.mark.parametrize("p", [0.01, 0.05])
def test_lying_more_often_than_guessing_tells_as_much_as_its_odds(p):
    event = response_event(RandomizedResponse(p), outcomes=11)
    assert pure_epsilon(event) == pytest.approx(math.log((1 - p) / 10 / p), abs=1e-6)
    # two answers at the yes-or-no question that gives away as much: by enumeration, at delta 0.05
    lie, truth = 1 - event.noise, event.noise
    wish = epsilon({event: 2}, 0.05).epsilon
    mass = [
        comb(2, k) * truth ** (2 - k) * lie**k - math.exp(wish) * comb(2, k) * lie ** (2 - k) * truth**k
        for k in range(3)
    ]
    assert sum(max(0.0, one) for one in mass) <= 0.05 + 1e-6


# --- honest ones ----------------------------------------------------------------------------------------------------


def test_a_gaussian_run_spends_what_was_asked_for():
    made = card({"kind": "gaussian", "epsilon": 2.0}, {"clients": 100})
    assert made["run"]["quoted"] == "pld"
    assert 1.98 < made["run"]["epsilon"] <= 2.0 < made["run"]["rdp"] < 2.3
    assert made["round"]["epsilon"] < made["run"]["epsilon"]


def test_the_gaussian_figures_in_closed_form():
    made = card({"kind": "gaussian", "epsilon": 2.0}, {"clients": 100})
    mu = 1 / noise_multiplier(2.0, 1e-5, 20)
    of_run = {name: against(made, name)["epsilon"] for name in ("client", "server")}
    assert made["round"]["epsilon"] == pytest.approx(gaussian_epsilon(mu, 1e-5))
    assert made["message"]["epsilon"] == pytest.approx(gaussian_epsilon(mu * 10, 1e-5))  # one share of a hundred
    assert of_run["client"] == pytest.approx(gaussian_epsilon(mu * math.sqrt(20 * 100 / 99), 1e-5))
    assert of_run["server"] == pytest.approx(gaussian_epsilon(mu * math.sqrt(20 * 100), 1e-5))
    fewer = {one["percent"]: one["epsilon"] for one in made["shares"]["fewer"]}
    assert fewer[50] == pytest.approx(gaussian_epsilon(mu * math.sqrt(20 / 0.5), 1e-5))
    assert fewer[90] == pytest.approx(gaussian_epsilon(mu * math.sqrt(20 / 0.9), 1e-5))


def test_noise_for_the_ninety_percent_holds_when_ten_are_missing():
    made = card({"kind": "gaussian", "min_participation": 0.9}, {"clients": 100})
    assert {one["percent"]: one["epsilon"] <= 1.0 for one in made["shares"]["fewer"]} == {90: True, 50: False}
    assert made["shares"]["noise_contributors"] == 90


def test_the_server_is_as_far_away_as_secure_aggregation_says():
    for secure in (True, False):
        made = card({"kind": "gaussian", "secure_aggregation": secure}, {"clients": 100})
        assert against(made, "server-sums")["here"] is secure
        assert against(made, "server")["here"] is not secure
        assert against(made, "server")["epsilon"] > 10 * against(made, "server-sums")["epsilon"]


def test_who_trusts_nobody_has_the_same_figure_against_everybody():
    made = card({"kind": "gaussian", "trust": "local"}, {"clients": 100})
    assert made["shares"] is None
    assert against(made, "server-local")["epsilon"] == against(made, "recipients")["epsilon"] <= 1.0


def test_laplace_holds_at_delta_zero():
    made = card({"kind": "laplace", "epsilon": 1.0}, {"clients": 100})
    assert made["run"]["pure"] == pytest.approx(1.0)
    assert made["run"]["epsilon"] < 1.0  # at delta 1e-5
    assert made["round"]["epsilon"] == pytest.approx(1 / 20)


def test_another_delta_gives_another_figure():
    usual, strict = (card({"kind": "gaussian"}, {"clients": 100}, delta=delta) for delta in (None, 1e-9))
    assert (usual["delta"], strict["delta"]) == (1e-5, 1e-9)
    assert strict["run"]["epsilon"] > usual["run"]["epsilon"]


def test_a_cohort_pays_for_the_rounds_it_takes_part_in_and_sampling_earns_nothing():
    made = card({"kind": "fpdgd"}, {"clients": 100, "cohort": 10, "round_robin": True, "rounds": 20})
    assert (made["most_rounds"], made["rounds"]) == (2, 20)
    assert made["amplification"] in made["sentences"]
    assert card({"kind": "fpdgd"}, {"clients": 100})["amplification"] is None


def test_the_seed_in_which_somebody_takes_part_most_counts():
    federation = {"clients": 30, "cohort": 3, "rounds": 20}
    made = card({"kind": "fpdgd"}, federation, runs={"seeds": 5})
    single = [card({"kind": "fpdgd"}, federation, runs={"first_seed": s})["most_rounds"] for s in range(1, 6)]
    assert made["most_rounds"] == max(single)
    assert single[made["seed"] - 1] == max(single)


# --- the ledger of a run --------------------------------------------------------------------------------------------


def test_settings_of_one_kind_share_a_ledger_and_users_who_are_alike_a_row():
    honest, open_ = setting({"kind": "gaussian"}), setting()
    (kept,) = ledgers_of([honest, open_, honest], [FEATURES] * 3)
    assert (kept["settings"], kept["users"], kept["alike"]) == ([0, 2], 1000, True)
    book = ledger.loads(json.dumps(kept["ledger"]))
    assert book.counts.tolist() == [[20]]
    assert ledger.spent(book).epsilon <= book.budget == 1.0


def test_users_who_differ_have_their_own_counts():
    (kept,) = ledgers_of([setting({"kind": "fpdgd"}, {"clients": 30, "cohort": 3})], [FEATURES])
    book = ledger.loads(json.dumps(kept["ledger"]))
    assert book.counts.shape == (30, 1)
    assert book.counts.sum() == 20 * 3
