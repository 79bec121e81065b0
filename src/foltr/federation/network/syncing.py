"""A node's visit to its coordinator: the newest ranker, then the open round; it may be killed anywhere.

    join, where the coordinator has not answered yet
    version        registries along their chain, steps of the shared ranker, the ranker on trial
    announcement   the open round: policy, update, "open?", charge, store, send, receipt

Everything is stored before it is sent or counted, and asked for again until it was answered: a second `sync` ends what
the first began. A release is charged at most once a round. It is charged without being in a sum only where the node
died between its charge and the next write, or where the round failed afterwards.

A refusal raises an error with its reason, is stored (`read_synced`), and sends nothing.
"""

import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from foltr.errors import FoltrError, Refused, SecureAggregationError, StateError
from foltr.federation import member, participant
from foltr.federation.announcement import Announcement, Ranker
from foltr.federation.member import NodeSide, read_shared, respond
from foltr.federation.membership import Clock, Member, Storage
from foltr.federation.network.joined import Joined, Membership, ask_to_join, erase_membership, tell_leaving
from foltr.federation.network.wire import (
    Current,
    Fate,
    Fates,
    Post,
    Receipt,
    RoundsRequest,
    Standing,
    SyncRequest,
    decode,
    encode,
    is_receipt,
)
from foltr.federation.opening import is_question
from foltr.federation.registries import Held, follow_editions, read_held, store_held
from foltr.files import held as held_lock
from foltr.files import write_durably
from foltr.secagg.terms import Registry, registry

BuildSide: TypeAlias = Callable[[Joined, Member], NodeSide]  # a node with its log, ledger and policy
Stored = TypeVar("Stored", bound=msgspec.Struct)
State: TypeAlias = Literal["sent", "idle", "waiting", "dormant", "removed", "left", "lost", "rehearsed", "refused"]
_STANDINGS: dict[Standing, tuple[State, str]] = {
    "waiting": ("waiting", "the federation has not begun, or its operators have not admitted this node yet"),
    "dormant": ("dormant", "this node was away for long; it is a member again with the next registry"),
    "removed": ("removed", "an operator removed this node from the federation; its contributions are not taken"),
}


