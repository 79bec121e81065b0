"""One single run that forgets a client, and the numbers that say how well: quality, residual, cost."""

import time
from collections.abc import Iterator

import numpy as np

from foltr.lab.data.dataset import Fold
from foltr.lab.simulation import compiled
from foltr.lab.simulation.evaluation import EVALUATED, RunResult, Progress, offline_quality
from foltr.lab.simulation.population import Tested, interactions_in, task_of
from foltr.lab.spec.setting import Setting
from foltr.federation.round import Task
from foltr.types import Array
from foltr.unlearning.cost import Cost, Walk, walk
from foltr.unlearning.episode import episode
from foltr.unlearning.exact import exactly
from foltr.unlearning.request import check, check_attack
from foltr.unlearning.rounds import federate


def check_forgetting(made: Setting, task: Task) -> None:
    """Refuses what cannot be, before anything is computed."""
    unlearning = made.unlearning
    check(task, leavers=unlearning.forget_clients, keep_every=unlearning.keep_every, local_steps=unlearning.local_steps)
    check_attack(task, leavers=unlearning.forget_clients, z=unlearning.z)


def forgotten(made: Setting, fold: Fold, seed: int, threads: int = 1) -> Iterator[Progress | RunResult]:
    """Like `single.run_setting`: the ranker after forgetting, with what is known about it as further numbers."""
    task, tested = task_of(made, fold, seed)
    began, unlearning, rounds = time.perf_counter(), made.unlearning, made.federation.rounds
    every = made.runs.evaluate_every or max(1, rounds // EVALUATED)
    if unlearning.method == "retrain":
        done = walk(federate(task, compiled.engine(task, threads), without=unlearning.forget_clients), every=every)
        further = _costs(done.cost)
    elif unlearning.method == "calibrated":
        done, further = _calibrated(made, tested, task, threads, every)
    else:
        done, further = _exact(made, tested, task)
    offline = offline_quality(made.ranker, done.parameters, tested.data, fold.grades)
    yield Progress(interactions_in(made), float(offline[0, -1]))
    nothing = np.empty(0, dtype=np.int64), np.empty((3, 0))
    yield RunResult(
        *nothing, done.rounds, offline, done.parameters[-1], interactions_in(made), time.perf_counter() - began,
        np.array(list(further.values())), np.array(list(further)),
    )  # fmt: skip


def _calibrated(made: Setting, tested: Tested, task: Task, threads: int, every: int) -> tuple[Walk, dict[str, float]]:
    unlearning = made.unlearning
    done = episode(
        task, compiled.engine(task, threads), leavers=unlearning.forget_clients, z=unlearning.z,
        keep_every=unlearning.keep_every, local_steps=unlearning.local_steps, every=every,
    )  # fmt: skip
    walks = {"honest": done.honest, "attacked": done.attacked, "retrained": done.retrained, "honest history": done.twin}
    further = {name: _ndcg(task, tested, way.parameters[-1]) for name, way in walks.items()}
    further |= {"residual": done.residual, "residual of direction": done.turn, **_costs(done.unlearned.cost)}
    further |= {"local steps saved": done.saved[0], "messages saved": done.saved[1]}
    return done.unlearned, further


def _exact(made: Setting, tested: Tested, task: Task) -> tuple[Walk, dict[str, float]]:
    unlearning = made.unlearning
    one = exactly(unlearning.method, task, leavers=unlearning.forget_clients, z=unlearning.z, parts=unlearning.shards, ridge=unlearning.ridge)
    further = {"attacked": _ndcg(task, tested, one.before), "residual": one.residual, **_costs(one.cost)}
    return Walk(np.array([made.federation.rounds]), one.parameters[None], one.cost), further


def _ndcg(task: Task, tested: Tested, parameters: Array) -> float:
    return float(offline_quality(task.ranker, parameters[None], tested.data, task.grades)[0, 0])


def _costs(cost: Cost) -> dict[str, float]:
    """Seconds are left out: they would not be the same twice."""
    return {
        "local steps": cost.local_steps, "new searches": cost.searches, "messages": cost.messages,
        "bytes sent": cost.sent, "bytes kept": cost.kept,
    }  # fmt: skip
