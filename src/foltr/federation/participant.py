"""The deployed client of a round: secure aggregation, noise and ledger joined, every step on the disk before it leaves.

    join_round    clips, adds the noise once, and stores the vector; a round is joined once, and rounds only rise
    answer        the reply to a request; the same request again gets the same bytes, another one for the same stage
                  nothing; the release is charged to the ledger before the reply of `mask` leaves
    end_round     forgets a round that did not end; what was charged stays charged
    end_if_late   the same, if the time of the round is over; a node calls it when it starts and every few minutes

A round that fails after `mask` is a spent release: the server may have the sum. There is no way to take it back.

A round has a time: `messages.round_seconds` from when it was joined, by the wall clock, which goes on while the machine
is off. After that nothing is answered, not even what was answered before, and the secrets are erased. Otherwise a
malicious server could stop between two stages, keep the secrets of all clients on their disks, and corrupt more clients
than `Terms.corrupt` until it has the shares of a vector that it was sent long ago. So a node joins a round when the
server begins it. A clock that is before that moment was turned back, and the round is over too: a wrong clock costs
rounds. A clock that stands still costs this protection and no other.

Two files hold a round. `folder/round.state` has vector, secrets and replies, sealed under a key of its own for every
write; `witness/round.head` has that key and the digest of the file. The witness is in a folder that is not backed up
with the other. So an old copy of the state opens no more, and neither does one without its witness: such a round is
lost, and the client has dropped out of it. The ledger refuses a second charge in one round, with a witness of its own.
After the last stage the secrets are erased and the replies remain.

What remains: a copy of the whole machine, with both folders, the ledger and its witness, answers as the machine did. It
sends the same vector with the same noise, but a server that asks it `mask` ten times with other neighbours takes the
masks off and reads that vector with the noise of one share, which is little. Files that are overwritten can be left on
a disk; memory is not wiped.
"""

import os
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.atomic import atomic_write
from foltr.errors import PrivacyError, SecureAggregationError, SpecError
from foltr.privacy.events import Event
from foltr.privacy.ledger_file import NodeLedger
from foltr.privacy.ledger_records import locked
from foltr.privacy.release import event_of, release
from foltr.secagg import client, crypto, ring
from foltr.secagg.messages import STAGES, Registry, Terms, guaranteed, ring_of, round_seconds
from foltr.types import Array

Clock: TypeAlias = Callable[[], float]  # seconds since 1970


class Member(NamedTuple):
    """What a node knows of its federation, from elsewhere than the server."""

    id: int
    identity: Ed25519PrivateKey
    terms: Terms
    registry: Registry

    def __repr__(self) -> str:
        return f"Member(id={self.id}, federation={self.terms.federation!r})"  # no secret reaches a log


class Storage(NamedTuple):
    folder: Path
    witness: Path  # another folder, not backed up and restored with the first


class _Head(msgspec.Struct, frozen=True, array_like=True):
    round: int  # the highest that was joined
    digest: bytes = b""  # of the state file; empty: erased
    key: bytes = b""  # secret

    def __repr__(self) -> str:
        return f"_Head(round={self.round})"


class _Stored(msgspec.Struct, frozen=True, array_like=True):
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

    def __repr__(self) -> str:
        return f"_Stored(round={self.round}, done={self.done})"


_FIELDS = tuple(
    name for name in _Stored.__struct_fields__ if name not in ("round", "ranker", "vector", "replies", "joined")
)  # of a `secagg.client.Client`


def join_round(
    member: Member, update: Array, *, round: int, ranker: bytes, ledger: NodeLedger, storage: Storage,
    clock: Clock = time.time,
) -> Event:  # fmt: skip
    """Stores the noisy vector of a round and returns its event; nothing is charged or sent yet."""
    _check_storage(storage)
    event = _event(member)
    with locked(storage.folder / "round.lock"):
        highest = max(ledger.highest_round(member.terms.federation), _head(storage).round)
        if round <= highest:
            raise SecureAggregationError(
                f"round {round} of federation {member.terms.federation}: this node already joined round {highest}; "
                f"rounds only rise"
            )
        if not ledger.admits(event):
            raise PrivacyError("one more release would exceed this node's budget; nothing is sent")
        sizes = guaranteed(member.terms, member.registry)
        terms, fixed = member.terms, ring_of(member.terms, sizes)
        vector, _ = release(update, clip=terms.clip, multiplier=terms.noise_multiplier, guarantee=sizes, ring=fixed)
        stored = _Stored(round, ranker, vector.tobytes(), joined=clock())
        _state(member, stored)  # refuses what cannot be joined, before it counts as joined
        _save(storage, stored)
    return event


