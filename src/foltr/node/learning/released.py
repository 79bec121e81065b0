"""What a node has released to federations: every message with its time, address and size, and epsilon so far."""

from collections import Counter
from typing import Any, NamedTuple

from foltr.federation.network import consent
from foltr.federation.network.joined import Membership
from foltr.federation.network.syncing import registry_of
from foltr.federation.policy import Guarded, effective
from foltr.node.learning.federated import ledger_of, ledger_path, policy_folder
from foltr.node.places import Places
from foltr.privacy.events import Event
from foltr.privacy.ledger import closed_epsilon
from foltr.privacy.ledger_file import open_ledger
from foltr.privacy.ledger_repair import inspect_ledger


class ReleaseRow(NamedTuple):
    """One record of the ledger that was charged."""

    time: float  # seconds since 1970; 0: an earlier version of foltr did not record it
    federation: str
    round: int
    address: str
    size: int  # bytes
    epsilon: float  # of everything up to here
    kind: str  # "release", or "repair": charged for records that may be missing


class Releases(NamedTuple):
    rows: list[ReleaseRow]
    figures: dict[str, Any]  # epsilon, delta, budget


def releases(places: Places) -> Releases:
    """All charges of this node, oldest first; nothing is created where it has no ledger."""
    limits = Guarded(policy_folder(places)).load().limits
    path = ledger_path(places)
    if not path.exists() and not (places.witnesses / "ledger").exists():
        return Releases([], {"epsilon": 0.0, "delta": limits.delta, "budget": limits.epsilon})
    ledger = open_ledger(path, delta=limits.delta, budget=None, witness=places.witnesses / "ledger")
    counts: Counter[Event] = Counter()
    rows = []
    for record in ledger.records():
        if not record.events:
            continue
        for event, times in record.events:
            counts[event] += times
        federation, round = next(iter(record.rounds.items()), ("", 0))
        epsilon = closed_epsilon(counts, limits.delta, "malicious")
        rows.append(ReleaseRow(record.time, federation, round, record.address, record.size, epsilon, record.kind))
    limit = inspect_ledger(path, witness=places.witnesses / "ledger").limit
    spent = rows[-1].epsilon if rows else 0.0
    return Releases(rows, {"epsilon": spent, "delta": limits.delta, "budget": limit.budget if limit else None})


def spent(places: Places) -> dict[Event, int]:
    """Charges so far, of all federations; nothing is created where there is no ledger."""
    path = ledger_path(places)
    return inspect_ledger(path, witness=places.witnesses / "ledger").counts if path.exists() else {}


def remains(places: Places, membership: Membership) -> str:
    """What stays in the shared ranker of a federation when this node leaves it, in words."""
    joined = membership.joined
    terms, known = joined.invitation.terms, registry_of(membership)
    ledger = ledger_of(places, terms)
    rounds = sum(record.kind == "release" and joined.federation in record.rounds for record in ledger.records())
    delta = effective(Guarded(policy_folder(places)).load(), joined.federation).delta
    return consent.remains(terms, len(known.clients) if known else 0, ledger.spent(), delta, rounds)
