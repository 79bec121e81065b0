"""What every asker may still read of an owner, and which questions it has asked; stored before an answer leaves.

An owner without such a limit gives its whole sketch away: as many questions as there are columns show every cell. The
unit is a *cell*: one number of an answer (`top`: rows x entries of a cell; `count`: rows x documents). An asker has so
many cells a period and so many in all, for one epoch of a group. Askers who collude add up.

Question numbers of an asker rise: a repeated or older number is refused, so that a recorded question cannot be sent
again. Both are written and synchronised before the answer is computed; an answer that then fails is spent. A clock that
goes back gives nothing back: the period stays the highest that was seen.

Not covered: a file that is restored from a backup has the numbers and cells of its day; two processes that answer with
one file at once.

Differs from the paper: it limits nobody.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from foltr.atomic import write_text
from foltr.errors import DataError, PrivacyError, SpecError, StorageError
from foltr.silo.storage import sync_folder

VERSION = 1
DAY = 86_400


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of each asker."""

    cells: int  # a period
    total: int  # in all periods of one epoch of the group
    period: int = DAY  # seconds

    def __post_init__(self) -> None:
        if self.cells < 1 or self.total < self.cells or self.period < 1:
            raise SpecError(
                f"{self.cells} cells a period of {self.period} s and {self.total} in all; use 1 or more, and at least "
                "as many in all as in one period"
            )


class Account(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: int = 0  # the highest question
    period: int = 0  # in which `cells` were read
    cells: int = 0
    total: int = 0


class _Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    context: str  # of the group, in hexadecimal digits
    accounts: dict[str, Account]  # by the asker's signing key, in hexadecimal digits


@dataclass(frozen=True)
class Allowance:
    limits: Limits
    context: bytes
    accounts: dict[str, Account]  # changes with every question
    file: Path | None = None
    now: Callable[[], float] = field(default=time.time, repr=False)


def in_memory(limits: Limits, context: bytes, now: Callable[[], float] = time.time) -> Allowance:
    """For simulations, and for owners that answer from one process only: a restart forgets it."""
    return Allowance(limits, context, {}, None, now)


def open_allowance(file: Path, limits: Limits, context: bytes, now: Callable[[], float] = time.time) -> Allowance:
    """The stored one of this group and epoch, or a new one."""
    if not file.exists():
        found = Allowance(limits, context, {}, file, now)
        _store(found)
        return found
    try:
        stored = msgspec.json.decode(file.read_bytes(), type=_Stored)
    except OSError as problem:
        raise StorageError(f"{file} could not be read: {problem.strerror or problem}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise DataError(
            f"{file} holds no allowances ({problem}); restore it, or make a new group: it has new ones"
        ) from None
    if stored.version != VERSION or stored.context != context.hex():
        raise DataError(
            f"{file} holds the allowances of another group, epoch or version of foltr; give the file of this epoch, or "
            "a new path for a new one"
        )
    return Allowance(limits, context, dict(stored.accounts), file, now)


def spend(allowance: Allowance, asker: bytes, number: int, cells: int) -> None:
    """Counts a question and what it may read; refuses a used number, and cells beyond the limits."""
    limits, name = allowance.limits, asker.hex()
    before = allowance.accounts.get(name, Account())
    if number <= before.number:
        raise DataError(
            f"question {number} of this asker is not above its last one, {before.number}: it was sent before, or the "
            "asker's clock went back; it must ask again with a higher number"
        )
    period = max(int(allowance.now() // limits.period), before.period)
    read = before.cells if period == before.period else 0
    if read + cells > limits.cells or before.total + cells > limits.total:
        allowance.accounts[name] = Account(number, period, read, before.total)  # nor can it be sent again later
        _store(allowance)
        left = max(min(limits.cells - read, limits.total - before.total), 0)
        raise PrivacyError(
            f"a question about {cells:,} cells by an asker who has {left:,} left ({limits.cells:,} every "
            f"{limits.period:,} seconds, {limits.total:,} in all): nothing was answered; ask later, about fewer "
            "documents, or agree on a larger allowance"
        )
    allowance.accounts[name] = Account(number, period, read + cells, before.total + cells)
    _store(allowance)


def _store(allowance: Allowance) -> None:
    if allowance.file is None:
        return
    stored = _Stored(VERSION, allowance.context.hex(), allowance.accounts)
    write_text(allowance.file, msgspec.json.encode(stored).decode())
    sync_folder(allowance.file)
