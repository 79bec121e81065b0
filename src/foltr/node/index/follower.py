"""Whether changes of files are followed, as any process can tell.

The server of the page starts the process that follows changes (the follower) and starts it again when it dies. It
writes to a file of its own in the node's data (`following-NUMBER.json`, the number of its process) which processes
these are and how the last follower ended; the status, which another process may ask for, also looks whether they are
alive. The file is there while a server follows changes: one of a server that was killed says so, until another starts.
Of several servers one indexes at a time, and the others wait for it.
"""

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

import msgspec

from foltr.files import write_json
from foltr.node.places import Places

_GONE = "the server of the page, which follows changes, was killed; start it again: foltr node serve"


class Process(msgspec.Struct, frozen=True):
    """A process by its number, which may be used again, and by when it started."""

    number: int
    started: str = ""  # in ticks of the system since it booted; empty where it does not say


class Record(msgspec.Struct, frozen=True):
    """State of the follower, as the server writes it."""

    server: Process
    follower: Process | None  # None: it died and waits for its next start
    deaths: int = 0  # in a row
    problem: str = ""  # how the last one ended
    again: float | None = None  # seconds since 1970: when it is started again


class Follower(NamedTuple):
    """Whether changes are followed."""

    running: bool
    deaths: int  # in a row
    problem: str  # why it does not run, or how the one before it ended; empty where none died
    again: float | None  # seconds since 1970: when it is started again


def write(places: Places, record: Record) -> None:
    """Stores the record of a server; records of servers that are gone are deleted."""
    for file, other in _records(places):
        if not is_alive(other.server):
            file.unlink(missing_ok=True)
    write_json(_file(places, record.server), msgspec.to_builtins(record), private=True)


def remove(places: Places, server: Process) -> None:
    _file(places, server).unlink(missing_ok=True)


def read(places: Places) -> Follower | None:
    """Whether one of the servers follows changes; None where no server does."""
    every = [_follower(record) for _, record in _records(places)]
    return max(every, key=lambda follower: (follower.running, follower.problem != _GONE), default=None)


def indexing_server(places: Places) -> int | None:
    """The number of the server whose follower indexes; None where no server's does."""
    try:
        owner = (places.cache / "index.lock").read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    followers = {str(record.follower.number): record.server for _, record in _records(places) if record.follower}
    return followers[owner].number if owner in followers else None


def _follower(record: Record) -> Follower:
    if not is_alive(record.server):
        return Follower(False, record.deaths, _GONE, None)
    if record.follower is not None and is_alive(record.follower):
        return Follower(True, record.deaths, record.problem, None)
    if record.follower is not None:  # it died just now
        return Follower(False, record.deaths + 1, "the process that follows changes has ended", None)
    return Follower(False, record.deaths, record.problem, record.again)


def _records(places: Places) -> list[tuple[Path, Record]]:
    records = []
    for file in sorted(places.data.glob("following*.json")):  # also the one file of earlier versions
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            records.append((file, msgspec.json.decode(file.read_bytes(), type=Record)))
    return records


def process(number: int) -> Process:
    _, started = _system_entry(number)
    return Process(number, started)


def is_alive(process: Process) -> bool:
    state, started = _system_entry(process.number)
    if started:
        return state not in ("Z", "X") and started == process.started
    try:
        os.kill(process.number, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return not process.started  # a system that tells when processes started knows none of this number


def _system_entry(number: int) -> tuple[str, str]:
    """State and start of a process, as Linux tells; empty where it does not."""
    try:
        text = Path(f"/proc/{number}/stat").read_text("utf-8", "replace")
    except OSError:
        return "", ""
    fields = text.rpartition(")")[2].split()  # the name of the program, in parentheses, may have spaces
    return fields[0], fields[19]


def _file(places: Places, server: Process) -> Path:
    return places.data / f"following-{server.number}.json"
