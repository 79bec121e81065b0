"""One of two operators as it is deployed: every message of a round is on the disk before it leaves.

    statements    keys for the next rounds, signed ahead (`key_files`)
    listing       closes a round: whose parts are here, signed; parts stay sealed as they came
    agreement     after the other operator's list
    half          after the other's agreement: the sum of the shares, with the full noise of the operating system
    erase_late    without anybody's request: secrets of rounds that have no half in time

Each is a function of what is on the disk and of what arrives. Asked again, also after a restart, an operator sends the
stored bytes: there is no second list, coin or half of a round. The order of writes is: state, its witness in another
folder (`witnessed`), then the message leaves. Nothing that left is forgotten by a crash, and a state whose message did
not leave goes on.

    folder/memory.json       newest round whose half was opened, and that half
    folder/rounds/N.json     sealed parts, own list, the other's list
    witness/keys/N.key       the secret of round N, erased when the half is stored, or 7 days after the window

A folder that was restored from a backup without its witness is refused for the rounds that it forgot. Whoever restores
both forgets: such an operator must take a new identity. Shares are in the clear in memory only, while they are checked
and while a half is computed.
"""

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError, StateError
from foltr.federation import key_files
from foltr.federation.membership import Clock, Storage, prepare
from foltr.federation.two_servers import noise_of
from foltr.files import erase_file, locked
from foltr.secagg import aggregator
from foltr.secagg.aggregator import Aggregating, Memory, Secrets
from foltr.secagg.two_servers import TwoServers, Window, context
from foltr.witnessed import Place, State, read_state, write_state

Content = TypeVar("Content", bound=msgspec.Struct)


