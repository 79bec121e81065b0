"""The planner: how many releases a federation of this size should make for a privacy target, and how good it will be.

Candidates differ in how often a client's update is released (fewer releases: more searches in each, less noise), in the
clip, and in whether all clients take part in every round or two halves alternate (above 1,000 clients always halves, as
`secagg.guarantee` says). The plan is for one server (`secagg.mode`): noise is sized for the honest clients in every
sum, those that remain after dropouts, less the colluders of a malicious server. Each candidate is simulated with the
compiled engine. Among candidates within one error of the best, the planner prefers all clients in every round and then
the most releases, because clients benefit earlier.
Expected quality, quality without privacy and quality of local-only training come from seeds that the selection did not
use: the best of many trials is biased upwards. A federation that can promise no epsilon (`privacy.promise`) is refused.

A simulation has at most as many clients as fit into `MAX_SEARCHES` searches; the noise of its mean is that of the real
number of clients, for the smallest sum. The clients' noise shares are drawn as their sum.

The plan is plain data; `plan_words` prints it.

Differs from the paper: no paper plans.
"""

import math
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from foltr.clicks import Users, click_model
from foltr.clipping import clipped_to
from foltr.errors import SpecError
from foltr.federation.engine import EngineCollector
from foltr.federation.round import run_rounds
from foltr.federation.schedule import Members, Schedule, round_robin_cohort
from foltr.federation.server import ServerState, add, init_state, mean_delta
from foltr.lab.data import catalog
from foltr.lab.data.catalog import Fold
from foltr.lab.simulation import compiled
from foltr.lab.simulation.compiled import Compiled
from foltr.lab.simulation.evaluation import NDCG, offline_quality
from foltr.lab.simulation.task import Federated, Task
from foltr.learners.pdgd import Pdgd
from foltr.privacy.calibration import gaussian_epsilon, noise_multiplier
from foltr.privacy.mechanisms import Gaussian, NoPrivacy, ReleaseContext, survivors_and_colluders
from foltr.privacy.promise import check_promised, promise, words
from foltr.rankers import Linear
from foltr.rng import stream
from foltr.secagg.guarantee import FEWEST, LARGEST_COHORT
from foltr.types import Array, Dataset, Updates

DATA = "synthetic-mq2007@600"
RELEASES = (1, 2, 5, 10, 20, 50)
HALVED_RELEASES = (5, 10)  # releases of a client that are also tried with alternating halves
CLIPS = (0.5, 1.0)  # of the median norm of an update
MAX_EPSILON = 1000  # e^1000 is no protection, and beyond it the closed forms overflow
MAX_CLIENTS, MAX_SEARCHES = 2000, 200_000  # upper limits of a simulation
SELECTION_SEEDS = (1, 2, 3)  # the choice is made on these seeds
EVALUATION_SEEDS = (4, 5, 6, 7, 8)  # and measured on these
AFFORDABLE = 0.01  # nDCG@10 that privacy may cost for the verdict "good"
NOISE_FRACTIONS = (1 / 2, 1 / 4, 1 / 8, 1 / 16)  # of the noise, when looking for a federation that is large enough
_LOCAL_ONLY = 20  # clients of which local-only training is simulated


class Target(NamedTuple):
    """The guarantee that is asked for, and the federation that asks."""

    clients: int
    epsilon: float
    delta: float
    weeks: int
    searches: int = 40  # of a client in a week
    dropouts: float = 0.1
    corrupt: float = 0.1  # of all clients, that work for a malicious server
    data: str = DATA

    @property
    def total(self) -> int:
        """Searches of one client over all weeks."""
        return self.weeks * self.searches


class Candidate(NamedTuple):
    releases: int  # of one client
    halves: bool  # two halves of the clients alternate
    interactions: int  # in a release
    clip: float
    multiplier: float  # stddev of the noise in a sum / clip
    noise_contributors: int  # honest clients in every sum
    survivors: int  # messages in the smallest sum


class Trial(NamedTuple):
    """nDCG@10, one value a seed."""

    candidate: Candidate
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def sd(self) -> float:
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else 0.0


class Simulation(NamedTuple):
    """Data and engines: the same clients, searches and clicks for every candidate of a seed."""

    target: Target
    fold: Fold
    engines: dict[int, Compiled]
    clients: int


def check(target: Target) -> None:
    """Refuses values outside the range that can be planned, and states the range."""
    limits = {
        f"clients = {target.clients}: a federation needs at least three clients": target.clients >= FEWEST,
        f"epsilon = {target.epsilon:g}: use a number above 0 and up to {MAX_EPSILON:,}, such as 1": (
            0 < target.epsilon <= MAX_EPSILON
        ),
        f"delta = {target.delta:g}: use a number between 0 and 1, such as 1e-5": 0 < target.delta < 1,
        f"weeks = {target.weeks}: use at least one week": target.weeks >= 1,
        f"searches = {target.searches}: use at least one search a week": target.searches >= 1,
        f"dropouts = {target.dropouts:g}: use a share from 0 to below 1, such as 0.1": 0 <= target.dropouts < 1,
        f"corrupt = {target.corrupt:g}: use a share from 0 to below 1, such as 0.1": 0 <= target.corrupt < 1,
    }
    for complaint, fine in limits.items():
        if not fine:
            raise SpecError(complaint)


