"""A single run that unlearns clients: checks before anything is computed, quality, residual, cost."""

import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from foltr.errors import SpecError
from foltr.federation.personalization import Shared
from foltr.federation.schedule import Schedule
from foltr.lab.data.catalog import Fold
from foltr.lab.records import other_name
from foltr.lab.simulation.click_logs import log_engine, log_of, recorder
from foltr.lab.simulation.engines import engine_for, has_kernels
from foltr.lab.simulation.evaluation import (
    EVALUATED,
    Progress,
    RunResult,
    both_means,
    final_values,
    query_quality,
)
from foltr.lab.simulation.population import Tested, interactions_in, metrics_of, task_of
from foltr.lab.simulation.task import Federated, Task, federated, init_parameters, schedule_of
from foltr.lab.spec.setting import Setting
from foltr.types import Array, Empty
from foltr.unlearning import evaluation, shards
from foltr.unlearning.evaluation import Exact, Request, episode
from foltr.unlearning.replay import Cost, FederationSetup, Walk, federate, negate, walk
from foltr.unlearning.shards import Logged

LARGEST_HISTORY = 1 << 30  # bytes of stored updates, all clients together
METHODS = ("logs", "shards", "statistics")  # exact ones


def check_unlearning(setting: Setting, task: Task) -> None:
    """Refuses impossible settings before anything is computed."""
    asked = setting.unlearning
    check_forgetting(
        task, forget_clients=asked.forget_clients, keep_every=asked.keep_every, local_steps=asked.local_steps
    )
    check_replacement(task, forget_clients=asked.forget_clients, z=asked.z)


def federation_of(task: Task, engine: Any) -> FederationSetup:
    """The pieces of a task that unlearning works on."""
    rounds = federated(task.federation).rounds

    def schedule(absent: Collection[int]) -> Schedule:
        return schedule_of(task, tuple(absent))

    return FederationSetup(init_parameters(task), rounds, schedule, engine)


