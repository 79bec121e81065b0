"""A single run that unlearns clients: quality, residual, cost."""

import time
from collections.abc import Iterator

import numpy as np

from foltr.errors import SpecError
from foltr.lab.data.catalog import Fold
from foltr.lab.simulation.click_logs import log_engine, log_of, recorder
from foltr.lab.simulation.engines import engine_for, has_kernels
from foltr.lab.simulation.evaluation import EVALUATED, Progress, RunResult, offline_quality
from foltr.lab.simulation.population import Tested, interactions_in, task_of
from foltr.lab.simulation.task import Task, federated, init_parameters, schedule_of
from foltr.lab.spec.setting import Setting
from foltr.lab.spec.unlearning_checks import (
    check_clients,
    check_forgetting,
    check_learning,
    check_replacement,
)
from foltr.types import Array
from foltr.unlearning import evaluation, shards
from foltr.unlearning.costs import Cost, Walk, walk
from foltr.unlearning.evaluation import Exact, Request, episode
from foltr.unlearning.replay import FederationSetup, federate, negate
from foltr.unlearning.shards import Logged

METHODS = ("logs", "shards", "statistics")  # exact ones


def check_unlearning(setting: Setting, task: Task) -> None:
    """Refuses impossible settings before anything is computed."""
    asked = setting.unlearning
    check_forgetting(
        task, forget_clients=asked.forget_clients, keep_every=asked.keep_every, local_steps=asked.local_steps
    )
    check_replacement(task, forget_clients=asked.forget_clients, z=asked.z)


def federation_of(task: Task, engine: object) -> FederationSetup:
    """The pieces of a task that unlearning works on."""
    rounds = federated(task.federation).rounds
    return FederationSetup(init_parameters(task), rounds, lambda absent: schedule_of(task, tuple(absent)), engine)  # type: ignore[arg-type]


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
    offline = offline_quality(setting.ranker, done.parameters, tested.data, fold.grades)
    yield Progress(interactions_in(setting), float(offline[0, -1]))
    nothing = np.empty(0, dtype=np.int64), np.empty((3, 0))
    yield RunResult(
        *nothing, done.rounds, offline, done.parameters[-1], interactions_in(setting), time.perf_counter() - began,
        np.array(list(further.values())), np.array(list(further)),
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
    further = {name: _ndcg(task, tested, one.parameters[-1]) for name, one in walks.items()}
    further |= {"residual": done.residual, "residual of direction": done.direction_residual}
    further |= _costs(done.unlearned.cost)
    further |= {"local steps saved": done.saved[0], "messages saved": done.saved[1]}
    return done.unlearned, further


def _exact(setting: Setting, tested: Tested, task: Task) -> tuple[Walk, dict[str, float]]:
    asked = setting.unlearning
    one = exactly(
        asked.method, task, forget_clients=asked.forget_clients, z=asked.z, num_shards=asked.shards, ridge=asked.ridge
    )
    further = {"attacked": _ndcg(task, tested, one.before), "residual": one.residual, **_costs(one.cost)}
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


def _ndcg(task: Task, tested: Tested, parameters: Array) -> float:
    return float(offline_quality(task.ranker, parameters[None], tested.data, task.grades)[0, 0])


def _costs(cost: Cost) -> dict[str, float]:
    """Costs without seconds, which are not reproducible."""
    return {
        "local steps": cost.local_steps, "new searches": cost.searches, "messages": cost.messages,
        "bytes sent": cost.sent, "bytes stored": cost.stored,
    }  # fmt: skip
