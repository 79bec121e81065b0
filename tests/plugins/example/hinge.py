"""A learner: a perceptron step for every clicked document that an unclicked one above it outscores."""

from typing import ClassVar

import msgspec
import numpy as np

import foltr
from foltr.learners.pdgd import PdgdState


class Hinge(msgspec.Struct, frozen=True, tag_field="kind", tag="hinge"):
    learning_rate: float = 0.1

    message: ClassVar[str] = "delta"
    server_optimizer: ClassVar[str] = "add"

    def client_init(self, model, *, client, interactions):
        return PdgdState(model.parameters, model.parameters)

    def rank(self, state, features, k, draws, *, ranker):
        scores = ranker.score(state.parameters, features)
        return np.argsort(-scores, kind="stable")[:k], scores

    def client_step(self, state, interaction, *, ranker, mechanism, noise):
        weights = np.zeros(len(interaction.ranking))
        for rank in np.flatnonzero(interaction.clicks):
            for above in np.flatnonzero(~interaction.clicks[:rank]):
                weights[rank] += 1.0
                weights[above] -= 1.0
        step = ranker.gradient(state.parameters, interaction.features[interaction.ranking], weights)
        return state._replace(parameters=mechanism.project(state.parameters + self.learning_rate * step))

    def client_final(self, state):
        return state.parameters - state.start

    def decode(self, updates, *, seed, parameters):
        return updates.values


foltr.register("learner", Hinge)
