"""FOLtR-ES: evolution strategies; clients report the objective of a perturbed ranker, the server steps by Adam.

Source: S1 sections 3.1-3.3. A client draws a public seed, perturbs theta by sigma * N(0, I),
ranks by score, measures an objective on the clicks of each interaction, and sends (seed, mean of the objective).
Antithetic: the first half of the interactions with +e, the second half with -e, on different queries; the server's
gradient is 1 / (2 sigma^2 n) * sum e (f+ - f-), and Adam takes the step.

Differs from the paper: queries, clicks and privatisation have streams of their own, independent of the public seed.
`streams = "shared_rng"` reproduces a fault of the authors' program: queries and clicks are read from the beginning of
the perturbation's stream, so that they are correlated with the perturbation.
"""

from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np

from foltr.metrics import order
from foltr.rng import Stream, stream
from foltr.types import Array, Interaction, Model, Updates


class FoltrEsState(NamedTuple):
    """The state of a client between two steps."""

    model: Array  # [P] as sent
    change: Array  # [P] sigma times the public perturbation
    objectives: Array  # [2] means of the objective under +e and -e so far
    step: int
    half: int  # steps under +e
    interactions: int
    k: int  # documents that are displayed


class FoltrEs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="foltr-es"):
    sigma: Annotated[float, msgspec.Meta(gt=0)] = 0.01
    learning_rate: Annotated[float, msgspec.Meta(gt=0)] = 0.001
    antithetic: bool = True
    objective: Literal["max_rr", "dcg"] = "max_rr"
    streams: Literal["independent", "shared_rng"] = "independent"

    message: ClassVar[str] = "objective"
    server_optimizer: ClassVar[str] = "adam"

    def client_init(self, model: Model, *, client: int, interactions: int) -> FoltrEsState:
        public = perturbation_stream(model.seed, model.version + 1, client)
        change = self.sigma * public.normal(len(model.parameters))
        half = (interactions + 1) // 2 if self.antithetic else interactions
        return FoltrEsState(np.asarray(model.parameters), change, np.zeros(2), 0, half, interactions, model.k)

    def rank(
        self, state: FoltrEsState, features: Array, k: int, draws: Any, *, ranker: Any  # noqa: ARG002
    ) -> tuple[Array, Array]:  # fmt: skip
        """The list of the perturbed ranker, best first, and its scores."""
        side = 1.0 if state.step < state.half else -1.0
        scores = ranker.score(state.model + side * state.change, features)
        return order(scores)[:k], scores

    def client_step(
        self, state: FoltrEsState, interaction: Interaction, *, ranker: Any, mechanism: Any, noise: Any  # noqa: ARG002
    ) -> FoltrEsState:  # fmt: skip
        possible = outcomes(self.objective, state.k)
        reported = outcome_of(interaction.clicks, self.objective)
        if mechanism.acts_on == "outcome":
            reported = mechanism.protect(reported, len(possible), None, noise("privatise").skip(2 * state.step))
        side = int(state.step >= state.half)
        objectives = state.objectives.copy()
        objectives[side] += possible[reported] / (state.interactions - state.half if side else state.half)
        return state._replace(objectives=objectives, step=state.step + 1)

    def client_final(self, state: FoltrEsState) -> Array:
        return state.objectives

    def decode(self, updates: Updates, *, seed: int, parameters: int) -> Array:
        """[n, P] every client's estimate of the gradient, from its values and its public perturbation."""
        weights = gradient_weights(updates.values, sigma=self.sigma, antithetic=self.antithetic)
        public = [
            perturbation_stream(seed, int(version) + 1, int(client)).normal(parameters)
            for version, client in zip(updates.base_versions, updates.clients, strict=True)
        ]
        return weights[:, None] * np.stack(public)


def perturbation_stream(seed: int, round: int, client: int) -> Stream:
    """The public stream that client and server both know."""
    return stream(seed, round=round, client=client, purpose="perturbation")


def outcomes(objective: str, k: int) -> Array:
    """Every value that the objective of one interaction can take, in the order of `outcome_of`.

    max_rr: nothing clicked, first click at rank 1 .. 10. dcg: each pattern of clicks, read as a binary number.
    """
    if objective == "max_rr":
        return np.concatenate([[0.0], 1 / np.arange(1, min(k, 10) + 1)])
    patterns = np.arange(1 << min(k, 10))
    return sum(((patterns >> r) & 1) / np.log2(r + 2) for r in range(min(k, 10)))


def outcome_of(clicks: Array, objective: str) -> int:
    """The index of the outcome of these clicks."""
    clicked = np.flatnonzero(clicks[:10])
    if objective == "max_rr":
        return int(clicked[0]) + 1 if clicked.size else 0
    return int(sum(1 << int(r) for r in clicked))


def gradient_weights(values: Array, *, sigma: float, antithetic: bool) -> Array:
    """[n] factor of each client's perturbation N(0, I) in its gradient estimate; values [n, 2] = f+, f-."""
    if antithetic:
        return (values[:, 0] - values[:, 1]) / (2 * sigma)
    return values[:, 0] / sigma
