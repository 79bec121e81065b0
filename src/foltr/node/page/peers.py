"""Who owns the other end of a connection on this machine, as Linux tells.

Cookies are shared by all ports of a host name, and so a server of another user, once visited, is sent ours. With the
owner of a connection known, a stolen cookie is of no use to other users.

The kernel is asked for the one socket (sock_diag(7), some microseconds); where that is not allowed, its tables of all
sockets are read (some milliseconds).
"""

import os
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path

Address = tuple[str, int]
Owner = Callable[[Address, Address], int | None]  # client, server -> user of the client

_TABLES = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}
_TIME_WAIT = 6
_NETLINK, _SOCK_DIAG, _BY_FAMILY, _ERROR = 16, 4, 20, 2  # AF_NETLINK, NETLINK_SOCK_DIAG, SOCK_DIAG_..., NLMSG_ERROR
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_REQUEST = struct.Struct("=BBBBI")  # family, protocol, extensions, -, states
_PORTS = struct.Struct("!HH")
_ANY_COOKIE = b"\xff" * 8
_REPLY = struct.Struct("=BBBB48sIIIII")  # family, state, -, -, addresses, -, -, -, user, inode


def system_owner() -> Owner | None:
    """How this system tells who owns a connection; None where it does not tell."""
    return owner_of_connection if sys.platform == "linux" and _TABLES[socket.AF_INET].exists() else None


def owner_of_connection(client: Address, server: Address) -> int | None:
    """The user who owns the client's end; None where there is no such end any more: it needs no answer."""
    try:
        return _asked(client, server)
    except OSError:
        return _looked_up(client, server)


def _asked(client: Address, server: Address) -> int | None:
    family = _family(client[0])
    addresses = b"".join(socket.inet_pton(family, one[0]).ljust(16, b"\0") for one in (client, server))
    wanted = _PORTS.pack(client[1], server[1]) + addresses + struct.pack("=I", 0) + _ANY_COOKIE
    body = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + wanted
    with socket.socket(_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(1.0)
        kernel.sendto(_HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, 1, 1, 0) + body, (0, 0))
        reply = kernel.recv(8192)
    kind = _HEADER.unpack_from(reply)[1]
    if kind == _ERROR:
        problem = -struct.unpack_from("=i", reply, _HEADER.size)[0]
        if problem == 2:  # ENOENT: there is no such socket
            return None
        raise OSError(problem, os.strerror(problem))
    _, state, _, _, _, _, _, _, user, _ = _REPLY.unpack_from(reply, _HEADER.size)
    return None if state == _TIME_WAIT else int(user)


def _looked_up(client: Address, server: Address) -> int | None:
    wanted = [_as_in_table(*client), _as_in_table(*server)]
    for line in _TABLES[_family(client[0])].read_text("ascii").splitlines()[1:]:
        fields = line.split(None, 8)  # number, local address, remote address, state, ..., user
        if fields[1:3] == wanted and int(fields[3], 16) != _TIME_WAIT:
            return int(fields[7])
    return None


def _as_in_table(host: str, port: int) -> str:
    packed = socket.inet_pton(_family(host), host)
    words = [int.from_bytes(packed[at : at + 4], sys.byteorder) for at in range(0, len(packed), 4)]
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
