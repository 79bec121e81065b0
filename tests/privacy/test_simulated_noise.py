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


def spec(privacy, mode="one-server"):
    return setting({
        "data": {"name": "synthetic-mq2007@60", "folds": 1}, "runs": {"seeds": 1, "first_seed": SEED},
        "federation": {"clients": CLIENTS, "interactions": 4, "rounds": 1}, "privacy": privacy,
        "secagg": {"mode": mode},
    })  # fmt: skip


def parameters(privacy, mode="one-server"):
    one = spec(privacy, mode)
    *_, result = single.run_setting(one, population.load(one.data, 1), SEED, 1)
    return result.parameters


def shares_of(mechanism, clients, mode):
    event = mechanism.event(ReleaseContext(CLIENTS, 1, 46, clients=CLIENTS, secagg_mode=mode))
    each = event.noise / math.sqrt(event.noise_contributors)
    return event, sum(each * stream(SEED, round=1, client=c, purpose="noise").normal(46) for c in clients)


@pytest.mark.parametrize(
    ("mode", "more", "drawn_by", "contributors"),
    [
        ("one-server", {}, range(CLIENTS), 12),
        ("one-server", {"dropouts": 0.25, "corrupt": 0.1}, range(CLIENTS), 7),
        ("two-servers", {}, range(CLIENTS, CLIENTS + 2), 2),
    ],
    ids=["one server", "honest survivors", "two servers"],
)
def test_the_seed_subtracts_the_noise_of_a_lab_run(mode, more, drawn_by, contributors):
    """What is left is the mean without noise, so the output of the run is no release."""
    noisy = parameters({"kind": "gaussian", "clip": CLIP, **more}, mode)
    plain = parameters({"kind": "none"})  # no update reaches the clip
    assert np.abs(noisy - plain).max() > 1.0
    event, noise = shares_of(Gaussian(clip=CLIP, **more), drawn_by, mode)
    assert noisy - noise / CLIENTS == pytest.approx(plain, abs=1e-10)
    assert event.noise_contributors == contributors


def test_two_servers_add_the_noise_of_both():
    context = ReleaseContext(CLIENTS, 1, 46)
    one, two = (Gaussian(clip=CLIP).event(context._replace(secagg_mode=mode)) for mode in ("one-server", "two-servers"))
    assert two.noise == pytest.approx(math.sqrt(2) * one.noise)
    assert (one.noise_by, two.noise_by) == ("clients", "servers")
    assert (two.noise_contributors, two.present) == (2, 1)  # one of them may be the adversary


@pytest.mark.parametrize(
    ("kind", "mode"), [("gaussian", "one-server"), ("gaussian", "two-servers"), ("laplace", "one-server")]
)
def test_a_card_of_the_lab_says_what_a_deployed_run_would_be_worth_and_why_this_one_is_no_release(kind, mode):
    found = card_of(spec({"kind": kind}, mode), 46)
    assert found["simulated"] is True
    (said,) = [said for said in found["sentences"] if said.startswith("Simulated noise")]
    assert "anybody who knows the seed can subtract it" in said
    assert "no release, and no epsilon holds for it" in said
    assert "what a deployed run of this kind would be worth" in said


@pytest.mark.parametrize(
    ("secure", "says"),
    [
        (True, ["is simulated"]),
        ("execute", ["protocol", "ran", "in one process"]),
    ],
    ids=["simulated", "executed"],
)
@pytest.mark.parametrize(("mode", "words"), [("one-server", "with one server"), ("two-servers", "with two servers")])
def test_the_card_names_the_mode_and_its_key(mode, words, secure, says):
    found = card_of(spec({"kind": "gaussian", "secure_aggregation": secure}, mode), 46)
    (said,) = [said for said in found["sentences"] if "secagg.mode" in said]
    for phrase in (f'{words} (secagg.mode = "{mode}")', *says):
        assert phrase in said


@pytest.mark.parametrize("more", [{"trust": "local"}, {"secure_aggregation": False}, {"adaptive": 0.5}], ids=str)
def test_two_servers_are_refused_where_they_mean_nothing(more):
    with pytest.raises(SpecError, match=r'secagg\.mode = "two-servers" goes with privacy\.trust = "sum"'):
        spec({"kind": "gaussian", **more}, "two-servers")
