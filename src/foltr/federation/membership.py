"""A node as a member of a federation, and what it must not forget or be able to go back to: a state in two files.

`folder/NAME.state` is sealed under a key of its own for every write; `witness/NAME.head` has that key and the digest of
the file. The witness is in a folder that is not backed up with the other. So an old copy of the state opens no more,
and neither does one without its witness. Every state belongs to a round, and the head keeps the highest one.

Files that are overwritten can be left on a disk; memory is not wiped.
"""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.atomic import is_apart, write_durably
from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg import crypto
from foltr.secagg.crypto import HidesSecrets
from foltr.secagg.terms import Registry, Terms

Clock: TypeAlias = Callable[[], float]  # seconds since 1970
Name: TypeAlias = Literal["round", "draw"]


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


class Head(HidesSecrets, msgspec.Struct, frozen=True, array_like=True):
    round: int  # the highest that was joined
    digest: bytes = b""  # of the state file; empty: erased
    key: bytes = b""  # secret

    shown: ClassVar[tuple[str, ...]] = ("round",)


class OfRound(Protocol):
    @property
    def round(self) -> int: ...


Stored = TypeVar("Stored", bound=OfRound)


def require_apart(storage: Storage) -> None:
    """Makes both folders; refuses one for both, and a witness inside of the other folder."""
    if not is_apart(storage.witness, storage.folder):
        raise SpecError(
            f"{storage.witness}: the witness of a round belongs in another folder, one that is not backed up and "
            f"restored together with {storage.folder}"
        )
    for folder in storage:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def head(storage: Storage, name: Name) -> Head:
    path = storage.witness / f"{name}.head"
    return msgspec.msgpack.decode(path.read_bytes(), type=Head) if path.exists() else Head(-1)


def load(storage: Storage, name: Name, kind: type[Stored]) -> Stored:
    now, path = head(storage, name), storage.folder / f"{name}.state"
    if not now.key:
        raise SecureAggregationError(f"this node has no open {name}; join one first")
    sealed = path.read_bytes() if path.exists() else b""
    if sha256(sealed).digest() != now.digest:
        raise SecureAggregationError(
            f"{path} is not the newest state of round {now.round}: it was restored from a copy, or a write was "
            f"interrupted; this round is lost and nothing is sent; join the next one"
        )
    return msgspec.msgpack.decode(crypto.decrypt(now.key, sealed, name.encode()), type=kind)


def save(storage: Storage, name: Name, stored: OfRound) -> None:
    """State first, then its head: after a crash between the two, the round is lost and not answered twice."""
    key = crypto.new_secret()
    sealed = crypto.encrypt(key, msgspec.msgpack.encode(stored), name.encode())
    write_durably(storage.folder / f"{name}.state", sealed)
    now = Head(stored.round, sha256(sealed).digest(), key)
    write_durably(storage.witness / f"{name}.head", msgspec.msgpack.encode(now))


def erase(storage: Storage, name: Name) -> None:
    """Key and digest go first: without them the state opens no more. The number of the round stays used."""
    write_durably(storage.witness / f"{name}.head", msgspec.msgpack.encode(Head(head(storage, name).round)))
    (storage.folder / f"{name}.state").unlink(missing_ok=True)