def answer(member: Member, request: bytes, *, ledger: NodeLedger, storage: Storage, clock: Clock = time.time) -> bytes:
    """The reply to a request of the round that was joined; it may be asked for again while the round has time."""
    with locked(storage.folder / "round.lock"):
        stored = _load(storage)
        if _is_late(member, stored, clock()):
            _erase(storage)
            raise SecureAggregationError(
                f"round {stored.round} was joined more than {round_seconds(member.terms):g} s ago, or the clock was "
                f"turned back; its secrets are erased; join the next one"
            )
        asked = sha256(request).digest()
        if asked in stored.replies:
            return stored.replies[asked]
        state, reply = client.answer(_state(member, stored), request)
        if STAGES[stored.done] == "mask":
            ledger.charge(_event(member), federation=member.terms.federation, round=stored.round)
        changes = {name: getattr(state, name) for name in _FIELDS}
        after = msgspec.structs.replace(stored, replies={**stored.replies, asked: reply}, **changes)
        if after.done == len(STAGES):
            # without the secrets
            after = _Stored(after.round, after.ranker, b"", after.done, replies=after.replies, joined=after.joined)
        _save(storage, after)
        return reply


def end_round(storage: Storage) -> None:
    """Erases what is stored of a round; its number stays used."""
    with locked(storage.folder / "round.lock"):
        _erase(storage)


def end_if_late(member: Member, *, storage: Storage, clock: Clock = time.time) -> bool:
    """Ends a round whose time is over: secrets do not wait for a server that asks no more. Whether it did."""
    _check_storage(storage)
    with locked(storage.folder / "round.lock"):
        late = bool(_head(storage).key) and _is_late(member, _load(storage), clock())
        if late:
            _erase(storage)
        return late


def _is_late(member: Member, stored: _Stored, now: float) -> bool:
    return not 0 <= now - stored.joined <= round_seconds(member.terms)


def _event(member: Member) -> Event:
    terms, sizes = member.terms, guaranteed(member.terms, member.registry)
    if not terms.noise_multiplier:
        raise SpecError("noise_multiplier = 0; a deployed node adds noise, or its ledger could say nothing")
    return event_of(
        clip=terms.clip, multiplier=terms.noise_multiplier, guarantee=sizes, ring=ring_of(terms, sizes),
        parameters=terms.length,
    )  # fmt: skip


def _state(member: Member, stored: _Stored) -> client.Client:
    if stored.done == len(STAGES):
        raise SecureAggregationError(f"round {stored.round} is over; its secrets are erased; join the next one")
    vector = np.frombuffer(stored.vector, ring.dtype(member.terms.bits))
    begun = client.join(
        member.id, member.identity, vector,
        terms=member.terms, registry=member.registry, round=stored.round, ranker=stored.ranker,
    )  # fmt: skip
    return msgspec.structs.replace(begun, **{name: getattr(stored, name) for name in _FIELDS})


# --- the two files ----------------------------------------------------------------------------------------------------


def _check_storage(storage: Storage) -> None:
    if storage.folder.resolve() == storage.witness.resolve():
        raise SpecError(
            f"{storage.witness}: the witness of a round belongs in another folder, one that is not backed up and "
            f"restored together with {storage.folder}"
        )
    for folder in storage:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def _head(storage: Storage) -> _Head:
    path = storage.witness / "round.head"
    return msgspec.msgpack.decode(path.read_bytes(), type=_Head) if path.exists() else _Head(-1)


def _load(storage: Storage) -> _Stored:
    head, path = _head(storage), storage.folder / "round.state"
    if not head.key:
        raise SecureAggregationError("this node has no open round; join one first")
    sealed = path.read_bytes() if path.exists() else b""
    if sha256(sealed).digest() != head.digest:
        raise SecureAggregationError(
            f"{path} is not the newest state of round {head.round}: it was restored from a copy, or a write was "
            f"interrupted; this round is lost and nothing is sent; join the next one"
        )
    return msgspec.msgpack.decode(crypto.decrypt(head.key, sealed, b"round"), type=_Stored)


def _save(storage: Storage, stored: _Stored) -> None:
    """State first, then its head: after a crash between the two, the round is lost and not answered twice."""
    key = crypto.new_secret()
    sealed = crypto.encrypt(key, msgspec.msgpack.encode(stored), b"round")
    _write(storage.folder / "round.state", sealed)
    head = _Head(stored.round, sha256(sealed).digest(), key)
    _write(storage.witness / "round.head", msgspec.msgpack.encode(head))


def _erase(storage: Storage) -> None:
    """Key and digest go first: without them the state opens no more."""
    _write(storage.witness / "round.head", msgspec.msgpack.encode(_Head(_head(storage).round)))
    (storage.folder / "round.state").unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all, for the owner only, on the disk when this returns."""
    with atomic_write(path) as temporary:  # which waits for the disk
        temporary.touch(mode=0o600)
        temporary.write_bytes(content)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
