"""The lab's noise is simulated: who has the seed subtracts it. Two servers' noise is in the sum, once and whole."""

import math

import numpy as np
import pytest

from foltr.errors import SpecError
from foltr.lab.runs import single
from foltr.lab.runs.card import card_of
from foltr.lab.simulation import population
from foltr.lab.spec.parse import setting
from foltr.privacy.mechanisms import Gaussian, ReleaseContext
from foltr.rng import stream

CLIENTS, CLIP, SEED = 12, 100.0, 3


def spec(privacy):
    return setting({
        "data": {"name": "synthetic-mq2007@60", "folds": 1}, "runs": {"seeds": 1, "first_seed": SEED},
        "federation": {"clients": CLIENTS, "interactions": 4, "rounds": 1}, "privacy": privacy,
    })  # fmt: skip


def parameters(privacy):
    one = spec(privacy)
    *_, result = single.run_setting(one, population.load(one.data, 1), SEED, 1)
    return result.parameters


def shares_of(mechanism, clients):
    event = mechanism.event(ReleaseContext(CLIENTS, 1, 46, clients=CLIENTS))
    each = event.noise / math.sqrt(event.noise_contributors)
    return event, sum(each * stream(SEED, round=1, client=c, purpose="noise").normal(46) for c in clients)


@pytest.mark.parametrize(
    ("more", "drawn_by"),
    [
        ({}, range(CLIENTS)),
        ({"dropouts": 0.25, "corrupt": 0.1}, range(CLIENTS)),
        ({"servers": 2}, range(CLIENTS, CLIENTS + 2)),
    ],
    ids=["one server", "honest survivors", "two servers"],
)
def test_the_seed_subtracts_the_noise_of_a_lab_run(more, drawn_by):
    """What is left is the mean without noise, so the output of the run is no release."""
    noisy = parameters({"kind": "gaussian", "clip": CLIP, **more})
    plain = parameters({"kind": "none"})  # no update reaches the clip
    assert np.abs(noisy - plain).max() > 1.0
    event, noise = shares_of(Gaussian(clip=CLIP, **more), drawn_by)
    assert noisy - noise / CLIENTS == pytest.approx(plain, abs=1e-10)
    assert event.noise_contributors == {0: 12, 0.25: 7}.get(more.get("dropouts", 0)) or more == {"servers": 2}


def test_two_servers_add_the_noise_of_both():
    one, two = (Gaussian(clip=CLIP, servers=n).event(ReleaseContext(CLIENTS, 1, 46)) for n in (1, 2))
    assert two.noise == pytest.approx(math.sqrt(2) * one.noise)
    assert (two.noise_contributors, two.present) == (2, 1)  # one of them may be the adversary


@pytest.mark.parametrize("privacy", [{"kind": "gaussian"}, {"kind": "gaussian", "servers": 2}, {"kind": "laplace"}])
def test_a_card_of_the_lab_says_what_a_deployed_run_would_be_worth_and_why_this_one_is_no_release(privacy):
    found = card_of(spec(privacy), 46)
    assert found["simulated"] is True
    (said,) = [said for said in found["sentences"] if said.startswith("Simulated noise")]
    assert "anybody who knows the seed can subtract it" in said
    assert "no release, and no epsilon holds for it" in said
    assert "what a deployed run of this kind would be worth" in said


@pytest.mark.parametrize(
    "privacy",
    [
        {"servers": 2, "trust": "local"}, {"servers": 2, "secure_aggregation": False},
        {"servers": 2, "adaptive": 0.5},
    ],
    ids=str,
)  # fmt: skip
def test_two_servers_are_refused_where_they_mean_nothing(privacy):
    with pytest.raises(SpecError, match=r"privacy\.servers = 2"):
        spec({"kind": "gaussian", **privacy})
