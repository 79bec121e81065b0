"""The ledger of a node: every release of this device, over all federations, in one append-only file.

`charge` is called before a release leaves the device. It returns when the record is on the disk; a release whose
`charge` did not return never happened. It refuses a round that is not above the highest of its federation, and a
release beyond the budget. Several processes may use one ledger: a lock makes their charges one after the other, and
each reads what the others wrote.

A witness (a second file, in a folder that is not backed up or restored together with the first) notices a ledger that
was restored from a backup or copied and used twice. The order of the writes is: record, its fsync, witness, its fsync.

    ledger is one or more records ahead of its witness      a crash between the two: the record counts
    last record is torn                                     a crash in the first: counted at the worst event so far
    ledger is older than its witness, or has another
    digest at that number, or one of the two is missing     refused; `repair_ledger` charges what may be missing

`repair_ledger` is never called by itself: it charges every record that may be missing at the worst event that was ever
charged, of each kind of composition, and takes the highest rounds from the witness.

Not noticed: a backup that restores both files. Two copies of a whole machine are two nodes with one identity.

Admission and `spent` are closed forms in NumPy (`ledger.closed_epsilon`). A node is one user: adjacency and unit are
those of the events, which must be of one kind.
"""

import math
import secrets
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from foltr.atomic import is_apart
from foltr.errors import PrivacyError
from foltr.privacy.events import Adversary, Event, check_composable
from foltr.privacy.ledger import affordable, check_figures, closed_epsilon, worst_of_each_kind
from foltr.privacy.ledger_records import (
    Chain,
    Record,
    Witness,
    append,
    digest_of,
    locked,
    read_chain,
    read_witness,
    write_witness,
)

LEDGER = "ledger"  # the usual name of both files, each in its folder
NO_ROUND = -1  # the highest round of a federation in which this node never took part
_LARGEST_ROUND = 2**62
_MOST_MISSING = 2**53
_LONGEST_NAME = 256


class _Terms(NamedTuple):
    path: Path
    witness: Path | None
    delta: float
    budget: float | None
    against: Adversary


class NodeLedger:
    """A ledger on the disk. What it last saw of the file stands in memory: a file that goes back is noticed."""

    def __init__(self, terms: _Terms, chain: Chain) -> None:
        self._terms, self._chain = terms, chain

    def admits(self, event: Event) -> bool:
        """Whether one more release of this kind stays within the budget."""
        _check_event(event)
        with _lock(self._terms):
            self._chain = _read(self._terms, self._chain)
        return self._affordable(event)

    def charge(self, event: Event, *, federation: str, round: int) -> None:
        """Counts a release; it is on the disk when this returns, and nothing changed when it raises a PrivacyError."""
        _check_event(event)
        _check_round(federation, round)
        with _lock(self._terms):
            self._chain = _read(self._terms, self._chain)
            highest = self._highest(federation)
            if round <= highest:
                raise PrivacyError(
                    f"round {round} of federation {federation}: this node already answered in round {highest}; rounds "
                    "only rise, and nothing was released"
                )
            check_composable([*_counts(self._chain), event])
            if not self._affordable(event):
                raise PrivacyError(
                    f"a further release of {event.mechanism} would exceed this node's budget of epsilon "
                    f"{self._terms.budget:g} at delta {self._terms.delta:g} against {self._terms.against}; nothing was "
                    "released"
                )
            number = self._chain.records[-1].number + 1
            record = Record(number, "release", ((event, 1),), {federation: round})
            self._chain = _write(self._terms, self._chain, record)

    def highest_round(self, federation: str) -> int:
        """In which this node took part; -1: none."""
        with _lock(self._terms):
            self._chain = _read(self._terms, self._chain)
        return self._highest(federation)

    def counts(self) -> dict[Event, int]:
        """How often each event was charged, repairs included."""
        with _lock(self._terms):
            self._chain = _read(self._terms, self._chain)
        return _counts(self._chain)

    def spent(self) -> float:
        """Epsilon of all releases at the delta: in closed form, never below the exact figure."""
        return closed_epsilon(self.counts(), self._terms.delta, self._terms.against)

    def _affordable(self, event: Event) -> bool:
        if self._terms.budget is None:
            return True
        counts = _counts(self._chain)
        counts[event] += 1
        return affordable(counts, budget=self._terms.budget, delta=self._terms.delta, against=self._terms.against)

    def _highest(self, federation: str) -> int:
        return _rounds(self._chain).get(federation, NO_ROUND)


def open_ledger(
    path: Path, *, delta: float, budget: float | None, witness: Path | None = None, against: Adversary = "malicious"
) -> NodeLedger:
    """The ledger of this node; begun where there is none. `budget`: epsilon of all federations together, against
    a malicious server with its colluders unless another adversary is named."""
    check_figures(delta, budget)
    terms = _terms(path, witness)._replace(delta=delta, budget=budget, against=against)
    with _lock(terms):
        return NodeLedger(terms, _read(terms))


