"""What a person does with the ledger of a node: look at it, repair it, change its budget, begin anew.

    inspect_ledger    what it holds and whether its witness agrees; changes nothing
    repair_ledger     charges every record that may be missing, at the worst event that was ever charged
    change_budget     the stored budget; nothing else makes it larger
    accept_ledger     a new ledger takes the place of one that is lost

None of these is called by a program itself; `foltr privacy ledger` asks first.
"""

import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from foltr.errors import PrivacyError
from foltr.privacy.events import Event
from foltr.privacy.ledger import check_figures, worst_of_each_kind
from foltr.privacy.ledger_file import (
    Chain,
    Limit,
    Record,
    Terms,
    Witness,
    check_witness,
    counts_of,
    first_record,
    identity_of,
    limit_of,
    place_of,
    read_chain,
    read_ledger,
    read_witness,
    rounds_of,
    write_record,
)
from foltr.witnessed import Place, append, compare, exclusive

_MOST_MISSING = 2**53


class Inspection(NamedTuple):
    """A ledger and its witness as they are on the disk."""

    records: int | None  # None: there is no ledger, or it is damaged
    counts: dict[Event, int]  # how often each event was charged
    rounds: dict[str, int]  # highest round of each federation
    repairs: tuple[str, ...]  # what was charged for missing records
    limit: Limit | None  # the stored budget
    identity: str
    witnessed: int | None  # the record that the witness saw; None: there is no witness, or it is damaged
    problem: str  # why the ledger is refused; empty where it is not
    note: str  # what the next use of the ledger will mend by itself
    missing: int  # releases that a repair would charge


def inspect_ledger(path: Path, *, witness: Path | None = None) -> Inspection:
    """Content of a ledger and whether its witness agrees. Neither file is changed; the ledger's folder must exist."""
    place = place_of(path, witness)
    with exclusive(place):
        chain, problem = _tried(read_chain, place)
        seen, damage = _tried(read_witness, place)
    problem = problem or damage
    if not problem:
        _, problem = _tried(check_witness, place, chain, seen)
    note = ""
    if not problem and chain is None:
        problem = f"{place.path}: there is no ledger"
    elif not problem and chain and chain.torn:
        note = "the last record is torn: its release never left; the next use counts it at the worst event so far"
    elif not problem and chain and seen and seen.number < chain.records[-1].number:
        note = "the witness is behind, as after a crash: every record counts; the next use writes the witness"
    return Inspection(
        len(chain.records) if chain else None, dict(counts_of(chain)) if chain else {},
        rounds_of(chain) if chain else {},
        tuple(record.note for record in chain.records if record.kind == "repair") if chain else (),
        limit_of(chain) if chain else None, identity_of(chain) if chain else "",
        seen.number if seen else None, problem, note, _lost(chain, seen),
    )  # fmt: skip


def repair_ledger(path: Path, *, witness: Path, missing: int = 0) -> int:
    """Charges every record that may be missing at the worst event ever charged; returns how many that are.

    Restored: the records between ledger and witness. Forked: all of the witness's records. Ledger lost or damaged: a
    new one with all of the witness's records; a damaged file is renamed. `missing`: how many more releases may have
    happened; it must be stated where the witness is lost.
    """
    place = place_of(path, witness)
    if not 0 <= missing <= _MOST_MISSING:
        raise PrivacyError(f"missing = {missing}: state from 0 to {_MOST_MISSING} releases")
    with exclusive(place):
        seen, chain = read_witness(place), _readable(place)
        if seen is None and not missing:
            raise PrivacyError(
                f"{witness}: there is no witness; state how many releases may be missing from {path} (missing = ...)"
            )
        if not missing and chain and seen and not chain.torn and _agree(chain, seen):
            return 0
        worst = worst_of_each_kind([*(counts_of(chain) if chain else ()), *(seen.worst if seen else ())])
        if missing and not worst:
            raise PrivacyError(f"{path}: no release is known, so the worst one is not either; begin a new ledger")
        lost = missing + _lost(chain, seen)
        if chain is None:
            chain = append(place, None, first_record(place, None, seen.identity if seen else ""))
        record = Record(
            max(chain.records[-1].number, seen.number if seen else 0) + 1, "repair",
            tuple((event, lost) for event in worst), dict(seen.rounds) if seen else {},
            (seen.number, seen.digest) if seen else None,
            f"{lost} release{'' if lost == 1 else 's'} that may be missing",
            limit=seen.limit if seen and not _agree(chain, seen) else None, members=dict(seen.members) if seen else {},
        )  # fmt: skip
        write_record(place, chain, record)
    return lost


def change_budget(path: Path, limit: Limit, *, witness: Path | None = None) -> None:
    """Replaces the stored budget: the person's decision, on the node. What was charged stays charged."""
    check_figures(limit.delta, limit.budget)
    _decide(place_of(path, witness), "budget", limit=limit)


def accept_ledger(path: Path, identity: str, *, witness: Path | None = None) -> None:
    """Lets a ledger take the place of one that is lost: the person's decision. The releases that only the lost one
    counted are not charged here."""
    if not re.fullmatch("[0-9a-f]{32}", identity):
        raise PrivacyError(f"{identity!r} is no ledger; give the 32 digits that the refusal tells")
    _decide(place_of(path, witness), "accept", accepted=identity)


def _decide(place: Place, kind: Literal["budget", "accept"], *, limit: Limit | None = None, accepted: str = "") -> None:
    with exclusive(place):
        chain = read_ledger(Terms(place, 0.0, None, "malicious"))
        write_record(place, chain, Record(chain.records[-1].number + 1, kind, limit=limit, accepted=accepted))


def _tried(read: Callable[..., Any], *given: Any) -> tuple[Any, str]:
    """The result of a function, or why it refuses."""
    try:
        return read(*given), ""
    except PrivacyError as problem:
        return None, str(problem)


def _lost(chain: Chain | None, seen: Witness | None) -> int:
    """Number of records that may be missing from the ledger."""
    torn = 1 if chain and chain.torn else 0
    if seen is None or (chain and _agree(chain, seen)):
        return torn
    newest = chain.records[-1].number if chain else 0
    return torn + (seen.number - newest if newest < seen.number else seen.number)


def _agree(chain: Chain, seen: Witness) -> bool:
    """Whether the witness's record is in the ledger."""
    return compare(chain.digests, seen) in ("agrees", "ahead")


def _readable(place: Place) -> Chain | None:
    """A damaged file is renamed and counts as lost."""
    try:
        return read_chain(place)
    except PrivacyError:
        place.path.replace(place.path.with_name(f"{place.path.name}.damaged-{secrets.token_hex(4)}"))
        return None
