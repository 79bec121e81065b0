"""An operator's secret keys of single rounds: files outside of every backup, and erased as soon as they are not needed.

    make_statements    signs keys for the next rounds, at most seven ahead; asked again, the same statements
    secret_of          the secret of a round, while it exists
    erase_through      erases the secrets up to a round whose half is stored
    erase_late         erases secrets whose time is over, whether or not anybody asked for the half

A secret is a file of its own, 0600, in the folder of witnesses, which is not backed up. It is written once and never
renamed or rewritten, so that erasing it overwrites the only copy. `signed` beside the files has the highest round that
a statement was signed about: a round gets one key, also where the key was erased since. A file of a higher round is
left over from a crash; its statement never left.

A secret lives until the half of its round is stored, at the latest seven days after the window closed. Where the
operator was never told that it closed, the last day of the statement ends the window.
"""

from pathlib import Path
from typing import ClassVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError, StorageError
from foltr.files import create_private, erase_file, private_folders, write_durably
from foltr.secagg import crypto
from foltr.secagg.crypto import HidesSecrets
from foltr.secagg.round_keys import AHEAD, DAY, RoundKey, day_of, sign_key
from foltr.secagg.two_servers import TwoServers

KEPT_DAYS = 7  # after a window, at the latest
MOST_AHEAD = 366  # rounds that a request may skip: a year of daily rounds
_SLACK_DAYS = 1  # a window may begin late


class KeyFile(HidesSecrets, msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    secret: bytes
    statement: bytes
    last_day: int

    shown: ClassVar[tuple[str, ...]] = ("last_day",)


def make_statements(
    folder: Path, identity: Ed25519PrivateKey, *, setup: TwoServers, index: int, first: int, now: float
) -> tuple[bytes, ...]:
    """Signed statements about rounds `first` to `first` + 6; those of them whose key is erased are left out."""
    private_folders(folder)
    signed = _signed(folder)
    if not 1 <= first <= signed + MOST_AHEAD:
        raise SecureAggregationError(
            f"keys from round {first} on: this operator signed keys up to round {signed}; rounds are consecutive"
        )
    erase_through(folder, first - AHEAD - 1)
    _erase_leftovers(folder)
    days = -(-int(setup.terms.stage_seconds) // DAY)
    for round in range(max(signed + 1, first), first + AHEAD):
        secret, last_day = crypto.new_secret(), day_of(now) + (round - first + 1) * days + _SLACK_DAYS
        public = crypto.public_of(crypto.agreement_key(secret))
        statement = sign_key(identity, RoundKey(setup.terms.federation, round, index, public, last_day))
        create_private(_path(folder, round), msgspec.msgpack.encode(KeyFile(secret, statement, last_day)))
    if signed < first + AHEAD - 1:
        write_durably(folder / "signed", msgspec.msgpack.encode(first + AHEAD - 1))
    return tuple(_read(folder, round).statement for round in _rounds(folder) if first <= round < first + AHEAD)


def secret_of(folder: Path, round: int) -> bytes:
    if round not in _rounds(folder) or round > _signed(folder):
        raise SecureAggregationError(f"the key of round {round} is erased, or never was; there is no sum of the round")
    return _read(folder, round).secret


def has_secret(folder: Path, round: int) -> bool:
    return _path(folder, round).exists()


def erase_through(folder: Path, round: int) -> None:
    """Erases the secrets of this round and of all earlier ones."""
    for past in [number for number in _rounds(folder) if number <= round]:
        erase_file(_path(folder, past))


def erase_late(folder: Path, closed: dict[int, float], now: float) -> None:
    """`closed`: when the operator was told that a window is over, by round."""
    _erase_leftovers(folder)
    for round in _rounds(folder):
        end = closed.get(round, (_read(folder, round).last_day + 1) * DAY)
        if now > end + KEPT_DAYS * DAY:
            erase_file(_path(folder, round))


def _erase_leftovers(folder: Path) -> None:
    """Files of a crash, whose statements never left; the last one may be torn."""
    for round in [round for round in _rounds(folder) if round > _signed(folder)]:
        erase_file(_path(folder, round))


def _rounds(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in folder.glob("*.key") if path.stem.isdecimal())


def _path(folder: Path, round: int) -> Path:
    return folder / f"{round}.key"


def _signed(folder: Path) -> int:
    try:
        return msgspec.msgpack.decode((folder / "signed").read_bytes(), type=int)
    except FileNotFoundError:
        return 0
    except (OSError, msgspec.DecodeError) as problem:
        raise StorageError(f"{folder / 'signed'}: cannot be read ({problem}); take a new identity") from None


def _read(folder: Path, round: int) -> KeyFile:
    try:
        return msgspec.msgpack.decode(_path(folder, round).read_bytes(), type=KeyFile)
    except (OSError, msgspec.DecodeError) as problem:
        raise StorageError(f"{_path(folder, round)}: cannot be read ({problem}); the round is lost") from None
