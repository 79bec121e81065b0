"""Pairwise differentiable gradient descent: a clicked document is preferred to the ones passed over.

Source: S0 Algorithm 1 and equations 3-6.
Weight of a pair = rho * sigma'(s_winner - s_loser). rho compares the list with the one in which the pair is swapped;
with the pair at ranks i < j, e = exp(score) and D_t the mass of all documents not ranked above t,

    P(swapped) / P(shown) = product over t = i+1 .. j of D_t / (D_t + e_i - e_j)
    rho = 1 / (1 + P(shown) / P(swapped))

so no tensor over documents is needed. All factors lie on the same side of 1, so nothing cancels.

Differs from the paper: losers stop ONE below the last click (the authors' program; the paper does not say).
`losers = "all-shown"` takes every document that was shown and not clicked (S4).
"""

from typing import Annotated, Literal

import msgspec
import numpy as np

from foltr.rankers import RankerKind
from foltr.types import Array, Interaction


class Pdgd(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="pdgd"):
    learning_rate: Annotated[float, msgspec.Meta(gt=0)] = 0.1
    negatives: Literal["one-below-last-click", "all-shown"] = "one-below-last-click"
    prox_mu: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # FedProx: each step is drawn back to the round's start


def preferences(clicks: Array, losers: str = "one-below-last-click") -> list[tuple[int, int]]:
    """Pairs (winner, loser) of ranks; empty without a click or without a loser."""
    clicked = np.flatnonzero(clicks)
    if clicked.size == 0:
        return []
    reach = len(clicks) if losers == "all-shown" else min(clicked[-1] + 2, len(clicks))
    return [(int(w), lost) for w in clicked for lost in range(reach) if not clicks[lost]]


def swap_weight(scores: Array, ranking: Array, one: int, other: int) -> float:
    """rho of the documents at two ranks: P(swapped list) / (P(shown list) + P(swapped list))."""
    i, j = min(one, other), max(one, other)
    odds = 1.0  # P(shown) / P(swapped)
    for rank in range(i + 1, j + 1):
        remaining = np.delete(scores, ranking[:rank])
        shift = remaining.max()
        mass = np.exp(remaining - shift).sum()
        # exp may overflow to infinity where the upper document towers over all that remain: rho is then 0
        with np.errstate(over="ignore"):
            higher, lower = np.exp(scores[ranking[[i, j]]] - shift)
            odds *= max(mass - lower, 0.0) / mass + higher / mass
    return float(1 / (1 + odds))


def list_weights(session: Interaction, losers: str = "one-below-last-click") -> Array:
    """[k] how much each shown document's score should rise or fall."""
    weights = np.zeros(len(session.ranking))
    for winner, loser in preferences(session.clicks, losers):
        gap = session.scores[session.ranking[winner]] - session.scores[session.ranking[loser]]
        slope = np.exp(-abs(gap)) / (1 + np.exp(-abs(gap))) ** 2
        weight = swap_weight(session.scores, session.ranking, winner, loser) * slope
        weights[winner] += weight
        weights[loser] -= weight
    return weights


def gradient(
    session: Interaction, ranker: RankerKind, parameters: Array, losers: str = "one-below-last-click"
) -> Array:
    """The direction that one session asks for."""
    weights = list_weights(session, losers)
    return ranker.backward(parameters, session.features[session.ranking], weights)
