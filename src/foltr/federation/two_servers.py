"""Rounds with two aggregators as they are deployed: noise, ledger and what must be on the disk before a message leaves.

A participant clips, charges its ledger for the release, stores its only message and sends it: `contribute_once`. Asked
again for the round, it sends the stored bytes, however late: the mask and the key that sealed the shares are forgotten
when the message is complete, so no later request opens anything, and a deadline on this side would protect nothing. A
round that is not newer than the stored one is refused. Whoever collects messages has a deadline
(`secagg.deadlines.contributions`); what comes after the list is closed is refused.

An aggregator adds the full noise of the operating system to the sum of each group, and stores that it has opened its
half before the half leaves: `open_half`. Asked again, it sends the stored bytes; another sum of the round or of an
earlier one is refused. A witness in another folder holds the highest round as well, so that a memory restored from a
backup opens nothing twice. Whoever restores both forgets: such an operator must take new keys.

Guarantee: against everybody who gets the ranker, and against one aggregator that lies, drops or adds clients and works
with any number of clients, every sum carries the noise of the honest aggregator. Epsilon depends on no dropout,
colluder or forged identity. Noise does not come from clients, so removal of a client equals its update replaced by
zero; who takes part is known to both aggregators.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.atomic import is_apart, write_durably
from foltr.errors import SecureAggregationError, SpecError, StorageError
from foltr.privacy.events import Event
from foltr.privacy.ledger_records import locked
from foltr.privacy.release import release_to_servers, server_noise
from foltr.secagg.aggregator import Aggregating, Memory, Noise, half
from foltr.secagg.ring import Ring
from foltr.secagg.two_servers import TwoServers, context, contribute
from foltr.types import Array

Stored = TypeVar("Stored", bound=msgspec.Struct)


class Ledger(Protocol):
    """A node's ledger: durable when `charge` returns; it refuses what exceeds the budget."""

    def charge(self, event: Event, *, federation: str, round: int) -> None: ...


class Sent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The newest message of a participant in a federation."""

    federation: str
    round: int
    context: bytes
    message: bytes


def ring_of(setup: TwoServers) -> Ring:
    return Ring(len(setup.registry.clients), setup.terms.bits, setup.terms.fraction)


def noise_of(setup: TwoServers) -> Noise | None:
    """The full noise of one aggregator, from the operating system; None where the terms have none."""
    terms = setup.terms
    if terms.noise_multiplier == 0:
        return None
    return partial(server_noise, clip=terms.clip, multiplier=terms.noise_multiplier, ring=ring_of(setup))


def contribute_once(
    update: Array, client: int, identity: Ed25519PrivateKey, *, setup: TwoServers, round: int, ranker: bytes,
    path: Path, ledger: Ledger,
) -> bytes:  # fmt: skip
    """The message of a round, charged and stored before it is returned; for the stored round the stored bytes."""
    with _locked(path):
        now, stored = context(setup, round, ranker), _read(path, Sent)
        if stored is not None and stored.federation != setup.terms.federation:
            raise StorageError(f"{path}: messages of federation {stored.federation}; use one file for each federation")
        if stored is not None and round <= stored.round:
            if (round, now) == (stored.round, stored.context):
                return stored.message
            raise SecureAggregationError(
                f"client {client} has sent its update of round {stored.round}; round {round} is refused"
            )
        vector, event = release_to_servers(
            update, clip=setup.terms.clip, multiplier=setup.terms.noise_multiplier, ring=ring_of(setup)
        )
        message = contribute(vector, client, identity, setup=setup, round=round, ranker=ranker)
        ledger.charge(event, federation=setup.terms.federation, round=round)  # a crash after it costs a round
        write_durably(path, msgspec.msgpack.encode(Sent(setup.terms.federation, round, now, message)))
    return message


def read_memory(path: Path, witness: Path, federation: str) -> Memory:
    """What an aggregator stored: the higher round of both files; a new memory where there is neither."""
    memory, seen = _read(path, Memory), _read(witness, Memory)
    for file, stored in ((path, memory), (witness, seen)):
        if stored is not None and stored.federation != federation:
            raise StorageError(f"{file}: memory of federation {stored.federation}; use one file for each federation")
    if memory is not None and seen is None:
        raise StorageError(f"{witness}: the witness of {path} is missing; if it is lost, take new keys and begin anew")
    if memory is None or seen is None:
        return seen or Memory(federation)
    return memory if memory.highest >= seen.highest else seen


def open_half(state: Aggregating, agreement: bytes, *, path: Path, witness: Path) -> bytes:
    """An aggregator's signed half of a round with its noise; its memory is on the disk when this returns.

    Asked again for the newest round, whatever for, it returns the stored bytes: no other sum of it exists. `witness`:
    in a folder that is not backed up and restored with the first.
    """
    if not is_apart(witness, path.parent):
        raise SpecError(f"{witness}: the witness of {path} belongs outside of its folder, where no backup has both")
    with _locked(path):
        memory = read_memory(path, witness, state.setup.terms.federation)
        if memory.highest == state.round and memory.half:
            return memory.half
        memory, message = half(state, agreement, memory, noise_of(state.setup))
        write_durably(witness, msgspec.msgpack.encode(msgspec.structs.replace(memory, half=b"")))
        write_durably(path, msgspec.msgpack.encode(memory))
    return message


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time: two that read the same memory would open two halves of a round."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path):
        yield


def _read(path: Path, kind: type[Stored]) -> Stored | None:
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as problem:
        raise StorageError(f"{path}: cannot be read ({problem}); nothing is sent without it") from None
