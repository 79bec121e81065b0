"""The planner: candidates keep to the target, their noise is that of the real federation, the advice names numbers."""

import io
import math

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import chi2

from foltr.errors import SpecError
from foltr.lab.runs import plan_words, planner
from foltr.lab.runs.planner import Candidate, Target, Trial
from foltr.privacy import ledger, release
from foltr.privacy.calibration import gaussian_epsilon
from foltr.secagg.guarantee import guarantee
from foltr.secagg.ring import Ring

DATA = "synthetic-mq2007@60"


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Simulations of some milliseconds."""
    monkeypatch.setattr(planner, "MAX_SEARCHES", 2000)
    monkeypatch.setattr(planner, "SELECTION_SEEDS", (1, 2))
    monkeypatch.setattr(planner, "EVALUATION_SEEDS", (3, 4))


def target(clients=200, epsilon=4.0, delta=1e-5, weeks=1, **more):
    return Target(clients, epsilon, delta, weeks, data=DATA, **more)


def plan(*arguments, **more):
    simulation = planner.prepare(target(*arguments, **more))
    return planner.conclude(simulation, list(planner.trials(simulation)))


@pytest.mark.parametrize(
    "changes",
    [
        {"clients": 2}, {"epsilon": 0.0}, {"epsilon": math.inf}, {"epsilon": 1e9}, {"delta": 0.0}, {"delta": 1.0},
        {"weeks": 0}, {"searches": 0}, {"dropouts": 1.0}, {"dropouts": -0.1}, {"corrupt": 1.0},
    ],
    ids=str,
)  # fmt: skip
def test_targets_out_of_range_are_refused_with_the_range(changes):
    (name,) = changes
    with pytest.raises(SpecError, match=f"^{name} = .*: (use|a federation needs)"):
        planner.prepare(target(**changes))


def test_candidates_keep_to_the_target():
    asked = target(clients=201, epsilon=2.0, dropouts=0.2, weeks=3)
    found = planner.candidates(planner.prepare(asked))
    assert {one.releases for one in found} == set(planner.RELEASES)
    assert {one.releases for one in found if one.halves} == set(planner.HALVED_RELEASES)
    for one in found:
        assert gaussian_epsilon(math.sqrt(one.releases) / one.multiplier, 1e-5) <= 2.0
        assert one.releases * one.interactions <= 3 * 40
        survivors = math.floor((100 if one.halves else 201) * 0.8)
        assert (one.survivors, one.noise_contributors) == (survivors, survivors - 21)  # a tenth of all 201 is corrupt


def test_above_a_thousand_clients_halves_take_turns():
    assert all(one.halves for one in planner.candidates(planner.prepare(target(clients=2000))))


def test_the_ledger_admits_all_planned_releases():
    """In the ring of a deployment, with the guarantee that a node derives itself."""
    asked = target(clients=200, epsilon=1.0, searches=200)
    terms = guarantee(200, dropouts=0.1, corrupt=0.1)
    found = [one for one in planner.candidates(planner.prepare(asked)) if not one.halves]
    assert max(one.releases for one in found) == 50
    for one in found:
        assert one.noise_contributors == terms.honest
        event = release.event_of(
            clip=one.clip, multiplier=one.multiplier, guarantee=terms, ring=Ring(200), parameters=46
        )
        book = ledger.begin(1, delta=1e-5, budget=1.0)
        assert ledger.admits(book, event, np.zeros(1, np.int64), one.releases)
        assert not ledger.admits(book, event, np.zeros(1, np.int64), one.releases + 1)


def test_no_client_releases_more_often_than_it_searches():
    found = planner.candidates(planner.prepare(target(searches=3)))
    assert {one.releases for one in found} == {1, 2}


@pytest.mark.parametrize(("clients", "halves"), [(50, False), (50, True), (1_000_000, False)])
def test_the_noise_is_that_of_the_real_number_of_clients(clients, halves):
    """A clip of nothing leaves the noise alone: its stddev adds up over rounds. False alarm 1 in 1,000 each."""
    simulation = planner.prepare(target(clients=clients))
    survivors = math.floor(clients / (2 if halves else 1) * 0.9)
    honest = survivors - clients // 10
    one = Candidate(20, halves, 1, clip=1e-9, multiplier=7.0, noise_contributors=honest, survivors=survivors)
    each = 7.0 * 1e-9 / math.sqrt(honest)  # a client's share; the mean of all has this over the root of the survivors
    noise = np.concatenate([planner._train(simulation, one, seed, 1.0) for seed in simulation.engines])
    rounds = 20 * (2 if halves else 1)
    squares = np.square(noise / (each / math.sqrt(survivors))).sum() / rounds
    # updates clipped to 1e-9 move the ranker by up to 1e-9 a round, which is as nothing to their noise with few clients
    if clients == 50:
        below = chi2(noise.size).cdf(squares)
        assert 2 * min(below, 1 - below) > 1e-3
    else:
        assert np.abs(noise).max() <= rounds * (1e-9 + 6 * each / math.sqrt(survivors))
    assert simulation.clients <= planner.MAX_CLIENTS


def test_less_noise_is_better():
    simulation = planner.prepare(target(clients=100))
    one = planner.candidates(simulation)[4]
    means = [planner._mean(simulation, one._replace(multiplier=1000.0), noise) for noise in (1.0, 1e-6)]
    assert means[0] < means[1] - 0.05


def test_a_small_federation_is_told_so_and_what_would_help():
    found = plan(clients=20, epsilon=0.01)
    assert found["verdict"] == "too small"
    said = " ".join(plan_words.advice(found))
    assert said.startswith("20 clients are too few for this target")
    assert "2 weeks would bring" in said


def test_a_large_federation_can_afford_it():
    found = plan(clients=1_000_000, epsilon=8.0)
    assert found["verdict"] == "good"
    assert found["help"] is None
    said = " ".join(plan_words.advice(found))
    assert "the target is affordable" in said
    assert "clients simulated with the noise of 1,000,000" in said


def test_the_plan_says_on_what_it_rests():
    found = plan()
    assert found["simulated"]["runs"] == 2
    assert found["simulated"]["further_runs"] == 2
    assert set(found["references"]) == {"no privacy", "local only"}
    said = " ".join(plan_words.advice(found))
    assert "Simulated on synthetic-mq2007" in said
    assert "2 runs of each candidate, and 2 further runs" in said
    out = io.StringIO()
    Console(file=out, width=80).print(plan_words.table(found))
    assert max(map(len, out.getvalue().splitlines())) <= 80
    assert out.getvalue().count("→") == 1


def test_the_same_target_has_the_same_plan():
    assert plan() == plan()


def made_up(*means, sd=0.001):
    """Candidates with these means, two runs each."""
    return [
        Trial(Candidate(releases, halves, 8, 1.0, 3.0, 160, 180), (mean - sd, mean + sd))
        for releases, halves, mean in means
    ]


def test_of_those_that_cannot_be_told_apart_the_most_releases_by_everybody_are_chosen():
    found = made_up((1, False, 0.5), (5, False, 0.4995), (10, False, 0.45), (10, True, 0.5005))
    best = planner.choose(found)
    assert (best.releases, best.halves) == (5, False)


def test_a_clear_winner_is_chosen():
    found = made_up((1, False, 0.5), (5, False, 0.52), (10, True, 0.55), (50, False, 0.4))
    best = planner.choose(found)
    assert (best.releases, best.halves) == (10, True)


@pytest.mark.parametrize(
    ("private", "unprotected", "local_only", "verdict"),
    [
        (0.50, 0.505, 0.4, "good"),
        (0.45, 0.5, 0.4, "costly"),
        (0.402, 0.5, 0.401, "too small"),  # not beyond chance
        (0.40, 0.5, 0.41, "too small"),
    ],
)
def test_verdicts(private, unprotected, local_only, verdict):
    measured = made_up(*((1, False, mean) for mean in (private, unprotected, local_only)))
    assert planner.judge(*measured) == verdict


def test_what_would_help_is_said_with_its_figure():
    found = plan(clients=20, epsilon=0.01)
    found["help"] = {"weeks": 2, "ndcg_with_these_weeks": 0.5, "clients": 400, "epsilon": 8.0}
    assert "400 clients, or epsilon 8" in " ".join(plan_words.advice(found))
    found["help"] |= {"clients": None, "epsilon": None}
    assert "16 times the clients are not enough" in " ".join(plan_words.advice(found))