class Synced(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Result of a visit, in words for the person."""

    time: float  # seconds since 1970
    state: State
    words: str
    round: int = 0  # that is open, or was the last
    version: int = 0  # of the shared ranker that this node has


def sync(membership: Membership, build: BuildSide, post: Post, *, clock: Clock = time.time) -> Synced:
    """One visit; the result is stored. An error is stored as a refusal, and raised."""
    folder = membership.storage.folder
    with held_lock(folder / "sync.lock", "syncing"):
        try:
            synced = _visit(membership, build, post)
        except (FoltrError, ConnectionError) as problem:
            _store_synced(membership, Synced(clock(), "refused", str(problem)))
            raise
        if synced.state != "left":
            _store_synced(membership, synced)
    if synced.state == "left":
        erase_membership(membership.storage)
    return synced


class _Visit(NamedTuple):
    """What a node was told, and itself with the registry at the end of the chain."""

    current: Current
    side: NodeSide
    newest: Held


def _visit(membership: Membership, build: BuildSide, post: Post) -> Synced:
    if membership.joined.left:
        tell_leaving(membership, post)
        return Synced(membership.joined.left, "left", "this node has left the federation; its key is revoked")
    membership = ask_to_join(membership, post)
    visit = _asked(membership, build, post, "version")
    if visit is None:
        side = _without_registry(membership, build)
        return Synced(side.clock(), "waiting", _STANDINGS["waiting"][1])
    if visit.current.announcement:
        respond(visit.side, visit.current.announcement)
    shared = _take_over(visit.side)
    store_held(_registry_path(membership), visit.newest)
    participant.end_if_late(visit.side.member, storage=visit.side.storage, clock=visit.side.clock)
    standing, now = visit.current.standing, visit.side.clock()
    if standing != "member":
        return Synced(now, *_STANDINGS[standing], visit.current.round, shared.version)
    visit = _asked(membership, build, post, "announcement")
    assert visit is not None  # the chain does not become empty
    state, words = _round(membership, visit, post)
    return Synced(now, state, words, visit.current.round, read_shared(visit.side).version)


def _asked(
    membership: Membership, build: BuildSide, post: Post, endpoint: Literal["version", "announcement"]
) -> _Visit | None:
    """The coordinator's reply, with the chain of registries followed; None where the federation has none yet."""
    joined, before = membership.joined, read_held(_registry_path(membership))
    side = _without_registry(membership, build)
    request = SyncRequest(before.link.head.number if before else 0, read_shared(side).version)
    current = decode(post(endpoint, encode(request)), Current)
    if current.client != joined.client:
        raise SecureAggregationError(f"the coordinator calls this node {current.client}; it joined as {joined.client}")
    if before is None and not current.editions:
        return None
    chain = follow_editions(
        current.editions, before, federation=joined.federation, coordinator=joined.invitation.coordinator,
        second=joined.invitation.operators[1],
    )  # fmt: skip
    known = {held.link.head.number: registry(joined.invitation.coordinator, held.members) for held in chain}
    newest = chain[-1]
    _require_own_key(membership, known[newest.link.head.number])
    known_as = side.member._replace(registry=known[newest.link.head.number])
    return _Visit(current, side._replace(member=known_as, registries=known), newest)


def _without_registry(membership: Membership, build: BuildSide) -> NodeSide:
    joined = membership.joined
    none = registry(joined.invitation.coordinator, {})
    terms, since = joined.invitation.terms, joined.invitation.round
    return build(joined, Member(joined.client, membership.identity, terms, none, since))


def _require_own_key(membership: Membership, known: Registry) -> None:
    """Refuses a registry that has another key under this node's number, or its key under another."""
    own = {client for client, key in known.keys.items() if key == membership.key}
    client = membership.joined.client
    if own - {client} or (client in known.keys and not own):
        raise SecureAggregationError(f"the registry has another key for member {client}, or this one elsewhere")


def _take_over(side: NodeSide) -> Ranker:
    """The shared ranker that the node computed, on trial; one that was taken over before changes nothing."""
    shared = read_shared(side)
    assert side.start is not None
    ranker = Ranker(shared.version, side.start.names, shared.values)
    if shared.version:
        side.adopt(ranker)
    return ranker


# --- the open round ---------------------------------------------------------------------------------------------------


def _round(membership: Membership, visit: _Visit, post: Post) -> tuple[State, str]:
    message, side = visit.current.announcement, visit.side
    if not message:
        return "idle", "no round is open for this node"
    reply = respond(side, message)
    announced = msgspec.msgpack.decode(message, type=Announcement)
    number = announced.round
    _take_over(side)
    store_held(_registry_path(membership), visit.newest)
    assert reply is not None
    if is_question(reply):
        if side.ledger.highest_round(membership.joined.federation) >= number:
            return "lost", (
                f"round {number} was charged, and this machine stopped before its message was stored; it takes part in "
                f"the next one"
            )
        try:
            answer = post("open", reply)
        except Refused as problem:  # its window has just ended: a timer has nothing to report
            return "idle", f"round {number} is not open for this node: {problem}; nothing was charged"
        reply = respond(side, answer)
        assert reply is not None
    _require_receipt(membership, reply, number, post)
    if announced.kind == "rehearsal":
        return "rehearsed", f"round {number} is a rehearsal: the coordinator has zeros of this node, nothing is charged"
    return "sent", f"round {number}: the coordinator has the contribution of this node"


def _require_receipt(membership: Membership, message: bytes, number: int, post: Post) -> None:
    """Sends a contribution until the coordinator's receipt for it is stored."""
    joined, digest = membership.joined, sha256(message).digest()
    stored = read_receipt(membership.storage)
    if stored is not None and _is_ours(stored, membership, digest, number):
        return
    receipt = decode(post("contribute", message), Receipt)
    if not _is_ours(receipt, membership, digest, number):
        raise SecureAggregationError(
            f"round {number}: the coordinator of {joined.invitation.name} did not sign a receipt for the contribution; "
            "the next sync sends the same bytes again"
        )
    write_durably(membership.storage.folder / "receipt", encode(receipt))


def _is_ours(receipt: Receipt, membership: Membership, digest: bytes, number: int) -> bool:
    joined = membership.joined
    return receipt.round == number and is_receipt(
        receipt, joined.federation, joined.invitation.coordinator, client=joined.client, digest=digest
    )


# --- what a person asks -----------------------------------------------------------------------------------------------


class Why(NamedTuple):
    """One round and why this node is, or is not, in its sum."""

    round: int
    charged: bool
    included: bool
    words: str


def why(membership: Membership, build: BuildSide, post: Post, *, most: int = 10) -> list[Why]:
    """The newest rounds, newest first: what the coordinator says, beside what this node's ledger says."""
    side = _without_registry(membership, build)
    charged = {
        record.rounds[membership.joined.federation]
        for record in side.ledger.records()
        if record.kind == "release" and membership.joined.federation in record.rounds
    }
    fates = decode(post("rounds", encode(RoundsRequest(most))), Fates)
    return [
        Why(fate.round, fate.round in charged, fate.included, _words(fate, fate.round in charged))
        for fate in fates.rounds
    ]


def _words(fate: Fate, charged: bool) -> str:
    if fate.included:
        return f"in the sum ({fate.state})"
    if fate.state not in ("published", "opened", "failed"):
        return f"{'sent' if fate.sent else 'not sent yet'}; the round is {fate.state}"
    if charged and not fate.sent:
        return f"charged, and no message arrived in time: {fate.reason or 'this machine or its connection stopped'}"
    return f"not in the sum: {fate.reason or 'no reason was given'}"


def resume(membership: Membership, build: BuildSide) -> None:
    """The person lets a node that pauses after two charged rounds without a new ranker go on."""
    member.resume(_without_registry(membership, build))


def registry_of(membership: Membership) -> Registry | None:
    """The members of the federation that this node holds; None before the first visit."""
    newest = read_held(_registry_path(membership))
    return None if newest is None else registry(membership.joined.invitation.coordinator, newest.members)


def read_synced(storage: Storage) -> Synced | None:
    """The newest visit; None before the first."""
    return _read(storage, "synced", Synced)


def read_receipt(storage: Storage) -> Receipt | None:
    return _read(storage, "receipt", Receipt)


def _read(storage: Storage, name: str, kind: type[Stored]) -> Stored | None:
    path = storage.folder / name
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, ValueError) as problem:
        raise StateError(f"{path}: cannot be read ({problem}); delete the file") from None


def _store_synced(membership: Membership, synced: Synced) -> None:
    write_durably(membership.storage.folder / "synced", msgspec.msgpack.encode(synced))


def _registry_path(membership: Membership) -> Path:
    return membership.storage.folder / "registry"
