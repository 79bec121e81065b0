"""The child process that keeps the index up to date while the page is served, at a low priority.

    python -m foltr.node.page.following '{"config": ..., "data": ..., "cache": ..., "state": ...}'

It is a process of its own, so that reading files never delays an answer. It writes its progress as lines of JSON to
its standard output and ends when its standard input is closed: a server that was killed leaves no process behind.
However it dies, it is started again, after a second at first and later with each death in a row, and `follower` tells
every process that it died and why.
"""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from foltr.errors import FoltrError
from foltr.node.extract.file_version import reason_of, reason_text
from foltr.node.index import follower
from foltr.node.page.server_log import limited_log
from foltr.node.places import Places

if TYPE_CHECKING:
    from foltr.node.learning.log import Log

_LOG = logging.getLogger(__name__)
_FIRST_SECONDS, _LONGEST_SECONDS = 1.0, 300.0  # until a child that died is started again: twice as long each time
_STEADY_SECONDS = 600.0  # a child that lived so long had not failed for the reason of the one before
_LAST_WORDS_SECONDS = 5.0  # until what a dead child said has been read
# what Python, its libraries and the folders of caches need; errors go to the server's standard error
_ENVIRONMENT = (
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME",
    "PYTHONUTF8", "TMPDIR", "TZ", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "FOLTR_CACHE", "FOLTR_NODE_HOME", "FOLTR_LOG",
)  # fmt: skip
_AGAIN_SECONDS = 10.0  # until indexing is tried again
_END_SECONDS = 10.0  # until a child that does not end is killed; the index outlives that


class Following:
    """Starts, stops and listens to the child process, and starts it again when it dies. `clock` and `wait` are for
    tests: the time, and waiting for an event or so many seconds."""

    def __init__(
        self,
        places: Places,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[threading.Event, float], bool] = threading.Event.wait,
    ) -> None:
        self._places, self._clock, self._wait = places, clock, wait
        self._lock = threading.Lock()
        self._child: subprocess.Popen[str] | None = None
        self._ended = threading.Event()  # set when the child, or the wait for its next start, is to end
        self._deaths, self._problem = 0, ""
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
        self.state, self._ended, began = {}, threading.Event(), self._clock()
        try:
            self._child = self._new_child()
        except OSError as problem:  # no memory, or too many processes
            self._note_death(f"the process that follows changes cannot be started ({problem.strerror})", 0.0)
            return
        listening = threading.Thread(target=self._listen, args=(self._child,), daemon=True)
        listening.start()
        self._write(follower.process(self._child.pid))
        threading.Thread(target=self._await_death, args=(self._child, listening, began), daemon=True).start()

    def _new_child(self) -> "subprocess.Popen[str]":
        arguments = json.dumps(
            {name: str(folder) for name, folder in msgspec.structs.asdict(self._places).items()}, allow_nan=False
        )
        return subprocess.Popen(
            [sys.executable, "-m", __name__, arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        )  # fmt: skip

    def _stop(self) -> None:
        self._ended.set()
        child, self._child = self._child, None
        if child is not None:
            if child.stdin is not None:
                with contextlib.suppress(OSError):
                    child.stdin.close()
            try:
                child.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self.state = {}
        with contextlib.suppress(OSError):
            follower.remove(self._places, follower.process(os.getpid()))

    def _listen(self, child: "subprocess.Popen[str]") -> None:
        assert child.stdout is not None
        with child.stdout as lines:
            for line in lines:
                with contextlib.suppress(ValueError):  # a line that a library printed
                    said = json.loads(line)
                    if child is self._child and isinstance(said, dict):
                        self.state = {**self.state, **said}

    def _await_death(self, child: "subprocess.Popen[str]", listening: threading.Thread, began: float) -> None:
        code = child.wait()
        lifetime = self._clock() - began
        listening.join(_LAST_WORDS_SECONDS)
        with self._lock:
            if child is self._child:  # it was not ended by `stop`
                self._child = None
                if child.stdin is not None:
                    with contextlib.suppress(OSError):
                        child.stdin.close()
                self._note_death(_ending(code, str(self.state.get("error", ""))), lifetime)

    def _note_death(self, problem: str, lifetime: float) -> None:
        """Tells that the child died, and why; starts another one after a while."""
        self._deaths = 1 if lifetime >= _STEADY_SECONDS else self._deaths + 1
        self._problem, self.state = reason_text(problem), {}
        delay = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2 ** min(self._deaths - 1, 30))
        # the reason may name a file: it is in the status, which is this person's, and not in a log
        _LOG.warning("indexing ended after %.0f s, %d times in a row; again in %.0f s", lifetime, self._deaths, delay)
        self._write(None, again=time.time() + delay)
        threading.Thread(target=self._start_later, args=(self._ended, delay), daemon=True).start()

    def _start_later(self, ended: threading.Event, delay: float) -> None:
        if not self._wait(ended, delay):
            with self._lock:
                if ended is self._ended and not ended.is_set():
                    self._start()

    def _write(self, child: follower.Process | None, again: float | None = None) -> None:
        server = follower.process(os.getpid())
        record = follower.Record(server, child, self._deaths, self._problem, again)
        with contextlib.suppress(OSError, FoltrError):  # on a full disk, readers see that the process is dead
            follower.write(self._places, record)


def _ending(code: int, last_words: str) -> str:
    """Describes in words how a process ended."""
    try:
        ended = f"ended with exit code {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        ended = f"was killed by signal {-code}"
    return f"the process that follows changes {ended}" + (f": {last_words}" if last_words else "")


def main(arguments: str) -> None:
    """Indexes, then follows changes, until standard input is closed."""
    from foltr.node.index import background
    from foltr.node.index.watch import follow
    from foltr.node.learning import renames
    from foltr.node.learning.log import Log

    background.low_priority()
    os.umask(0o077)  # tantivy merges files in threads of its own, also after the last commit
    places = Places(**{name: Path(value) for name, value in msgspec.json.decode(arguments).items()})
    ended = threading.Event()
    threading.Thread(target=_wait_for_the_end, args=(ended,), daemon=True).start()
    log = Log(places.data / "log.sqlite")
    while not ended.is_set():
        try:
            for record in follow(places, ended, followed=_Followed(log)):
                said = record._asdict()
                moved = said.pop("moved", ())
                if moved:
                    renames.follow(log, moved)
                _tell(said)
                if ended.is_set():
                    break
        except FoltrError as problem:  # such as another process that indexes: it is tried again
            _tell({"phase": str(problem), "done": 0, "total": 0, "per_second": 0.0, "seconds_left": None})
            ended.wait(_AGAIN_SECONDS)
        except Exception as problem:  # the server starts another process, which nothing of this one has confused
            _tell({"error": reason_of(problem)})
            with limited_log():  # without the message, which may name a file
                _LOG.exception("indexing failed")
            sys.exit(1)


class _Followed:
    """The files that the log names; the same list until the log changes."""

    def __init__(self, log: "Log") -> None:
        self._log = log
        self._state: tuple[Any, ...] = ()
        self._paths: list[str] = []

    def __call__(self) -> list[str]:
        from foltr.node.learning import renames

        state = self._log.state()
        if state != self._state:
            self._state, self._paths = state, renames.followed_paths(self._log)
        return self._paths


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
