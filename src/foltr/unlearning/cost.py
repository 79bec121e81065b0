"""What a way of forgetting costs, counted from the rounds that it made.

Source: S2 section 6.1.3, which counts local steps and rounds.

Differs from the paper: also bytes, seconds, and how many new searches people have to make.
"""

import time
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.types import Array
from foltr.unlearning.rounds import Round

NUMBER = 8  # bytes of a number in a message


class Cost(NamedTuple):
    """Of one way of forgetting."""

    local_steps: int  # gradient steps on clients
    searches: int  # new ones that people must make; learning from logs needs none
    messages: int  # in both directions
    sent: int  # bytes of the messages
    kept: int  # bytes that clients had to keep for it
    seconds: float


class Walk(NamedTuple):
    """Models on the way and at the end, and what the way cost."""

    rounds: Array  # [k] the last one always
    parameters: Array  # [k, P]
    cost: Cost


def walk(rounds: Iterable[Round], *, every: int | None = None, searching: bool = True, kept: int = 0) -> Walk:
    """Goes through all rounds, keeps the model of every so-manieth and of the last, and counts.

    `searching`: every local step is a new search of a person. `kept`: bytes that clients had kept.
    """
    began, steps, messages, models = time.perf_counter(), 0, 0, dict[int, Array]()
    done = None
    for count, done in enumerate(rounds, start=1):
        steps += int(done.steps.sum())
        messages += 2 * len(done.clients)
        if every is not None and count % every == 0:
            models[done.round] = done.parameters
    if done is None:
        raise SpecError("there are no rounds to learn from; keep a history or a log of at least one")
    models[done.round] = done.parameters
    sent = messages * NUMBER * len(done.parameters)
    cost = Cost(steps, steps * searching, messages, sent, kept, time.perf_counter() - began)
    return Walk(np.array(list(models)), np.stack(list(models.values())), cost)


def together(costs: Iterable[Cost]) -> Cost:
    """Of several pieces of work, one after the other."""
    return Cost(*(sum(column) for column in zip(*costs, strict=True)))