class SignedList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A round whose list was signed; the newest stays when its half is stored, so that it can be asked for again."""

    context: bytes
    closed: float  # seconds since 1970
    parts: dict[int, bytes]  # sealed
    listing: bytes
    refused: dict[int, str]
    theirs: bytes = b""  # the other's list, which was agreed to
    agreement: bytes = b""  # own, signed


class Operator(NamedTuple):
    """An operator in one federation. See `coordinator.OperatorSide`."""

    place: int  # 0 gets vectors, 1 gets seeds
    identity: Ed25519PrivateKey
    setup: TwoServers
    storage: Storage
    clock: Clock = time.time

    def __repr__(self) -> str:
        return f"Operator(place={self.place}, federation={self.setup.terms.federation!r})"  # no secret reaches a log

    def statements(self, first: int) -> tuple[bytes, ...]:
        """About the keys of rounds `first` to `first` + 6, as far as they are not erased."""
        with locked(_lock(self)):
            highest = _tidied(self).highest
            return key_files.make_statements(
                _keys(self), self.identity, setup=self.setup, index=self.place, first=max(first, highest + 1),
                now=self.clock(),
            )  # fmt: skip

    def listing(self, window: Window, parts: Mapping[int, bytes]) -> tuple[bytes, dict[int, str]]:
        """The signed list of a round, and which clients are not in it, with reasons. Closes the round."""
        with locked(_lock(self)):
            memory, listed = _tidied(self), _listed(self, window)
            if listed is None:
                state, refused = aggregator.accept_all(_begun(self, window, memory), parts)
                state, message = aggregator.listing(state)
                valid = {client: parts[client] for client in state.sealed}
                listed = SignedList(state.context, self.clock(), valid, message, refused)
            _store(self, window, listed)
            return listed.listing, listed.refused

    def agreement(self, window: Window, theirs: bytes) -> bytes:
        """The signed clients that both have; the first list of the other operator that fits is the one that counts."""
        with locked(_lock(self)):
            memory, listed = _tidied(self), _listed(self, window)
            if listed is None:
                raise SecureAggregationError("the own list must be sent before that of the other aggregator is read")
            if not listed.agreement:
                _, message = aggregator.agree(_restored(self, window, memory, listed), theirs)
                listed = msgspec.structs.replace(listed, theirs=theirs, agreement=message)
            _store(self, window, listed)
            return listed.agreement

    def half(self, window: Window, agreement: bytes) -> bytes:
        """The signed half of a round. Asked again for the newest round, whatever for, the stored bytes."""
        with locked(_lock(self)):
            memory = _tidied(self)
            if memory.highest != window.round or not memory.half:
                listed = _listed(self, window)
                if listed is None or not listed.theirs:
                    aggregator.require_new(memory, window.round, self.place)
                    raise SecureAggregationError("there is no half before both aggregators agreed on the clients")
                state, _ = aggregator.agree(_restored(self, window, memory, listed), listed.theirs)
                memory, _ = aggregator.half(state, agreement, memory, noise_of(self.setup))
                _write_memory(self.storage, memory)
            _tidied(self)  # the secrets of the round
            return memory.half

    def erase_late(self) -> None:
        """Erases secrets whose time is over though nobody asks; called when an operator starts and every few hours."""
        with locked(_lock(self)):
            _tidied(self)


def _begun(operator: Operator, window: Window, memory: Memory) -> Aggregating:
    aggregator.require_new(memory, window.round, operator.place)
    secrets = Secrets(operator.identity, key_files.secret_of(_keys(operator), window.round))
    return aggregator.begin(operator.place, secrets, memory, window=window)


def _restored(operator: Operator, window: Window, memory: Memory, listed: SignedList) -> Aggregating:
    """The aggregator after it sent its list."""
    state, _ = aggregator.accept_all(_begun(operator, window, memory), listed.parts)
    state, message = aggregator.listing(state)
    if message != listed.listing:
        raise StateError(
            f"{_round_place(operator, window.round).path}: its parts are not those of the list; the round is lost"
        )
    return state


# --- files ----------------------------------------------------------------------------------------------------------


def _tidied(operator: Operator) -> Memory:
    """The memory, after what a crash interrupted is done: no secret is left that has to go."""
    memory, storage = read_memory(operator.storage, operator.setup.terms.federation), operator.storage
    key_files.erase_through(_keys(operator), memory.highest)
    rounds = [int(path.stem) for path in (storage.witness / "rounds").glob("*") if path.stem.isdecimal()]
    closed = {}
    for round in rounds:
        with contextlib.suppress(StateError):  # the last day of the key counts
            if (listed := _read_round(operator, round)[1]) is not None:
                closed[round] = listed.closed
    key_files.erase_late(_keys(operator), closed, operator.clock())
    for round in rounds:
        if round != memory.highest and not key_files.has_secret(_keys(operator), round):
            place = _round_place(operator, round)
            erase_file(place.path)
            erase_file(storage.witness / "rounds" / place.path.name)
    return memory


def _listed(operator: Operator, window: Window) -> SignedList | None:
    """The stored list of a round; refuses one of another window, and a state that was restored from a copy."""
    if window.setup != operator.setup:
        raise SecureAggregationError("a round of another federation, or under other terms, than this operator's")
    try:
        _, listed = _read_round(operator, window.round)
    except StateError as problem:
        raise SecureAggregationError(f"round {window.round} is lost: {problem}") from None
    if listed is not None and listed.context != context(window):
        raise SecureAggregationError(
            f"this operator has signed a list of round {window.round} with another ranker or key"
        )
    return listed


def _store(operator: Operator, window: Window, listed: SignedList) -> None:
    state, stored = _read_round(operator, window.round)
    if stored != listed:
        write_state(_round_place(operator, window.round), state, msgspec.json.encode(listed))


def _read_round(operator: Operator, round: int) -> tuple[State, SignedList | None]:
    place = _round_place(operator, round)
    return _read(place, SignedList)


def read_memory(storage: Storage, federation: str) -> Memory:
    """What an operator stored; a new memory where there is nothing. Refuses one that was restored from a copy."""
    _, memory = _read(_memory_place(storage), Memory)
    memory = memory or _earlier_memory(storage) or Memory(federation)
    if memory.federation != federation:
        raise StateError(
            f"{storage.folder}: memory of federation {memory.federation}; use a folder for each federation"
        )
    return memory


def _write_memory(storage: Storage, memory: Memory) -> None:
    state, _ = _read(_memory_place(storage), Memory)
    write_state(_memory_place(storage), state, msgspec.json.encode(memory))


def _read(place: Place, kind: type[Content]) -> tuple[State, Content | None]:
    try:
        state = read_state(place)
    except StateError as problem:
        raise (problem if place.remedy in str(problem) else StateError(f"{problem}; {place.remedy}")) from None
    try:
        return state, None if state.content is None else msgspec.json.decode(state.content, type=kind)
    except (msgspec.DecodeError, ValueError) as problem:
        raise StateError(f"{place.path}: the {place.name} cannot be read ({problem}); {place.remedy}") from None


def _earlier_memory(storage: Storage) -> Memory | None:
    """The memory as earlier versions of foltr stored it, in two files: the higher round of both."""
    memories = []
    for path in (storage.folder / "memory", storage.witness / "memory"):
        with contextlib.suppress(OSError, msgspec.DecodeError, ValueError):
            memories.append(msgspec.msgpack.decode(path.read_bytes(), type=Memory))
    return max(memories, key=lambda memory: memory.highest, default=None)


def _memory_place(storage: Storage) -> Place:
    remedy = "restore the newest file, or take a new identity"
    return Place(storage.folder / "memory.json", storage.witness / "memory.json", "memory of an operator", remedy)


def _round_place(operator: Operator, round: int) -> Place:
    storage, name = operator.storage, f"{round}.json"
    return Place(storage.folder / "rounds" / name, storage.witness / "rounds" / name, "round of an operator")


def _lock(operator: Operator) -> Path:
    prepare(operator.storage)
    return operator.storage.folder / "operator"


def _keys(operator: Operator) -> Path:
    return operator.storage.witness / "keys"
