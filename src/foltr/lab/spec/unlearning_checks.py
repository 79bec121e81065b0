"""Checks of unlearning requests, before anything is computed."""

from collections.abc import Sequence

import numpy as np

from foltr.errors import SpecError
from foltr.federation.personalization import Shared
from foltr.lab.simulation.task import Federated, Task, federated, schedule_of

LARGEST_HISTORY = 1 << 30  # bytes of stored updates, all clients together


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
