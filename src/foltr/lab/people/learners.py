"""Learners of a node side by side: MAP softmax, PDGD with a temperature, and three that look right and are unsafe.

All follow the contract of learners (`client_init, rank, client_step, client_final`), so that `client.local_update` runs
them. The unsafe ones fit weights by the same optimiser as MAP softmax and differ in what a click is compared with:

- `SkipAbove`: a click is preferred to the documents above it without a click (Joachims 2002). A list that is good
  already shows its errors only at its top: the learner learns to reverse it.
- `InversePropensity`: a click at rank r counts r times, the inverse of the propensity 1 / r. Without exploration the
  same documents stay at the same ranks, and what is rarely clicked at the bottom counts most.
- `TopNegatives`: a click is compared with the first ten of BM25 only. Every rival has a high BM25, so that a lower one
  looks like a virtue.

Differs from the papers: they are named for what they compare; all have a Gaussian prior at the start weights.
"""

from typing import Any, NamedTuple

import msgspec
import numpy as np

from foltr.learners.pdgd import Pdgd, PdgdState
from foltr.learners.softmax import Comparison, compare, minimise
from foltr.rankers import plackett_luce
from foltr.rng import Stream, stream
from foltr.types import Array, Interaction, Model

WEAK_PRIOR = 2.0  # of the unsafe learners, and of MAP softmax where it learns fast


class TemperedPdgd(msgspec.Struct, frozen=True):
    """PDGD whose lists are drawn from scores divided by a temperature: a lower one explores less."""

    learning_rate: float
    temperature: float

    def client_init(self, model: Model, *, client: int, interactions: int) -> PdgdState:
        return self._pdgd.client_init(model, client=client, interactions=interactions)

    def rank(self, state: PdgdState, features: Array, k: int, draws: Any, *, ranker: Any) -> tuple[Array, Array]:
        scores = ranker.score(state.parameters, features) / self.temperature
        return plackett_luce.sample(scores, k, draws), scores

    def client_step(
        self, state: PdgdState, interaction: Interaction, *, ranker: Any, mechanism: Any, noise: Any
    ) -> PdgdState:
        return self._pdgd.client_step(state, interaction, ranker=ranker, mechanism=mechanism, noise=noise)

    def client_final(self, state: PdgdState) -> Array:
        return self._pdgd.client_final(state)

    @property
    def _pdgd(self) -> Pdgd:
        return Pdgd(learning_rate=self.learning_rate)


class NoLearning(msgspec.Struct, frozen=True):
    """The weights stay as they are."""

    def client_init(self, model: Model, *, client: int, interactions: int) -> Array:  # noqa: ARG002
        return np.asarray(model.parameters, dtype=np.float64)

    def rank(self, state: Array, features: Array, k: int, draws: Any, *, ranker: Any) -> tuple[Array, Array]:  # noqa: ARG002
        scores = ranker.score(state, features)
        return np.argsort(-scores, kind="stable")[:k], scores

    def client_step(self, state: Array, interaction: Interaction, *, ranker: Any, mechanism: Any, noise: Any) -> Array:  # noqa: ARG002
        return state

    def client_final(self, state: Array) -> Array:
        return np.zeros_like(state)


class ComparedState(NamedTuple):
    start: Array  # [P]
    parameters: Array  # [P]
    comparisons: tuple[Comparison, ...]
    draws: Stream
    step: int
    clicks: int  # interactions with a click


class Compared(msgspec.Struct, frozen=True):
    """A softmax fit whose comparisons are those of `rivals`; else as `SoftmaxMap`."""

    rivals: str  # a key of RIVALS
    bm25: int = 0  # the feature that negatives are chosen by
    prior: float = WEAK_PRIOR
    refit_every: int = 10

    def client_init(self, model: Model, *, client: int, interactions: int) -> ComparedState:  # noqa: ARG002
        start = np.asarray(model.parameters, dtype=np.float64)
        return ComparedState(start, start, (), stream(model.seed, client=client, purpose="choice"), 0, 0)

    def rank(self, state: ComparedState, features: Array, k: int, draws: Any, *, ranker: Any) -> tuple[Array, Array]:
        return NoLearning().rank(state.parameters, features, k, draws, ranker=ranker)

    def client_step(
        self, state: ComparedState, interaction: Interaction, *, ranker: Any, mechanism: Any, noise: Any  # noqa: ARG002
    ) -> ComparedState:  # fmt: skip
        fresh = RIVALS[self.rivals](interaction, state.draws.skip(state.step << 20), self.bm25)
        clicks = state.clicks + bool(interaction.clicks.any())
        due = clicks > state.clicks and clicks % self.refit_every == 0
        state = state._replace(comparisons=(*state.comparisons, *fresh), step=state.step + 1, clicks=clicks)
        fitted = (
            minimise(state.comparisons, state.start, self.prior, guess=state.parameters) if due else state.parameters
        )
        return state._replace(parameters=fitted)

    def client_final(self, state: ComparedState) -> Array:
        return state.parameters - state.start


def _skip_above(interaction: Interaction, draws: Any, bm25: int) -> list[Comparison]:  # noqa: ARG001
    features = interaction.features[interaction.ranking]
    pairs = [
        (clicked, above)
        for clicked in np.flatnonzero(interaction.clicks).tolist()
        for above in range(clicked)
        if not interaction.clicks[above]
    ]
    return [Comparison((features[above] - features[clicked])[None], np.zeros(1)) for clicked, above in pairs]


def _inverse_propensity(interaction: Interaction, draws: Any, bm25: int) -> list[Comparison]:  # noqa: ARG001
    ranks = np.flatnonzero(interaction.clicks) + 1
    found = compare(interaction, draws, unshown=20)
    return [one for one, rank in zip(found, ranks.tolist(), strict=True) for _ in range(rank)] if found else []


def _top_negatives(interaction: Interaction, draws: Any, bm25: int) -> list[Comparison]:  # noqa: ARG001
    clicked = interaction.ranking[interaction.clicks]
    top = np.argsort(-interaction.features[:, bm25], kind="stable")[:10]
    rivals = top[~np.isin(top, clicked)]
    given = interaction.features
    return [Comparison(given[rivals] - given[one], np.zeros(len(rivals))) for one in clicked.tolist() if len(rivals)]


RIVALS = {"skip-above": _skip_above, "inverse-propensity": _inverse_propensity, "top-of-bm25": _top_negatives}
