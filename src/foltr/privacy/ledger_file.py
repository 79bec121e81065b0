"""The ledger of a node: every release of this device, over all federations, in one append-only file.

`charge` is called before a release leaves the device. It returns when the record is on the disk; a release whose
`charge` did not return never happened. It refuses a round that is not above the highest of its federation, and a
release beyond the budget. Several processes may use one ledger: a lock makes their charges one after the other, and
each reads what the others wrote.

The ledger is a chain of records, and its witness (`witnessed`) notices one that was restored from a backup or copied
and used twice. The first record holds a random identifier: no two ledgers share a digest. The witness also has the
highest round and the largest registry of every federation, and the worst event of each kind that was ever charged: what
a missing record costs at most. The order of the writes is: record, its fsync, witness, its fsync.

    ledger is one or more records ahead of its witness      a crash between the two: the record counts
    last record is torn                                     a crash in the first: counted at the worst event so far
    ledger is older than its witness, or has another
    digest at that number, or one of the two is missing     refused; a repair charges what may be missing

`ledger_repair.repair_ledger` is never called by itself: it charges every record that may be missing at the worst event
that was ever charged, of each kind of composition, and takes the highest rounds from the witness.

The budget stands in the ledger: the epsilon that all federations share, at a delta and against an adversary. Whoever
opens the ledger first with a budget states it; later ones can be stricter and are not stored, and nothing but
`ledger_repair.change_budget`, a command of the person, replaces it.

A ledger has an identity, which outlives repairs. States of rounds name the ledger that they were charged to: where
ledger and witness were both deleted, a new ledger is not theirs, and the node refuses (`require`) until the person
restores the old files or accepts the new ledger (`ledger_repair.accept_ledger`).

Not noticed: a backup that restores both files. Two copies of a whole machine are two nodes with one identity.

Admission and `spent` are closed forms in NumPy (`ledger.closed_epsilon`). A node is one user: adjacency and unit are
those of the events, which must be of one kind.
"""

import math
import secrets
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

import msgspec

from foltr import witnessed
from foltr.errors import PrivacyError, StateError
from foltr.privacy.events import Adversary, Event, check_composable
from foltr.privacy.ledger import affordable, check_figures, closed_epsilon, worst_of_each_kind
from foltr.witnessed import Natural, Place, append, checked, compare, digest_of, exclusive

LEDGER = "ledger"  # the usual name of both files, each in its folder
NO_ROUND = -1  # the highest round of a federation in which this node never took part
_LARGEST_ROUND = 2**62
_LONGEST_NAME, _LONGEST_ADDRESS = 256, 2048  # characters


Charges: TypeAlias = tuple[tuple[Event, Natural], ...]  # events with how often each is counted


class Limit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The epsilon that all releases of a node may reach."""

    budget: float
    delta: float
    against: Adversary


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`ledger`: the first one, where there is no witness. `witness`: from here on there is one. `release`: one charge.
    `repair`: charges for records that are missing; its number may jump, `merged` names the witness that it answers.
    `budget`: the limit from here on; the first record, or that of a witness, may state it as well. `accept`: this
    ledger takes the place of `accepted`."""

    number: Natural
    kind: Literal["ledger", "release", "witness", "repair", "budget", "accept"]
    events: Charges = ()
    rounds: dict[str, Natural] = {}  # highest round of federations
    merged: tuple[Natural, str] | None = None
    note: str = ""  # of the first record: the ledger's identity
    limit: Limit | None = None
    accepted: str = ""  # identity of a ledger that is lost
    time: float = 0.0  # of a release, seconds since 1970; 0 in records of earlier versions of foltr
    address: Annotated[str, msgspec.Meta(max_length=_LONGEST_ADDRESS)] = ""  # that its message goes to
    size: Natural = 0  # bytes of that message
    members: dict[str, Natural] = {}  # largest registry of federations


