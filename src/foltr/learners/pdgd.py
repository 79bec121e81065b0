"""Pairwise differentiable gradient descent: a clicked document is preferred to unclicked ones that were examined.

Source: S0 Algorithm 1 and equations 3-6.
Weight of a pair = rho * sigma'(s_positive - s_negative). rho compares the list with the one in which the pair is
swapped; with the pair at ranks i < j, e = exp(score) and D_t the normalizer over all documents not ranked above t,

    P(swapped) / P(shown) = product over t = i+1 .. j of D_t / (D_t + e_i - e_j)
    rho = 1 / (1 + P(shown) / P(swapped))

so no tensor over documents is needed. All factors lie on the same side of 1, so nothing cancels.

FedProx (Li et al. 2020): `prox_mu` adds the penalty prox_mu / 2 * ||theta - start of the round||^2.

Differs from the paper: negatives stop ONE below the last click (the authors' program; the paper does not say).
`negatives = "all-shown"` takes every displayed document without a click (S4). Pair weights of an interaction that
an older model ranked use the scores as shown; `pair_scores = "current"` scores the list with the current model.
"""

from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np

from foltr.rankers import plackett_luce
from foltr.types import Array, Interaction, Model, Updates


class PdgdState(NamedTuple):
    """The state of a client between two steps."""

    start: Array  # [P] the model that it was sent
    parameters: Array  # [P]


class Pdgd(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="pdgd"):
    learning_rate: Annotated[float, msgspec.Meta(gt=0)] = 0.1
    negatives: Literal["one-below-last-click", "all-shown"] = "one-below-last-click"
    prox_mu: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # FedProx: weight of the distance from the round's start
    pair_scores: Literal["shown", "current"] = "shown"  # of interactions that an older model ranked

    message: ClassVar[str] = "delta"
    server_optimizer: ClassVar[str] = "add"

    def client_init(self, model: Model, *, client: int, interactions: int) -> PdgdState:  # noqa: ARG002
        start = np.asarray(model.parameters, dtype=np.float64)
        return PdgdState(start, start)

    def rank(self, state: PdgdState, features: Array, k: int, draws: Any, *, ranker: Any) -> tuple[Array, Array]:
        """A Plackett-Luce list of the local model, and its scores."""
        scores = ranker.score(state.parameters, features)
        return plackett_luce.sample(scores, k, draws), scores

    def client_step(
        self, state: PdgdState, interaction: Interaction, *, ranker: Any, mechanism: Any, noise: Any  # noqa: ARG002
    ) -> PdgdState:  # fmt: skip
        if self.pair_scores == "current":
            interaction = interaction._replace(scores=ranker.score(state.parameters, interaction.features))
        drift = state.parameters - state.start
        step = gradient(interaction, ranker, state.parameters, self.negatives) - self.prox_mu * drift
        return state._replace(parameters=mechanism.project(state.parameters + self.learning_rate * step))

    def client_final(self, state: PdgdState) -> Array:
        return state.parameters - state.start

    def decode(self, updates: Updates, *, seed: int, parameters: int) -> Array:  # noqa: ARG002
        """[n, P] deltas are sent as they are."""
        return updates.values


def preferences(clicks: Array, negatives: str = "one-below-last-click") -> list[tuple[int, int]]:
    """Pairs (clicked, unclicked) of ranks; empty without a click or without a negative."""
    clicked = np.flatnonzero(clicks)
    if clicked.size == 0:
        return []
    reach = len(clicks) if negatives == "all-shown" else min(clicked[-1] + 2, len(clicks))
    return [(int(positive), rank) for positive in clicked for rank in range(reach) if not clicks[rank]]


def swap_weight(scores: Array, ranking: Array, one: int, other: int) -> float:
    """rho of the documents at two ranks: P(swapped list) / (P(shown list) + P(swapped list))."""
    i, j = min(one, other), max(one, other)
    odds = 1.0  # P(shown) / P(swapped)
    for rank in range(i + 1, j + 1):
        remaining = np.delete(scores, ranking[:rank])
        shift = remaining.max()
        normalizer = np.exp(remaining - shift).sum()
        # exp may overflow to infinity where the upper score far exceeds the others: rho is then 0
        with np.errstate(over="ignore"):
            higher, lower = np.exp(scores[ranking[[i, j]]] - shift)
            odds *= max(normalizer - lower, 0.0) / normalizer + higher / normalizer
    return float(1 / (1 + odds))


def list_weights(interaction: Interaction, negatives: str = "one-below-last-click") -> Array:
    """[k] weight of each displayed document in the gradient."""
    weights = np.zeros(len(interaction.ranking))
    scores, ranking = interaction.scores, interaction.ranking
    for positive, negative in preferences(interaction.clicks, negatives):
        distance = abs(scores[ranking[positive]] - scores[ranking[negative]])
        slope = np.exp(-distance) / (1 + np.exp(-distance)) ** 2
        weight = swap_weight(scores, ranking, positive, negative) * slope
        weights[positive] += weight
        weights[negative] -= weight
    return weights


def gradient(
    interaction: Interaction, ranker: Any, parameters: Array, negatives: str = "one-below-last-click"
) -> Array:
    """The gradient of one interaction."""
    weights = list_weights(interaction, negatives)
    return ranker.gradient(parameters, interaction.features[interaction.ranking], weights)
