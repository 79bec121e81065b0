"""What makes no sense is refused before anything is computed, with the allowed range."""

import re

import numpy as np
import pytest
from forgetting import small

from foltr.errors import SpecError
from foltr.federation.personalization import LocalOnly
from foltr.federation.schedule import random_cohort, round_robin_cohort
from foltr.lab.runs.unlearning import check_forgetting, check_replacement
from foltr.lab.simulation.task import Central, Federated
from foltr.learners.foltr_es import FoltrEs
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import Fpdgd
from foltr.rankers import Mlp
from foltr.unlearning.replay import negate

TASK = small(Federated(10, 5, 100))
SOUND = {"forget_clients": [9], "keep_every": 10, "local_steps": 3}


def test_the_setting_of_the_thesis_is_allowed():
    for keep_every in (5, 10, 20):
        for local_steps in (1, 2, 3, 4):
            check_forgetting(TASK, forget_clients=[9], keep_every=keep_every, local_steps=local_steps)
    check_replacement(TASK, forget_clients=[9], z=2.0)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"forget_clients": [10]}, "client 10 never took part; the clients are 0 .. 9"),
        ({"forget_clients": [-1]}, "client -1 never took part; the clients are 0 .. 9"),
        ({"forget_clients": []}, "name at least one client"),
        ({"forget_clients": [3, 3]}, "each of them once"),
        ({"forget_clients": range(10)}, "name at most 9"),
        ({"keep_every": 0}, "use 1 .. 100"),
        ({"keep_every": 101}, "use 1 .. 100"),
        ({"local_steps": 0}, "use 1 .. 4"),
        ({"local_steps": 5}, "use 1 .. 4"),
    ],
)
def test_a_request_out_of_range_names_the_range(wrong, said):
    with pytest.raises(SpecError, match=re.escape(said)):
        check_forgetting(TASK, **{**SOUND, **wrong})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"federation": Central(1, 100)}, "needs clients"),
        ({"learner": FoltrEs()}, "use learner kind = 'pdgd'"),
        ({"learner": Pdgd(prox_mu=0.1)}, "leave out `prox_mu`"),
        ({"warm_up": 100}, "leave out"),
        ({"personal": LocalOnly()}, "leave out"),
        ({"transform": negate([1], 2.0)}, "leave out others"),
        ({"privacy": Fpdgd()}, "use privacy kind = 'none'"),
        ({"federation": Federated(10, 5, 100, aggregator="median")}, "use 'fedavg'"),
        ({"federation": Federated(10, 1, 100)}, "use interactions = 2 or more"),
        ({"federation": Federated(10, (5, 2), 100)}, "use 1 .. 1"),
        ({"federation": Federated(10, 5, 10**7), "ranker": Mlp(1024)}, "use keep_every ="),
    ],
)
def test_a_task_in_which_nothing_can_be_forgotten_is_refused(change, said):
    with pytest.raises(SpecError, match=re.escape(said)):
        check_forgetting(TASK._replace(**change), **SOUND)


def test_a_client_that_no_cohort_drew_has_nothing_to_forget():
    rare = TASK._replace(federation=Federated(1000, 5, 20, cohort=2))
    drawn = {int(client) for round in range(1, 21) for client in random_cohort(1000, 2, seed=rare.seed, round=round)}
    check_forgetting(rare, **{**SOUND, "forget_clients": [min(drawn)]})
    with pytest.raises(SpecError, match="was in none of the 20 cohorts of 2"):
        check_forgetting(rare, **{**SOUND, "forget_clients": [min(set(range(1000)) - drawn)]})


def test_whoever_took_part_by_round_robin_can_be_forgotten():
    """Cohorts in turn are others than those at random: 2 rounds of 5 take in everybody but the 2 who are left over."""
    task = TASK._replace(federation=Federated(12, 5, 2, cohort=5, round_robin=True))
    cohorts = [round_robin_cohort(12, 5, seed=task.seed, round=round) for round in (1, 2)]
    took_part = set(np.concatenate(cohorts).tolist())
    assert len(took_part) == 10
    for client in range(12):
        if client in took_part:
            check_forgetting(task, forget_clients=[client])
        else:
            with pytest.raises(SpecError, match="was in none of the 2 cohorts of 5"):
                check_forgetting(task, forget_clients=[client])


@pytest.mark.parametrize("z", [0.0, -1.0, 19.0, float("nan")])
def test_an_attack_that_blows_the_model_up_is_refused(z):
    with pytest.raises(SpecError, match=re.escape("0 < z < 19")):
        check_replacement(TASK, forget_clients=[9], z=z)


def test_two_attackers_can_stretch_half_as_much():
    with pytest.raises(SpecError, match=re.escape("0 < z < 9")):
        check_replacement(TASK, forget_clients=[8, 9], z=9.0)
