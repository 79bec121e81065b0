"""Calibrated replay: the other clients take a few new steps from the start, each as long as the stored one.

Source: S2 sections 6.1.1 and 6.1.2, equations 6.1 to 6.4 (FedEraser). Each client's update of every dt-th round is
stored on the client's side, in single precision. To forget: restart from the initial model; in each stored round every
remaining client makes n' < n local steps and sends ||stored update|| * new update / ||new update||; FedAvg.

Single precision halves the storage and changes a norm by less than 1e-7 of it. Calibration uses only the
length of an update, so 8 bytes a stored round would suffice, while the paper stores all P numbers.

Differs from the paper: nothing in the method. Where it is silent: a new update of length zero (nobody clicked) has no
direction and stays zero; clients weigh as many interactions as stand behind what they stored, as in equation 6.1; new
steps are new searches, so they read random numbers of rounds that the federation never had (T + stored round), the same
in every replay from one seed. Otherwise length and direction would come
from the same queries.

The cost of an unlearning method is counted over its rounds as in S2 section 6.1.3 (local steps and rounds); also
counted are bytes, seconds, and how many new searches people have to make.

It is not exact: the norms come from models that contained the forgotten client (see `evaluation.residual`).
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError, StorageError
from foltr.federation.engine import Engine, EngineCollector, Transform
from foltr.federation.round import RoundResult, run_rounds
from foltr.federation.schedule import Members, Schedule
from foltr.federation.server import add, init_state, mean_delta
from foltr.types import Array, Updates

NUMBER = 8  # bytes of a number in a message


class FederationSetup(NamedTuple):
    """Federated averaging without noise, for which unlearning is defined."""

    start: Array  # [P] the model that every method starts from
    rounds: int
    schedule: Callable[[Collection[int]], Schedule]  # of everybody but these clients
    engine: Engine


def federate(
    federation: FederationSetup, *, without: Collection[int] = (), transform: Transform | None = None
) -> Iterator[RoundResult]:
    """All rounds; clients in `without` never take part."""
    collector = EngineCollector(federation.engine, mean_delta, transform)
    return run_rounds(init_state(federation.start), federation.schedule(without), collector, server_optimizer=add)


def negate(attackers: Collection[int], z: float) -> Transform:
    """These clients send -z times the model that they trained (equation 6.3)."""
    attacking = np.array(sorted(attackers))

    def transform(updates: Updates, model: Array, round: int) -> Updates:  # noqa: ARG001
        factors = np.where(np.isin(updates.clients, attacking), -z, 1.0)
        return updates._replace(values=(model + updates.values) * factors[:, None] - model)

    return transform


class History(NamedTuple):
    """One row an update, in the order of rounds; each row is stored by its client."""

    rounds: Array  # [rows] int32: 1, 1 + dt, ...
    clients: Array  # [rows] int32
    steps: Array  # [rows] int32 interactions behind the update
    updates: Array  # [rows, P] float32


def history_of(rounds: Iterable[RoundResult]) -> History:
    """The updates of these rounds as they arrived."""
    stored = [(done, done.collected.updates) for done in rounds if done.collected.updates is not None]
    if not stored:
        raise StorageError("no round stored its updates; store every round, or every 10th")
    return History(
        np.concatenate([np.full(len(updates.clients), done.round, np.int32) for done, updates in stored]),
        np.concatenate([updates.clients for _, updates in stored]).astype(np.int32),
        np.concatenate([done.members.interactions for done, _ in stored]).astype(np.int32),
        np.concatenate([updates.values.astype(np.float32) for _, updates in stored]),
    )


def lengths(history: History) -> Array:
    """[rows] L2 norms, summed in double precision."""
    return np.linalg.norm(history.updates.astype(np.float64), axis=1)


def replay(
    federation: FederationSetup, history: History, *, forget_clients: Collection[int], local_steps: int
) -> Iterator[RoundResult]:
    """Replays the stored rounds without the forgotten clients."""
    stays = ~np.isin(history.clients, list(forget_clients))
    clients, weights = history.clients[stays].astype(np.int64), history.steps[stays].astype(np.int64)
    sizes = lengths(history)[stays]
    rounds, first = np.unique(history.rounds[stays], return_index=True)
    ends = np.append(first, len(clients))[1:]
    rows = {int(round): slice(a, b) for round, a, b in zip(rounds, first, ends, strict=True)}

    def members(round: int) -> Members:
        return Members(clients[rows[round]], np.full(rows[round].stop - rows[round].start, local_steps))

    def calibrate(updates: Updates, model: Array, round: int) -> Updates:  # noqa: ARG001
        return updates._replace(values=calibrated(updates.values, sizes[rows[round]]), weights=weights[rows[round]])

    collector = EngineCollector(federation.engine, mean_delta, calibrate, address=federation.rounds)
    schedule = Schedule(list(rows), members, fixed=False)
    return run_rounds(init_state(federation.start), schedule, collector, server_optimizer=add)


def calibrated(updates: Array, sizes: Array) -> Array:
    """[n, P] updates scaled to these lengths [n]; zero updates stay zero."""
    largest = np.abs(updates).max(axis=1, keepdims=True)  # squares of tiny numbers would underflow
    scaled = np.divide(updates, largest, out=np.zeros_like(updates), where=largest > 0)
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.divide(scaled, norms, out=scaled, where=norms > 0) * sizes[:, None]


# --- costs ----------------------------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """The cost of one unlearning method."""

    local_steps: int  # gradient steps on clients
    searches: int  # new ones that people must make; learning from logs needs none
    messages: int  # in both directions
    sent: int  # bytes of the messages
    stored: int  # bytes that clients had to store for it
    seconds: float


class Walk(NamedTuple):
    """Intermediate and final models, and the cost."""

    rounds: Array  # [n] the last one always
    parameters: Array  # [n, P]
    cost: Cost


def walk(rounds: Iterable[RoundResult], *, every: int | None = None, searching: bool = True, stored: int = 0) -> Walk:
    """Runs all rounds, stores the model of every `every`-th and of the last, and counts the cost.

    `searching`: every local step is a new search of a person. `stored`: bytes that clients had stored.
    """
    began, steps, messages, models = time.perf_counter(), 0, 0, dict[int, Array]()
    done = None
    for count, done in enumerate(rounds, start=1):
        steps += int(done.members.interactions.sum())
        messages += 2 * len(done.members.clients)
        if every is not None and count % every == 0:
            models[done.round] = done.parameters
    if done is None:
        raise SpecError("there are no rounds to learn from; store a history or a log of at least one")
    models[done.round] = done.parameters
    sent = messages * NUMBER * len(done.parameters)
    cost = Cost(steps, steps * searching, messages, sent, stored, time.perf_counter() - began)
    return Walk(np.array(list(models)), np.stack(list(models.values())), cost)


def total_cost(costs: Iterable[Cost]) -> Cost:
    """The total cost of consecutive pieces of work."""
    return Cost(*(sum(column) for column in zip(*costs, strict=True)))
