"""The planner: how many releases a federation of this size should make for a privacy target, and how good it will be.

Candidates differ in how often a client's update is released (fewer releases: more searches in each, less noise), in the
clip, and in whether all clients take part in every round or two halves alternate. Noise is sized for the clients that
remain after dropouts. Each candidate is simulated with the compiled engine. Among candidates within one standard error
of the best, the planner prefers all clients in every round and then the most releases, because clients benefit earlier.
Expected quality, quality without privacy and quality of local-only training come from seeds that the selection did not
use: the best of many trials is biased upwards.

A simulation has at most as many clients as fit into `MAX_SEARCHES` searches; the noise of its mean is that of the real
number of clients. The clients' noise shares are drawn as their sum, which has the same distribution.

Differs from the paper: no paper plans.
"""

import math
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from rich import box
from rich.table import Table

from foltr.clicks import Users, click_model
from foltr.errors import SpecError
from foltr.federation.round import run_rounds
from foltr.federation.schedule import Members, Schedule, round_robin_cohort
from foltr.federation.server import ServerState, add, init_state, mean_delta
from foltr.lab.data import catalog
from foltr.lab.data.catalog import Fold
from foltr.lab.simulation import compiled
from foltr.lab.simulation.compiled import Compiled
from foltr.lab.simulation.evaluation import offline_quality
from foltr.lab.simulation.protection import clip_rows
from foltr.lab.simulation.task import Federated, Task
from foltr.learners.pdgd import Pdgd
from foltr.privacy.calibration import gaussian_epsilon, noise_multiplier
from foltr.privacy.mechanisms import NoPrivacy
from foltr.rankers import Linear
from foltr.rng import stream
from foltr.types import Array, Updates

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
    dropout: float = 0.1
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
    noise_contributors: int  # clients in a round, after dropouts


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
        f"clients = {target.clients}: a federation needs at least two clients": target.clients >= 2,
        f"epsilon = {target.epsilon:g}: use a number above 0 and up to {MAX_EPSILON:,}, such as 1": (
            0 < target.epsilon <= MAX_EPSILON
        ),
        f"delta = {target.delta:g}: use a number between 0 and 1, such as 1e-5": 0 < target.delta < 1,
        f"weeks = {target.weeks}: use at least one week": target.weeks >= 1,
        f"searches = {target.searches}: use at least one search a week": target.searches >= 1,
        f"dropout = {target.dropout:g}: use a share from 0 to below 1, such as 0.1": 0 <= target.dropout < 1,
    }
    for complaint, fine in limits.items():
        if not fine:
            raise SpecError(complaint)


