"""What a coordinator of two operators must not forget: keys that were signed ahead, rounds that wait for a half, and
the steps of all versions with the halves behind them.

One private file, replaced as a whole. Contributions are sealed; the coordinator cannot read them. The second operator
may be away for days: windows go on as long as there are statements about keys, and closed rounds wait here.
"""

from pathlib import Path

import msgspec

from foltr.errors import StorageError
from foltr.federation.steps import MOST_STEPS, SignedSum, Step
from foltr.files import write_durably
from foltr.secagg.two_servers import Pair, TwoServers, Window

VERSION = 1


class ClosedRound(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A closed round whose halves are not both here."""

    round: int
    ranker: bytes  # digest
    keys: Pair
    arrived: dict[int, bytes]  # contributions, by client


class Journal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    federation: str
    version: int = VERSION
    statements: tuple[dict[int, bytes], dict[int, bytes]] = ({}, {})  # of each operator, by round
    waiting: tuple[ClosedRound, ...] = ()  # oldest first
    summed: tuple[SignedSum, ...] = ()  # that are in no step yet
    steps: tuple[Step, ...] = ()  # of all versions, oldest first
    versions: dict[int, int] = {}  # that each node has computed, by its last question


def read_journal(path: Path, federation: str) -> Journal:
    """An empty journal where there is none."""
    try:
        journal = msgspec.msgpack.decode(path.read_bytes(), type=Journal)
    except FileNotFoundError:
        return Journal(federation)
    except (OSError, msgspec.DecodeError) as problem:
        raise StorageError(f"{path}: cannot be read ({problem}); restore it, or begin a new journal") from None
    if (journal.version, journal.federation) != (VERSION, federation):
        raise StorageError(f"{path}: the journal of another federation, or of another version; use a file for each")
    return journal


def write_journal(path: Path, journal: Journal) -> Journal:
    write_durably(path, msgspec.msgpack.encode(journal))
    return journal


def steps_for(journal: Journal, client: int) -> bytes:
    """The steps that a node lacks, encoded."""
    known = journal.versions.get(client, -1)
    return msgspec.msgpack.encode([step for step in journal.steps if step.version > known][-MOST_STEPS:])


def window_of(waiting: ClosedRound, setup: TwoServers) -> Window:
    return Window(setup, waiting.round, waiting.ranker, waiting.keys)
