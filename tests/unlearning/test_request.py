"""What makes no sense is refused before anything is computed, with the allowed range."""

import re

import pytest
from foltr.unlearning.request import check, check_attack
from foltr.unlearning.rounds import negate
from forgetting import small

from foltr.errors import SpecError
from foltr.federation.round import Central, Federated
from foltr.federation.schedule import pick
from foltr.learners.foltr_es import FoltrEs
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import Fpdgd
from foltr.rankers import Mlp

TASK = small(Federated(10, 5, 100))
SOUND = {"leavers": [9], "keep_every": 10, "local_steps": 3}


def test_the_setting_of_the_thesis_is_allowed():
    for keep_every in (5, 10, 20):
        for local_steps in (1, 2, 3, 4):
            check(TASK, leavers=[9], keep_every=keep_every, local_steps=local_steps)
    check_attack(TASK, leavers=[9], z=2.0)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"leavers": [10]}, "client 10 never took part; the clients are 0 .. 9"),
        ({"leavers": [-1]}, "client -1 never took part; the clients are 0 .. 9"),
        ({"leavers": []}, "name at least one client"),
        ({"leavers": [3, 3]}, "each of them once"),
        ({"leavers": range(10)}, "name at most 9"),
        ({"keep_every": 0}, "use 1 .. 100"),
        ({"keep_every": 101}, "use 1 .. 100"),
        ({"local_steps": 0}, "use 1 .. 4"),
        ({"local_steps": 5}, "use 1 .. 4"),
    ],
)
def test_a_request_out_of_range_names_the_range(wrong, said):
    with pytest.raises(SpecError, match=re.escape(said)):
        check(TASK, **{**SOUND, **wrong})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"federation": Central(1, 100)}, "needs a federation"),
        ({"learner": FoltrEs()}, "use learner kind = 'pdgd'"),
        ({"learner": Pdgd(prox_mu=0.1)}, "leave out `pull`"),
        ({"warm_up": 100}, "leave out"),
        ({"transform": negate([1], 2.0)}, "without other attackers"),
        ({"privacy": Fpdgd()}, "use privacy kind = 'none'"),
        ({"federation": Federated(10, 5, 100, aggregator="median")}, "use rule = 'fedavg'"),
        ({"federation": Federated(10, 1, 100)}, "use interactions = 2 or more"),
        ({"federation": Federated(10, (5, 2), 100)}, "use 1 .. 1"),
        ({"federation": Federated(10, 5, 10**7), "ranker": Mlp(1024)}, "use keep_every ="),
    ],
)
def test_a_task_in_which_nothing_can_be_forgotten_is_refused(change, said):
    with pytest.raises(SpecError, match=re.escape(said)):
        check(TASK._replace(**change), **SOUND)


def test_a_client_that_no_cohort_drew_has_nothing_to_forget():
    rare = TASK._replace(federation=Federated(1000, 5, 20, cohort=2))
    drawn = {int(client) for round in range(1, 21) for client in pick(1000, 2, seed=rare.seed, round=round)}
    check(rare, **{**SOUND, "leavers": [min(drawn)]})
    with pytest.raises(SpecError, match="was in none of the 20 cohorts of 2"):
        check(rare, **{**SOUND, "leavers": [min(set(range(1000)) - drawn)]})


@pytest.mark.parametrize("z", [0.0, -1.0, 19.0, float("nan")])
def test_an_attack_that_blows_the_model_up_is_refused(z):
    with pytest.raises(SpecError, match=re.escape("0 < z < 19")):
        check_attack(TASK, leavers=[9], z=z)


def test_two_attackers_can_stretch_half_as_much():
    with pytest.raises(SpecError, match=re.escape("0 < z < 9")):
        check_attack(TASK, leavers=[8, 9], z=9.0)