def prepare(target: Target) -> Simulation:
    """Loads the data and builds one engine a seed."""
    check(target)
    fold = catalog.load(target.data, fold=1)
    clients = min(target.clients, MAX_CLIENTS, max(20, MAX_SEARCHES // target.total))
    users = (click_model(Users(), grades=fold.grades),)
    threads = min(2, os.cpu_count() or 1)

    def engine(seed: int) -> Compiled:
        federation = Federated(clients, 1, 1)
        task = Task(fold.train, fold.grades, users, Linear(), Pdgd(), federation, NoPrivacy(), seed)
        return compiled.engine(task, threads)

    return Simulation(target, fold, {seed: engine(seed) for seed in (*SELECTION_SEEDS, *EVALUATION_SEEDS)}, clients)


def candidates(simulation: Simulation) -> list[Candidate]:
    """All combinations that the clients' searches allow."""
    return [
        _candidate(simulation, releases, factor, halves=halves)
        for releases in RELEASES
        if releases <= simulation.target.total
        for halves in (False, True)
        if not halves or (releases in HALVED_RELEASES and simulation.target.clients >= 4)
        for factor in CLIPS
    ]


def _candidate(simulation: Simulation, releases: int, factor: float, *, halves: bool) -> Candidate:
    target, interactions = simulation.target, simulation.target.total // releases
    taking_part = target.clients // (2 if halves else 1)
    clip = float(f"{factor * _median_norm(simulation, interactions):.2g}")
    multiplier = noise_multiplier(target.epsilon, target.delta, releases)
    noise_contributors = max(1, math.floor(taking_part * (1 - target.dropout)))
    return Candidate(releases, halves, interactions, clip, multiplier, noise_contributors)


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
    stddev = (
        noise * candidate.multiplier * candidate.clip / candidate.noise_contributors if candidate.multiplier else 0.0
    )

    def clip(updates: Updates, model: Array, round: int) -> Updates:  # noqa: ARG001
        clip_rows(updates.values, clip=candidate.clip, norm="l2")
        return updates

    def add_noise(state: ServerState, delta: Array) -> ServerState:
        draws = stream(seed, round=state.version + 1, purpose="noise").normal(len(delta))
        return add(state, delta + stddev * draws if stddev else delta)

    rounds = run_rounds(
        init_state(_start(simulation)), _schedule(simulation, candidate, seed), simulation.engines[seed],
        aggregator=mean_delta, server_optimizer=add_noise, transform=clip if math.isfinite(candidate.clip) else None,
    )  # fmt: skip
    *_, last = rounds
    return last.parameters


def _schedule(simulation: Simulation, candidate: Candidate, seed: int) -> Schedule:
    """Everybody or halves in turn, less those who drop out."""
    groups = 2 if candidate.halves else 1
    in_round = max(1, simulation.clients // groups)
    staying = max(1, round(in_round * (1 - simulation.target.dropout)))

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
    measured = offline_quality(Linear(), models, simulation.fold.test, simulation.fold.grades)[0]
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
            "metric": "offline nDCG@10",
        },
        "candidates": [{**one.candidate._asdict(), **_measured(one)} for one in found],
        "recommended": {**best._asdict(), **_measured(worth)},
        "references": {"no privacy": _measured(unprotected), "local only": _measured(local_only)},
        "verdict": verdict,
        "help": None if verdict == "good" else what_would_help(simulation, best, unprotected.mean - AFFORDABLE),
    }  # fmt: skip


def judge(private: Trial, unprotected: Trial, local_only: Trial) -> str:
    """good: within `AFFORDABLE` of no privacy; costly: significantly above local-only training; else too small."""
    if private.mean >= unprotected.mean - AFFORDABLE:
        return "good"
    error = math.sqrt((private.sd**2 + local_only.sd**2) / len(private.values))
    return "costly" if private.mean > local_only.mean + 2 * error else "too small"


def _measured(one: Trial) -> dict[str, Any]:
    return {"ndcg": one.mean, "sd": one.sd, "runs": len(one.values)}


def table(plan: dict[str, Any]) -> Table:
    """All candidates for a terminal of 80 columns; the recommended one is marked."""
    rows = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", "releases", "searches each", "clip", "noise / clip", "nDCG@10 ± sd"):
        rows.add_column(name, justify="left" if name == "" else "right")
    for one in plan["candidates"]:
        mark = "→" if _same(one, plan["recommended"]) else ""
        who = f"{one['releases']}, halves" if one["halves"] else str(one["releases"])
        row = (mark, who, f"{one['interactions']:,}", f"{one['clip']:g}", f"{one['multiplier']:.3g}", _mean_sd(one))
        rows.add_row(*row, style="bold" if mark else "")
    rows.add_section()
    for name, one in (("recommended", plan["recommended"]), *plan["references"].items()):
        rows.add_row("", name, "further runs", "", "", _mean_sd(one))
    return rows


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(one[key] == other[key] for key in ("releases", "halves", "clip"))


def _mean_sd(one: dict[str, Any]) -> str:
    return f"{one['ndcg']:.4f} ± {one['sd']:.4f}"


def advice(plan: dict[str, Any]) -> list[str]:
    """The recommendation, its expected quality, the verdict, what would help, and how it was simulated."""
    verdict, *helps = _verdict(plan)
    if plan["verdict"] == "too small":  # the verdict comes before the recipe
        return [verdict, *helps, f"The best candidate: {_what(plan)}", _how_good(plan), _known_from(plan)]
    return [_what(plan), _how_good(plan), verdict, *helps, _known_from(plan)]


def _what(plan: dict[str, Any]) -> str:
    target, best = plan["target"], plan["recommended"]
    days = 7 * target["weeks"] / best["releases"]
    who = "two alternating halves of the clients" if best["halves"] else "all clients"
    times = "once" if best["releases"] == 1 else f"{best['releases']} times, every {days:.3g} days"
    return (
        f"For epsilon {target['epsilon']:g} at delta {target['delta']:g} per client, {target['clients']:,} clients and "
        f"{target['weeks']} weeks: {who} take part {times}, with {best['interactions']:,} searches in each "
        f"update; updates are clipped to an L2 norm of {best['clip']:g}; the noise in each sum has a standard "
        f"deviation of {best['multiplier'] * best['clip']:.3g} ({best['multiplier']:.3g} times the clip), contributed "
        f"by {best['noise_contributors']:,} clients, so that {100 * target['dropout']:g} % may drop out. "
        f"Secure aggregation is required."
    )


def _how_good(plan: dict[str, Any]) -> str:
    best, none, local_only = plan["recommended"], plan["references"]["no privacy"], plan["references"]["local only"]
    return (
        f"Expected nDCG@10 {_mean_sd(best)}; without privacy {_mean_sd(none)}; "
        f"local-only training {_mean_sd(local_only)}."
    )


def _verdict(plan: dict[str, Any]) -> list[str]:
    if plan["verdict"] == "good":
        return [f"This is within {AFFORDABLE:g} of no privacy: the target is affordable."]
    clients = plan["target"]["clients"]
    lost = plan["references"]["no privacy"]["ndcg"] - plan["recommended"]["ndcg"]
    if plan["verdict"] == "costly":
        verdict = f"Privacy costs {lost:.3f} nDCG@10, but the federation is still better than local-only training."
    else:
        verdict = (
            f"{clients:,} clients are too few for this target: with this noise a federation is no better than "
            f"local-only training."
        )
    return [verdict, _help(plan)]


def _help(plan: dict[str, Any]) -> str:
    helps = plan["help"]
    longer = f"{helps['weeks']} weeks would bring {helps['ndcg_with_these_weeks']:.4f}"
    if helps["clients"] is None:
        largest = 1 / NOISE_FRACTIONS[-1]
        return f"{largest:g} times the clients are not enough to come within {AFFORDABLE:g} of no privacy; {longer}."
    return (
        f"{helps['clients']:,} clients, or epsilon {helps['epsilon']:.2g}, would bring it within {AFFORDABLE:g} of "
        f"no privacy; {longer}."
    )


def _known_from(plan: dict[str, Any]) -> str:
    how, clients = plan["simulated"], plan["target"]["clients"]
    scaled = ""
    if how["clients"] < clients:
        scaled = f", {how['clients']:,} clients simulated with the noise of {clients:,}"
    note = f" ({how['note']})" if how["note"] else ""
    return (
        f"Simulated on {how['data']}{note}, fold 1, {how['users']} users: {how['runs']} runs of each candidate, and "
        f"{how['further_runs']} further runs of the choice and of its references{scaled}; sd over runs. The order of "
        f"candidates this close may differ on other data, and real data may be harder or easier."
    )
