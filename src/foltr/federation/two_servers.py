"""A node's side of a round with two operators: noise, ledger and what must be on the disk before a message leaves.

A participant clips, charges its ledger for the release, stores its only message and sends it: `contribute_once`. Asked
again for the round, it sends the stored bytes, however late: the mask and the key that sealed the shares are forgotten
when the message is complete, and the operators erase the keys that open them. A round that is not newer than the
stored one is refused. Whoever collects messages has a deadline (`secagg.deadlines.contributions`); what comes after the
list is closed is refused.

An operator adds the full noise of the operating system to the sum of each group (`noise_of`, `operator`).

Guarantee: against everybody who gets the ranker, and against one aggregator that lies, drops or adds clients and works
with any number of clients, every sum carries the noise of the honest aggregator. Epsilon depends on no dropout,
colluder or forged identity. Noise does not come from clients, so removal of a client equals its update replaced by
zero; who takes part is known to both aggregators.
"""

from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np

from foltr.errors import SecureAggregationError, StateError, StorageError
from foltr.federation.membership import Member, require_near
from foltr.files import locked, write_durably
from foltr.privacy.events import Event
from foltr.privacy.release import release_to_servers, server_noise
from foltr.secagg.aggregator import Noise
from foltr.secagg.ring import Ring, dtype
from foltr.secagg.two_servers import TwoServers, Window, context, contribute
from foltr.types import Array


class Ledger(Protocol):
    """A node's ledger: durable when `charge` returns; it refuses what exceeds the budget, and `require` refuses a state
    that was charged to another ledger."""

    @property
    def identity(self) -> str: ...
    def require(self, identity: str, *, path: Path) -> None: ...
    def charge(
        self,
        event: Event,
        *,
        federation: str,
        round: int,
        time: float = 0.0,
        address: str = "",
        size: int = 0,
        members: int = 0,
    ) -> None: ...
    def highest_round(self, federation: str) -> int: ...


class Sent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The newest message of a participant in a federation."""

    federation: str
    round: int
    context: bytes
    message: bytes
    ledger: str = ""  # identity of the one that was charged


def ring_of(setup: TwoServers) -> Ring:
    return Ring(len(setup.registry.clients), setup.terms.bits, setup.terms.fraction)


def noise_of(setup: TwoServers) -> Noise | None:
    """The full noise of one aggregator, from the operating system; None where the terms have none."""
    terms = setup.terms
    if terms.noise_multiplier == 0:
        return None
    return partial(server_noise, clip=terms.clip, multiplier=terms.noise_multiplier, ring=ring_of(setup))


def contribute_once(
    update: Array, member: Member, *, window: Window, path: Path, ledger: Ledger, now: float = 0.0, address: str = ""
) -> bytes:
    """The message of a round, charged and stored before it is returned; for the stored round the stored bytes. The
    ledger notes the time (`now`), the address of the coordinator and the size of the message."""
    setup, round = window.setup, window.round
    path = path.resolve()  # a link that the user made stays: both names are one file
    with locked(path):
        if (message := already_sent(member, window=window, path=path)) is not None:
            return message
        require_near(member, round, ledger.highest_round(setup.terms.federation))
        stored = _read_sent(path)
        ledger.require(stored.ledger if stored else "", path=path)
        vector, event = release_to_servers(
            update, clip=setup.terms.clip, multiplier=setup.terms.noise_multiplier, ring=ring_of(setup)
        )
        message = contribute(vector, member.id, member.identity, window=window)
        ledger.charge(
            event,
            federation=setup.terms.federation,
            round=round,
            time=now,
            address=address,
            size=len(message),
            members=len(setup.registry.clients),
        )  # a crash after it costs a round
        sent = Sent(setup.terms.federation, round, context(window), message, ledger.identity)
        write_durably(path, msgspec.msgpack.encode(sent))
    return message


def rehearse_once(member: Member, *, window: Window, path: Path) -> bytes:
    """The message of a rehearsal: zeros, which tell nothing, so that nothing is charged. Stored before it is returned;
    `path` is another one than that of rounds."""
    setup, path = window.setup, path.resolve()
    with locked(path):
        if (message := already_sent(member, window=window, path=path)) is not None:
            return message
        zeros = np.zeros(setup.terms.length, dtype(setup.terms.bits))
        message = contribute(zeros, member.id, member.identity, window=window)
        write_durably(
            path, msgspec.msgpack.encode(Sent(setup.terms.federation, window.round, context(window), message))
        )
    return message


def already_sent(member: Member, *, window: Window, path: Path) -> bytes | None:
    """The stored message of a round; None where this node may send one. Older rounds, and another ranker or key of the
    newest, are refused."""
    stored, federation = _read_sent(path), member.terms.federation
    if stored is None:
        return None
    if stored.federation != federation:
        raise StorageError(f"{path}: messages of federation {stored.federation}; use one file for each federation")
    if (window.round, context(window)) == (stored.round, stored.context):
        return stored.message
    if window.round <= stored.round:
        raise SecureAggregationError(
            f"client {member.id} has sent its update of round {stored.round}; round {window.round} is refused"
        )
    return None


def _read_sent(path: Path) -> Sent | None:
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=Sent)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, ValueError) as problem:
        raise StateError(
            f"{path}: the newest message cannot be read ({problem}); nothing is sent without it: delete the file, then "
            "this node takes part in rounds that its ledger was not charged for"
        ) from None
