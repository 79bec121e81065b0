"""FoltrEs strategies: try a random neighbour of the ranker, report how users liked it, move towards the liked ones.

Source: S1 sections 3.1-3.3 (FOLtR-ES). A client draws a public seed, perturbs theta by sigma * N(0, I),
ranks by score, measures an objective on the clicks of each interaction, and sends (seed, mean of the objective).
Antithetic: the first half of the interactions with +e, the second half with -e, on different queries; the server's
gradient is 1 / (2 sigma^2 n) * sum e (f+ - f-), and Adam takes the step.

Differs from the paper: queries, clicks and privatisation have streams of their own, independent of the public seed.
`streams = "shared_rng"` studies the fault of the authors' program: there queries and clicks are read from the
perturbation's stream, from its beginning, so that what a user asks and clicks is correlated with where the ranker was
moved.
"""

from typing import Annotated, Literal

import msgspec
import numpy as np

from foltr.rng import Stream, stream
from foltr.types import Array


class FoltrEs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="foltr-es"):
    sigma: Annotated[float, msgspec.Meta(gt=0)] = 0.01
    learning_rate: Annotated[float, msgspec.Meta(gt=0)] = 0.001
    antithetic: bool = True
    objective: Literal["max_rr", "dcg"] = "max_rr"
    streams: Literal["independent", "shared_rng"] = "independent"


def perturbation_stream(seed: int, round: int, client: int) -> Stream:
    """The public stream that client and server both know."""
    return stream(seed, round=round, client=client, purpose="perturbation")


def outcomes(objective: str, shown: int) -> Array:
    """Every value that the objective of one interaction can take, in the order of `outcome_of`.

    max_rr: nothing clicked, first click at rank 1 .. 10. dcg: each pattern of clicks, read as a binary number.
    """
    if objective == "max_rr":
        return np.concatenate([[0.0], 1 / np.arange(1, min(shown, 10) + 1)])
    patterns = np.arange(1 << min(shown, 10))
    return sum(((patterns >> r) & 1) / np.log2(r + 2) for r in range(min(shown, 10)))


def outcome_of(clicks: Array, objective: str) -> int:
    """Which of the outcomes these clicks are."""
    clicked = np.flatnonzero(clicks[:10])
    if objective == "max_rr":
        return int(clicked[0]) + 1 if clicked.size else 0
    return int(sum(1 << int(r) for r in clicked))


def randomised(outcome: int, count: int, p: float, first: float, second: float) -> int:
    """Randomised response: the truth with probability p, else one of the other outcomes, all alike."""
    if first < p:
        return outcome
    other = int(second * (count - 1))
    return other + (other >= outcome)


def nominal_epsilon(p: float, count: int) -> float:
    """Of ONE interaction's outcome; infinite at p = 1."""
    return float("inf") if p >= 1 else float(np.log(p * (count - 1) / (1 - p)))


def perturbations(clients: Array, *, size: int, seed: int, round: int) -> Array:
    """[clients, P] what the server makes of the clients' public seeds: N(0, I), before sigma."""
    return np.stack([perturbation_stream(seed, round, int(client)).normal(size) for client in clients])


def gradient_weights(values: Array, *, sigma: float, antithetic: bool) -> Array:
    """[clients] factors of the perturbations N(0, I) in the gradient estimate; values [clients, 2] = f+, f-."""
    if antithetic:
        return (values[:, 0] - values[:, 1]) / (2 * sigma * len(values))
    return values[:, 0] / (sigma * len(values))
