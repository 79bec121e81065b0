"""The parent's side of one child process: its socket, its unanswered requests, the time that it has left."""

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
from foltr.node.extract.frames import Frames, FrameTooLong, frame
from foltr.node.extract.records import Extracted, ExtractedDocument, Failure, Limits, Reply, Request, Start

AnyPath = TypeVar("AnyPath", str, bytes, os.PathLike[str])

START_SECONDS = 120.0
_WHOLE_FILE = 10  # a mailbox may take this many times the timeout, which counts from one part of it to the next
_ENVIRONMENT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "TZ")  # nothing else of the parent's is told
_PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from foltr.node.extract.worker import main; main(int(sys.argv[1]))"

_decode = msgspec.msgpack.Decoder(Reply).decode
_encode = msgspec.msgpack.Encoder().encode


class Ended(Exception):
    """A child has ended by itself."""


class InvalidReply(Exception):
    """A child sent what it never sends by itself: a file has taken it over."""


class Task(NamedTuple, Generic[AnyPath]):
    """A path as it was given and as it is sent."""

    path: AnyPath
    encoded: bytes
    retried: bool = False


class Child(Generic[AnyPath]):
    """A child process; it answers its tasks in order."""

    def __init__(self, start: Start, timeout: float) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = _started(theirs)
        self.socket = ours
        self.tasks: deque[Task[AnyPath]] = deque()
        self.files = 0  # answered
        self.memory = 0  # resident, after the last file, bytes
        self.ready = False
        self._limits = start.limits
        self._timeout = timeout
        self._frames = Frames(longest_reply(start.limits))
        self._number = 0  # of the next request
        self._documents: list[ExtractedDocument] = []  # of the oldest task, so far
        self._characters = 0
        self._left = START_SECONDS  # seconds that the parent still waits for the next answer
        self._left_for_file = math.inf
        self._send(frame(_encode(start)))

    def give(self, tasks: list[Task[AnyPath]]) -> None:
        """Sends requests; a child that has died says so when it is read."""
        if not self.tasks and self.ready:
            self._restart_clock()
        requests = [Request(self._number + ahead, task.encoded) for ahead, task in enumerate(tasks)]
        self._number += len(tasks)
        self.tasks.extend(tasks)
        self._send(b"".join(frame(_encode(request)) for request in requests))

    def receive(self) -> Iterator[tuple[AnyPath, Extracted | Failure]]:
        """Answers that have arrived, one by one. Raises Ended or InvalidReply, after the answers before."""
        try:
            piece = self.socket.recv(1 << 18)
        except OSError:
            piece = b""
        if not piece:
            raise Ended
        try:
            for message in self._frames.feed(piece):
                answer = self._answer(_decode(message))
                if answer is not None:
                    yield answer
        except (FrameTooLong, msgspec.MsgspecError, RecursionError) as problem:
            raise InvalidReply(str(problem)) from None

    def seconds_left(self) -> float:
        """How long the parent still waits."""
        return min(self._left, self._left_for_file)

    def charge(self, seconds: float) -> None:
        """Counts time in which the parent waited; while its caller was busy, or all were suspended, none is counted."""
        self._left -= seconds
        self._left_for_file -= seconds

    def end(self, *, died: bool = False) -> int:
        """Ends the process and returns how it ended: below zero is a signal."""
        self.socket.close()
        if not died:
            self.process.kill()
        try:
            return self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:  # it waits for a disk or a network drive, where no signal reaches it
            self.process.kill()
            return -signal.SIGKILL

    def _answer(self, reply: Reply) -> tuple[AnyPath, Extracted | Failure] | None:
        if not self.ready:
            if reply.number != -1 or reply.documents:
                raise InvalidReply("an answer before it was ready")
            self.ready = True
            self._restart_clock()
            return None
        if not self.tasks or reply.number != self._number - len(self.tasks):
            raise InvalidReply("an answer to no request")
        self._collect(reply)
        if not reply.last:
            self._left = self._timeout
            return None
        self.files += 1
        self.memory = reply.memory
        result: Extracted | Failure = reply.failure or Extracted(
            self._documents, reply.size, reply.modified, reply.truncated, reply.secrets
        )
        self._documents, self._characters = [], 0
        self._restart_clock()
        return self.tasks.popleft().path, result

    def _collect(self, reply: Reply) -> None:
        if not reply.last and not reply.documents:
            raise InvalidReply("a part without documents")
        if reply.failure and len(reply.failure.reason) > 1000:
            raise InvalidReply("a reason that no extractor gives")
        for document in reply.documents:
            _check(document, self._limits)
        self._documents += reply.documents
        self._characters += sum(len(document.body) for document in reply.documents)
        most = self._limits.total_characters + self._limits.characters
        if self._characters > most or len(self._documents) > self._limits.messages:
            raise InvalidReply("more text than is allowed")

    def _restart_clock(self) -> None:
        self._left, self._left_for_file = self._timeout, _WHOLE_FILE * self._timeout

    def _send(self, message: bytes) -> None:
        try:
            self.socket.sendall(message)
        except OSError:
            return  # it has died: the next reading finds that out


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
        process_group=0,  # Ctrl-C is for the parent, which decides what becomes of the file
    )  # fmt: skip


def _check(document: ExtractedDocument, limits: Limits) -> None:
    short = (document.title, document.sender, document.part, document.recipients)
    if document.kind not in KINDS or len(document.body) > limits.characters or max(map(len, short)) > 4000:
        raise InvalidReply("a document that no extractor makes")
    if document.date is not None and not abs(document.date) < 1e11:
        document.date = None
