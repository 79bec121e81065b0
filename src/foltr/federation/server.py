"""The server's state and its optimisers: add the aggregated delta, or ascend a gradient with Adam."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from foltr.federation.aggregators import FedAvg
from foltr.types import Array, Updates

_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8  # Adam's own defaults (Kingma and Ba 2015)


class ServerState(NamedTuple):
    version: int  # rounds so far
    parameters: Array  # [P]
    moments: Array  # [2, P] of Adam; zeros where the server does not use it
    mechanism_state: Any = None  # the mechanism state that clients receive, such as the clip
    personal: Any = None  # `personalization.PersonalState` where clients have rankers of their own


# (state, aggregated delta or gradient [P]) -> the state of the next version
ServerOptimizer: TypeAlias = Callable[[ServerState, Array], ServerState]


def init_state(parameters: Array, *, mechanism_state: Any = None, personal: Any = None) -> ServerState:
    return ServerState(0, parameters, np.zeros((2, len(parameters))), mechanism_state, personal)


def add(state: ServerState, delta: Array) -> ServerState:
    """The aggregated delta is the step: FedAvg with a server learning rate of 1."""
    return ServerState(
        state.version + 1, state.parameters + delta, state.moments, state.mechanism_state, state.personal
    )


def add_scaled(learning_rate: float) -> ServerOptimizer:
    """The aggregated delta times a server learning rate."""
    return lambda state, delta: add(state, learning_rate * delta)


def adam(learning_rate: float) -> ServerOptimizer:
    """One ascent step of Adam."""

    def step(state: ServerState, gradient: Array) -> ServerState:
        version = state.version + 1
        mean = _BETA_1 * state.moments[0] + (1 - _BETA_1) * gradient
        square = _BETA_2 * state.moments[1] + (1 - _BETA_2) * gradient**2
        update = mean / (1 - _BETA_1**version) / (np.sqrt(square / (1 - _BETA_2**version)) + _EPSILON)
        with np.errstate(over="ignore"):  # callers report diverging parameters
            parameters = state.parameters + learning_rate * update
        return state._replace(version=version, parameters=parameters, moments=np.stack([mean, square]))

    return step


def server_optimizer(learner: Any) -> ServerOptimizer:
    """The optimiser that a learner names, with its `server_learning_rate` where it has one."""
    if learner.server_optimizer == "adam":
        return adam(learner.learning_rate)
    rate = getattr(learner, "server_learning_rate", 1.0)
    return add if rate == 1 else add_scaled(rate)


def mean_delta(updates: Updates, version: int = 0) -> Array:  # noqa: ARG001
    """The plain aggregator: the mean of deltas, weighted by the interactions behind each."""
    return FedAvg()(updates.values, updates.weights, num_byzantine=0)
