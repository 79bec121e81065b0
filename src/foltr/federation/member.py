"""A node's side of a federation: messages of the coordinator in, bytes that leave the machine out.

    round begins -> learn from the own log -> clip, noise, charge, store -> what is sent

Two protocols have this one interface. With one server a node joins the round and then answers the requests of five
stages (`participant`). With two operators it asks whether the round is open (`opening`), and its only message follows
on the coordinator's signed answer (`two_servers`), within the policy of its person (`policy`); it takes over no ranker
that it did not compute itself from the sums that both operators signed (`steps`). What a node learns from is the
caller's: `learn` computes the update from the ranker that was announced, with `client.local_update`; `adopt` takes the
shared ranker over.
"""

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from foltr.errors import PrivacyError, SecureAggregationError, SpecError, StateError
from foltr.federation import participant
from foltr.federation.announcement import Announcement, Ranker, checked, is_announcement, window_digest
from foltr.federation.membership import Clock, Member, Storage, prepare, require_near
from foltr.federation.opening import ask, checked_opening, is_opening
from foltr.federation.policy import Guarded, admit, note_round, release_event
from foltr.federation.steps import EMPTY, SharedRanker, Step, advanced, first_shared, max_steps_bytes
from foltr.federation.two_servers import already_sent, contribute_once, rehearse_once
from foltr.files import write_durably
from foltr.privacy.ledger_file import NodeLedger
from foltr.secagg.round_keys import checked_keys
from foltr.secagg.terms import Registry
from foltr.secagg.two_servers import Pair, TwoServers, Window, two_servers
from foltr.types import Array

_LOG = logging.getLogger(__name__)  # numbers of rounds and versions only
MOST_UNREWARDED = 2  # rounds that a node is charged for without a new version, before it pauses
Learn: TypeAlias = Callable[
    [Ranker], Array
]  # the update [P] of the own log, from this ranker; neither clipped nor noisy
Adopt: TypeAlias = Callable[[Ranker], None]


class NodeSide(NamedTuple):
    """A node in one federation."""

    member: Member
    storage: Storage
    ledger: NodeLedger
    learn: Learn
    adopt: Adopt
    operators: Pair | None = None  # identities of two operators; None: one server
    clock: Clock = time.time
    start: Ranker | None = None  # that the node was invited with; required with two operators
    server_learning_rate: float = 1.0  # of the server's step, which nodes of two operators compute for themselves
    policy: Guarded | None = None  # of the person; required with two operators
    address: str = ""  # of the coordinator, for the ledger
    registries: Mapping[int, Registry] = EMPTY  # of the sums in steps, by number, where the federation has had several


def respond(side: NodeSide, message: bytes) -> bytes | None:
    """The answer to a message of the coordinator, None where it needs none. What a node refuses raises a FoltrError,
    and nothing leaves."""
    if side.operators is not None and is_opening(message):
        return _contribute(side, message)
    if not is_announcement(message):
        if side.operators is not None:
            raise SecureAggregationError("with two operators a node answers announcements only")
        return participant.answer(side.member, message, ledger=side.ledger, storage=side.storage, clock=side.clock)
    announcement, ranker = _checked(side, message)
    if announcement.kind == "version":
        if side.operators is not None:
            _computed(side, announcement, ranker)
        side.adopt(ranker)
        _LOG.info("the shared ranker of version %d ranks", ranker.version)
        return None
    if side.operators is not None:
        return _rehearse(side, message) if announcement.kind == "rehearsal" else _ask(side, message)
    if announcement.kind == "rehearsal":
        raise SecureAggregationError("with one server there are no rehearsals")
    _LOG.info("taking part in round %d", announcement.round)
    participant.join_round(
        side.member, message, side.learn(ranker), ledger=side.ledger, storage=side.storage, clock=side.clock
    )
    return None


def _ask(side: NodeSide, message: bytes) -> bytes:
    """The stored message of a round; where there is none, the question whether the round is open."""
    window, _ = _announced(side, message)
    sent = already_sent(side.member, window=window, path=_contribution(side))
    if sent is not None:
        return sent
    shared = read_shared(side)
    _require_admitted(side, shared)
    if not side.ledger.admits(release_event(side.member.terms, side.member.registry, side.operators)):
        raise PrivacyError("one more release would exceed this node's budget; nothing is sent")
    return ask(side.member, message, version=shared.version, path=side.storage.folder / "question", now=side.clock())


def _rehearse(side: NodeSide, message: bytes) -> bytes:
    """The zeros of a rehearsal; nothing is learned, charged or counted, so nothing is asked before."""
    window, _ = _announced(side, message)
    _LOG.info("taking part in rehearsal %d", window.round)
    return rehearse_once(side.member, window=window, path=side.storage.folder / "rehearsal")


