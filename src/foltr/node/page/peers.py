"""Owners of the other ends of connections on this machine, as Linux tells.

Cookies are shared by all ports of a host name, and so a server of another user, once visited, is sent ours. With the
owner of a connection known, a stolen cookie is of no use to other users, and their connections cost next to nothing.

The kernel is asked for the one socket (sock_diag(7), some microseconds, however many connections there are); where that
is not allowed, its tables of all sockets are read (some milliseconds).
"""

import contextlib
import errno
import os
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path

Address = tuple[str, int]
Owner = Callable[[Address, Address], int | None]  # client, server -> user of the client

_TABLES = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}
_NETLINK, _SOCK_DIAG, _BY_FAMILY, _ERROR = 16, 4, 20, 2  # AF_NETLINK, NETLINK_SOCK_DIAG, SOCK_DIAG_..., NLMSG_ERROR
_NO_SUCH_SOCKET = 2  # ENOENT
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_REQUEST = struct.Struct("=BBBBI")  # family, protocol, extensions, -, states
_PORTS = struct.Struct("!HH")
_ANY_COOKIE = b"\xff" * 8
_REPLY = struct.Struct("=BBBB48sIIIII")  # family, state, -, -, addresses, -, -, -, user, inode


def tells_owners() -> bool:
    """Whether this system tells who owns a connection."""
    return sys.platform == "linux" and _TABLES[socket.AF_INET].exists()


class SocketOwners:
    """Asks for owners through one netlink socket, which is held: a process without free descriptors can still ask."""

    def __init__(self) -> None:
        self._sequence = 0
        self._kernel: socket.socket | None = None

    def __enter__(self) -> "SocketOwners":
        try:
            self._kernel = socket.socket(_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)
            self._kernel.settimeout(1.0)
        except OSError:  # a sandbox that allows no netlink: the tables remain
            self._kernel = None
        return self

    def __exit__(self, *_: object) -> None:
        if self._kernel is not None:
            self._kernel.close()

    def __call__(self, client: Address, server: Address) -> int | None:
        """The user who owns the client's end; None where nobody does any more: it needs no answer."""
        for way in (self.asked, looked_up):
            with contextlib.suppress(OSError):
                return way(client, server)
        return None

    def asked(self, client: Address, server: Address) -> int | None:
        """The owner by sock_diag(7)."""
        family = _family(client[0])
        addresses = b"".join(socket.inet_pton(family, host).ljust(16, b"\0") for host, _ in (client, server))
        ends = _PORTS.pack(client[1], server[1]) + addresses + struct.pack("=I", 0) + _ANY_COOKIE
        reply = self._reply(_REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + ends)
        if _HEADER.unpack_from(reply)[1] == _ERROR:
            problem = -struct.unpack_from("=i", reply, _HEADER.size)[0]
            if problem == _NO_SUCH_SOCKET:
                return None
            raise OSError(problem, os.strerror(problem))
        *_, user, inode = _REPLY.unpack_from(reply, _HEADER.size)
        return int(user) if inode else None  # a socket that its process closed has no inode, and the user 0 for anybody

    def _reply(self, body: bytes) -> bytes:
        if self._kernel is None:
            raise OSError(errno.EBADF, "no socket to ask the kernel")
        self._sequence = (self._sequence + 1) % 2**32
        request = _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, 1, self._sequence, 0) + body
        self._kernel.sendto(request, (0, 0))
        while True:
            reply = self._kernel.recv(8192)
            if _HEADER.unpack_from(reply)[3] == self._sequence:  # another one is a late reply
                return reply


def looked_up(client: Address, server: Address) -> int | None:
    """The owner by the table of all sockets."""
    ends = [_as_in_table(*client), _as_in_table(*server)]
    for line in _TABLES[_family(client[0])].read_text("ascii").splitlines()[1:]:
        fields = line.split(None, 10)  # number, local address, remote address, state, ..., user, timeout, inode
        if fields[1:3] == ends and int(fields[9]):
            return int(fields[7])
    return None


def _as_in_table(host: str, port: int) -> str:
    packed = socket.inet_pton(_family(host), host)
    words = [int.from_bytes(packed[at : at + 4], sys.byteorder) for at in range(0, len(packed), 4)]
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
