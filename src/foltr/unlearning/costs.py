"""The cost of an unlearning method, counted over its rounds.

Source: S2 section 6.1.3, which counts local steps and rounds.

Differs from the paper: also bytes, seconds, and how many new searches people have to make.
"""

import time
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.federation.round import RoundResult
from foltr.types import Array

NUMBER = 8  # bytes of a number in a message


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