def _contribute(side: NodeSide, message: bytes) -> bytes:
    """The message of a round that is open by the coordinator's signed answer."""
    asked = checked_opening(message, side.member, path=side.storage.folder / "question", now=side.clock())
    window, ranker = _announced(side, asked)
    shared = read_shared(side)
    policy, terms, registry = _require_admitted(side, shared), side.member.terms, side.member.registry
    note_round(policy, terms, registry, side.clock(), round=window.round)
    _LOG.info("taking part in round %d", window.round)
    member = side.member._replace(since=max(side.member.since, shared.round))
    return contribute_once(
        side.learn(ranker), member, window=window, path=_contribution(side), ledger=side.ledger, now=side.clock(),
        address=side.address,
    )  # fmt: skip


def _announced(side: NodeSide, message: bytes) -> tuple[Window, Ranker]:
    """The window of an announced round and the ranker that it begins with, both checked."""
    prepare(side.storage)
    announcement, ranker = _checked(side, message)
    shared, setup = _computed(side, announcement, ranker), _setup(side)
    newest = max(side.ledger.highest_round(side.member.terms.federation), shared.round)
    require_near(side.member, announcement.round, newest)
    keys = checked_keys(announcement.statements, setup=setup, round=announcement.round, now=side.clock())
    digest = window_digest(announcement.kind, announcement.ranker)
    return Window(setup, announcement.round, digest, keys), ranker


def _require_admitted(side: NodeSide, shared: SharedRanker) -> Guarded:
    """The policy of this node, which admits a round now."""
    if side.policy is None:
        raise SpecError("a node of two operators needs the policy of its person (`policy`)")
    largest = side.ledger.largest_registry(side.member.terms.federation)
    admit(side.policy, side.member.terms, side.member.registry, side.operators, side.clock(), largest=largest)
    _require_active(side, shared)
    return side.policy


def _require_active(side: NodeSide, shared: SharedRanker) -> None:
    """Refuses a round after two that were charged and led to no version: somebody may be burning the budget."""
    since = max(shared.round, shared.resumed)
    charged = side.ledger.charges_after(side.member.terms.federation, since)
    if charged >= MOST_UNREWARDED:
        raise SecureAggregationError(
            f"this node pauses: it was charged for {charged} rounds after round {since}, and no new version came; it "
            f"goes on with the next version, or when the person resumes (`foltr node sync --resume`)"
        )


def resume(side: NodeSide) -> None:
    """The person lets a node that pauses take part in two more rounds."""
    prepare(side.storage)
    highest = side.ledger.highest_round(side.member.terms.federation)
    _store(side, msgspec.structs.replace(read_shared(side), resumed=highest))


# --- the shared ranker ----------------------------------------------------------------------------------------------


def read_shared(side: NodeSide) -> SharedRanker:
    """The shared ranker that this node computed last; the one that it was invited with where there is none."""
    if side.start is None:
        raise SpecError("a node of two operators needs the ranker that it was invited with (`start`)")
    path = _shared(side)
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=SharedRanker)
    except FileNotFoundError:
        return first_shared(side.start, side.member.since)
    except (OSError, msgspec.DecodeError, ValueError) as problem:
        raise StateError(
            f"{path}: the shared ranker cannot be read ({problem}); delete the file, then it is computed anew"
        ) from None


def _computed(side: NodeSide, announcement: Announcement, ranker: Ranker) -> SharedRanker:
    """The shared ranker after the steps of an announcement, stored; an announced ranker that it is not is refused."""
    before = read_shared(side)
    assert side.start is not None
    try:
        steps = msgspec.msgpack.decode(announcement.steps, type=tuple[Step, ...]) if announcement.steps else ()
    except (msgspec.DecodeError, ValueError) as problem:
        raise SecureAggregationError(f"the steps of an announcement cannot be read ({problem})") from None
    shared = advanced(
        before, steps, setup=_setup(side), server_learning_rate=side.server_learning_rate, registries=side.registries
    )
    # without noise a ranker has one sum: the same weights under another number would be the same ranker once more
    renumbered = side.member.terms.noise_multiplier == 0 and ranker.version != shared.version
    same = (ranker.names, ranker.values) == (side.start.names, shared.values)
    if not same or renumbered or ranker.version < shared.version:
        raise SecureAggregationError(
            f"the announced ranker of version {ranker.version} is not the one that follows from version "
            f"{before.version} by the sums that both operators signed; nothing is taken over"
        )
    if shared != before:
        prepare(side.storage)
        _store(side, shared)
    return shared


def _checked(side: NodeSide, message: bytes) -> tuple[Announcement, Ranker]:
    terms, registry = side.member.terms, side.member.registry
    most = max_steps_bytes(terms, registry) if side.operators is not None else 0
    return checked(message, terms=terms, registry=registry, max_steps=most)


def _setup(side: NodeSide) -> TwoServers:
    assert side.operators is not None
    return two_servers(side.member.terms, side.member.registry, side.operators)


def _store(side: NodeSide, shared: SharedRanker) -> None:
    write_durably(_shared(side), msgspec.msgpack.encode(shared))


def _shared(side: NodeSide) -> Path:
    return side.storage.folder / "shared"


def _contribution(side: NodeSide) -> Path:
    return side.storage.folder / "contribution"
