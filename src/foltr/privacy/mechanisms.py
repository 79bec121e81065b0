"""What is done to an update before it leaves, as the papers state it; their epsilons are recorded as nominal.

Sources: S0 Algorithm 3 and equations 13-16 (FPDGD), S1 section 3.3 (randomised response).

FPDGD: after every local step the parameters are clipped to an L2 ball; before sending, every coordinate gets a share
Gamma(1/n, Delta/epsilon) - Gamma(1/n, Delta/epsilon), n shares of which add up to Laplace noise of scale Delta/epsilon.

Differs from the paper: the clip radius is Delta (`clip = "delta"`, the authors' program, which reproduces their
Table 2); the paper's text says Delta / 2 (`clip = "half-delta"`). A share below 2^-80 of its scale is sent as zero:
that is below the last digit of the parameter it would be added to.
"""

import math
from typing import Annotated, Literal

import msgspec
import numpy as np

from foltr.kernel import kernel
from foltr.rng import NOISE, address, uniform_at
from foltr.types import Array

Positive = Annotated[float, msgspec.Meta(gt=0)]


class NoPrivacy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="none"):
    """Updates leave as they are."""


class Fpdgd(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="fpdgd"):
    """The paper's noise, in shares; epsilon is nominal."""

    epsilon: Positive = 1.2
    sensitivity: Positive = 3.0
    clip: Literal["delta", "half-delta"] = "delta"

    @property
    def radius(self) -> float:
        return self.sensitivity if self.clip == "delta" else self.sensitivity / 2


class RandomizedResponse(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="randomized-response"
):
    """The truth with probability p, else another outcome; p = 1 hides nothing."""

    p: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.9


PrivacyKind = NoPrivacy | Fpdgd | RandomizedResponse


def clip_radius(privacy: PrivacyKind) -> float:
    """L2 bound on the parameters after each local step; 0 where there is none."""
    return privacy.radius if isinstance(privacy, Fpdgd) else 0.0


def add_gamma_shares(updates: Array, clients: Array, *, scale: float, holders: int, seed: int, round: int) -> None:
    """Adds each client's noise share to its row of updates [clients, P], in place."""
    _add_shares(updates, clients, scale, 1.0 / holders, seed, round)


_NUMBERS = 64  # set aside for one gamma number; more than a few are needed once in a blue moon
_NEGLIGIBLE = -80 * math.log(2)


@kernel
def _add_shares(updates: Array, clients: Array, scale: float, shape: float, seed: int, round: int) -> None:
    # U^(1/shape) < e^t  <=>  U < e^(t * shape): most shares need no logarithm to be found to be nothing
    nothing = math.exp(_NEGLIGIBLE * shape)
    for c in range(clients.size):
        at = address(seed, round, clients[c], NOISE)
        for p in range(updates.shape[1]):
            plus = gamma_at(at[0], at[1], 2 * p * _NUMBERS, shape, nothing)
            minus = gamma_at(at[0], at[1], (2 * p + 1) * _NUMBERS, shape, nothing)
            updates[c, p] += scale * (plus - minus)


@kernel
def gamma_at(start: np.uint64, stride: np.uint64, position: int, shape: float, nothing: float) -> float:
    """Gamma(shape, 1) for shape <= 1: Gamma(shape + 1) * U^(1/shape), the first as Marsaglia and Tsang (2000) do it."""
    first = uniform_at(start, stride, position)
    if first <= nothing:
        return 0.0
    fall = math.log(first) / shape
    d = shape + 1.0 - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        radius = math.sqrt(-2.0 * math.log(1.0 - uniform_at(start, stride, position + 1)))
        normal = radius * math.cos(2.0 * math.pi * uniform_at(start, stride, position + 2))
        last = uniform_at(start, stride, position + 3)
        position += 3
        v = 1.0 + c * normal
        if v <= 0.0:
            continue
        v = v * v * v
        if math.log(last) < 0.5 * normal * normal + d - d * v + d * math.log(v):
            return d * v * math.exp(fall)


def statement(privacy: PrivacyKind, *, holders: int, nominal: float | None = None) -> dict[str, object]:
    """What a report says of a run's privacy: the paper's figure, and that it is nominal."""
    if isinstance(privacy, Fpdgd):
        text = (
            f"nominal epsilon {privacy.epsilon:g} as the paper states it: per round and per coordinate, for the sum of "
            f"all {holders} noise shares only, nothing composed over rounds; not a guarantee for a user"
        )
        return {"kind": "fpdgd", "nominal_epsilon": privacy.epsilon, "statement": text}
    if isinstance(privacy, RandomizedResponse):
        shown = "infinite" if nominal is None or math.isinf(nominal) else f"{nominal:.3g}"
        text = (
            f"nominal epsilon {shown} as the paper states it: local, for the outcome of ONE interaction; a message "
            f"holds several and a run many messages, which the figure does not compose"
        )
        value = None if nominal is None or math.isinf(nominal) else nominal
        return {"kind": "randomized-response", "nominal_epsilon": value, "statement": text}
    return {"kind": "none", "nominal_epsilon": None, "statement": "no privacy mechanism: updates leave as they are"}
