"""The child process: reads requests from a socket, extracts one file after the other, sends replies.

It is started by the pool and trusted by nobody: a file may take it over, make it loop, or kill it.
"""

import os
import signal
import socket
from collections.abc import Callable

import msgspec

from foltr.node.extract.confine import allow_seconds, confine, peak_memory
from foltr.node.extract.documents import cleaned, documents_of
from foltr.node.extract.files import check_unchanged, open_file
from foltr.node.extract.frames import Frames, frame
from foltr.node.extract.records import ExtractedDocument, Failure, Limits, Refused, Reply, Request, Start

_CHUNK = 1_000_000  # characters of a mailbox that are sent at once
_LONGEST_REQUEST = 1 << 16

_encode = msgspec.msgpack.Encoder().encode


def main(descriptor: int) -> None:
    """Serves the socket `descriptor` until the parent closes it."""
    channel = socket.socket(fileno=descriptor)
    frames = Frames(_LONGEST_REQUEST)
    start: Start | None = None
    while piece := channel.recv(1 << 16):
        for message in frames.feed(piece):
            if start is None:
                start = msgspec.msgpack.decode(message, type=Start)
                confine(start.memory)
                channel.sendall(frame(_encode(Reply(-1, []))))
            else:
                _serve(channel, msgspec.msgpack.decode(message, type=Request), start)
    os._exit(0)  # without the destructors of a library that a file may have confused


def _serve(channel: socket.socket, request: Request, start: Start) -> None:
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
    send(_reply(request, start.limits, send))


def _reply(request: Request, limits: Limits, send: Callable[[Reply], None]) -> Reply:
    reply = Reply(request.number, [])
    try:
        _extract(request, limits, reply, send)
    except Refused as refused:
        reply.failure = refused.failure
    except MemoryError:
        reply.failure = Failure("failed", "needs more memory than is allowed")
    except RecursionError:
        reply.failure = Failure("failed", "nested too deeply")
    except Exception as problem:  # a parser may raise anything on a forged file
        reply.failure = Failure("failed", f"cannot be parsed ({type(problem).__name__}: {problem})"[:300])
    if reply.failure:
        reply.documents = []
    reply.memory = peak_memory()
    return reply


def _extract(request: Request, limits: Limits, reply: Reply, send: Callable[[Reply], None]) -> None:
    """Fills `reply`; sends part of it before where there is much."""
    with open_file(request.path) as file:
        reply.size, reply.modified = file.size, file.modified
        characters = 0
        for document in documents_of(file, limits, reply):
            reply.documents.append(document)
            characters += len(document.body) + 500
            if characters > _CHUNK and document.part:
                send(Reply(request.number, reply.documents, last=False))
                reply.documents, characters = [], 0
        check_unchanged(file)


def _encoded(reply: Reply) -> bytes:
    try:
        return _encode(reply)
    except UnicodeEncodeError:  # lone surrogates
        documents: list[ExtractedDocument] = [cleaned(document) for document in reply.documents]
        failure = reply.failure and Failure(reply.failure.state, ascii(reply.failure.reason))
        return _encode(msgspec.structs.replace(reply, documents=documents, failure=failure))
