"""What every asker may still learn of an owner, and which questions it has asked; stored before an answer leaves.

The unit is an *entry*: one (word, document, count) that an answer can make known to an asker who tries every word of a
dictionary. An answer from an index has K entries, of the asked word; one about documents has an entry for each. Of a
sketch every number counts as one, rows x entries of a cell: each may be that of another word, and a member, who has the
hash key, can find out which. So a reverse top-K question to the paper's sketch costs 22,500 entries, one to an index
150. An answer costs the same whatever it shows.

Limits, for one epoch of a group: an asker has so many entries a period and so many in all, and all askers have so many
`together`, since members that collude learn what all of them were answered.

Question numbers of an asker rise: a repeated or older number is refused, so that a recorded question cannot be sent
again. Numbers and entries are written and synchronised before the answer is computed; an answer that then fails is
spent. Processes that answer with one file take turns (`locked`), and each reads what the others have stored. A clock
that goes back gives nothing back: the period stays the highest that was seen.

Not covered: a file that is restored from a backup has the numbers and entries of its day.

Differs from the paper: it limits nobody.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from foltr.atomic import write_durably
from foltr.errors import DataError, PrivacyError, SpecError, StorageError
from foltr.privacy.ledger_records import locked

VERSION = 2  # 1: counted cells, which are not comparable with entries
DAY = 86_400


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of each asker, and of all together."""

    entries: int  # a period
    total: int  # in all periods of one epoch of the group
    together: int | None = None  # of all askers in all periods; None: askers who collude add theirs up
    period: int = DAY  # seconds

    def __post_init__(self) -> None:
        least = min(self.entries, self.period, self.together or self.total)
        if least < 1 or self.total < self.entries or (self.together is not None and self.together < self.total):
            raise SpecError(
                f"{self.entries} entries a period of {self.period} s, {self.total} in all and {self.together} for all "
                "askers together; use 1 or more, at least as many in all as in one period, and at least as many "
                "together as for one"
            )


class Account(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: int = 0  # the highest question
    period: int = 0  # in which `entries` were read
    entries: int = 0
    total: int = 0


class _Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    context: str  # of the group, in hexadecimal digits
    accounts: dict[str, Account]  # by the asker's signing key, in hexadecimal digits


@dataclass(frozen=True)
class Allowance:
    limits: Limits
    context: bytes
    accounts: dict[str, Account]  # changes with every question; of a file: as last read
    file: Path | None = None
    now: Callable[[], float] = field(default=time.time, repr=False)


def in_memory(limits: Limits, context: bytes, now: Callable[[], float] = time.time) -> Allowance:
    """For simulations, and for owners that answer from one process only: a restart forgets it."""
    return Allowance(limits, context, {}, None, now)


def open_allowance(file: Path, limits: Limits, context: bytes, now: Callable[[], float] = time.time) -> Allowance:
    """The stored one of this group and epoch, or a new one."""
    allowance = Allowance(limits, context, {}, file, now)
    with locked(file):
        if file.exists():
            allowance.accounts.update(_read(file, context))
        else:
            _store(allowance)
    return allowance


def spend(allowance: Allowance, asker: bytes, number: int, entries: int) -> None:
    """Counts a question and the entries that its answer may show; refuses a used number, and what exceeds a limit."""
    name = asker.hex()
    with _current_accounts(allowance) as accounts:
        before = accounts.get(name, Account())
        if number <= before.number:
            raise DataError(
                f"question {number} of this asker is not above its last one, {before.number}: it was sent before, or "
                "the asker's clock went back; it must ask again with a higher number"
            )
        period = max(int(allowance.now() // allowance.limits.period), before.period)
        read = before.entries if period == before.period else 0
        left = _left(allowance, read, before.total)
        spent = entries if entries <= left else 0  # what was refused cannot be sent again later either
        accounts[name] = Account(number, period, read + spent, before.total + spent)
        _store(allowance)
    if entries > left:
        raise PrivacyError(_refusal(allowance.limits, entries, left))


def _left(allowance: Allowance, read: int, total: int) -> int:
    """Entries that an asker may still read now."""
    limits = allowance.limits
    left = [limits.entries - read, limits.total - total]
    if limits.together is not None:
        left.append(limits.together - sum(account.total for account in allowance.accounts.values()))
    return max(min(left), 0)


def _refusal(limits: Limits, entries: int, left: int) -> str:
    together = "" if limits.together is None else f", {limits.together:,} for all askers together"
    return (
        f"a question whose answer shows up to {entries:,} entries by an asker who has {left:,} left "
        f"({limits.entries:,} every {limits.period:,} seconds, {limits.total:,} in all{together}): nothing was "
        "answered; ask later, about fewer documents, or agree on a larger allowance"
    )


@contextmanager
def _current_accounts(allowance: Allowance) -> Iterator[dict[str, Account]]:
    """The accounts as other processes left them, which no other process reads or changes meanwhile."""
    if allowance.file is None:
        yield allowance.accounts
        return
    with locked(allowance.file):
        stored = _read(allowance.file, allowance.context)
        allowance.accounts.clear()
        allowance.accounts.update(stored)
        yield allowance.accounts


def _read(file: Path, context: bytes) -> dict[str, Account]:
    try:
        stored = msgspec.json.decode(file.read_bytes(), type=_Stored)
    except OSError as problem:
        raise StorageError(f"{file} could not be read: {problem.strerror or problem}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise DataError(
            f"{file} holds no allowances of this version of foltr ({problem}); restore it, or make a new group of a "
            "higher epoch and give a new path: it has new allowances"
        ) from None
    if stored.version != VERSION or stored.context != context.hex():
        raise DataError(
            f"{file} holds the allowances of another group, epoch or version of foltr; give the file of this epoch, or "
            "a new path for a new one"
        )
    return dict(stored.accounts)


def _store(allowance: Allowance) -> None:
    if allowance.file is not None:
        stored = _Stored(VERSION, allowance.context.hex(), allowance.accounts)
        write_durably(allowance.file, msgspec.json.encode(stored))
