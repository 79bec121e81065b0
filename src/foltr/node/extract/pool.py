"""Extraction in child processes that are killed when they are late and replaced when they die.

The parent opens files and sends a few requests ahead, so that small files cost no waiting. Children work in order, so a
death or a delay is blamed on the oldest request without an answer; the others are given to the next child. A file whose
child died is tried once more, in a fresh child: another file may have damaged the first one.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import selectors
import signal
import time
from collections import deque
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, Self

from foltr.errors import FoltrError, InputError
from foltr.node.extract.child import AnyPath, Child, Ended, InvalidReply, Task
from foltr.node.extract.records import Extracted, Failure, Limits, Protections, Start

_AHEAD = 16  # requests that a child may have unanswered: files that are open, and fit into the buffer of a socket
_PATH_BYTES = 4096  # the longest path that can be opened
_REPLACE_AFTER = 20_000  # files: parsers leak
_SLICE = 1.0  # seconds of waiting at once: a machine that was suspended costs a child no more than this
_STARTS = 3  # children in a row that end before they are ready


class Extractor:
    """A pool of child processes. They start with the first file; `close` ends them, and a later file starts new ones.

    `timeout`: seconds of wall-clock time for one file (for one part of a mailbox); `memory`: bytes of address space of
    a child.
    """

    def __init__(
        self, workers: int = 1, *, timeout: float = 60.0, memory: int = 1 << 30, limits: Limits | None = None
    ) -> None:
        if workers < 1 or timeout <= 0 or memory < 128 << 20:
            raise InputError(
                f"Extractor(workers={workers}, timeout={timeout:g}, memory={memory}): give at least one worker, "
                "a positive timeout and 128 MB of memory"
            )
        self._workers, self._timeout, self._memory = workers, timeout, memory
        self._limits = limits or Limits()
        self._start = Start(self._limits, memory, 12 * timeout)
        self.protections: Protections | None = None  # of the last child that became ready
        self._children: list[Child[Any]] = []
        self._selector = selectors.DefaultSelector()
        self._awake = self._wake = -1  # a pipe, while there are children: threads that open files write to it
        self._ahead = _ahead(workers)
        self._failed_starts = 0
        self._running = False

    def extract(self, paths: Iterable[AnyPath]) -> Iterator[tuple[AnyPath, Extracted | Failure]]:
        """The documents of each file, or why it has none, as children finish; one worker keeps the order of paths."""
        if self._running:
            raise InputError("this Extractor is already extracting: exhaust or close the first iterator")
        self._running = True
        queue = _Queue(paths)
        try:
            while True:
                yield from self._feed(queue)
                if not any(child.tasks for child in self._children):
                    return
                yield from self._receive(queue)
                for child in self._children:
                    yield from child.results()
                yield from self._end_late(queue)
        finally:
            self._running = False
            for child in [child for child in self._children if child.tasks]:  # the caller has had enough
                self._drop(child)

    def processes(self) -> list[int]:
        """Process numbers of the children that are running."""
        return [child.process.pid for child in self._children]

    def close(self) -> None:
        """Ends all children."""
        for child in list(self._children):
            self._drop(child)
        if self._wake >= 0:
            self._selector.unregister(self._awake)
            os.close(self._awake)
            os.close(self._wake)
            self._awake = self._wake = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
        self._selector.close()

    def _feed(self, queue: _Queue[AnyPath]) -> Iterator[tuple[AnyPath, Failure]]:
        """Gives each child as many requests as it may have; starts children while there is work for them."""
        for child in list(self._children):
            if not child.tasks and self._is_worn(child):
                self._drop(child)
        while len(self._children) < self._workers and queue.has_next():
            self._give(self._add_child(), queue)
        for child in self._children:
            if len(child.tasks) <= self._ahead // 2 and not self._is_worn(child):
                self._give(child, queue)
        yield from queue.take_refused()

    def _add_child(self) -> Child[Any]:
        if self._wake < 0:
            self._awake, self._wake = os.pipe()
            for end in (self._awake, self._wake):
                os.set_blocking(end, False)
            self._selector.register(self._awake, selectors.EVENT_READ)
        child: Child[Any] = Child(self._start, self._timeout, self._wake)
        self._children.append(child)
        self._selector.register(child.socket, selectors.EVENT_READ, child)
        return child

    def _give(self, child: Child[AnyPath], queue: _Queue[AnyPath]) -> None:
        tasks: list[Task[AnyPath]] = []
        while len(child.tasks) + len(tasks) < self._ahead and queue.has_next():
            tasks.append(queue.take())
        if tasks:
            child.give(tasks)

    def _receive(self, queue: _Queue[AnyPath]) -> Iterator[tuple[AnyPath, Extracted | Failure]]:
        """Waits for what children send and reads it; charges those that are at work with the time."""
        busy = [child for child in self._children if child.tasks]
        wait = max(0.0, min(_SLICE, *(child.seconds_left() for child in busy)))
        began = time.monotonic()
        ready = self._selector.select(wait)
        waited = min(wait, time.monotonic() - began)
        heard = [key.data for key, _ in ready]
        for child in busy:
            child.charge(waited)
            if child not in heard:  # it may be at work on its next file for long
                child.check()
        for key, _ in ready:
            child = key.data
            if child is None:
                self._sleep_again()
                continue
            try:
                child.receive()
                self._failed_starts = 0
                self.protections = child.protections or self.protections
            except InvalidReply as problem:
                yield from self._last_results(child)
                self._drop(child)
                yield from self._again(child, queue, f"the child process sent an invalid answer ({problem})")
            except Ended:
                yield from self._last_results(child)
                yield from self._bury(child, queue)

    def _last_results(self, child: Child[AnyPath]) -> Iterator[tuple[AnyPath, Extracted | Failure]]:
        """Results of a child that ends: those files count as answered, so that none of them is blamed for its end."""
        child.check()
        end = time.monotonic() + self._timeout
        waiting = select.poll()
        waiting.register(self._awake, select.POLLIN)
        yield from child.results()
        while child.is_checking() and (left := end - time.monotonic()) > 0:
            waiting.poll(1000 * left)
            self._sleep_again()
            yield from child.results()

    def _sleep_again(self) -> None:
        """Empties the pipe; the outcomes that it announced are taken after every waiting."""
        with contextlib.suppress(BlockingIOError):  # it was emptied while the last results of a child were awaited
            os.read(self._awake, 1 << 12)

    def _end_late(self, queue: _Queue[AnyPath]) -> Iterator[tuple[AnyPath, Failure]]:
        for child in [child for child in self._children if child.tasks and child.seconds_left() <= 0]:
            if not child.has_outcomes() and not self._has_sent(child):
                self._drop(child)
                yield from self._failed(child, queue, f"took longer than {self._timeout:g} s")

    def _has_sent(self, child: Child[Any]) -> bool:
        return any(key.data is child for key, _ in self._selector.select(0))

    def _bury(self, child: Child[AnyPath], queue: _Queue[AnyPath]) -> Iterator[tuple[AnyPath, Failure]]:
        """A child has ended by itself."""
        ended = self._drop(child, died=True)
        if not child.ready:
            self._failed_starts += 1
            if self._failed_starts == _STARTS:
                raise FoltrError(f"child processes for extraction cannot be started ({_ending(ended)})")
            queue.put_back(child.tasks)
            return
        if ended == -signal.SIGXCPU:
            seconds = self._limits.cpu_seconds
            yield from self._failed(child, queue, f"took more than {seconds} s of processor time")
        else:
            yield from self._again(child, queue, f"the child process ended ({_ending(ended)})")

    def _again(self, child: Child[AnyPath], queue: _Queue[AnyPath], reason: str) -> Iterator[tuple[AnyPath, Failure]]:
        """Gives the guilty task of a child to another one, the first time; the second time it has failed."""
        at = child.guilty()
        if child.tasks and not child.tasks[at].retried:
            child.tasks[at] = child.tasks[at]._replace(retried=True)
            queue.put_back(child.tasks)
        else:
            yield from self._failed(child, queue, reason)

    def _failed(self, child: Child[AnyPath], queue: _Queue[AnyPath], reason: str) -> Iterator[tuple[AnyPath, Failure]]:
        """The guilty task of a child has failed; the others go back."""
        if child.tasks:
            at = child.guilty()
            guilty = child.tasks[at]
            del child.tasks[at]
            queue.put_back(child.tasks)
            yield guilty.path, Failure("failed", reason)

    def _drop(self, child: Child[Any], *, died: bool = False) -> int:
        self._children.remove(child)
        self._selector.unregister(child.socket)
        return child.end(died=died)

    def _is_worn(self, child: Child[Any]) -> bool:
        return child.growth > self._memory // 4 or child.files > _REPLACE_AFTER


class _Queue(Generic[AnyPath]):
    """Paths to do, those first that a child had and did not answer."""

    def __init__(self, paths: Iterable[AnyPath]) -> None:
        self._paths: Iterator[AnyPath] = iter(paths)
        self._next: deque[Task[AnyPath]] = deque()
        self._refused: list[tuple[AnyPath, Failure]] = []

    def has_next(self) -> bool:
        while not self._next:
            for path in self._paths:
                self._add(path)
                break
            else:
                return False
        return True

    def take(self) -> Task[AnyPath]:
        return self._next.popleft()

    def put_back(self, tasks: deque[Task[AnyPath]]) -> None:
        self._next.extendleft(reversed(tasks))

    def take_refused(self) -> list[tuple[AnyPath, Failure]]:
        refused, self._refused = self._refused, []
        return refused

    def _add(self, path: AnyPath) -> None:
        encoded = os.path.join(os.getcwdb(), os.fsencode(path))  # noqa: PTH118, PTH109 - bytes: any name is possible
        if len(encoded) >= _PATH_BYTES or b"\0" in encoded:
            self._refused.append((path, Failure("failed", "not a path that can be opened")))
        else:
            self._next.append(Task(path, encoded))


def _ahead(workers: int) -> int:
    """Requests ahead of each child: half of the descriptors that this process may still open are for other things."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return _AHEAD
    try:
        in_use = len(os.listdir("/dev/fd"))  # noqa: PTH208 - names only
    except OSError:
        in_use = 0
    return max(1, min(_AHEAD, (allowed - in_use) // 2 // workers))


def _ending(code: int) -> str:
    """Describes in words how a process ended."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
