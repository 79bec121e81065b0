"""The planner: which releases a federation of this size should make for a wish of privacy, and how good it will be.

Candidates differ in how often a person's update is released (fewer releases: more searches in each, less noise), in
the clip, and in whether everybody takes part or two halves by turns. Noise is sized for the holders that are left after
dropouts. Each candidate is tried in simulation with the machine code of the lab. Of those that cannot be told from the
best one, everybody at once and the most releases are recommended: people then profit earlier. What it will bring, what
no privacy would and what each person has alone come from further runs which the choice did not see: the best of many
trials looks better than it is.

A simulation has at most so many people as fit into `SEARCHES` of them; the noise of the mean is that of the real
number. The shares of noise are drawn as their sum, which has the same distribution.

Differs from the paper: no paper plans.
"""

import math
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from foltr.clicks import Users, behaviour
from foltr.lab.data import catalog
from foltr.lab.data.dataset import Fold
from foltr.lab.simulation import compiled
from foltr.lab.simulation.compiled import Compiled
from foltr.errors import SpecError
from foltr.lab.simulation.evaluation import offline_quality
from foltr.federation.schedule import in_turn
from foltr.federation.round import Federated, Task
from foltr.learners.pdgd import Pdgd
from foltr.privacy.calibration import gaussian_epsilon, noise_multiplier
from foltr.privacy.mechanisms import NoPrivacy, clip_updates
from foltr.rankers import Linear
from foltr.rng import stream
from foltr.types import Array

DATA = "synthetic-mq2007@600"
RELEASES = (1, 2, 5, 10, 20, 50)
TURNS = (5, 10)  # releases a person that are also tried with two halves by turns
CLIPS = (0.5, 1.0)  # of the usual norm of an update
PEOPLE, SEARCHES = 2000, 200_000  # most of them in a simulation
LOOK = (1, 2, 3)  # seeds to choose by
FRESH = (4, 5, 6, 7, 8)  # seeds to tell by what the choice is worth
NEAR = 0.01  # nDCG@10 that privacy may cost to be called good
FEWER = (1 / 2, 1 / 4, 1 / 8, 1 / 16)  # of the noise, when looking for what would help
_ALONE = 20  # people who are followed learning alone


class Target(NamedTuple):
    clients: int
    epsilon: float
    delta: float
    weeks: int
    searches: int = 40  # of a person in a week
    dropout: float = 0.1
    data: str = DATA

    @property
    def total(self) -> int:
        """Searches of a person in all."""
        return self.weeks * self.searches


class Candidate(NamedTuple):
    releases: int  # of one person
    halves: bool  # two halves by turns
    interactions: int  # in a release
    clip: float
    multiplier: float  # deviation of the noise in a sum, over the clip
    holders: int  # of noise in a round, after dropouts


class Tried(NamedTuple):
    """nDCG@10, one value a seed."""

    candidate: Candidate
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def sd(self) -> float:
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else 0.0


class Bench(NamedTuple):
    """What simulations run on: the same people, searches and clicks for every candidate of a seed."""

    wish: Target
    fold: Fold
    engines: dict[int, Compiled]
    people: int


def check(wish: Target) -> None:
    """Refuses what cannot be planned, with the range that can."""
    rules = {
        f"clients = {wish.clients}: a federation needs two people at least": wish.clients >= 2,
        f"epsilon = {wish.epsilon:g}: use a positive number, such as 1": 0 < wish.epsilon < math.inf,
        f"delta = {wish.delta:g}: use a number between 0 and 1, such as 1e-5": 0 < wish.delta < 1,
        f"weeks = {wish.weeks}: use one week at least": wish.weeks >= 1,
        f"searches = {wish.searches}: use one search a week at least": wish.searches >= 1,
        f"dropout = {wish.dropout:g}: use a share from 0 to below 1, such as 0.1": 0 <= wish.dropout < 1,
    }
    for complaint, fine in rules.items():
        if not fine:
            raise SpecError(complaint)


