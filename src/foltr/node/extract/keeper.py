"""Opens the files of one child, passes their descriptors to it, and checks and closes them after its answers.

This happens in a thread of its own, because a network drive that does not answer never returns from a call. The pool
then gives up the thread together with its child; the thread closes what it holds when the drive answers again.
"""

import contextlib
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

import msgspec

from foltr.node.extract.files import OpenedFile, check_unchanged, open_regular, refused
from foltr.node.extract.records import Failure, Refused, Request, frame

_SEND_AFTER = 0.05  # seconds that a file which is open waits for the next ones to be opened

_encode = msgspec.msgpack.Encoder().encode


class Keeper:
    """Owns the descriptors of a child's files, from opening to the answer. Files are named by number of request."""

    def __init__(self, channel: socket.socket, wake: int) -> None:
        """`channel` leads to the child; a byte is written to the descriptor `wake` when there are outcomes."""
        self.outcomes: deque[tuple[int, OpenedFile | Failure]] = deque()  # could not be opened, or were checked
        self.busy: int | None = None  # the file that is being opened or checked
        self.sent = -1  # the last file that was passed to the child
        self._channel = channel.dup()  # closed by this thread, so that a late message cannot reach another socket
        self._wake = wake
        self._files: dict[int, OpenedFile] = {}
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()  # between writing to `wake` and ending
        self._ended = False
        threading.Thread(target=self._run, name="foltr-files", daemon=True).start()

    def give(self, requests: list[tuple[int, bytes]]) -> None:
        """Opens files and passes them to the child."""
        self._jobs.put(lambda: self._give(requests))

    def check(self, numbers: list[int]) -> None:
        """Compares files with what they were when they were opened, and closes them."""
        self._jobs.put(lambda: self._check(numbers))

    def end(self) -> None:
        """Closes all files. Nothing is written to `wake` afterwards."""
        with self._lock:
            self._ended = True
        self._jobs.put(None)
        if self.busy is not None:  # the thread may never return: another one closes the rest
            threading.Thread(target=self._close_all, daemon=True).start()

    def _run(self) -> None:
        try:
            with self._channel:
                while (job := self._jobs.get()) is not None and not self._ended:
                    job()
        finally:
            self._close_all()

    def _give(self, requests: list[tuple[int, bytes]]) -> None:
        opened: list[tuple[int, bytes]] = []
        since = time.monotonic()
        for number, path in requests:
            self.busy = number
            try:
                file = open_regular(path)
            except Refused as problem:
                self._tell([(number, problem.failure)])
                continue
            self._files[number] = file
            if self._ended:
                return
            opened.append((number, path.rpartition(b"/")[2]))
            if time.monotonic() - since > _SEND_AFTER:
                self._send(opened)
                opened, since = [], time.monotonic()
        self.busy = None
        self._send(opened)

    def _send(self, opened: list[tuple[int, bytes]]) -> None:
        files = [self._files[number] for number, _ in opened if number in self._files]
        if not files or len(files) < len(opened):  # nothing to send, or it was given up
            return
        messages = [
            frame(_encode(Request(number, name, file.size))) for (number, name), file in zip(opened, files, strict=True)
        ]
        self.sent = opened[-1][0]
        try:
            message = b"".join(messages)
            done = socket.send_fds(self._channel, [message], [file.descriptor for file in files])
            self._channel.sendall(message[done:])
        except ConnectionError:
            return  # the child has died: the next reading finds that out
        except OSError as problem:  # too many descriptors are on their way
            self._tell([(number, refused(problem).failure) for number, _ in opened])
            for number, _ in opened:
                self._close(number)

    def _check(self, numbers: list[int]) -> None:
        verdicts: list[tuple[int, OpenedFile | Failure]] = []
        for number in numbers:
            self.busy = number
            file = self._files.pop(number, None)
            if file is None:  # it was given up while it was at work on the file before, and the rest is closed
                return
            try:
                check_unchanged(file)
                verdicts.append((number, file))
            except Refused as problem:
                verdicts.append((number, problem.failure))
            finally:
                os.close(file.descriptor)
        self.busy = None
        self._tell(verdicts)

    def _tell(self, outcomes: list[tuple[int, OpenedFile | Failure]]) -> None:
        self.outcomes.extend(outcomes)
        with self._lock, contextlib.suppress(BlockingIOError):  # full of earlier bytes: the pool is awake
            if not self._ended:
                os.write(self._wake, b"\0")

    def _close(self, number: int) -> None:
        file = self._files.pop(number, None)
        if file is not None:
            os.close(file.descriptor)

    def _close_all(self) -> None:
        for number in list(self._files):
            self._close(number)
