"""The planner: candidates keep to the wish, their noise is that of the real federation, and the advice is plain."""

import io
import math

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import chi2

from foltr.errors import SpecError
from foltr.lab.runs import planner, planner_words
from foltr.lab.runs.planner import Candidate, Target, Tried
from foltr.privacy.calibration import gaussian_epsilon

DATA = "synthetic-mq2007@60"


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Simulations of some milliseconds."""
    monkeypatch.setattr(planner, "SEARCHES", 2000)
    monkeypatch.setattr(planner, "LOOK", (1, 2))
    monkeypatch.setattr(planner, "FRESH", (3, 4))


def wish(clients=200, epsilon=4.0, delta=1e-5, weeks=1, **more):
    return Target(clients, epsilon, delta, weeks, data=DATA, **more)


def plan(*arguments, **more):
    bench = planner.bench(wish(*arguments, **more))
    return planner.concluded(bench, list(planner.tried(bench)))


@pytest.mark.parametrize(
    "changes",
    [
        {"clients": 1}, {"epsilon": 0.0}, {"epsilon": math.inf}, {"delta": 0.0}, {"delta": 1.0}, {"weeks": 0},
        {"searches": 0}, {"dropout": 1.0}, {"dropout": -0.1},
    ],
    ids=str,
)  # fmt: skip
def test_wishes_that_cannot_be_are_refused_with_the_range(changes):
    (name,) = changes
    with pytest.raises(SpecError, match=f"^{name} = .*: (use|a federation needs)"):
        planner.bench(wish(**changes))


def test_candidates_keep_to_the_wish():
    asked = wish(clients=201, epsilon=2.0, dropout=0.2, weeks=3)
    found = planner.candidates(planner.bench(asked))
    assert {one.releases for one in found} == set(planner.RELEASES)
    assert {one.releases for one in found if one.halves} == set(planner.TURNS)
    for one in found:
        assert gaussian_epsilon(math.sqrt(one.releases) / one.multiplier, 1e-5) <= 2.0
        assert one.releases * one.interactions <= 3 * 40
        assert one.holders == math.floor((100 if one.halves else 201) * 0.8)


def test_nobody_releases_more_often_than_he_searches():
    found = planner.candidates(planner.bench(wish(searches=3)))
    assert {one.releases for one in found} == {1, 2}


@pytest.mark.parametrize(("clients", "halves"), [(50, False), (50, True), (1_000_000, False)])
def test_the_noise_is_that_of_the_real_number_of_people(clients, halves):
    """A clip of nothing leaves the noise alone: its deviation adds up over rounds. False alarm 1 in 1,000 each."""
    bench = planner.bench(wish(clients=clients))
    holders = math.floor(clients / (2 if halves else 1) * 0.9)
    one = Candidate(20, halves, interactions=1, clip=1e-9, multiplier=7.0, holders=holders)
    noise = np.concatenate([planner._learned(bench, one, seed, 1.0) for seed in bench.engines])
    rounds = 20 * (2 if halves else 1)
    squares = np.square(noise / (7.0 * 1e-9 / holders)).sum() / rounds
    # updates clipped to 1e-9 move the ranker by up to 1e-9 a round, which is as nothing to their noise with few people
    if clients == 50:
        below = chi2(noise.size).cdf(squares)
        assert 2 * min(below, 1 - below) > 1e-3
    else:
        assert np.abs(noise).max() <= rounds * (1e-9 + 6 * 7.0 * 1e-9 / holders)
    assert bench.people <= planner.PEOPLE


def test_less_noise_is_better():
    bench = planner.bench(wish(clients=100))
    one = planner.candidates(bench)[4]
    means = [planner._mean(bench, one._replace(multiplier=1000.0), noise) for noise in (1.0, 1e-6)]
    assert means[0] < means[1] - 0.05


def test_a_small_federation_is_told_so_and_what_would_help():
    made = plan(clients=3, epsilon=0.01)
    assert made["verdict"] == "too small"
    said = " ".join(planner_words.advice(made))
    assert said.startswith("A federation of 3 is too small for this wish")
    assert "2 weeks instead bring" in said


def test_a_large_federation_can_afford_it():
    made = plan(clients=1_000_000, epsilon=8.0)
    assert made["verdict"] == "good"
    assert made["help"] is None
    said = " ".join(planner_words.advice(made))
    assert "the wish is affordable" in said
    assert "people simulated with the noise that 1,000,000 have" in said


def test_the_plan_says_on_what_it_rests():
    made = plan()
    assert made["simulated"]["runs"] == 2
    assert made["simulated"]["further_runs"] == 2
    assert set(made["references"]) == {"no privacy", "alone"}
    said = " ".join(planner_words.advice(made))
    assert "Known from simulation on synthetic-mq2007" in said
    assert "2 runs of each candidate, and 2 further ones" in said
    out = io.StringIO()
    Console(file=out, width=80).print(planner_words.table(made))
    assert max(map(len, out.getvalue().splitlines())) <= 80
    assert out.getvalue().count("→") == 1


def test_the_same_wish_has_the_same_plan():
    assert plan() == plan()


def made_up(*means, sd=0.001):
    """Candidates with these means, two runs each."""
    return [
        Tried(Candidate(releases, halves, 8, 1.0, 3.0, 180), (mean - sd, mean + sd)) for releases, halves, mean in means
    ]


def test_of_those_that_cannot_be_told_apart_the_most_releases_by_everybody_are_chosen():
    found = made_up((1, False, 0.5), (5, False, 0.4995), (10, False, 0.45), (10, True, 0.5005))
    best = planner.chosen(found)
    assert (best.releases, best.halves) == (5, False)


def test_a_clear_winner_is_chosen():
    found = made_up((1, False, 0.5), (5, False, 0.52), (10, True, 0.55), (50, False, 0.4))
    best = planner.chosen(found)
    assert (best.releases, best.halves) == (10, True)


@pytest.mark.parametrize(
    ("private", "open_", "alone", "verdict"),
    [
        (0.50, 0.505, 0.4, "good"),
        (0.45, 0.5, 0.4, "costly"),
        (0.402, 0.5, 0.401, "too small"),  # not beyond chance
        (0.40, 0.5, 0.41, "too small"),
    ],
)
def test_verdicts(private, open_, alone, verdict):
    measured = made_up(*((1, False, mean) for mean in (private, open_, alone)))
    assert planner.judged(*measured) == verdict


def test_what_would_help_is_said_with_its_figure():
    made = plan(clients=3, epsilon=0.01)
    made["help"] = {"weeks": 2, "ndcg_with_these_weeks": 0.5, "clients": 400, "epsilon": 8.0}
    assert "400 people, or epsilon 8" in " ".join(planner_words.advice(made))
    made["help"] |= {"clients": None, "epsilon": None}
    assert "16 times the people would not yet" in " ".join(planner_words.advice(made))