class Inspection(NamedTuple):
    """A ledger and its witness as they are on the disk."""

    records: int | None  # None: there is no ledger, or it is damaged
    counts: dict[Event, int]  # how often each event was charged
    rounds: dict[str, int]  # highest round of each federation
    repairs: tuple[str, ...]  # what was charged for missing records
    witnessed: int | None  # the record that the witness saw; None: there is no witness, or it is damaged
    problem: str  # why the ledger is refused; empty where it is not
    note: str  # what the next use of the ledger will mend by itself
    missing: int  # releases that a repair would charge


def inspect_ledger(path: Path, *, witness: Path | None = None) -> Inspection:
    """What a ledger holds and whether its witness agrees. Neither file is changed; the ledger's folder must exist."""
    terms = _terms(path, witness)
    with _lock(terms):
        chain, problem = _tried(read_chain, terms.path)
        seen, damage = (None, "") if terms.witness is None else _tried(read_witness, terms.witness)
    problem = problem or damage
    if not problem:
        _, problem = _tried(_check_witness, terms, chain, seen)
    note = ""
    if not problem and chain is None:
        problem = f"{terms.path}: there is no ledger"
    elif not problem and chain and chain.torn:
        note = "the last record is torn: its release never left; the next use counts it at the worst event so far"
    elif not problem and chain and seen and seen.number < chain.records[-1].number:
        note = "the witness is behind, as after a crash: every record counts; the next use writes the witness"
    return Inspection(
        len(chain.records) if chain else None, dict(_counts(chain)) if chain else {}, _rounds(chain) if chain else {},
        tuple(record.note for record in chain.records if record.kind == "repair") if chain else (),
        seen.number if seen else None, problem, note, _lost(chain, seen),
    )  # fmt: skip


def repair_ledger(path: Path, *, witness: Path, missing: int = 0) -> int:
    """Charges every record that may be missing at the worst event ever charged; returns how many that are.

    Restored: the records between ledger and witness. Forked: all of the witness's records. Ledger lost or damaged: a
    new one with all of the witness's records; a damaged file is renamed. `missing`: how many more releases may have
    happened; it must be stated where the witness is lost.
    """
    terms = _terms(path, witness)
    if not 0 <= missing <= _MOST_MISSING:
        raise PrivacyError(f"missing = {missing}: state from 0 to {_MOST_MISSING} releases")
    with _lock(terms):
        seen, chain = read_witness(Path(witness)), _readable(terms.path)
        if seen is None and not missing:
            raise PrivacyError(
                f"{witness}: there is no witness; state how many releases may be missing from {path} (missing = ...)"
            )
        if not missing and chain and seen and not chain.torn and _agree(chain, seen):
            return 0
        worst = worst_of_each_kind([*(_counts(chain) if chain else ()), *(seen.worst if seen else ())])
        if missing and not worst:
            raise PrivacyError(f"{path}: no release is known, so the worst one is not either; begin a new ledger")
        lost = missing + _lost(chain, seen)
        chain = chain or append(terms.path, None, _first(terms))
        record = Record(
            max(chain.records[-1].number, seen.number if seen else 0) + 1, "repair",
            tuple((event, lost) for event in worst), dict(seen.rounds) if seen else {},
            (seen.number, seen.digest) if seen else None,
            f"{lost} release{'' if lost == 1 else 's'} that may be missing",
        )  # fmt: skip
        _write(terms, chain, record)
    return lost


def _tried(read: Callable[..., Any], *given: Any) -> tuple[Any, str]:
    """What a function returns, or why it refuses."""
    try:
        return read(*given), ""
    except PrivacyError as problem:
        return None, str(problem)


def _lost(chain: Chain | None, seen: Witness | None) -> int:
    """How many records may be missing from the ledger."""
    torn = 1 if chain and chain.torn else 0
    if seen is None or (chain and _agree(chain, seen)):
        return torn
    newest = chain.records[-1].number if chain else 0
    return torn + (seen.number - newest if newest < seen.number else seen.number)


def _agree(chain: Chain, seen: Witness) -> bool:
    """Whether the witness's record is in the ledger."""
    digest = chain.digests.get(seen.number)
    return digest is not None and digest.hex() == seen.digest


def _readable(path: Path) -> Chain | None:
    """A damaged file is renamed and counts as lost."""
    try:
        return read_chain(path)
    except PrivacyError:
        path.replace(path.with_name(f"{path.name}.damaged-{secrets.token_hex(4)}"))
        return None


def _terms(path: Path, witness: Path | None) -> _Terms:
    where = None if witness is None else Path(witness).absolute()
    if where is not None and not is_apart(where, Path(path).resolve().parent):
        raise PrivacyError(
            f"{witness}: the witness of a ledger belongs in another folder than the ledger, one that is not backed up "
            "and restored together with it"
        )
    return _Terms(Path(path).absolute(), where, 0.0, None, "malicious")


