"""The deployed client of a round: secure aggregation, noise and ledger joined, every step on the disk before it leaves.

    join_round    takes the signed announcement, clips, adds the noise once, and stores the vector; a round is joined
                  once, rounds only rise by bounded steps, and nothing is joined while a round is open; where cohorts
                  are drawn by lot, after the draw of the round (`draws`)
    answer        the reply to a request; the same request again gets the same bytes, another one for the same stage
                  nothing; the release is charged to the ledger before the reply of `mask` leaves; another member than
                  the one that joined (other terms, another registry, a group) is refused
    end_round     forgets a round that did not end; what was charged stays charged
    end_if_late   the same, if the time of the round is over or its state does not open; a node calls it when it starts
                  and every few minutes

A round that fails after `mask` is a spent release: the server may have the sum. There is no way to take it back.

A round has a time: `messages.round_seconds` from when it was joined, by the wall clock, which goes on while the machine
is off. After that nothing is answered, not even what was answered before, and the secrets are erased. Otherwise a
malicious server could stop between two stages, keep the secrets of all clients on their disks, and corrupt more clients
than `Terms.corrupt` until it has the shares of a vector that it was sent long ago. So a node joins a round when the
server begins it. A clock that is before that moment was turned back, and the round is over too: a wrong clock costs
rounds. A clock that stands still costs this protection and no other.

What is stored is sealed in two files (`witnessed`): a folder that was restored from a backup answers nothing, its
round is lost, and the client has dropped out of it. The ledger refuses a second charge in one round, with a witness of
its own; the stored round names it, so another ledger is refused. After the last stage the secrets are erased and the
replies remain.

What remains: a copy of the whole machine, with both folders, the ledger and its witness, answers as the machine did. It
sends the same vector with the same noise, but a server that asks it `mask` ten times with other neighbours takes the
masks off and reads that vector with the noise of one share, which is little.
"""

import time
from hashlib import sha256
from typing import ClassVar

import msgspec
import numpy as np

from foltr.errors import PrivacyError, SecureAggregationError, StateError
from foltr.federation import draws
from foltr.federation.announcement import announced_round
from foltr.federation.membership import Clock, Member, Storage, prepare, require_near, round_place
from foltr.files import locked
from foltr.privacy.events import Event
from foltr.privacy.ledger_file import NodeLedger
from foltr.privacy.release import event_of, release
from foltr.secagg import client, ring
from foltr.secagg.crypto import HidesSecrets
from foltr.secagg.messages import STAGES, round_seconds
from foltr.secagg.terms import Drawn, context, guaranteed, is_by_lot, ring_of, set_of, to_set
from foltr.types import Array
from foltr.witnessed import erase, head, load, save


class _Stored(HidesSecrets, msgspec.Struct, frozen=True, array_like=True):
    """A round on the disk; everything that is not derived from the member and is not public is secret."""

    round: int
    ranker: bytes
    vector: bytes
    done: int = 0
    channel: bytes = b""
    mask: bytes = b""
    seed: bytes = b""
    advert: bytes = b""
    threshold: int = 0
    members: bytes = b""
    neighbours: tuple[int, ...] = ()
    mask_keys: dict[int, bytes] = {}
    shared: dict[int, bytes] = {}
    held: dict[int, bytes] = {}
    view: bytes = b""
    survivors: bytes = b""
    replies: dict[bytes, bytes] = {}  # by the digest of their request
    joined: float = 0.0  # seconds since 1970
    drawn: bytes = b""  # the seed of the draw
    cohort: bytes = b""  # that was drawn, as a set
    context: bytes = b""  # of the member that joined

    shown: ClassVar[tuple[str, ...]] = ("round", "done")


_OWN = ("round", "ranker", "vector", "replies", "joined", "drawn", "cohort", "context")
_FIELDS = tuple(name for name in _Stored.__struct_fields__ if name not in _OWN)  # of a `secagg.client.Client`


def join_round(
    member: Member, announcement: bytes, update: Array, *, ledger: NodeLedger, storage: Storage,
    clock: Clock = time.time,
) -> Event:  # fmt: skip
    """Stores the noisy vector of the round that a signed announcement begins, and returns its event; nothing is charged
    or sent yet."""
    round, ranker = announced_round(announcement, terms=member.terms, registry=member.registry)
    prepare(storage)
    event = _event(member)
    with locked(storage.folder / "round.lock"):
        place = round_place(storage)
        newest = head(place)
        ledger.require(newest.owner, path=place.path)
        highest = max(ledger.highest_round(member.terms.federation), newest.number)
        if round <= highest:
            raise SecureAggregationError(
                f"round {round} of federation {member.terms.federation}: this node already joined round {highest}; "
                f"rounds only rise"
            )
        require_near(member, round, highest)
        if _is_open(member, storage, clock()):
            raise SecureAggregationError(
                f"round {round} of federation {member.terms.federation}: round {highest} is still open on this node; "
                f"nothing new is joined until it ends"
            )
        if not ledger.admits(event):
            raise PrivacyError("one more release would exceed this node's budget; nothing is sent")
        sizes = guaranteed(member.terms, member.registry)
        terms, fixed = member.terms, ring_of(member.terms, sizes)
        vector, _ = release(update, clip=terms.clip, multiplier=terms.noise_multiplier, guarantee=sizes, ring=fixed)
        lot = draws.result(member, round, storage, clock) if is_by_lot(terms, member.registry) else None
        seed, cohort = (lot.seed, to_set(lot.cohort, member.registry)) if lot else (b"", b"")
        stored = _Stored(
            round, ranker, vector.tobytes(), joined=clock(), drawn=seed, cohort=cohort,
            context=context(terms, member.registry, round, ranker, seed),
        )  # fmt: skip
        _state(member, stored)  # refuses what cannot be joined, before it counts as joined
        save(place, round, stored, owner=ledger.identity)
    return event


