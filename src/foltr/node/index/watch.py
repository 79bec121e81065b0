"""Following changes while the node serves: events from the system where it allows enough watches, rescans elsewhere.

Each folder that a scan enters takes one watch; excluded folders take none. A user has a limited number of them
(`fs.inotify.max_user_watches`), which other programs need too, so the node takes half at most. Beyond that, and where
watching fails, everything is scanned again at intervals, and the status says so.

    for record in follow(places, stop): ...       # Status (also every idle second) and Progress, until `stop` is set
"""

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from foltr.node import settings as node_settings
from foltr.node.index import background
from foltr.node.index.backoff import Backoff
from foltr.node.index.indexing import Indexer, Progress, indexer
from foltr.node.index.rules import IGNORE_FILES
from foltr.node.places import Places

_LIMIT_FILE = Path("/proc/sys/fs/inotify/max_user_watches")
_SHARE = 0.5
_DEBOUNCE_MS, _STEP_MS = 1000, 100  # changes that follow each other are one batch
_MODIFIED = 2  # `watchfiles.Change.modified`: neither a new nor a deleted file
_LOOK_MS = 1000  # how often settings, pause and power are looked at
_RESCAN_SECONDS = 60.0  # without watches
_SAFETY_SECONDS = 3600.0  # with watches: network folders and lost events


class Status(NamedTuple):
    """Settings of following changes."""

    mode: str  # "watching" or "rescanning"
    folders: int
    limit: int  # watches that the node may take
    reason: str | None


def watch_limit(limit_file: Path = _LIMIT_FILE) -> int:
    """Watches that the node may take; 0 where the system does not say."""
    try:
        return int(int(limit_file.read_text("ascii")) * _SHARE)
    except (OSError, ValueError):
        return 0


def follow(
    places: Places,
    stop: threading.Event,
    *,
    limit: int | None = None,
    rescan_seconds: float = _RESCAN_SECONDS,
    followed: Callable[[], Collection[str]] = tuple,
) -> Iterator[Status | Progress]:
    """Reconciles the index, then follows changes until `stop` is set; `followed` as for `Indexer`."""
    settings = node_settings.load(places.settings_file)
    with indexer(places, settings, followed) as opened:
        yield from _Follower(opened, stop, watch_limit() if limit is None else limit, rescan_seconds).run()


class _Follower:
    def __init__(self, opened: Indexer, stop: threading.Event, limit: int, rescan_seconds: float) -> None:
        self._indexer, self._stop, self._limit = opened, stop, limit
        self._rescan_seconds = rescan_seconds
        self._settings_stamp = node_settings.stamp(self._indexer.places.settings_file)
        self._pending: set[str] | None = None  # folders to scan; None: everything
        self._previous: Iterator[set[Any]] | None = None  # watches of the folders before they changed
        self._last_scan = 0.0
        self._backoff = Backoff()

    def run(self) -> Iterator[Status | Progress]:
        while not self._stop.is_set():
            folders = self._folders()
            status = self._status(folders)
            if status.mode == "watching":
                yield from self._follow(folders, status)
            else:
                yield from self._index()
                if self._status(self._folders()).mode == "watching":
                    self._pending = None  # what changed since that scan raised no event: once more, after the watches
                else:
                    yield self._status(self._folders())
                    self._wait()

    def _index(self) -> Iterator[Progress]:
        """Indexes what changed, unless indexing is to wait."""
        held = background.hold_reason(self._indexer.places, self._indexer.settings)
        if held:
            yield Progress(held, 0, 0, 0.0, None)
            return
        folders, self._pending = self._pending, set()
        if folders is None:
            self._last_scan = time.monotonic()
        if folders is None or folders:
            yield from self._indexer.run(folders)

    def _follow(self, folders: list[str], status: Status) -> Iterator[Status | Progress]:
        """Follows events; returns when the set of folders has changed, so that it is watched anew. Folders are scanned
        after they are watched: what happens in between raises an event."""
        events = self._events(folders)
        for changes in events:
            if self._previous is not None:  # what happened until the new watches were there
                self._note(next(self._previous, set()))
                self._previous = None
            self._note(changes)
            self._look()
            yield from self._index()
            self._indexer.look_at_followed()
            after = self._folders()
            if after != folders:
                self._previous = events
                if self._pending is not None:
                    self._pending |= set(after).difference(folders)
                return
            yield status

    def _events(self, folders: list[str]) -> Iterator[set[Any]]:
        """Changes as they come, and an empty set every second; ends when watching fails or is to stop."""
        from watchfiles import watch

        events = watch(
            *folders,
            watch_filter=None,
            debounce=_DEBOUNCE_MS,
            step=_STEP_MS,
            stop_event=self._stop,
            rust_timeout=_LOOK_MS,
            yield_on_timeout=True,
            recursive=False,
            ignore_permission_denied=True,
        )
        while not self._stop.is_set():
            try:
                yield next(events)
            except StopIteration:
                return
            except (OSError, RuntimeError):  # the system refuses: rescans from now on
                self._limit, self._pending = 0, None
                return

    def _note(self, changes: set[Any]) -> None:
        """The folders of changed files; rules that changed concern everything below. A file that changes all the time
        waits (`backoff`)."""
        now = time.monotonic()
        read_now = [path for kind, path in changes if kind != _MODIFIED or self._backoff.changed(path, now)]
        for path in [*read_now, *self._backoff.due(now)]:
            folder, _, name = path.rpartition("/")
            if name in IGNORE_FILES:
                self._pending = None
            if self._pending is not None:
                self._pending.add(folder or "/")

    def _look(self) -> None:
        """Takes over changed settings; asks for a whole scan when one is due."""
        stamp = node_settings.stamp(self._indexer.places.settings_file)
        if stamp != self._settings_stamp:
            self._settings_stamp = stamp
            self._indexer.use(node_settings.load(self._indexer.places.settings_file))
            self._pending = None
        if time.monotonic() - self._last_scan > _SAFETY_SECONDS:
            self._pending = None

    def _wait(self) -> None:
        self._stop.wait(self._rescan_seconds)
        self._look()
        self._pending = None

    def _folders(self) -> list[str]:
        """Folders that a scan enters, and for roots that are files the folder of each."""
        rows = self._indexer.writer.connection.execute("SELECT DISTINCT path FROM folders ORDER BY path")
        return [os.fsdecode(path) for (path,) in rows]

    def _status(self, folders: list[str]) -> Status:
        reason = None
        if not folders:
            reason = "there is nothing to watch"
        elif self._limit == 0:
            reason = "the system offers no watches"
        elif len(folders) > self._limit:
            reason = (
                f"{len(folders)} folders and {self._limit} watches: raise fs.inotify.max_user_watches to "
                f"{int(2 * len(folders) / _SHARE)} to see changes at once"
            )
        mode = "rescanning" if reason else "watching"
        return Status(mode, len(folders), self._limit, reason)
