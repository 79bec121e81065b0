"""One single run: a setting on one fold from one seed, and the rows it leaves."""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from foltr.clicks.models import behaviour
from foltr.data.dataset import Dataset, Fold
from foltr.engines import compiled
from foltr.errors import SpecError
from foltr.experiments.spec import Setting
from foltr.federation.rounds import Central, Task, run
from foltr.metrics import DISCOUNT, evaluate
from foltr.rankers import Linear, RankerKind
from foltr.types import Array

RECORDED = 1000  # rows kept of each online metric, about
EVALUATED = 100  # offline evaluations of a run, about
_RANKERS = 32  # evaluated with one matrix product


class Single(NamedTuple):
    """What a single run leaves."""

    rounds: Array  # [rows] at which online values were kept: the mean since the row before
    online: Array  # [3, rows] nDCG@10, MaxRR, discounted nDCG@10 so far
    evaluated: Array  # [evaluations] rounds
    offline: Array  # [2, evaluations] nDCG@10, MRR@10
    parameters: Array  # [P] at the end
    interactions: int
    seconds: float


class Tick(NamedTuple):
    """How far a single run is."""

    interactions: int
    quality: float  # mean online nDCG@10 since the last tick


def task_of(made: Setting, fold: Fold, seed: int) -> Task:
    """Everything that decides the numbers of a single run."""
    longest = int(np.diff(fold.train.offsets).max())
    if made.users.shown > longest:
        raise SpecError(
            f"users.shown = {made.users.shown}: the longest list of {fold.name} fold {fold.fold} has {longest} "
            f"documents; use at most {longest}"
        )
    users = (behaviour(made.users, grades=fold.grades),)
    return Task(fold.train, fold.grades, users, made.ranker, made.learner, made.federation, made.privacy, seed)


def interactions_in(made: Setting) -> int:
    """Interactions of one single run."""
    federation = made.federation
    if isinstance(federation, Central):
        return federation.batch * federation.rounds
    taking_part = federation.cohort or federation.clients
    pattern = np.atleast_1d(federation.interactions)
    repeated = pattern[np.arange(federation.clients) % len(pattern)]
    return int(repeated.mean() * taking_part) * federation.rounds


def execute(made: Setting, fold: Fold, seed: int, threads: int = 1) -> Iterator[Tick | Single]:
    """Ticks on the way, the result at the end."""
    task = task_of(made, fold, seed)
    rounds = made.federation.rounds
    every = made.runs.evaluate_every or max(1, rounds // EVALUATED)
    stops = sorted({1, *range(every, rounds + 1, every), rounds})
    wanted, began, interactions = set(stops), time.perf_counter(), 0
    ndcg, max_rr = np.empty(rounds), np.empty(rounds)
    kept: list[Array] = []
    parameters = np.empty(0)
    for progress in run(task, compiled.engine(task, threads), stops):
        parameters = progress.parameters
        since = slice(progress.round - len(progress.ndcg), progress.round)
        ndcg[since], max_rr[since] = progress.ndcg, progress.max_rr
        interactions += progress.interactions
        if progress.round in wanted:
            kept.append(parameters)
        yield Tick(progress.interactions, float(progress.ndcg.mean()))
    at, online = thin(ndcg, max_rr)
    offline = offline_quality(made.ranker, np.stack(kept), fold.test, fold.grades)
    yield Single(at, online, np.array(stops), offline, parameters, interactions, time.perf_counter() - began)


def thin(ndcg: Array, max_rr: Array) -> tuple[Array, Array]:
    """Rounds at which rows are kept (always the first and the last), and the values there."""
    rounds = len(ndcg)
    every = max(1, rounds // RECORDED)
    at = np.array(sorted({1, *range(every, rounds + 1, every), rounds}))
    begin = np.concatenate([[0], at[:-1]])
    spans = (at - begin).astype(float)
    means = [np.add.reduceat(values, begin) / spans for values in (ndcg, max_rr)]
    so_far = np.cumsum(ndcg * DISCOUNT ** np.arange(rounds))[at - 1]
    return at, np.stack([*means, so_far])


def offline_quality(ranker: RankerKind, parameters: Array, test: Dataset, grades: int) -> Array:
    """[2, rankers] nDCG@10 and MRR@10 of rankers [rankers, P], a block of them at a time."""
    parts = []
    for first in range(0, len(parameters), _RANKERS):
        block = parameters[first : first + _RANKERS]
        quality = evaluate(scorer(ranker, block), test.features, test.labels, test.offsets, grades=grades)
        parts.append(np.stack(quality))
    return np.concatenate(parts, axis=1)


def scorer(ranker: RankerKind, block: Array) -> Callable[[Array], Array]:
    """features [n, d] -> float32 scores [n, rankers]; linear rankers share one matrix product."""
    if isinstance(ranker, Linear):
        weights = np.ascontiguousarray(block.T, dtype=np.float32)
        return lambda features: features @ weights
    return lambda features: np.stack([ranker.score(one, features) for one in block], axis=1).astype(np.float32)
