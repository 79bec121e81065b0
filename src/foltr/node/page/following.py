"""The child process that keeps the index up to date while the page is served, at the lowest priority.

    python -m foltr.node.page.following '{"config": ..., "data": ..., "cache": ...}'

It is a process of its own, so that reading files never delays an answer. It writes its progress as lines of JSON to
its standard output and ends when its standard input is closed: a server that was killed leaves no process behind.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from foltr.errors import FoltrError
from foltr.node.places import Places

# what Python, its libraries and the folders of caches need; errors go to the server's standard error
_ENVIRONMENT = (
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME",
    "PYTHONUTF8", "TMPDIR", "TZ", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "FOLTR_CACHE", "FOLTR_NODE_HOME",
)  # fmt: skip
_AGAIN_SECONDS = 10.0  # until indexing is tried again
_END_SECONDS = 10.0  # until a child that does not end is killed; the index outlives that


class Following:
    """Starts, stops and listens to the child process."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._lock = threading.Lock()
        self._child: subprocess.Popen[str] | None = None
        self.state: dict[str, Any] = {}  # what the child said last, by name: phase, done, ..., mode, reason

    def start(self) -> None:
        with self._lock:
            self._start()

    def stop(self) -> None:
        """Ends the child; what it has indexed is kept."""
        with self._lock:
            self._stop()

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """No indexing inside of it; afterwards it begins anew, with the settings of then."""
        with self._lock:
            self._stop()
            try:
                yield
            finally:
                self._start()

    def look_again(self) -> None:
        """Scans all folders now, as every start does."""
        with self.stopped():
            pass

    def _start(self) -> None:
        arguments = json.dumps(
            {name: str(getattr(self._places, name)) for name in ("config", "data", "cache")}, allow_nan=False
        )
        self._child = subprocess.Popen(
            [sys.executable, "-m", __name__, arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        )  # fmt: skip
        threading.Thread(target=self._listen, args=(self._child,), daemon=True).start()

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        if child.stdin is not None:
            with contextlib.suppress(OSError):
                child.stdin.close()
        try:
            child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        self.state = {}

    def _listen(self, child: "subprocess.Popen[str]") -> None:
        assert child.stdout is not None
        with child.stdout as lines:
            for line in lines:
                if child is self._child:
                    self.state = {**self.state, **json.loads(line)}


def main(arguments: str) -> None:
    """Indexes, then follows changes, until standard input is closed."""
    from foltr.node import manners
    from foltr.node.watch import follow

    manners.lowest_priority()
    os.umask(0o077)  # tantivy merges files in threads of its own, also after the last commit
    places = Places(**{name: Path(value) for name, value in msgspec.json.decode(arguments).items()})
    ended = threading.Event()
    threading.Thread(target=_wait_for_the_end, args=(ended,), daemon=True).start()
    while not ended.is_set():
        try:
            for record in follow(places, ended):
                _tell(record._asdict())
                if ended.is_set():
                    break
        except FoltrError as problem:  # such as another process that indexes: it is tried again
            _tell({"phase": str(problem), "done": 0, "total": 0, "per_second": 0.0, "seconds_left": None})
            ended.wait(_AGAIN_SECONDS)


def _wait_for_the_end(ended: threading.Event) -> None:
    while sys.stdin.readline():
        pass
    ended.set()


_last: dict[str, Any] = {}


def _tell(record: dict[str, Any]) -> None:
    """Writes what is new: while nothing happens nothing is written, and the server sleeps."""
    if all(_last.get(name) == value for name, value in record.items()):
        return
    _last.update(record)
    with contextlib.suppress(OSError):  # nobody listens any more; standard input ends too
        sys.stdout.write(json.dumps(record, allow_nan=False) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
