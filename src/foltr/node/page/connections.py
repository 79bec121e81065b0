"""Which connections are accepted, how many at once, and for how long they may stay without a complete request.

    owner       asked for when a connection is accepted, before a byte of it is read: a connection of another user is
                reset at once and takes no part of any limit (where the system tells no owner, all count as one)
    number      at most 64 of one owner and 128 in all; a new one takes the place of the oldest one that has no request
                in work, so that neither half requests nor a tab that runs wild keep a person out
    time        10 s for the headers of a request, from the connection or the answer before it on; 30 s for its body;
                30 s without progress for an answer that is not read; 5 s idle between two requests

The limits of number are lower where the process may have few open files. Where there is none left, accepting pauses for
a second: asyncio by itself would try again, and log it, once for each place of the queue.
"""

import asyncio
import errno
import resource
import socket
import struct
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from foltr.node.page.peers import Address, Owner
from foltr.node.page.security import HEADERS

EACH, MOST = 64, 128  # connections of one owner, of all
HEADER_SECONDS, BODY_SECONDS, WRITE_SECONDS, IDLE_SECONDS = 10.0, 30.0, 30.0, 5
QUEUE = 2048  # connections that wait to be accepted; the system may allow fewer
_REFUSALS = 64  # before the requests of others get a turn
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE_SECONDS = 0.5  # asyncio tries again after a second
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends a reset and leaves nothing in the kernel
_SECONDS = {h11.IDLE: HEADER_SECONDS, h11.SEND_BODY: BODY_SECONDS}  # by what the client is doing


class Door:
    """Decides about connections; knows those that are open."""

    def __init__(self, users: Iterable[int], owner: Owner | None, *, each: int = EACH, most: int = MOST) -> None:
        self._users, self._owner, self._each, self._most = frozenset(users), owner, each, most
        self._owners: dict[Address, int | None] = {}
        self._waiting: dict[Address, Connection] = {}  # without a request in work, the oldest first

    def admits(self, client: Address, server: Address) -> bool:
        """Whether a connection is accepted, in the place of an older one if need be."""
        owner = self._owner(client, server) if self._owner is not None else None
        if self._owner is not None and owner not in self._users:
            return False
        self.leave(client)
        counts = Counter(self._owners.values())
        if counts[owner] >= self._each and not self._displaced(owner):
            return False
        if len(self._owners) >= self._most and not self._displaced():
            return False
        self._owners[client] = owner
        return True

    def enter(self, client: Address, server: Address) -> bool:
        """Whether a connection was admitted; one that was accepted without being asked about is asked about now."""
        return client in self._owners or self.admits(client, server)

    def wait(self, client: Address, connection: "Connection") -> None:
        """A connection has no request in work: a new one may take its place."""
        self._waiting[client] = connection

    def work(self, client: Address) -> None:
        self._waiting.pop(client, None)

    def leave(self, client: Address) -> None:
        self._owners.pop(client, None)
        self._waiting.pop(client, None)

    def _displaced(self, *owners: int | None) -> bool:
        """Ends the oldest waiting connection, of some owners or of any; False where all are at work."""
        for client, connection in self._waiting.items():
            if not owners or self._owners[client] in owners:
                self.leave(client)
                connection.transport.abort()
                return True
        return False


def limits() -> dict[str, int]:
    """`each` and `most` of a door, for as many files as this process may have open."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most = MOST if files == resource.RLIM_INFINITY else min(MOST, max(4, files // 4))
    return {"each": max(2, most // 2), "most": most}


class Listening(socket.socket):
    """A listening socket that returns only the connections that its door admits."""

    def __init__(self, door: Door, family: int) -> None:
        # asyncio switches Nagle's algorithm off only where the protocol is named; with it an answer may wait 40 ms for
        # an acknowledgement of its headers
        super().__init__(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._door, self._until = door, 0.0  # no connection is accepted before that time

    def accept(self) -> tuple[socket.socket, Any]:
        server = self.getsockname()[:2]
        for _ in range(_REFUSALS if time.monotonic() >= self._until else 0):
            try:
                connection, client = super().accept()
            except OSError as problem:
                if problem.errno in _EXHAUSTED:
                    self._until = time.monotonic() + _PAUSE_SECONDS
                raise
            if self._door.admits(client[:2], server):
                return connection, client
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            connection.close()
        raise BlockingIOError(errno.EAGAIN, "others get a turn")


class Connection(H11Protocol):
    """A connection with limits of time."""

    def __init__(self, *arguments: Any, door: Door, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._door = door
        self._phase: object = None  # what is waited for, by its limit in _SECONDS
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.client is None or self.server is None or not self._door.enter(self.client, _known(self.server)):
            transport.abort()
            return
        self._limit_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._reading, self._writing):
            if timer is not None:
                timer.cancel()
        if self.client is not None:
            self._door.leave(self.client)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        self._limit_reading()

    def _limit_reading(self) -> None:
        """A time begins with what is waited for, not with a byte of it: one byte a second keeps nothing open."""
        state = self.conn.their_state
        phase = state if state in _SECONDS else None
        if phase is self._phase or self.transport.is_closing() or self.client is None:
            return
        self._phase = phase
        if self._reading is not None:
            self._reading.cancel()
        self._reading = None if phase is None else self.loop.call_later(_SECONDS[phase], self._is_late, _SECONDS[phase])
        if phase is h11.IDLE:
            self._door.wait(self.client, self)
        else:
            self._door.work(self.client)

    def _is_late(self, seconds: float) -> None:
        """Ends the connection, unless it is still reading the answer to the request before."""
        if self.transport.get_write_buffer_size():
            self._reading = self.loop.call_later(seconds, self._is_late, seconds)
        else:
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_progress(self.transport.get_write_buffer_size() + 1)

    def _expect_progress(self, before: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left >= before:
            self.transport.abort()
        else:
            self._writing = self.loop.call_later(WRITE_SECONDS, self._expect_progress, left)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()

    def send_400_response(self, msg: str) -> None:
        """Answers what is no HTTP, with the headers of every answer; where an answer has begun there is no other."""
        if self.cycle is not None and not self.cycle.response_complete:  # a request in work, whose body is wrong
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        fixed = {"content-type": "text/plain; charset=utf-8", "connection": "close", "content-length": str(len(msg))}
        response = h11.Response(status_code=400, headers=list({**HEADERS, **fixed}.items()), reason=b"Bad Request")
        for event in (response, h11.Data(data=msg.encode("ascii")), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def _known(server: tuple[str, int | None]) -> Address:
    return server[0], server[1] or 0