# --- the two files together -----------------------------------------------------------------------------------------


def _lock(terms: _Terms) -> AbstractContextManager[None]:
    return locked(terms.path, *([] if terms.witness is None else [terms.witness]))


def _read(terms: _Terms, before: Chain | None = None) -> Chain:
    """The file against its witness and against what was seen before; begins it, and ends what a crash interrupted."""
    chain = read_chain(terms.path)
    seen = None if terms.witness is None else read_witness(terms.witness)
    _check_witness(terms, chain, seen)
    if before is not None:
        newest = before.records[-1].number
        if chain is None or chain.digests.get(newest) != before.digests[newest]:
            raise PrivacyError(f"{terms.path}: the file went back behind record {newest} while it was open; {_REPAIR}")
    if chain is None:
        first = _first(terms)
        if terms.witness is not None:  # before the ledger: a ledger that has a witness is never seen without it
            write_witness(terms.witness, Witness(0, digest_of(first).hex(), {}, ()))
        return append(terms.path, None, first)
    if chain.torn:
        worst = tuple((event, 1) for event in worst_of_each_kind(_counts(chain)))
        note = f"a torn record of {chain.torn} bytes, whose release never left"
        return _write(terms, chain, Record(chain.records[-1].number + 1, "repair", worst, note=note))
    if terms.witness is not None and (seen is None or seen.number < chain.records[-1].number):
        write_witness(terms.witness, _witness_of(chain))
    if terms.witness is not None and not _witnessed(chain):
        return _write(terms, chain, Record(chain.records[-1].number + 1, "witness"))
    return chain


def _write(terms: _Terms, chain: Chain, record: Record) -> Chain:
    """The record first, then the witness: a crash between the two leaves a record that counts."""
    chain = append(terms.path, chain, record)
    if terms.witness is not None:
        write_witness(terms.witness, _witness_of(chain))
    return chain


_REPAIR = (
    "releases would be forgotten, so nothing is released: restore the newest files, or let foltr privacy ledger "
    "--repair charge what may be missing"
)


def _check_witness(terms: _Terms, chain: Chain | None, seen: Witness | None) -> None:
    """Refuses a ledger that is older than its witness or another one."""
    if seen is None:
        if chain and _witnessed(chain) and terms.witness is None:
            raise PrivacyError(f"{terms.path}: this ledger has a witness; open it together with the witness")
        if chain and _witnessed(chain):
            raise PrivacyError(f"{terms.witness}: the witness of {terms.path} is missing; {_REPAIR}")
        return
    newest = chain.records[-1].number if chain else 0
    if newest < seen.number:
        raise PrivacyError(
            f"{terms.path}: the ledger ends with record {newest}, its witness saw record {seen.number}: an older "
            f"ledger was restored; {_REPAIR}"
        )
    if chain and not _agree(chain, seen):
        raise PrivacyError(
            f"{terms.path}: record {seen.number} is not the one that the witness saw: a copy of the ledger was used "
            f"elsewhere; {_REPAIR}"
        )


def _first(terms: _Terms) -> Record:
    return Record(0, "ledger" if terms.witness is None else "witness", note=secrets.token_hex(16))


def _witnessed(chain: Chain) -> bool:
    return any(record.kind == "witness" for record in chain.records)


def _witness_of(chain: Chain) -> Witness:
    newest = chain.records[-1].number
    return Witness(newest, chain.digests[newest].hex(), _rounds(chain), worst_of_each_kind(_counts(chain)))


def _counts(chain: Chain) -> Counter[Event]:
    counts: Counter[Event] = Counter()
    for record in chain.records:
        for event, times in record.events:
            counts[event] += times
    return counts


def _rounds(chain: Chain) -> dict[str, int]:
    highest: dict[str, int] = {}
    for record in chain.records:
        for federation, round in record.rounds.items():
            highest[federation] = max(round, highest.get(federation, NO_ROUND))
    return highest


# --- what may be charged --------------------------------------------------------------------------------------------


def _check_event(event: Event) -> None:
    if not (math.isfinite(event.bound) and math.isfinite(event.noise)):
        raise PrivacyError(
            f"{event.mechanism}: bound {event.bound:g} and noise {event.noise:g} must be finite to be charged"
        )


def _check_round(federation: str, round: int) -> None:
    if not 0 < len(federation) <= _LONGEST_NAME:
        raise PrivacyError(f"a federation's name of {len(federation)} characters; use 1 to {_LONGEST_NAME}")
    if not 0 <= round <= _LARGEST_ROUND:
        raise PrivacyError(f"round {round}: use a number from 0 to {_LARGEST_ROUND}")
