"""Extraction in child processes that are killed when they are late and replaced when they die.

The parent sends a few requests ahead, so that small files cost no waiting. Children work in order, so a death or a
delay is blamed on the oldest request without an answer; the others are given to the next child. A file whose child
died is tried once more, in a fresh child: another file may have damaged the first one.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections import deque
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, Self

from foltr.errors import FoltrError, InputError
from foltr.node.extract.child import AnyPath, Child, InvalidReply, Task
from foltr.node.extract.records import Extracted, Failure, Limits, Start

_AHEAD = 16  # requests that a child may have unanswered
_AHEAD_BYTES = 32_000  # of their paths: less than the buffer of a socket, so that sending never blocks
_PATH_BYTES = 4096  # the longest path that can be opened
_REPLACE_AFTER = 20_000  # files: parsers leak
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
        self._children: list[Child[Any]] = []
        self._selector = selectors.DefaultSelector()
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
            child = Child(self._start, self._timeout)
            self._children.append(child)
            self._selector.register(child.socket, selectors.EVENT_READ, child)
            self._give(child, queue)
        for child in self._children:
            if len(child.tasks) <= _AHEAD // 2 and not self._is_worn(child):
                self._give(child, queue)
        yield from queue.take_refused()

    def _give(self, child: Child[AnyPath], queue: _Queue[AnyPath]) -> None:
        tasks: list[Task[AnyPath]] = []
        size = sum(len(task.encoded) for task in child.tasks)
        while len(child.tasks) + len(tasks) < _AHEAD and size < _AHEAD_BYTES - _PATH_BYTES and queue.has_next():
            tasks.append(queue.take())
            size += len(tasks[-1].encoded)
        if tasks:
            child.give(tasks)

    def _receive(self, queue: _Queue[AnyPath]) -> Iterator[tuple[AnyPath, Extracted | Failure]]:
        """Reads what children have sent, or waits until the next deadline."""
        deadline = min(child.deadline for child in self._children if child.tasks)
        for key, _ in self._selector.select(max(0.0, deadline - time.monotonic())):
            child: Child[AnyPath] = key.data
            try:
                answers = child.receive()
            except InvalidReply as problem:
                yield from self._blame(child, queue, f"the child process sent an invalid answer ({problem})")
                continue
            if answers is None:
                yield from self._bury(child, queue)
                continue
            self._failed_starts = 0
            yield from answers

    def _end_late(self, queue: _Queue[AnyPath]) -> Iterator[tuple[AnyPath, Failure]]:
        now = time.monotonic()
        readable = {key.fileobj for key, _ in self._selector.select(0)}  # the caller, not the child, may have been slow
        for child in [child for child in self._children if child.tasks and child.deadline <= now]:
            if child.socket not in readable:
                yield from self._blame(child, queue, f"took longer than {self._timeout:g} s")

    def _bury(self, child: Child[AnyPath], queue: _Queue[AnyPath]) -> Iterator[tuple[AnyPath, Failure]]:
        """A child has ended by itself."""
        ended = self._drop(child, died=True)
        if not child.ready:
            self._failed_starts += 1
            if self._failed_starts == _STARTS:
                raise FoltrError(f"child processes for extraction cannot be started ({_ending(ended)})")
            queue.put_back(child.tasks)
        elif child.tasks and ended == -signal.SIGXCPU:
            seconds = self._limits.cpu_seconds
            yield from self._failed(child, queue, f"took more than {seconds} s of processor time")
        elif child.tasks and not child.tasks[0].retried:
            child.tasks[0] = child.tasks[0]._replace(retried=True)
            queue.put_back(child.tasks)
        elif child.tasks:
            yield from self._failed(child, queue, f"the child process ended ({_ending(ended)})")

    def _blame(self, child: Child[AnyPath], queue: _Queue[AnyPath], reason: str) -> Iterator[tuple[AnyPath, Failure]]:
        self._drop(child)
        if child.tasks:
            yield from self._failed(child, queue, reason)

    def _failed(self, child: Child[AnyPath], queue: _Queue[AnyPath], reason: str) -> Iterator[tuple[AnyPath, Failure]]:
        guilty = child.tasks.popleft()
        queue.put_back(child.tasks)
        yield guilty.path, Failure("failed", reason)

    def _drop(self, child: Child[Any], *, died: bool = False) -> int:
        self._children.remove(child)
        self._selector.unregister(child.socket)
        return child.end(died=died)

    def _is_worn(self, child: Child[Any]) -> bool:
        return child.memory > self._memory // 4 or child.files > _REPLACE_AFTER


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


def _ending(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
