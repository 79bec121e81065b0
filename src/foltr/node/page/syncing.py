"""Visits to the coordinators of this node's federations while the page is served, each in a process of its own.

    python -m foltr node sync --background

A process ends with its visit: the server keeps neither the cryptography nor the connection in memory. Where the node is
in no federation nothing is started. The command itself waits for mains power and an unmetered network.
"""

import contextlib
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable

from foltr.node import places as node_places
from foltr.node.places import Places

_LOG = logging.getLogger(__name__)
_FIRST_SECONDS = 60.0  # after the start of the server: whoever just logged in is served first
EVERY_SECONDS = 3600.0
_LONGEST_SECONDS = 600.0  # of a visit
COMMAND = ("node", "sync", "--background")


def is_member(places: Places) -> bool:
    """Whether this node joined a federation; reads names only."""
    return any((places.data / "federation").glob("*/membership"))


def _environment(places: Places) -> dict[str, str]:
    """That of the server, with the home of its node."""
    home = places.config.parent
    return {**os.environ, "FOLTR_NODE_HOME": str(home)} if node_places.find(home) == places else dict(os.environ)


class Syncing:
    """Visits at the start and every hour, in a thread that only waits. `wait` is for tests."""

    def __init__(
        self, places: Places, *, wait: Callable[[threading.Event, float], bool] = threading.Event.wait
    ) -> None:
        self._places, self._wait, self._ended = places, wait, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends a visit that is under way; the next one goes on from what it stored."""
        self._ended.set()
        child = self._child
        if child is not None:
            with contextlib.suppress(OSError):
                child.terminate()
        self._thread.join()

    def _run(self) -> None:
        pause = _FIRST_SECONDS
        while not self._wait(self._ended, pause):
            if is_member(self._places):
                self._visit()
            pause = EVERY_SECONDS

    def _visit(self) -> None:
        try:
            child = subprocess.Popen(
                [sys.executable, "-m", "foltr", *COMMAND], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, env=_environment(self._places),
            )  # fmt: skip
        except OSError as problem:  # no memory, or too many processes
            _LOG.warning("a visit to the coordinator could not be started (%s)", problem.strerror)
            return
        self._child = child
        if self._ended.is_set():
            child.terminate()
        try:
            code = child.wait(_LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            code = child.wait()
        if code and not self._ended.is_set():  # the reason is in `foltr node sync --why`, and in no log
            _LOG.warning("a visit to the coordinator ended with exit code %d", code)
