"""Personalised rankers: what each client stores locally, and what it shares.

    none        everybody has the shared ranker (FedAvg)
    fedper      the output layer is not sent, the hidden layer is shared (Arivazhagan et al. 2019; S2 4.2.2)
    offset      a personalised offset: add the mean delta plus `local_weight` times the client's deviation from it.
                0 is FedAvg, 1 is local-only training
    clusters    clustering: after some rounds together, clients whose updates agree train one model a cluster
                (after Sattler, Mueller and Samek 2021)
    local_only  local-only training: nobody shares anything; what a federation has to beat

All clients take part in every round.

Differs from the paper: clusters are found once, by average linkage of the cosine of what clients learnt in the first
rounds, as many as the spec says; Sattler et al. bisect repeatedly by a threshold.
"""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from foltr.federation.aggregators import weighted_sum
from foltr.federation.server import ServerState
from foltr.types import Array, Updates


class PersonalState(NamedTuple):
    models: Array  # [clients, P] what each searches with
    learnt: Array  # [clients, P] summed deltas (clusters only)
    cluster: Array  # [clients] (clusters only)


class Shared(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="none"):
    """One ranker for all."""


class FedPer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="fedper"):
    def models(self, state: PersonalState, deltas: Array, weights: Array, ranker: Any, round: int) -> PersonalState:  # noqa: ARG002
        trained = state.models + deltas
        models = np.tile(_mean(trained, weights), (len(trained), 1))
        models[:, -ranker.hidden :] = trained[:, -ranker.hidden :]
        return state._replace(models=models)


class Offset(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="offset"):
    local_weight: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5  # of the client's own part

    def models(self, state: PersonalState, deltas: Array, weights: Array, ranker: Any, round: int) -> PersonalState:  # noqa: ARG002
        common = _mean(deltas, weights)
        return state._replace(models=state.models + common + self.local_weight * (deltas - common))


class Clusters(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="clusters"):
    count: Annotated[int, msgspec.Meta(ge=2)] = 2
    together: Annotated[int, msgspec.Meta(ge=1)] = 100  # rounds before clustering

    def models(self, state: PersonalState, deltas: Array, weights: Array, ranker: Any, round: int) -> PersonalState:  # noqa: ARG002
        learnt, trained = state.learnt + deltas, state.models + deltas
        cluster = clusters(learnt, self.count) if round == self.together else state.cluster
        models = np.empty_like(trained)
        for number in np.unique(cluster):
            members = np.flatnonzero(cluster == number)
            models[members] = _mean(trained[members], weights[members])
        return PersonalState(models, learnt, cluster)


class LocalOnly(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="local_only"):
    def models(self, state: PersonalState, deltas: Array, weights: Array, ranker: Any, round: int) -> PersonalState:  # noqa: ARG002
        return state._replace(models=state.models + deltas)


PersonalKind = Shared | FedPer | Offset | Clusters | LocalOnly


def init_state(start: Array, clients: int) -> PersonalState:
    models = np.tile(start, (clients, 1))
    return PersonalState(models, np.zeros_like(models), np.zeros(clients, dtype=np.int64))


def personalization(kind: Any, ranker: Any) -> Callable[[ServerState, Updates], ServerState]:
    """The server's step with personal rankers; a new client gets the mean of the trained ones."""

    def step(state: ServerState, updates: Updates) -> ServerState:
        shared = _mean(state.personal.models + updates.values, updates.weights)
        version = state.version + 1
        personal = kind.models(state.personal, updates.values, updates.weights, ranker, version)
        return state._replace(version=version, parameters=shared, personal=personal)

    return step


def clusters(learnt: Array, count: int) -> Array:
    """[clients] cluster of each: average linkage of the cosine distances; a zero delta has distance 1 to all."""
    from scipy.cluster.hierarchy import fcluster, linkage

    norms = np.linalg.norm(learnt, axis=1, keepdims=True)
    directions = learnt / np.where(norms > 0, norms, 1.0)
    distances = np.maximum(1 - directions @ directions.T, 0.0)[np.triu_indices(len(learnt), 1)]
    found: Array = fcluster(linkage(distances, "average"), count, criterion="maxclust") - 1
    return found


def _mean(rows: Array, weights: Array) -> Array:
    return weighted_sum(rows, weights) / np.sum(weights)
