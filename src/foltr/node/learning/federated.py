"""A search node in a federation: from its log of choices to what is sent, and from the shared ranker to its weights.

    log -> `client.local_update` -> clip, noise, charge, store (`federation.member`) -> bytes

The node learns from its whole log, starting from the shared weights. The weights that come back are a new version,
which ranks as every other version does.
"""

from pathlib import Path

from foltr.errors import SecureAggregationError
from foltr.federation.announcement import Ranker, parameters_of
from foltr.federation.member import NodeSide
from foltr.federation.membership import Member, Storage
from foltr.node.learning import versions
from foltr.node.learning.log import Log
from foltr.node.learning.versions import WeightedFeature, Weights
from foltr.node.places import Places
from foltr.privacy.ledger_file import open_ledger
from foltr.privacy.mechanisms import NoPrivacy
from foltr.privacy.noise import SystemStream
from foltr.secagg.two_servers import Pair
from foltr.types import Array


def side_of(
    places: Places, log: Log, member: Member, *, delta: float, budget: float | None, operators: Pair | None = None
) -> NodeSide:
    """This node in a federation. `budget`: epsilon of all federations together; None where sums have no noise."""
    storage = Storage(places.data / "federation" / member.terms.federation, _witnesses(places, member))
    ledger = open_ledger(
        places.data / "federation" / "ledger", delta=delta, budget=budget,
        witness=places.config / "federation" / "ledger",
    )  # fmt: skip
    return NodeSide(
        member, storage, ledger, learn=lambda ranker: update(log, ranker),
        adopt=lambda ranker: adopt(log, ranker), operators=operators,
    )  # fmt: skip


def parameter_names() -> tuple[str, ...]:
    """What the parameters of a federation of nodes are called."""
    return versions.feature_names(versions.start_weights())


def update(log: Log, ranker: Ranker) -> Array:
    """[P] the difference that the whole log makes to a shared ranker; noise is added where it leaves the node."""
    weights = _weights(ranker)
    return versions.update(log, weights, mechanism=NoPrivacy(), noise=lambda _purpose: SystemStream()).values


def adopt(log: Log, ranker: Ranker) -> None:
    """The shared weights rank from now on."""
    versions.adopt(log, _weights(ranker))


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
    return Weights(ranker.version, "linear", features, parent="federation")


def _witnesses(places: Places, member: Member) -> Path:
    return places.config / "federation" / member.terms.federation