def answer(member: Member, request: bytes, *, ledger: NodeLedger, storage: Storage, clock: Clock = time.time) -> bytes:
    """The reply to a request of the round that was joined; it may be asked for again while the round has time."""
    with locked(storage.folder / "round.lock"):
        place = round_place(storage)
        stored = load(place, _Stored)
        _check_member(member, stored)
        if _is_late(member, stored, clock()):
            erase(place)
            raise SecureAggregationError(
                f"round {stored.round} was joined more than {round_seconds(member.terms):g} s ago, or the clock was "
                f"turned back; its secrets are erased; join the next one"
            )
        asked = sha256(request).digest()
        if asked in stored.replies:
            return stored.replies[asked]
        ledger.require(head(place).owner, path=place.path)
        state, reply = client.answer(_state(member, stored), request)
        if STAGES[stored.done] == "mask":
            ledger.charge(_event(member), federation=member.terms.federation, round=stored.round)
        changes = {name: getattr(state, name) for name in _FIELDS}
        after = msgspec.structs.replace(stored, replies={**stored.replies, asked: reply}, **changes)
        if after.done == len(STAGES):
            # without the secrets
            after = _Stored(
                after.round, after.ranker, b"", after.done, replies=after.replies, joined=after.joined,
                drawn=after.drawn, context=after.context,
            )  # fmt: skip
        save(place, after.round, after, owner=ledger.identity)
        return reply


def end_round(storage: Storage, *, highest: int | None = None) -> None:
    """Erases what is stored of a round, and of a draw whose witness is damaged; the number stays used. `highest`: the
    newest round that the federation began, needed only where both files of the round or of the draw are damaged."""
    with locked(storage.folder / "round.lock"):
        erase(round_place(storage), highest=highest)
        draws.end_damaged(storage, highest=highest)


def end_if_late(member: Member, *, storage: Storage, clock: Clock = time.time) -> bool:
    """Ends a round whose time is over, or whose state does not open: secrets do not wait for a server that asks no
    more. Whether it did. A draw whose witness is damaged is ended too."""
    prepare(storage)
    with locked(storage.folder / "round.lock"):
        draws.end_damaged(storage)
        try:
            if not head(round_place(storage)).key:
                return False
            late = _is_late(member, load(round_place(storage), _Stored), clock())
        except (SecureAggregationError, StateError):  # it is lost, but a backup may have the state that the key opens
            late = True
        if late:
            erase(round_place(storage))
        return late


def _is_open(member: Member, storage: Storage, now: float) -> bool:
    """Whether a round was joined that has stages and time left."""
    if not head(round_place(storage)).key:
        return False
    try:
        stored = load(round_place(storage), _Stored)
    except SecureAggregationError:  # it is lost
        return False
    return stored.done < len(STAGES) and not _is_late(member, stored, now)


def _check_member(member: Member, stored: _Stored) -> None:
    """The stored vector has the noise of the terms and the registry that it was joined with, and of no others."""
    if stored.context != context(member.terms, member.registry, stored.round, stored.ranker, stored.drawn):
        raise SecureAggregationError(
            f"round {stored.round} was joined under another registry or other terms; nothing is sent: answer as the "
            f"member that joined, and give each federation a folder of its own"
        )


def _is_late(member: Member, stored: _Stored, now: float) -> bool:
    return not 0 <= now - stored.joined <= round_seconds(member.terms)


def _event(member: Member) -> Event:
    terms, sizes = member.terms, guaranteed(member.terms, member.registry)
    return event_of(
        clip=terms.clip, multiplier=terms.noise_multiplier, guarantee=sizes, ring=ring_of(terms, sizes),
        parameters=terms.length,
    )  # fmt: skip


def _state(member: Member, stored: _Stored) -> client.Client:
    if stored.done == len(STAGES):
        raise SecureAggregationError(f"round {stored.round} is over; its secrets are erased; join the next one")
    vector = np.frombuffer(stored.vector, ring.dtype(member.terms.bits))
    drawn = Drawn(stored.drawn, set_of(stored.cohort, member.registry)) if stored.drawn else None
    begun = client.join(
        member.id, member.identity, vector,
        terms=member.terms, registry=member.registry, round=stored.round, ranker=stored.ranker, drawn=drawn,
    )  # fmt: skip
    return msgspec.structs.replace(begun, **{name: getattr(stored, name) for name in _FIELDS})
