"""The parent's side of one child process: its socket, its unanswered requests, the time that it has left.

A child may have been taken over by a file. Nothing of a reply is used before it is bounded, and the size and the time
of a file never come from a reply. Descriptors that a child might send are not received.
"""

import contextlib
import math
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

import msgspec

from foltr.node.extract.formats import KINDS
from foltr.node.extract.keeper import Keeper
from foltr.node.extract.plain import clean
from foltr.node.extract.records import (
    Extracted,
    ExtractedDocument,
    Failure,
    Frames,
    FrameTooLong,
    Limits,
    Protections,
    Ready,
    Reply,
    Start,
    frame,
)

AnyPath = TypeVar("AnyPath", str, bytes, os.PathLike[str])

START_SECONDS = 120.0
_CHECKED_TOGETHER = 4  # files
_WHOLE_FILE = 10  # a mailbox may take this many times the timeout, which counts from one part of it to the next
_ENVIRONMENT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TZ")  # for the loader, and for dates without a time zone
_PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from foltr.node.extract.worker import main; main(int(sys.argv[1]))"

_decode = msgspec.msgpack.Decoder(Reply).decode
_decode_ready = msgspec.msgpack.Decoder(Ready).decode
_encode = msgspec.msgpack.Encoder().encode


class Ended(Exception):
    """A child has ended by itself."""


class InvalidReply(Exception):
    """A child sent what it never sends by itself: a file has taken it over."""


class Task(NamedTuple, Generic[AnyPath]):
    """A path as it was given and as it is opened."""

    path: AnyPath
    encoded: bytes
    retried: bool = False


