"""The child process: receives descriptors of files on a socket, extracts one after the other, sends replies.

It is started by the pool and trusted by nobody: a file may take it over, make it loop, or kill it. All imports happen
before it is confined; afterwards it can open nothing.
"""

import os
import signal
import socket
import time
from collections import deque
from collections.abc import Callable

import msgspec

from foltr.node.extract.confine import allow_seconds, confine, resident_memory
from foltr.node.extract.documents import cleaned, documents_of
from foltr.node.extract.files import received_file, refused
from foltr.node.extract.plain import load_encodings
from foltr.node.extract.records import (
    ExtractedDocument,
    Failure,
    Frames,
    Limits,
    Ready,
    Refused,
    Reply,
    Request,
    Start,
    frame,
)

_CHUNK = 1_000_000  # characters of a mailbox that are sent at once
_LONGEST_REQUEST = 1 << 16
_MOST_DESCRIPTORS = 64  # in one message

_encode = msgspec.msgpack.Encoder().encode


def main(descriptor: int) -> None:
    """Serves the socket `descriptor` until the parent closes it."""
    channel = socket.socket(fileno=descriptor)
    load_encodings()
    time.localtime()  # reads the time zone
    frames, descriptors = Frames(_LONGEST_REQUEST), deque[int]()
    decode_request = msgspec.msgpack.Decoder(Request).decode
    start: Start | None = None
    while True:
        piece, received, _, _ = socket.recv_fds(channel, 1 << 16, _MOST_DESCRIPTORS)
        if not piece:
            os._exit(0)  # without the destructors of a library that a file may have confused
        descriptors.extend(received)
        for message in frames.feed(piece):
            if start is None:
                start = msgspec.msgpack.decode(message, type=Start)
                channel.sendall(frame(_encode(Ready(confine(start.memory), resident_memory()))))
                continue
            file = descriptors.popleft()
            _serve(channel, decode_request(message), file, start)
            os.close(file)


def _serve(channel: socket.socket, request: Request, file: int, start: Start) -> None:
    """Answers one request. The alarm ends this process where the parent is gone; it waits for a parent that pauses."""

    def send(reply: Reply) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        channel.sendall(frame(_encoded(reply)))
        if not reply.last:
            begin()

    def begin() -> None:
        signal.setitimer(signal.ITIMER_REAL, start.longest)
        allow_seconds(start.limits.cpu_seconds)

    begin()
    send(_reply(request, file, start.limits, send))


def _reply(request: Request, file: int, limits: Limits, send: Callable[[Reply], None]) -> Reply:
    reply = Reply(request.number, [])
    try:
        _extract(request, file, limits, reply, send)
    except Refused as problem:
        reply.failure = problem.failure
    except OSError as problem:
        reply.failure = refused(problem).failure
    except MemoryError:
        reply.failure = Failure("failed", "needs more memory than is allowed")
    except RecursionError:
        reply.failure = Failure("failed", "nested too deeply")
    except Exception as problem:  # a parser may raise anything on a forged file
        reply.failure = Failure("failed", f"cannot be parsed ({type(problem).__name__}: {problem})"[:300])
    if reply.failure:
        reply.documents = []
    reply.memory = resident_memory()
    return reply


def _extract(request: Request, file: int, limits: Limits, reply: Reply, send: Callable[[Reply], None]) -> None:
    """Fills `reply`; sends part of it before where there is much."""
    characters = 0
    for document in documents_of(received_file(file, request.name, request.size), limits, reply):
        reply.documents.append(document)
        characters += len(document.body) + 500
        if characters > _CHUNK and document.part:
            send(Reply(request.number, reply.documents, last=False))
            reply.documents, characters = [], 0


def _encoded(reply: Reply) -> bytes:
    try:
        return _encode(reply)
    except UnicodeEncodeError:  # lone surrogates
        documents: list[ExtractedDocument] = [cleaned(document) for document in reply.documents]
        failure = reply.failure and msgspec.structs.replace(reply.failure, reason=ascii(reply.failure.reason))
        return _encode(msgspec.structs.replace(reply, documents=documents, failure=failure))