def run_unlearning(setting: Setting, fold: Fold, seed: int, threads: int = 1) -> Iterator[Progress | RunResult]:
    """Like `single.run_setting`: the ranker after unlearning, with its residual and cost as further metrics."""
    task, tested = task_of(setting, fold, seed)
    began, asked, rounds = time.perf_counter(), setting.unlearning, setting.federation.rounds
    every = setting.runs.evaluate_every or max(1, rounds // EVALUATED)
    if asked.method == "retrain":
        federation = federation_of(task, engine_for(task, threads))
        done = walk(federate(federation, without=asked.forget_clients), every=every)
        further = _costs(done.cost)
    elif asked.method == "calibrated":
        done, further = _calibrated(setting, tested, task, threads, every)
    else:
        done, further = _exact(setting, tested, task)
    metrics = metrics_of(setting, fold.grades)
    quality = query_quality(setting.ranker, done.parameters, tested.data, fold.grades, metrics)
    offline, other = both_means(quality, setting.metrics.empty)
    yield Progress(interactions_in(setting), float(offline[0, -1]))
    nothing = np.empty(0, dtype=np.int64), np.empty((3, 0))
    yield RunResult(
        *nothing, done.rounds, offline, done.parameters[-1], interactions_in(setting),
        time.perf_counter() - began, np.array(list(further.values())), np.array(list(further)),
        offline_other=other, **final_values([(quality, tested.data.queries)]),
    )  # fmt: skip


def _calibrated(
    setting: Setting, tested: Tested, task: Task, threads: int, every: int
) -> tuple[Walk, dict[str, float]]:
    asked = setting.unlearning
    request = Request(asked.forget_clients, asked.z, asked.keep_every, asked.local_steps)
    done = episode(federation_of(task, engine_for(task, threads)), request, every=every)
    walks = {
        "honest": done.honest, "attacked": done.attacked, "retrained": done.retrained, "honest history": done.reference,
    }  # fmt: skip
    further: dict[str, float] = {}
    for name, one in walks.items():
        further |= _both_ndcg(name, task, tested, one.parameters[-1], setting.metrics.empty)
    further |= {"residual": done.residual, "residual of direction": done.direction_residual}
    further |= _costs(done.unlearned.cost)
    further |= {"local steps saved": done.saved[0], "messages saved": done.saved[1]}
    return done.unlearned, further


def _exact(setting: Setting, tested: Tested, task: Task) -> tuple[Walk, dict[str, float]]:
    asked = setting.unlearning
    one = exactly(
        asked.method, task, forget_clients=asked.forget_clients, z=asked.z, num_shards=asked.shards, ridge=asked.ridge
    )
    attacked = _both_ndcg("attacked", task, tested, one.before, setting.metrics.empty)
    further = {**attacked, "residual": one.residual, **_costs(one.cost)}
    return Walk(np.array([setting.federation.rounds]), one.parameters[None], one.cost), further


def exactly(
    method: str, task: Task, *, forget_clients: tuple[int, ...], z: float = 2.0, num_shards: int = 5,
    ridge: float = 10.0,
) -> Exact:  # fmt: skip
    """Exact unlearning from logs or statistics of a federation, or by shards, which are federations themselves."""
    check_learning(task)
    check_clients(task, forget_clients)
    check_replacement(task, forget_clients=forget_clients, z=z)
    if method not in METHODS:
        raise SpecError(f"no exact method {method!r}; there are {', '.join(METHODS)}")
    if not has_kernels(task):
        raise SpecError(f"unlearning.method = {method!r} records searches with foltr's own kinds; use 'retrain'")
    engine = recorder(task)
    federation, attack = federation_of(task, engine), negate(forget_clients, z)
    if method == "shards":
        members = _shards(task, forget_clients, z, num_shards)
        before = shards.train(federation, federated(task.federation).clients, members, attack)
        return evaluation.by_shards(federation.start, before, _logged(task, engine), forget_clients)
    attacked = walk(federate(federation, transform=attack)).parameters[-1]
    logged = _logged(task, engine)
    if method == "statistics":
        return evaluation.by_statistics(task.train, logged.log, forget_clients, ridge)
    return evaluation.by_logs(federation.start, attacked, logged, forget_clients)


def _logged(task: Task, engine: object) -> Logged:
    return Logged(log_of(engine), lambda log: log_engine(task, log))  # type: ignore[arg-type]


def _shards(task: Task, forget_clients: tuple[int, ...], z: float, num_shards: int) -> list[shards.Members]:
    if hasattr(task.ranker, "hidden"):
        raise SpecError(
            "shards average models that were trained apart, which works for linear rankers only; use 'linear'"
        )
    members = shards.assign(federated(task.federation).clients, num_shards)
    for shard in members:
        attackers = [client for client in shard if client in forget_clients]
        if attackers:
            check_replacement(task, forget_clients=attackers, z=z, together=len(shard))
    return members


def _both_ndcg(name: str, task: Task, tested: Tested, parameters: Array, empty: Empty) -> dict[str, float]:
    """nDCG@10 of a ranker by `empty` under `name`, and by the other choice."""
    chosen, other = both_means(query_quality(task.ranker, parameters[None], tested.data, task.grades), empty)
    return {name: float(chosen[0, -1]), other_name(name, empty): float(other[0])}


def _costs(cost: Cost) -> dict[str, float]:
    """Costs without seconds, which are not reproducible."""
    return {
        "local steps": cost.local_steps, "new searches": cost.searches, "messages": cost.messages,
        "bytes sent": cost.sent, "bytes stored": cost.stored,
    }  # fmt: skip


# --- checks ---------------------------------------------------------------------------------------------------------


def check_forgetting(task: Task, *, forget_clients: Sequence[int], keep_every: int = 1, local_steps: int = 1) -> None:
    """Refuses invalid requests and states the allowed range."""
    federation = federated(task.federation)
    check_learning(task)
    check_clients(task, forget_clients)
    _check_history(task, federation, keep_every)
    _check_steps(federation, local_steps)


def check_clients(task: Task, forget_clients: Sequence[int]) -> None:
    """The clients took part, are named once, and others remain."""
    federation = federated(task.federation)
    if not forget_clients or len(set(forget_clients)) < len(forget_clients):
        raise SpecError(f"forget_clients = {list(forget_clients)}: name at least one client, and each of them once")
    for client in forget_clients:
        if not 0 <= client < federation.clients:
            last = federation.clients - 1
            raise SpecError(f"forget_clients: client {client} never took part; the clients are 0 .. {last}")
    if len(forget_clients) >= federation.clients:
        raise SpecError(
            f"forget_clients: all {federation.clients} clients leave and none remains to learn from; "
            f"name at most {federation.clients - 1}"
        )
    absent = sorted(set(forget_clients) - _participants(task, federation))
    if absent:
        raise SpecError(
            f"forget_clients: client {absent[0]} was in none of the {federation.rounds} cohorts of "
            f"{federation.cohort}, so there is nothing to forget; choose a client that took part, or leave `cohort` out"
        )


def check_replacement(task: Task, *, forget_clients: Sequence[int], z: float, together: int | None = None) -> None:
    """The average with -z times some models must stay bounded."""
    federation = federated(task.federation)
    together = together or min(federation.cohort or federation.clients, federation.clients)
    largest = 2 * together / len(forget_clients) - 1  # beyond it every round reverses the model and increases its norm
    if not 0 < z < largest:
        raise SpecError(
            f"z = {z:g}: with {len(forget_clients)} attacking of {together} the model stays bounded for "
            f"0 < z < {largest:g}"
        )


def check_learning(task: Task) -> None:
    """Plain federated averaging of PDGD, without noise and without attackers other than the forgotten clients."""
    federation = federated(task.federation)
    if task.learner.message != "delta":
        raise SpecError("unlearning works on updates of PDGD; use learner kind = 'pdgd'")
    if task.privacy.acts_on != "nothing":
        raise SpecError("unlearning is defined for updates without noise; use privacy kind = 'none'")
    if getattr(task.learner, "prox_mu", 0) or task.warm_up or task.personal != Shared():
        raise SpecError("unlearning follows plain averaging; leave out `prox_mu`, a warm-up and personal models")
    if task.transform is not None:
        raise SpecError("unlearning brings its own attack by the forgotten clients; leave out others")
    if federation.aggregator != "fedavg":
        raise SpecError(f"aggregator = {federation.aggregator!r}: unlearning is defined for averages; use 'fedavg'")


def _check_history(task: Task, federation: Federated, keep_every: int) -> None:
    if not 1 <= keep_every <= federation.rounds:
        raise SpecError(f"keep_every = {keep_every}: use 1 .. {federation.rounds}, the number of rounds")
    together = min(federation.cohort or federation.clients, federation.clients)
    row = 4 * task.ranker.size(task.train.features.shape[1])  # single precision
    size = -(-federation.rounds // keep_every) * together * row
    if size > LARGEST_HISTORY:
        enough = -(-size * keep_every // LARGEST_HISTORY)
        raise SpecError(
            f"keep_every = {keep_every} stores {size / 1e9:.1f} GB of updates; the limit is "
            f"{LARGEST_HISTORY / 1e9:.1f} GB: use keep_every = {enough} or more"
        )


def _check_steps(federation: Federated, local_steps: int) -> None:
    fewest = int(np.min(federation.interactions))
    if fewest < 2:
        raise SpecError("local_steps must be below `interactions`, which is 1: use interactions = 2 or more")
    if not 1 <= local_steps < fewest:
        raise SpecError(
            f"local_steps = {local_steps}: a replay makes fewer steps than the {fewest} interactions of a round; "
            f"use 1 .. {fewest - 1}"
        )


def _participants(task: Task, federation: Federated) -> set[int]:
    schedule = schedule_of(task)
    if schedule.fixed:
        return set(range(federation.clients))
    return set(np.concatenate([schedule.members(round).clients for round in schedule.rounds]).tolist())