class Child(Generic[AnyPath]):
    """A child process; it answers its tasks in order."""

    def __init__(self, start: Start, timeout: float, wake: int) -> None:
        """A byte is written to the descriptor `wake` when `results` has more."""
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = _started(theirs)
        self.socket = ours
        self.tasks: deque[Task[AnyPath]] = deque()
        self.files = 0  # answered
        self.growth = 0  # resident memory after the last file beyond that before the first, bytes
        self.protections: Protections | None = None  # None: not ready
        self._limits = start.limits
        self._timeout = timeout
        self._frames = Frames(longest_reply(start.limits))
        self._number = 0  # of the next request
        self._unanswered: deque[int] = deque()
        self._unchecked: list[int] = []
        self._answered: dict[int, Extracted | Failure] = {}  # and not yet checked
        self._outcomes: dict[int, Extracted | Failure] = {}
        self._memory = 0  # resident, before the first file
        self._documents: list[ExtractedDocument] = []  # of the oldest task, so far
        self._characters = 0
        self._left = START_SECONDS  # seconds that the parent still waits for the next answer
        self._left_for_file = math.inf
        self._keeper = Keeper(ours, wake)
        with contextlib.suppress(OSError):  # it has died: the next reading finds that out
            ours.sendall(frame(_encode(start)))

    @property
    def ready(self) -> bool:
        return self.protections is not None

    def give(self, tasks: list[Task[AnyPath]]) -> None:
        """Sends requests. Whether the child has died shows when it is read."""
        if not self.tasks and self.ready:
            self._restart_clock()
        requests = [(self._number + ahead, task.encoded) for ahead, task in enumerate(tasks)]
        self._number += len(tasks)
        self.tasks.extend(tasks)
        self._unanswered.extend(number for number, _ in requests)
        self._keeper.give(requests)

    def receive(self) -> None:
        """Reads answers that have arrived, and has their files checked. Raises Ended or InvalidReply."""
        try:
            piece = self.socket.recv(1 << 18)
        except OSError:
            piece = b""
        if not piece:
            raise Ended
        try:
            for message in self._frames.feed(piece):
                if not self.ready:
                    self._begin(_decode_ready(message))
                else:
                    self._answer(_decode(message))
        except (FrameTooLong, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            raise InvalidReply(str(problem)) from None
        if len(self._unchecked) >= _CHECKED_TOGETHER or not self._unanswered:
            self.check()

    def check(self) -> None:
        """Requests the check of files whose answers have arrived, several at once: each request wakes the thread."""
        if self._unchecked:
            self._keeper.check(self._unchecked)
            self._unchecked = []

    def results(self) -> Iterator[tuple[AnyPath, Extracted | Failure]]:
        """Tasks that are done, in order."""
        self._settle()
        while self.tasks and (result := self._outcomes.pop(self._oldest(), None)) is not None:
            yield self.tasks.popleft().path, result

    def guilty(self) -> int:
        """The position of the task that this child, or the thread that opens its files, is at work on."""
        number: int | None = self._unanswered[0] if self._unanswered else None
        if number is None or number > self._keeper.sent:
            number = self._keeper.busy if self._keeper.busy is not None else number
        position = 0 if number is None else number - self._oldest()
        return position if 0 <= position < len(self.tasks) else 0

    def is_checking(self) -> bool:
        """Whether files are being checked whose answers are there."""
        return bool(self._answered)

    def has_outcomes(self) -> bool:
        """Whether files were checked, or could not be opened, since `results` was called."""
        return bool(self._keeper.outcomes)

    def seconds_left(self) -> float:
        """Seconds that the parent still waits."""
        return min(self._left, self._left_for_file)

    def charge(self, seconds: float) -> None:
        """Counts time in which the parent waited; while its caller was busy, or all were suspended, none is counted."""
        self._left -= seconds
        self._left_for_file -= seconds

    def end(self, *, died: bool = False) -> int:
        """Ends the process and returns how it ended: below zero is a signal."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # also of the thread's duplicate
        self.socket.close()
        if not died:
            self.process.kill()
        self._keeper.end()
        try:
            return self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:  # it waits for a disk or a network drive, where no signal reaches it
            self.process.kill()
            return -signal.SIGKILL

    def _begin(self, ready: Ready) -> None:
        self.protections, self._memory = ready.protections, ready.memory
        self._restart_clock()

    def _answer(self, reply: Reply) -> None:
        self._settle()
        if not self._unanswered or not reply.number == self._unanswered[0] <= self._keeper.sent:
            raise InvalidReply("an answer to no request")
        self._collect(reply)
        if not reply.last:
            self._left = self._timeout
            return
        self.files += 1
        self.growth = reply.memory - self._memory
        failure = reply.failure and msgspec.structs.replace(reply.failure, reason=clean(reply.failure.reason))
        self._unchecked.append(self._unanswered.popleft())
        self._answered[reply.number] = failure or Extracted(
            self._documents, truncated=reply.truncated, secrets=reply.secrets
        )
        self._documents, self._characters = [], 0
        self._restart_clock()

    def _settle(self) -> None:
        """Takes over what the thread found out about files: a change while they were read outweighs an answer."""
        while self._keeper.outcomes:
            number, outcome = self._keeper.outcomes.popleft()
            result = self._answered.pop(number, None)
            if isinstance(outcome, Failure):
                self._outcomes[number] = outcome
                if result is None:  # it was not opened
                    self._unanswered.remove(number)
            elif result is not None:
                if isinstance(result, Extracted):
                    result.size, result.modified = outcome.size, outcome.modified
                self._outcomes[number] = result
            if self.ready:
                self._restart_clock()

    def _oldest(self) -> int:
        return self._number - len(self.tasks)

    def _collect(self, reply: Reply) -> None:
        if not reply.last and not reply.documents:
            raise InvalidReply("a part without documents")
        if reply.secrets > self._limits.messages:
            raise InvalidReply("more secrets than messages are read")
        for document in reply.documents:
            _check(document, self._limits)
        self._documents += reply.documents
        self._characters += sum(len(document.body) for document in reply.documents)
        most = self._limits.total_characters + self._limits.characters
        if self._characters > most or len(self._documents) > self._limits.messages:
            raise InvalidReply("more text than is allowed")

    def _restart_clock(self) -> None:
        self._left, self._left_for_file = self._timeout, _WHOLE_FILE * self._timeout


def longest_reply(limits: Limits) -> int:
    """Bytes of a frame: one document of four bytes a character beside a chunk of a mailbox, and its other fields."""
    return 4 * limits.characters + (16 << 20)


def _started(theirs: socket.socket) -> "subprocess.Popen[bytes]":
    entries = [entry for entry in sys.path if entry.startswith(os.sep)]  # not the current folder: it may be hostile
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "-I", "-X", "utf8", "-c", _PROGRAM, str(theirs.fileno()), *entries],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()], cwd="/", env=environment,
        start_new_session=True,  # no terminal to type into; Ctrl-C is for the parent, which decides about the file
    )  # fmt: skip


def _check(document: ExtractedDocument, limits: Limits) -> None:
    """Bounds a document; its short fields reach terminals, so control characters are taken out again."""
    if document.kind not in KINDS or len(document.body) > limits.characters:
        raise InvalidReply("a document that no extractor makes")
    document.title, document.sender = clean(document.title), clean(document.sender)
    document.recipients, document.part = clean(document.recipients), clean(document.part)
    if document.date is not None and not abs(document.date) < 1e11:
        document.date = None
