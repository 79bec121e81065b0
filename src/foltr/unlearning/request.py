"""What can be asked for: a request that makes no sense is refused before anything is computed."""

from collections.abc import Sequence

import numpy as np

from foltr.errors import SpecError
from foltr.federation.personalization import Together
from foltr.federation.round import Federated, Task
from foltr.federation.schedule import pick
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import NoPrivacy
from foltr.unlearning.rounds import federated

LARGEST_HISTORY = 1 << 30  # bytes of kept updates, all clients together


def check(task: Task, *, leavers: Sequence[int], keep_every: int = 1, local_steps: int = 1) -> None:
    """Refuses what cannot be forgotten in this way, with the allowed range."""
    federation = federated(task)
    check_learning(task)
    check_leavers(task, leavers)
    _check_history(task, federation, keep_every)
    _check_steps(federation, local_steps)


def check_leavers(task: Task, leavers: Sequence[int]) -> None:
    """Leavers took part, are named once, and leave somebody behind."""
    federation = federated(task)
    if not leavers or len(set(leavers)) < len(leavers):
        raise SpecError(f"leavers = {list(leavers)}: name at least one client, and each of them once")
    for leaver in leavers:
        if not 0 <= leaver < federation.clients:
            raise SpecError(f"leavers: client {leaver} never took part; the clients are 0 .. {federation.clients - 1}")
    if len(leavers) >= federation.clients:
        raise SpecError(
            f"leavers: all {federation.clients} clients leave and nothing remains to learn from; "
            f"name at most {federation.clients - 1}"
        )
    absent = sorted(set(leavers) - _participants(task, federation))
    if absent:
        raise SpecError(
            f"leavers: client {absent[0]} was in none of the {federation.rounds} cohorts of {federation.cohort}, so "
            f"there is nothing to forget; choose a client that took part, or leave `cohort` out"
        )


def check_attack(task: Task, *, leavers: Sequence[int], z: float, together: int | None = None) -> None:
    """z times the negated model must spoil the average of the clients that are together without blowing it up."""
    federation = federated(task)
    together = together or min(federation.cohort or federation.clients, federation.clients)
    largest = 2 * together / len(leavers) - 1  # beyond it every round turns the model round and makes it longer
    if not 0 < z < largest:
        raise SpecError(
            f"z = {z:g}: with {len(leavers)} attacking of {together} the model stays bounded for 0 < z < {largest:g}"
        )


def check_learning(task: Task) -> None:
    """Plain federated averaging of PDGD, without noise and without other attackers than the leavers."""
    federation = federated(task)
    if not isinstance(task.learner, Pdgd):
        raise SpecError("forgetting works on updates of PDGD; use learner kind = 'pdgd'")
    if not isinstance(task.privacy, NoPrivacy):
        raise SpecError("forgetting is defined for updates without noise; use privacy kind = 'none'")
    if task.learner.prox_mu or task.warm_up or not isinstance(task.personal, Together):
        raise SpecError("forgetting follows plain federated averaging; leave out `pull`, a warm-up and personal models")
    if task.transform is not None:
        raise SpecError("forgetting brings its own attack by the leavers; give a task without other attackers")
    if federation.aggregator != "fedavg":
        raise SpecError(f"rule = {federation.aggregator!r}: forgetting is defined for averages; use rule = 'fedavg'")


def _check_history(task: Task, federation: Federated, keep_every: int) -> None:
    if not 1 <= keep_every <= federation.rounds:
        raise SpecError(f"keep_every = {keep_every}: use 1 .. {federation.rounds}, the number of rounds")
    together = min(federation.cohort or federation.clients, federation.clients)
    row = 4 * task.ranker.size(task.train.features.shape[1])  # single precision
    size = -(-federation.rounds // keep_every) * together * row
    if size > LARGEST_HISTORY:
        enough = -(-size * keep_every // LARGEST_HISTORY)
        raise SpecError(
            f"keep_every = {keep_every} keeps {size / 1e9:.1f} GB of updates; the limit is "
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
    if federation.cohort is None or federation.cohort >= federation.clients:
        return set(range(federation.clients))
    rounds = range(1, federation.rounds + 1)
    cohorts = [pick(federation.clients, federation.cohort, seed=task.seed, round=round) for round in rounds]
    return set(np.concatenate(cohorts).tolist())
