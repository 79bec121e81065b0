"""A search node in a federation: from its log of choices to what is sent, and from the shared ranker to its weights.

    log -> `client.local_update` -> clip, noise, charge, store (`federation.member`) -> bytes

The node learns from its whole log, starting from the shared weights. The weights that come back are a new version on
trial, and the prior of the node's own refits (`versions.adopt_shared`).
"""

import time
from pathlib import Path

import msgspec

from foltr.errors import SecureAggregationError
from foltr.federation.announcement import Ranker, parameters_of
from foltr.federation.member import NodeSide
from foltr.federation.membership import Clock, Member, Storage
from foltr.federation.network.joined import Joined, Membership, memberships, start_of
from foltr.federation.network.syncing import BuildSide
from foltr.federation.policy import Guarded, effective, without
from foltr.node.learning import versions
from foltr.node.learning.log import Log
from foltr.node.learning.versions import WeightedFeature, Weights
from foltr.node.places import Places
from foltr.privacy.ledger_file import NodeLedger, open_ledger
from foltr.privacy.mechanisms import NoPrivacy
from foltr.privacy.noise import SystemStream
from foltr.secagg.terms import Terms
from foltr.secagg.two_servers import Pair
from foltr.types import Array


def side_of(places: Places, log: Log, member: Member, *, operators: Pair | None = None) -> NodeSide:
    """This node in a federation. Budget and delta of the ledger are those of its policy; sums without noise have no
    epsilon, and no budget."""
    terms = member.terms
    return NodeSide(
        member, storage_of(places, terms.federation), ledger_of(places, terms),
        learn=lambda ranker: update(log, ranker), adopt=lambda ranker: adopt(log, ranker, terms.federation),
        operators=operators, start=start_ranker(), server_learning_rate=versions.FEDERATED.server_learning_rate,
        policy=Guarded(policy_folder(places)),
    )  # fmt: skip


def builder(places: Places, log: Log, clock: Clock = time.time) -> BuildSide:
    """Makes this node the member that an invitation names: its operators, first ranker and coordinator's address."""

    def build(joined: Joined, member: Member) -> NodeSide:
        invitation, start = joined.invitation, start_of(joined)
        _weights(start)  # refuses a federation of other features
        return side_of(places, log, member, operators=invitation.operators)._replace(
            start=start, server_learning_rate=invitation.server_learning_rate, address=invitation.address, clock=clock
        )

    return build


def ledger_of(places: Places, terms: Terms) -> NodeLedger:
    """The one ledger of this node, opened with the limits of its policy in this federation."""
    limits = effective(Guarded(policy_folder(places)).load(), terms.federation)
    return open_ledger(
        ledger_path(places), delta=limits.delta,
        budget=limits.epsilon if terms.noise_multiplier else None, witness=places.witnesses / "ledger",
    )  # fmt: skip


def ledger_path(places: Places) -> Path:
    return places.data / "federation" / "ledger"


def storage_of(places: Places, federation: str) -> Storage:
    return Storage(places.data / "federation" / federation, places.witnesses / federation)


def memberships_of(places: Places) -> list[Membership]:
    """The federations that this node is in."""
    return list(memberships(places.data / "federation", places.witnesses))


def forget(places: Places, federation: str) -> None:
    """The policy after the node left a federation; the ledger stays."""
    guarded = Guarded(policy_folder(places))
    guarded.save(without(guarded.load(), federation))


def check_length(terms: Terms) -> None:
    """Refuses a federation whose rankers have another number of parameters, before anything is joined."""
    if terms.length != len(parameter_names()):
        raise SecureAggregationError(
            f"the ranker of this federation has {terms.length} parameters and that of this version of foltr "
            f"{len(parameter_names())}; use the same version on all nodes"
        )


def policy_folder(places: Places) -> Path:
    """Where a node keeps its policy and what it has seen of federations."""
    return places.config / "federation"


def parameter_names() -> tuple[str, ...]:
    """Names of the parameters of a federation of nodes."""
    return versions.feature_names(versions.start_weights())


def start_ranker() -> Ranker:
    """Version 0 of every federation: the start weights of the package."""
    names = parameter_names()
    return Ranker(0, names, versions.values_of(versions.start_weights(), names).astype("<f8").tobytes())


def update(log: Log, ranker: Ranker) -> Array:
    """[P] the difference that the whole log makes to a shared ranker; noise is added where it leaves the node."""
    weights = _weights(ranker)
    return versions.update(log, weights, mechanism=NoPrivacy(), noise=lambda _purpose: SystemStream()).values


def adopt(log: Log, ranker: Ranker, federation: str) -> None:
    """The shared weights rank on trial from now on; a version that was taken over before changes nothing."""
    weights = _weights(ranker)
    versions.adopt_shared(log, msgspec.structs.replace(weights, origin=f"{federation}/{ranker.version}"))


def _weights(ranker: Ranker) -> Weights:
    """Refuses a ranker of other features: its update would be added to the wrong parameters."""
    if ranker.names != parameter_names():
        raise SecureAggregationError(
            "the ranker of this federation has other features than this version of foltr; use the same version on all "
            "nodes"
        )
    features = tuple(
        WeightedFeature(feature.name, feature.scaling, weight)
        for feature, weight in zip(versions.start_weights().features, parameters_of(ranker).tolist(), strict=True)
    )
    return Weights(ranker.version, "linear", features, parent=versions.SHARED)