def prepare(target: Target) -> Simulation:
    """Loads the data and builds one engine a seed."""
    check(target)
    fold = catalog.load(target.data, fold=1)
    check_promised(target.clients, parameters=fold.train.features.shape[1], delta=target.delta,
                   dropouts=target.dropouts, corrupt=target.corrupt)  # fmt: skip
    clients = min(target.clients, MAX_CLIENTS, max(20, MAX_SEARCHES // target.total))
    users = (click_model(Users(), grades=fold.grades),)
    threads = min(2, os.cpu_count() or 1)

    def engine(seed: int) -> Compiled:
        federation = Federated(clients, 1, 1)
        task = Task(fold.train, fold.grades, users, Linear(), Pdgd(), federation, NoPrivacy(), seed)
        return compiled.engine(task, threads)

    return Simulation(target, fold, {seed: engine(seed) for seed in (*SELECTION_SEEDS, *EVALUATION_SEEDS)}, clients)


def candidates(simulation: Simulation) -> list[Candidate]:
    """All combinations that the clients' searches allow and that leave honest clients in every sum."""
    target = simulation.target
    found = [
        _candidate(simulation, releases, factor, halves=halves)
        for releases in RELEASES
        if releases <= target.total
        for halves in ((True,) if target.clients > LARGEST_COHORT else (False, True))
        if not halves or target.clients > LARGEST_COHORT or (releases in HALVED_RELEASES and target.clients >= 6)
        for factor in CLIPS
    ]
    return [one for one in found if one.noise_contributors >= 2]


def _candidate(simulation: Simulation, releases: int, factor: float, *, halves: bool) -> Candidate:
    target, interactions = simulation.target, simulation.target.total // releases
    taking_part = target.clients // (2 if halves else 1)
    clip = float(f"{factor * _median_norm(simulation, interactions):.2g}")
    multiplier = noise_multiplier(target.epsilon, target.delta, releases)
    mechanism = Gaussian(dropouts=target.dropouts, corrupt=target.corrupt)
    context = ReleaseContext(taking_part, releases, 1, clients=target.clients)
    survivors, colluders = survivors_and_colluders(mechanism, context)
    return Candidate(releases, halves, interactions, clip, multiplier, survivors - max(1, colluders), survivors)


def _median_norm(simulation: Simulation, interactions: int) -> float:
    """Median norm of a first update, over some clients."""
    engine, clients = simulation.engines[SELECTION_SEEDS[0]], np.arange(min(simulation.clients, _LOCAL_ONLY))
    start = _start(simulation)
    cohort = engine.prepare(Members(clients, np.full(len(clients), interactions)))
    moved, _ = engine.train(start, cohort, round=1)
    return max(float(np.median(np.sqrt(np.square(moved - start).sum(axis=1)))), 1e-3)


def _start(simulation: Simulation) -> Array:
    return Linear().init(simulation.fold.train.features.shape[1], 0)


def trials(simulation: Simulation) -> Iterator[Trial]:
    """Simulates every candidate, one after the other."""
    for candidate in candidates(simulation):
        yield Trial(candidate, _qualities(simulation, candidate, SELECTION_SEEDS))


def choose(found: list[Trial]) -> Candidate:
    """Within a standard error of the best: all clients before halves, then the most releases, then the higher mean."""
    spread = math.sqrt(np.mean([one.sd**2 for one in found]))
    error = spread * math.sqrt(2 / len(found[0].values))  # of the difference between two of them
    best = max(one.mean for one in found)
    near = [one for one in found if one.mean >= best - error]
    return max(near, key=lambda one: (not one.candidate.halves, one.candidate.releases, one.mean)).candidate


def _qualities(
    simulation: Simulation, candidate: Candidate, seeds: tuple[int, ...], noise: float = 1.0
) -> tuple[float, ...]:
    return tuple(_quality(simulation, _train(simulation, candidate, seed, noise)[None])[0] for seed in seeds)


def _train(simulation: Simulation, candidate: Candidate, seed: int, noise: float) -> Array:
    """The ranker after all releases; `noise`: fraction of the noise, to estimate a larger federation."""
    stddev = noise * noise_of_mean(candidate)

    def clip(updates: Updates, model: Array, round: int) -> Updates:  # noqa: ARG001
        return updates._replace(values=clipped_to(updates.values, clip=candidate.clip)[0])

    def add_noise(state: ServerState, delta: Array) -> ServerState:
        draws = stream(seed, round=state.version + 1, purpose="noise").normal(len(delta))
        return add(state, delta + stddev * draws if stddev else delta)

    transform = clip if math.isfinite(candidate.clip) else None
    rounds = run_rounds(
        init_state(_start(simulation)), _schedule(simulation, candidate, seed),
        EngineCollector(simulation.engines[seed], mean_delta, transform), server_optimizer=add_noise,
    )  # fmt: skip
    *_, last = rounds
    return last.parameters


def noise_of_mean(one: Candidate) -> float:
    """Standard deviation of the noise on the mean of the smallest sum, in which everybody's shares are."""
    if not one.multiplier:  # no privacy: nothing is clipped either
        return 0.0
    return one.multiplier * one.clip / math.sqrt(one.survivors * one.noise_contributors)


def _schedule(simulation: Simulation, candidate: Candidate, seed: int) -> Schedule:
    """Everybody or halves in turn, less those who drop out."""
    groups = 2 if candidate.halves else 1
    in_round = max(1, simulation.clients // groups)
    staying = max(1, round(in_round * (1 - simulation.target.dropouts)))

    def members(number: int) -> Members:
        chosen = round_robin_cohort(simulation.clients, in_round, seed=seed, round=number)
        lost = stream(seed, round=number, purpose="choice").permutation(len(chosen))[staying:]
        return Members(np.delete(chosen, lost), np.full(staying, candidate.interactions))

    return Schedule(range(1, candidate.releases * groups + 1), members, fixed=False)


def _local_only(simulation: Simulation, seed: int) -> float:
    """Mean quality of clients who learn from their own searches only."""
    clients = np.arange(min(simulation.clients, _LOCAL_ONLY))
    engine = simulation.engines[seed]
    cohort = engine.prepare(Members(clients, np.full(len(clients), simulation.target.total)))
    models, _ = engine.train(_start(simulation), cohort, round=1)
    return float(np.mean(_quality(simulation, models)))


def _quality(simulation: Simulation, models: Array) -> list[float]:
    measured = offline_quality(Linear(), models, simulation.fold.test, simulation.fold.grades)[NDCG]
    return [float(one) for one in measured]


def what_would_help(simulation: Simulation, one: Candidate, goal: float) -> dict[str, Any]:
    """Number of clients, or epsilon, at which quality reaches the goal; and the quality with twice the weeks."""
    longer = one._replace(interactions=2 * one.interactions)
    helps: dict[str, Any] = {"weeks": 2 * simulation.target.weeks, "ndcg_with_these_weeks": _mean(simulation, longer)}
    for noise in NOISE_FRACTIONS:
        if _mean(simulation, one, noise) >= goal:
            mu = math.sqrt(one.releases) / (one.multiplier * noise)
            clients = math.ceil(simulation.target.clients / noise)
            return helps | {"clients": clients, "epsilon": gaussian_epsilon(mu, simulation.target.delta)}
    return helps | {"clients": None, "epsilon": None}


def _mean(simulation: Simulation, candidate: Candidate, noise: float = 1.0) -> float:
    return float(np.mean(_qualities(simulation, candidate, EVALUATION_SEEDS, noise)))


def conclude(simulation: Simulation, found: list[Trial]) -> dict[str, Any]:
    """The plan as plain data: all candidates, the recommended one, references and a verdict."""
    best = choose(found)
    worth = Trial(best, _qualities(simulation, best, EVALUATION_SEEDS))
    unprotected = Trial(best, _qualities(simulation, best._replace(clip=math.inf, multiplier=0.0), EVALUATION_SEEDS))
    local_only = Trial(best, tuple(_local_only(simulation, seed) for seed in EVALUATION_SEEDS))
    verdict = judge(worth, unprotected, local_only)
    return {
        "target": simulation.target._asdict(),
        "simulated": {
            "data": simulation.fold.name, "note": simulation.fold.note, "users": "navigational",
            "clients": simulation.clients, "runs": len(SELECTION_SEEDS), "further_runs": len(EVALUATION_SEEDS),
            "metric": "offline nDCG@10", **_tested_queries(simulation.fold.test),
        },
        "candidates": [{**one.candidate._asdict(), **_measured(one)} for one in found],
        "recommended": {**best._asdict(), **_measured(worth)},
        "references": {"no privacy": _measured(unprotected), "local only": _measured(local_only)},
        "verdict": verdict,
        "promise": words(promise(
            simulation.target.clients, best.releases, parameters=simulation.fold.train.features.shape[1],
            delta=simulation.target.delta, dropouts=simulation.target.dropouts, corrupt=simulation.target.corrupt,
        )),
        "help": None if verdict == "good" else what_would_help(simulation, best, unprotected.mean - AFFORDABLE),
    }  # fmt: skip


def _tested_queries(test: Dataset) -> dict[str, int]:
    """The mean over all test queries is nDCG@10 times relevant_queries / queries: others count as 0."""
    relevant = np.maximum.reduceat(test.labels, test.offsets[:-1]) > 0
    return {"relevant_queries": int(np.count_nonzero(relevant)), "queries": len(relevant)}


def judge(private: Trial, unprotected: Trial, local_only: Trial) -> str:
    """good: within `AFFORDABLE` of no privacy; costly: significantly above local-only training; else too small."""
    if private.mean >= unprotected.mean - AFFORDABLE:
        return "good"
    error = math.sqrt((private.sd**2 + local_only.sd**2) / len(private.values))
    return "costly" if private.mean > local_only.mean + 2 * error else "too small"


def _measured(one: Trial) -> dict[str, Any]:
    return {"ndcg": one.mean, "sd": one.sd, "runs": len(one.values)}
