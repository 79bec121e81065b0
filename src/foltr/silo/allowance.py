"""Allowances: entries that every asker may still learn, and its questions so far; stored before an answer leaves.

The unit is an *entry*: one (word, document, count) that an answer can make known to an asker who tries every word of a
dictionary. An answer from an index has K entries, of the asked word; one about documents has an entry for each, and
costs K at least: limits are limits of words too. Without that floor a day's entries test 3,000 words on one document,
which reads 86 % of its words on nfcorpus (the owner's vocabulary as dictionary; 68 % with that of msmarco-sample). Of a
sketch every number counts as one, rows x entries of a cell: each may be that of another word, and a member, who has the
hash key, can find out which. So a reverse top-K question to the paper's sketch costs 22,500 entries, one to an index
150. An answer costs the same whatever it shows.

Limits, for all epochs of a group: an asker has so many entries a period and so many in all, and all askers have so many
`together`, since members that collude learn what all of them were answered. A new epoch goes on with the file and its
accounts, because the maker of the group, a member, can begin one at any time. An owner with several fields or
collections gives all of them one file: with a file for each, an asker has an allowance for each.

Question numbers of an asker rise: a repeated or older number is refused, so that a recorded question cannot be sent
again. Numbers and entries are written and synchronised before the answer is computed; an answer that then fails is
spent. Processes that answer with one file take turns (`exclusive`), and each reads what the others have stored; threads
take turns too. Symbolic links to the file are followed; a file with a hard link answers nothing, because the next write
leaves two files, each with a whole allowance. A clock that goes back gives nothing back: the period stays the
highest that was seen.

With a `witness` in another folder, a file that was restored from a backup or deleted answers nothing. Without one it
has the numbers and entries of its day, or none.

Not covered: two groups have two allowances. Members who use up the limit for all together
leave nothing to the others, and a refusal tells an asker how much is left.

Differs from the paper: it limits nobody.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from foltr.errors import DataError, PrivacyError, SpecError, StorageError
from foltr.silo.keys import Membership
from foltr.witnessed import Place, State, checked, exclusive, read_state, write_state

VERSION = 3  # 1: counted cells, which are not comparable with entries; 2: without group and epoch, is read
DAY = 86_400


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of each asker, and of all together."""

    entries: int  # a period
    total: int  # in all periods
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
    group: str = ""
    epoch: int = 0  # 0: of version 2


@dataclass(frozen=True)
class Allowance:
    limits: Limits
    context: bytes
    accounts: dict[str, Account]  # changes with every question; of a file: as last read
    place: Place | None = None  # of the file; None: in memory
    now: Callable[[], float] = field(default=time.time, repr=False)
    group: str = ""
    epoch: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)  # of accounts in memory


def in_memory(limits: Limits, context: bytes, now: Callable[[], float] = time.time) -> Allowance:
    """For simulations, and for owners that answer from one process only: a restart forgets it."""
    return Allowance(limits, context, {}, None, now)


def open_allowance(
    file: Path, limits: Limits, member: Membership, now: Callable[[], float] = time.time, *, witness: Path | None = None
) -> Allowance:
    """The stored one of this owner's group, or a new one; a new epoch goes on with what was read in earlier ones.

    `witness`: a file in a folder that no backup restores with the first; needed from its first use on.
    """
    path = file.resolve()  # a file is replaced when it is written, and so would a link be
    place = checked(Place(path, witness, "allowance", f"restore the newest file, or {_NEW_PATH}"))
    allowance = Allowance(limits, member.context, {}, place, now, member.name, member.epoch)
    with exclusive(place):
        _require_one_name(place)
        state = read_state(place)
        stored = None if state.content is None else _decoded(path, state.content)
        if stored is not None:
            allowance.accounts.update(stored.accounts)
        if stored is None or stored.context != member.context.hex():
            _require_earlier_epoch(path, stored, member)
            _store(allowance, state)
    return allowance


_NEW_PATH = "give a new path, which forgets what members have read"


def _require_one_name(place: Place) -> None:
    """A write replaces the file under one of its names only."""
    if place.path.exists() and place.path.stat().st_nlink > 1:
        raise StorageError(
            f"{place.path} has a second name (a hard link), which would get an allowance of its own: nothing was "
            "answered; remove the other name, and use one file or a symbolic link"
        )


def _require_earlier_epoch(file: Path, stored: _Stored | None, member: Membership) -> None:
    if stored is None:
        return
    if stored.group != member.name:  # version 2 names none
        raise DataError(
            f"{file} holds the allowances of another group, or of another epoch as an earlier version of foltr wrote "
            f"them; give the file of this group, or {_NEW_PATH}"
        )
    if stored.epoch >= member.epoch:
        raise DataError(
            f"{file} is in use for epoch {stored.epoch} of the group {stored.group!r}, this party opened epoch "
            f"{member.epoch}; open the newest group"
        )


def spend(allowance: Allowance, asker: bytes, number: int, entries: int) -> None:
    """Counts a question and the entries that its answer may show; refuses a used number, and what exceeds a limit."""
    name = asker.hex()
    with _current_accounts(allowance) as (accounts, state):
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
        _store(allowance, state)
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
def _current_accounts(allowance: Allowance) -> Iterator[tuple[dict[str, Account], State | None]]:
    """The accounts as other processes left them, which no other process reads or changes meanwhile, and their state."""
    place = allowance.place
    if place is None:
        with allowance.lock:
            yield allowance.accounts, None
        return
    with exclusive(place):
        _require_one_name(place)
        state = read_state(place)
        if state.content is None:
            raise StorageError(f"{place.path} could not be read: it is gone; restore it, or {_NEW_PATH}")
        stored = _decoded(place.path, state.content)
        if stored.context != allowance.context.hex():
            raise DataError(
                f"{place.path} is in use for epoch {stored.epoch} of the group {stored.group!r}, this process answers "
                f"in epoch {allowance.epoch}: nothing was answered; open the newest group"
            )
        allowance.accounts.clear()
        allowance.accounts.update(stored.accounts)
        yield allowance.accounts, state


def _decoded(file: Path, content: bytes) -> _Stored:
    try:
        stored = msgspec.json.decode(content, type=_Stored)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise DataError(
            f"{file} holds no allowances of this version of foltr ({problem}); restore it, or {_NEW_PATH}"
        ) from None
    if stored.version not in (2, VERSION):
        raise DataError(
            f"{file} holds allowances of version {stored.version}; this version of foltr reads {VERSION}: {_NEW_PATH}"
        )
    return stored


def _store(allowance: Allowance, before: State | None) -> None:
    if allowance.place is not None and before is not None:
        stored = _Stored(VERSION, allowance.context.hex(), allowance.accounts, allowance.group, allowance.epoch)
        write_state(allowance.place, before, msgspec.json.encode(stored))
