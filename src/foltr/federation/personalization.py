"""Rankers that are not all alike: what a client keeps for itself, and what it shares.

    none      everybody has the shared ranker (FedAvg)
    fedper    the output layer never leaves the client, the hidden layer is shared (Arivazhagan et al. 2019; S2 4.2.2)
    offset    theta_shared + a part of its own: of what a client learns, the mean is shared, and of what sets it apart
              from the mean the client keeps `keep`. 0 is FedAvg, 1 is staying alone
    clusters  after some rounds together, clients whose updates agree go on together, each group by itself
              (after Sattler, Mueller and Samek 2021)
    alone     nobody shares anything: what a federation has to beat

Every kind is three functions: `begin` the state, the `models` [clients, P] that clients search with, and `absorb` what
they learnt. All clients take part in every round.

Differs from the paper: clusters are found once, by average linkage of the cosine of what clients learnt in the first
rounds, as many as the spec says; Sattler et al. split in two again and again by a threshold.
"""

from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from foltr.federation.aggregators import weighted_sum
from foltr.rankers import Mlp, RankerKind
from foltr.types import Array


class Together(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="none"):
    pass


class FedPer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="fedper"):
    pass


class Offset(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="offset"):
    local_weight: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5


class Clusters(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="clusters"):
    count: Annotated[int, msgspec.Meta(ge=2)] = 2
    together: Annotated[int, msgspec.Meta(ge=1)] = 100  # rounds before they part


class LocalOnly(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="local_only"):
    pass


PersonalKind = Together | FedPer | Offset | Clusters | LocalOnly


class Personal(NamedTuple):
    models: Array  # [clients, P] what each searches with
    shared: Array  # [P] the part, or the mean, that a newcomer would get
    learnt: Array  # [clients, P] summed updates (clusters only)
    group: Array  # [clients] (clusters only)
    round: int


def begin(start: Array, clients: int) -> Personal:
    models = np.tile(start, (clients, 1))
    return Personal(models, start, np.zeros_like(models), np.zeros(clients, dtype=np.int64), 0)


def absorb(kind: PersonalKind, state: Personal, trained: Array, weights: Array, ranker: RankerKind) -> Personal:
    """The state after clients have trained their models to `trained` [clients, P]."""
    shared = _mean(trained, weights)
    after = state._replace(shared=shared, round=state.round + 1)
    if isinstance(kind, FedPer):
        return after._replace(models=_own_output(trained, shared, ranker))
    if isinstance(kind, Offset):
        steps = trained - state.models
        common = _mean(steps, weights)
        return after._replace(models=state.models + common + kind.local_weight * (steps - common))
    if isinstance(kind, LocalOnly):
        return after._replace(models=trained)
    if isinstance(kind, Clusters):
        return _grouped(kind, after._replace(learnt=state.learnt + trained - state.models), trained, weights)
    return after._replace(models=np.tile(shared, (len(trained), 1)))


def _own_output(trained: Array, shared: Array, ranker: RankerKind) -> Array:
    assert isinstance(ranker, Mlp)
    models = np.tile(shared, (len(trained), 1))
    models[:, -ranker.hidden :] = trained[:, -ranker.hidden :]
    return models


def _grouped(kind: Clusters, state: Personal, trained: Array, weights: Array) -> Personal:
    if state.round == kind.together:
        state = state._replace(group=clusters(state.learnt, kind.count))
    models = np.empty_like(trained)
    for group in np.unique(state.group):
        members = np.flatnonzero(state.group == group)
        models[members] = _mean(trained[members], weights[members])
    return state._replace(models=models)


def clusters(learnt: Array, count: int) -> Array:
    """[clients] group of each: average linkage of the cosine distances; one that learnt nothing is like nobody."""
    norms = np.linalg.norm(learnt, axis=1, keepdims=True)
    directions = learnt / np.where(norms > 0, norms, 1.0)
    distances = np.maximum(1 - directions @ directions.T, 0.0)[np.triu_indices(len(learnt), 1)]
    groups: Array = fcluster(linkage(distances, "average"), count, criterion="maxclust") - 1
    return groups


def _mean(rows: Array, weights: Array) -> Array:
    return weighted_sum(rows, weights) / np.sum(weights)