def bench(wish: Target) -> Bench:
    """Loads the data and makes the engines."""
    check(wish)
    fold = catalog.load(wish.data, fold=1)
    people = min(wish.clients, PEOPLE, max(20, SEARCHES // wish.total))
    users = (behaviour(Users(), grades=fold.grades),)
    threads = min(2, os.cpu_count() or 1)

    def engine(seed: int) -> Compiled:
        federation = Federated(people, 1, 1)
        task = Task(fold.train, fold.grades, users, Linear(), Pdgd(), federation, NoPrivacy(), seed)
        return compiled.engine(task, threads)

    return Bench(wish, fold, {seed: engine(seed) for seed in (*LOOK, *FRESH)}, people)


def candidates(bench: Bench) -> list[Candidate]:
    """All that are worth trying with the searches that people make."""
    return [
        _candidate(bench, releases, factor, halves=halves)
        for releases in RELEASES
        if releases <= bench.wish.total
        for halves in (False, True)
        if not halves or (releases in TURNS and bench.wish.clients >= 4)
        for factor in CLIPS
    ]


def _candidate(bench: Bench, releases: int, factor: float, *, halves: bool) -> Candidate:
    wish, interactions = bench.wish, bench.wish.total // releases
    taking_part = wish.clients // (2 if halves else 1)
    clip = float(f"{factor * _usual_norm(bench, interactions):.2g}")
    multiplier = noise_multiplier(wish.epsilon, wish.delta, releases)
    holders = max(1, math.floor(taking_part * (1 - wish.dropout)))
    return Candidate(releases, halves, interactions, clip, multiplier, holders)


def _usual_norm(bench: Bench, interactions: int) -> float:
    """Of an update of the first release: the median over some people."""
    engine, people = bench.engines[LOOK[0]], np.arange(min(bench.people, _ALONE))
    start = _start(bench)
    moved, _ = engine.train(start, engine.prepare(people, np.full(len(people), interactions)), round=1)
    return max(float(np.median(np.sqrt(np.square(moved - start).sum(axis=1)))), 1e-3)


def _start(bench: Bench) -> Array:
    return Linear().start(bench.fold.train.features.shape[1], 0)


def tried(bench: Bench) -> Iterator[Tried]:
    """Every candidate, one after the other."""
    for candidate in candidates(bench):
        yield Tried(candidate, _qualities(bench, candidate, LOOK))


def chosen(found: list[Tried]) -> Candidate:
    """Of those within a standard error of the best: everybody before halves, then most releases, then the better."""
    spread = math.sqrt(np.mean([one.sd**2 for one in found]))
    error = spread * math.sqrt(2 / len(found[0].values))  # of the difference between two of them
    best = max(one.mean for one in found)
    near = [one for one in found if one.mean >= best - error]
    return max(near, key=lambda one: (not one.candidate.halves, one.candidate.releases, one.mean)).candidate


def _qualities(bench: Bench, candidate: Candidate, seeds: tuple[int, ...], noise: float = 1.0) -> tuple[float, ...]:
    return tuple(_quality(bench, _learned(bench, candidate, seed, noise)[None])[0] for seed in seeds)


def _learned(bench: Bench, candidate: Candidate, seed: int, noise: float) -> Array:
    """The ranker after all releases; `noise`: how much of it, where one asks what less would do."""
    engine, parameters = bench.engines[seed], _start(bench)
    groups = 2 if candidate.halves else 1
    in_round = max(1, bench.people // groups)
    staying = max(1, round(in_round * (1 - bench.wish.dropout)))
    steps = np.full(staying, candidate.interactions)
    for turn in range(1, candidate.releases * groups + 1):
        chosen = in_turn(bench.people, in_round, seed=seed, round=turn)
        lost = stream(seed, round=turn, purpose="choice").permutation(len(chosen))[staying:]
        updates, _ = engine.train(parameters, engine.prepare(np.delete(chosen, lost), steps), round=turn)
        if math.isfinite(candidate.clip):
            clip_updates(updates, parameters, clip=candidate.clip, norm="l2")
        parameters = updates.mean(axis=0)
        if candidate.multiplier:
            deviation = noise * candidate.multiplier * candidate.clip / candidate.holders
            parameters = parameters + deviation * stream(seed, round=turn, purpose="noise").normal(len(parameters))
    return parameters


def _alone(bench: Bench, seed: int) -> float:
    """Mean quality of people who learn from their own searches only."""
    people = np.arange(min(bench.people, _ALONE))
    steps = np.full(len(people), bench.wish.total)
    engine = bench.engines[seed]
    models, _ = engine.train(_start(bench), engine.prepare(people, steps), round=1)
    return float(np.mean(_quality(bench, models)))


def _quality(bench: Bench, models: Array) -> list[float]:
    measured = offline_quality(Linear(), models, bench.fold.test, bench.fold.grades)[0]
    return [float(one) for one in measured]


def what_would_help(bench: Bench, one: Candidate, goal: float) -> dict[str, Any]:
    """People or epsilon with which the noise is small enough for the goal, and the quality with twice the weeks."""
    longer = one._replace(interactions=2 * one.interactions)
    helps: dict[str, Any] = {"weeks": 2 * bench.wish.weeks, "ndcg_with_these_weeks": _mean(bench, longer)}
    for noise in FEWER:
        if _mean(bench, one, noise) >= goal:
            mu = math.sqrt(one.releases) / (one.multiplier * noise)
            people = math.ceil(bench.wish.clients / noise)
            return helps | {"clients": people, "epsilon": gaussian_epsilon(mu, bench.wish.delta)}
    return helps | {"clients": None, "epsilon": None}


def _mean(bench: Bench, candidate: Candidate, noise: float = 1.0) -> float:
    return float(np.mean(_qualities(bench, candidate, FRESH, noise)))


def concluded(bench: Bench, found: list[Tried]) -> dict[str, Any]:
    """The plan as plain data: everything that was tried, what is recommended, and a verdict."""
    best = chosen(found)
    worth = Tried(best, _qualities(bench, best, FRESH))
    open_ = Tried(best, _qualities(bench, best._replace(clip=math.inf, multiplier=0.0), FRESH))
    alone = Tried(best, tuple(_alone(bench, seed) for seed in FRESH))
    verdict = judged(worth, open_, alone)
    return {
        "wish": bench.wish._asdict(),
        "simulated": {
            "data": bench.fold.name, "note": bench.fold.note, "users": "navigational", "people": bench.people,
            "runs": len(LOOK), "further_runs": len(FRESH), "metric": "offline nDCG@10",
        },
        "candidates": [{**one.candidate._asdict(), **_measured(one)} for one in found],
        "recommended": {**best._asdict(), **_measured(worth)},
        "references": {"no privacy": _measured(open_), "alone": _measured(alone)},
        "verdict": verdict,
        "help": None if verdict == "good" else what_would_help(bench, best, open_.mean - NEAR),
    }  # fmt: skip


def judged(private: Tried, open_: Tried, alone: Tried) -> str:
    """good: hardly worse than without privacy; costly: better than alone, beyond chance; else too small."""
    if private.mean >= open_.mean - NEAR:
        return "good"
    error = math.sqrt((private.sd**2 + alone.sd**2) / len(private.values))
    return "costly" if private.mean > alone.mean + 2 * error else "too small"


def _measured(one: Tried) -> dict[str, Any]:
    return {"ndcg": one.mean, "sd": one.sd, "runs": len(one.values)}
