"""The server's steps: take over an average, or climb a gradient with Adam."""

import numpy as np

from foltr.types import Array, ServerState

_BETA_1, _BETA_2, _TINY = 0.9, 0.999, 1e-8  # Adam's own defaults (Kingma and Ba 2015)


def begin(parameters: Array) -> ServerState:
    return ServerState(0, parameters, np.zeros((2, len(parameters))))


def replace(state: ServerState, parameters: Array) -> ServerState:
    return ServerState(state.round + 1, parameters, state.moments)


def adam_step(state: ServerState, gradient: Array, *, rate: float) -> ServerState:
    """One step of Adam uphill."""
    round = state.round + 1
    mean = _BETA_1 * state.moments[0] + (1 - _BETA_1) * gradient
    square = _BETA_2 * state.moments[1] + (1 - _BETA_2) * gradient**2
    step = mean / (1 - _BETA_1**round) / (np.sqrt(square / (1 - _BETA_2**round)) + _TINY)
    with np.errstate(over="ignore"):  # parameters that run away are told by whoever trains
        return ServerState(round, state.parameters + rate * step, np.stack([mean, square]))
