"""One single run: a setting on one fold from one seed, and the rows it leaves."""

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.lab.audit.click_guessing import guessing, training
from foltr.lab.data.catalog import Fold, select
from foltr.lab.records import other_name, stored_name
from foltr.lab.runs.unlearning import run_unlearning
from foltr.lab.simulation.engines import engine_for
from foltr.lab.simulation.evaluation import (
    EVALUATED,
    OfflineValues,
    Progress,
    RunResult,
    both_means,
    final_values,
    means,
    query_quality,
    sizes,
    thin,
)
from foltr.lab.simulation.population import Tested, metrics_of, task_of
from foltr.lab.simulation.rounds import run
from foltr.lab.spec.setting import Setting
from foltr.types import OTHER, Array, Dataset


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
    measured = _quality(setting, stored, tested, fold.grades)
    called = tested.names or tuple(str(client) for client in range(len(measured.clients)))
    clients = np.array(called, dtype=str)[: len(measured.clients)]
    validation = _validation(setting, stored[-1], tested, fold)
    seconds = time.perf_counter() - began
    yield RunResult(
        at, online, np.array(stops), measured.offline, parameters, interactions, seconds,
        offline_other=measured.other, clients=clients, client_ndcg=measured.clients,
        client_other=measured.clients_other, client_queries=measured.client_queries,
        more=np.array(list(validation.values())), names=np.array(list(validation), dtype=str), **measured.queries,
    )  # fmt: skip


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
            more=np.concatenate([event.more, list(further.values())]),
            names=np.concatenate([event.names, list(further)]),
        )


def _validation(setting: Setting, parameters: Array, tested: Tested, fold: Fold) -> dict[str, float]:
    """Both means of every metric of the final ranker on the validation part, by their stored names.

    The mean over clients with rankers of their own; none where there is no such part, or where clients have rankers
    for queries of their own.
    """
    rankers, empty = np.atleast_2d(parameters), setting.metrics.empty
    if not len(fold.validation.queries) or (parameters.ndim == 2 and _differ(tested.pools)):
        return {}
    quality = query_quality(setting.ranker, rankers, fold.validation, fold.grades, metrics_of(setting, fold.grades))
    chosen, other = means(quality, empty), means(quality, OTHER[empty])
    stored = {name: stored_name("validation", name) for name in quality.last}
    by_choice = {stored[name]: float(values.mean()) for name, values in chosen.items()}
    return by_choice | {other_name(stored[name], empty): float(values.mean()) for name, values in other.items()}


class _Measured(NamedTuple):
    """Offline quality of a single run; with rankers of their own, means over clients of each client's mean."""

    offline: Array  # [metrics, evaluations]
    other: Array  # [metrics] at the end, by the other choice of `metrics.empty`
    clients: Array  # [clients] nDCG@10 at the end, each on its own queries; empty where all share them
    clients_other: Array  # [clients] by the other choice of `metrics.empty`
    client_queries: Array  # [clients, 2] with a relevant document, and all of them
    queries: dict[str, Array]  # `evaluation.final_values`


def _quality(setting: Setting, stored: list[Array], tested: Tested, grades: int) -> _Measured:
    own = [select(tested.data, pool) for pool in tested.pools] if _differ(tested.pools) else []
    if stored[0].ndim == 2:
        return _personal_quality(setting, stored, own or [tested.data] * len(stored[0]), grades)
    ranker, empty = setting.ranker, setting.metrics.empty
    quality = query_quality(ranker, np.stack(stored), tested.data, grades, metrics_of(setting, grades))
    by_client = [query_quality(ranker, stored[-1][None], part, grades) for part in own]
    both = [both_means(one, empty) for one in by_client]
    return _Measured(
        *both_means(quality, empty), np.array([mean[0, -1] for mean, _ in both]),
        np.array([other[0] for _, other in both]), _client_queries(by_client),
        final_values([(quality, tested.data.queries)]),
    )  # fmt: skip


def _client_queries(by_client: list[OfflineValues]) -> Array:
    """[clients, 2]"""
    return np.array([sizes(quality) for quality in by_client], dtype=np.int64).reshape(-1, 2)


def _personal_quality(setting: Setting, stored: list[Array], parts: list[Dataset], grades: int) -> _Measured:
    metrics = metrics_of(setting, grades)
    by_client = [
        query_quality(setting.ranker, np.stack([models[client] for models in stored]), part, grades, metrics)
        for client, part in enumerate(parts)
    ]
    offline, other = zip(*(both_means(quality, setting.metrics.empty) for quality in by_client), strict=True)
    each = np.stack(offline)  # [clients, metrics, evaluations]
    queries = final_values([(quality, part.queries) for quality, part in zip(by_client, parts, strict=True)])
    others = np.stack(other)  # [clients, metrics]
    return _Measured(
        each.mean(axis=0), others.mean(axis=0), each[:, 0, -1], others[:, 0], _client_queries(by_client), queries
    )


def _differ(pools: list[Array]) -> bool:
    return any(not np.array_equal(pools[0], pool) for pool in pools)
