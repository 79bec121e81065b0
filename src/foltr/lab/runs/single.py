"""One single run: a setting on one fold from one seed, and the rows it leaves."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from foltr.errors import SpecError
from foltr.lab.audit.click_guessing import guessing, training
from foltr.lab.data.catalog import Fold, select
from foltr.lab.runs.unlearning import run_unlearning
from foltr.lab.simulation.engines import engine_for
from foltr.lab.simulation.evaluation import EVALUATED, Progress, RunResult, offline_quality, thin
from foltr.lab.simulation.population import Tested, task_of
from foltr.lab.simulation.rounds import run
from foltr.lab.spec.setting import Setting
from foltr.types import Array


def run_setting(setting: Setting, fold: Fold, seed: int, threads: int = 1) -> Iterator[Progress | RunResult]:
    """Yields progress and finally the result."""
    if setting.unlearning.method != "none":
        yield from run_unlearning(setting, fold, seed, threads)
        return
    if setting.audit.messages:
        yield from _audited(setting, fold, seed, threads)
        return
    task, tested = task_of(setting, fold, seed)
    rounds = setting.federation.rounds
    every = setting.runs.evaluate_every or max(1, rounds // EVALUATED)
    stops = sorted({1, *range(every, rounds + 1, every), rounds})
    wanted, began, interactions = set(stops), time.perf_counter(), 0
    ndcg, max_rr = np.empty(rounds), np.empty(rounds)
    stored: list[Array] = []  # [P], or [clients, P] where clients have rankers of their own
    parameters = np.empty(0)
    for progress in run(task, engine_for(task, threads), stops):
        parameters = progress.parameters
        since = slice(progress.round - len(progress.ndcg), progress.round)
        ndcg[since], max_rr[since] = progress.ndcg, progress.max_rr
        interactions += progress.interactions
        if progress.round in wanted:
            _check_numbers(setting, progress.parameters, progress.round)
            stored.append(parameters if progress.personal is None else progress.personal)
        yield Progress(progress.interactions, float(progress.ndcg[-1]))
    at, online = thin(ndcg, max_rr)
    offline, each = _quality(setting.ranker, stored, tested, fold.grades)
    called = tested.names or tuple(str(client) for client in range(len(each)))
    clients = np.array(called, dtype=str)[: len(each)]
    seconds = time.perf_counter() - began
    yield RunResult(
        at, online, np.array(stops), offline, parameters, interactions, seconds, client_ndcg=each, clients=clients
    )


def _check_numbers(setting: Setting, parameters: Array, round: int) -> None:
    if np.isfinite(parameters).all():
        return
    rate = getattr(setting.learner, "learning_rate", None)
    is_now = "" if rate is None else f" (it is {rate:g})"
    raise SpecError(
        f"by round {round} the ranker's parameters are not finite; lower learner.learning_rate{is_now}, or "
        f"whatever else drives them so far"
    )


def _audited(setting: Setting, fold: Fold, seed: int, threads: int) -> Iterator[Progress | RunResult]:
    """Training, then click guessing on messages from its ranker."""
    for event in run_setting(training(setting), fold, seed, threads):
        if isinstance(event, Progress):
            yield event
            continue
        began = time.perf_counter()
        further = guessing(setting, fold, event.parameters, seed)
        yield event._replace(
            seconds=event.seconds + time.perf_counter() - began,
            more=np.array(list(further.values())),
            names=np.array(list(further)),
        )


def _quality(ranker: Any, stored: list[Array], tested: Tested, grades: int) -> tuple[Array, Array]:
    """[2, evaluations] over all queries, or over clients with rankers of their own; [clients] nDCG@10 at the end."""
    personal = stored[0].ndim == 2
    if not personal:
        offline = offline_quality(ranker, np.stack(stored), tested.data, grades)
    own = [select(tested.data, pool) for pool in tested.pools] if _differ(tested.pools) else []
    if not personal:
        return offline, np.array([offline_quality(ranker, stored[-1][None], part, grades)[0, 0] for part in own])
    parts = own or [tested.data] * len(stored[0])
    by_client = [
        offline_quality(ranker, np.stack([models[client] for models in stored]), part, grades)
        for client, part in enumerate(parts)
    ]
    each = np.stack(by_client)  # [clients, 2, evaluations]
    return each.mean(axis=0), each[:, 0, -1]


def _differ(pools: list[Array]) -> bool:
    return any(not np.array_equal(pools[0], pool) for pool in pools)
