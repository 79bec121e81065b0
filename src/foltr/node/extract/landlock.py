"""Landlock: a Linux kernel's own limits on what a process may open, connect to and signal (Linux 5.13 and later).

The rule set names every right that the kernel knows and grants none. It stands behind the filter of system calls and
holds where a call that opens files should pass the filter by mistake. Descriptors that are open already stay usable.
"""

import ctypes
import os
import struct

_CREATE_RULESET, _RESTRICT_SELF = 444, 446  # the numbers are those of every architecture
_VERSION = 1  # flag: return the version of the interface instead of a rule set
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}  # added by version: all, refer, truncate, ioctl
_TCP_RIGHTS = {4: 0b11}  # bind, connect
_SCOPES = {6: 0b11}  # abstract Unix sockets and signals of processes outside


def restrict(libc: ctypes.CDLL) -> int:
    """Takes every right from this process, for good; returns the version of Landlock, 0 where there is none.

    Needs no_new_privs.
    """
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    if version < 1:
        return 0
    attributes = struct.pack("=QQQ", *(_up_to(version, bits) for bits in (_FILE_RIGHTS, _TCP_RIGHTS, _SCOPES)))
    size = 8 if version < 4 else 16 if version < 6 else 24  # an older kernel refuses fields that it does not know
    ruleset = libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return 0
    restricted = libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return version if restricted else 0


def _up_to(version: int, bits: dict[int, int]) -> int:
    """All bits that a version of the interface knows."""
    return sum(added for since, added in bits.items() if since <= version)