class Witness(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: Natural
    digest: str
    rounds: dict[str, Natural]
    worst: tuple[Event, ...]  # one for each kind of composition
    version: int = witnessed.VERSION
    identity: str = ""  # empty in earlier versions of foltr
    limit: Limit | None = None
    members: dict[str, Natural] = {}  # largest registry of each federation


Chain: TypeAlias = witnessed.Chain[Record]


class Terms(NamedTuple):
    place: Place
    delta: float
    limit: Limit | None  # of whoever opened the ledger
    against: Adversary


class NodeLedger:
    """A ledger on the disk. What it last saw of the file stands in memory: a file that goes back is noticed."""

    def __init__(self, terms: Terms, chain: Chain) -> None:
        self._terms, self._chain = terms, chain

    def admits(self, event: Event) -> bool:
        """Whether one more release of this kind stays within the budget."""
        _check_event(event)
        with exclusive(self._terms.place):
            self._chain = read_ledger(self._terms, self._chain)
        return self._exceeded(event) is None

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
    ) -> None:
        """Counts a release; it is on the disk when this returns, and nothing changed when it raises a PrivacyError.
        `time`, `address` and `size` describe the message that is about to leave, `members`
        is the size of the round's registry."""
        _check_event(event)
        _check_round(federation, round)
        _check_message(time, address, size)
        with exclusive(self._terms.place):
            self._chain = read_ledger(self._terms, self._chain)
            highest = self._highest(federation)
            if round <= highest:
                raise PrivacyError(
                    f"round {round} of federation {federation}: this node already answered in round {highest}; rounds "
                    "only rise, and nothing was released"
                )
            check_composable([*counts_of(self._chain), event])
            if (limit := self._exceeded(event)) is not None:
                raise PrivacyError(
                    f"a further release of {event.mechanism} would exceed this node's budget of epsilon "
                    f"{limit.budget:g} at delta {limit.delta:g} against {limit.against}; nothing was released"
                )
            number = self._chain.records[-1].number + 1
            larger = {federation: members} if members > self._largest(federation) else {}
            record = Record(
                number,
                "release",
                ((event, 1),),
                {federation: round},
                time=time,
                address=address,
                size=size,
                members=larger,
            )
            self._chain = write_record(self._terms.place, self._chain, record)

    def highest_round(self, federation: str) -> int:
        """In which this node took part; -1: none."""
        with exclusive(self._terms.place):
            self._chain = read_ledger(self._terms, self._chain)
        return self._highest(federation)

    def largest_registry(self, federation: str) -> int:
        """With which this node took part; 0: none, or it was not told."""
        with exclusive(self._terms.place):
            self._chain = read_ledger(self._terms, self._chain)
        return self._largest(federation)

    def charges_after(self, federation: str, round: int) -> int:
        """How many rounds of a federation above this one were charged; a repair counts as one."""
        with exclusive(self._terms.place):
            self._chain = read_ledger(self._terms, self._chain)
        return sum(record.rounds.get(federation, NO_ROUND) > round for record in self._chain.records)

    def records(self) -> tuple[Record, ...]:
        """All records, oldest first."""
        with exclusive(self._terms.place):
            self._chain = read_ledger(self._terms, self._chain)
        return tuple(self._chain.records)

    def counts(self) -> dict[Event, int]:
        """Number of charges of each event, repairs included."""
        with exclusive(self._terms.place):
            self._chain = read_ledger(self._terms, self._chain)
        return counts_of(self._chain)

    def spent(self) -> float:
        """Epsilon of all releases at the delta: in closed form, never below the exact figure."""
        return closed_epsilon(self.counts(), self._terms.delta, self._terms.against)

    @property
    def identity(self) -> str:
        return identity_of(self._chain)

    def require(self, identity: str, *, path: Path) -> None:
        """Refuses to stand in for another ledger: that which the state at `path` was charged to. Empty: none was."""
        with exclusive(self._terms.place):
            self._chain = read_ledger(self._terms, self._chain)
        own = {identity_of(self._chain), *(record.accepted for record in self._chain.records)}
        if identity and identity not in own:
            ledger, witness, *_ = self._terms.place
            files = f"{ledger} --witness {witness}" if witness else f"{ledger}"
            raise PrivacyError(
                f"{path}: this node took part in rounds with another ledger than {ledger}, which does not have their "
                "releases; nothing is released: restore that ledger and its witness, or decide to count anew with "
                f"foltr privacy ledger {files} --accept {identity}"
            )

    def _exceeded(self, event: Event) -> Limit | None:
        """The budget that one more release of this kind would exceed."""
        counts = counts_of(self._chain)
        counts[event] += 1
        for limit in (limit_of(self._chain), self._terms.limit):
            if limit is not None and not affordable(counts, **msgspec.structs.asdict(limit)):
                return limit
        return None

    def _highest(self, federation: str) -> int:
        return rounds_of(self._chain).get(federation, NO_ROUND)

    def _largest(self, federation: str) -> int:
        return largest_of(self._chain).get(federation, 0)


def open_ledger(
    path: Path, *, delta: float, budget: float | None, witness: Path | None = None, against: Adversary = "malicious"
) -> NodeLedger:
    """The ledger of this node; begun where there is none. `budget`: epsilon of all federations together, against
    a malicious server with its colluders unless another adversary is named; stored where the ledger has none yet. A
    budget that is stored holds as well, whatever is given here."""
    check_figures(delta, budget)
    limit = None if budget is None else Limit(budget, delta, against)
    terms = Terms(place_of(path, witness), delta, limit, against)
    with exclusive(terms.place):
        return NodeLedger(terms, read_ledger(terms))


def place_of(path: Path, witness: Path | None) -> Place:
    return checked(Place(Path(path), None if witness is None else Path(witness), "ledger"))


# --- the two files together -----------------------------------------------------------------------------------------


def read_chain(place: Place) -> Chain | None:
    try:
        return witnessed.read_chain(place, Record)
    except StateError as problem:
        raise PrivacyError(f"{problem}; restore the file as it was, or repair the ledger from its witness") from None


def read_witness(place: Place) -> Witness | None:
    try:
        return witnessed.read_witness(place, Witness)
    except StateError as problem:
        raise PrivacyError(str(problem)) from None


def read_ledger(terms: Terms, before: Chain | None = None) -> Chain:
    """The file against its witness and against what was seen before; begins it, and ends what a crash interrupted."""
    place = terms.place
    chain, seen = read_chain(place), read_witness(place)
    check_witness(place, chain, seen)
    if before is not None:
        newest = before.records[-1].number
        if chain is None or chain.digests.get(newest) != before.digests[newest]:
            raise PrivacyError(f"{place.path}: the file went back behind record {newest} while it was open; {_REPAIR}")
    if chain is None:
        first = first_record(place, terms.limit)
        # the witness first: a ledger that has one is never seen without it
        witnessed.write_witness(place, Witness(0, digest_of(first).hex(), {}, (), identity=first.note))
        return append(place, None, first)
    if chain.torn:
        worst = tuple((event, 1) for event in worst_of_each_kind(counts_of(chain)))
        note = f"a torn record of {chain.torn} bytes, whose release never left"
        return write_record(place, chain, Record(chain.records[-1].number + 1, "repair", worst, note=note))
    if seen is None or not seen.identity or compare(chain.digests, seen) == "ahead":
        witnessed.write_witness(place, _witness_of(chain))
    limit = terms.limit if limit_of(chain) is None else None
    if place.witness is not None and not _witnessed(chain):
        return write_record(place, chain, Record(chain.records[-1].number + 1, "witness", limit=limit))
    if limit is not None:
        return write_record(place, chain, Record(chain.records[-1].number + 1, "budget", limit=limit))
    return chain


def write_record(place: Place, chain: Chain, record: Record) -> Chain:
    """The record first, then the witness: a crash between the two leaves a record that counts."""
    chain = append(place, chain, record)
    witnessed.write_witness(place, _witness_of(chain))
    return chain


_REPAIR = (
    "releases would be forgotten, so nothing is released: restore the newest files, or let foltr privacy ledger "
    "--repair charge what may be missing"
)


def check_witness(place: Place, chain: Chain | None, seen: Witness | None) -> None:
    """Refuses a ledger that is older than its witness or another one."""
    if seen is None:
        if chain and _witnessed(chain) and place.witness is None:
            raise PrivacyError(f"{place.path}: this ledger has a witness; open it together with the witness")
        if chain and _witnessed(chain):
            raise PrivacyError(f"{place.witness}: the witness of {place.path} is missing; {_REPAIR}")
        return
    standing = compare(chain.digests if chain else {}, seen)
    if standing == "older":
        raise PrivacyError(
            f"{place.path}: the ledger ends with record {chain.records[-1].number if chain else 0}, its witness saw "
            f"record {seen.number}: an older ledger was restored; {_REPAIR}"
        )
    if standing == "forked":
        raise PrivacyError(
            f"{place.path}: record {seen.number} is not the one that the witness saw: a copy of the ledger was used "
            f"elsewhere; {_REPAIR}"
        )


def first_record(place: Place, limit: Limit | None, identity: str = "") -> Record:
    kind: Literal["ledger", "witness"] = "ledger" if place.witness is None else "witness"
    return Record(0, kind, note=identity or secrets.token_hex(16), limit=limit)


def _witnessed(chain: Chain) -> bool:
    return any(record.kind == "witness" for record in chain.records)


def _witness_of(chain: Chain) -> Witness:
    newest = chain.records[-1].number
    return Witness(
        newest, chain.digests[newest].hex(), rounds_of(chain), worst_of_each_kind(counts_of(chain)),
        identity=identity_of(chain), limit=limit_of(chain), members=largest_of(chain),
    )  # fmt: skip


def identity_of(chain: Chain) -> str:
    return chain.records[0].note


def limit_of(chain: Chain) -> Limit | None:
    """The newest budget that was stored."""
    return next((record.limit for record in reversed(chain.records) if record.limit is not None), None)


def counts_of(chain: Chain) -> Counter[Event]:
    counts: Counter[Event] = Counter()
    for record in chain.records:
        for event, times in record.events:
            counts[event] += times
    return counts


def rounds_of(chain: Chain) -> dict[str, int]:
    highest: dict[str, int] = {}
    for record in chain.records:
        for federation, round in record.rounds.items():
            highest[federation] = max(round, highest.get(federation, NO_ROUND))
    return highest


def largest_of(chain: Chain) -> dict[str, int]:
    """The largest registry of each federation."""
    largest: dict[str, int] = {}
    for record in chain.records:
        for federation, members in record.members.items():
            largest[federation] = max(members, largest.get(federation, 0))
    return largest


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


def _check_message(time: float, address: str, size: int) -> None:
    if not math.isfinite(time) or len(address) > _LONGEST_ADDRESS or not 0 <= size <= _LARGEST_ROUND:
        what = f"a message of {size} bytes at {time:g} to an address of {len(address)} characters"
        raise PrivacyError(f"{what}; use a finite time and at most {_LONGEST_ADDRESS} characters")
