"""A filter of system calls (Linux seccomp): no network, no other processes, no files written, renamed or removed.

A forged file that takes over a parser can then still answer wrongly, but not send, change or start anything. The
filter denies by name rather than allowing by name, because Python, libc and PDFium call whatever they like between
versions. Reading stays possible: a child opens the files that it is asked for, and imports its libraries late.
"""

import ctypes
import errno
import os
import struct

_SET_SECCOMP, _FILTER = 22, 2  # of prctl
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06  # opcodes of BPF on 32-bit words
_ALLOW, _KILL, _DENY = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_X32 = 0x40000000  # calls of a second interface of x86_64
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

# Everywhere: pidfd_send_signal, io_uring_*, pidfd_open, clone3, openat2, pidfd_getfd, fchmodat2.
_SINCE_5_0 = (424, 425, 426, 427, 434, 435, 437, 438, 452)
# socket socketpair connect accept bind listen; clone fork vfork execve ptrace kill tkill tgkill; rename mkdir rmdir
# creat link unlink symlink chmod chown truncate utime mknod and their *at forms; xattr; mount pivot_root chroot
# unshare setns; bpf perf_event_open userfaultfd keys process_vm_* memfd_create execveat open_by_handle_at
_DENIED = {
    "x86_64": (
        41, 53, 42, 43, 288, 49, 50, 56, 57, 58, 59, 101, 62, 200, 234, 82, 264, 316, 83, 258, 84, 85, 86, 265, 87, 263,
        88, 266, 90, 91, 268, 92, 93, 94, 260, 76, 77, 132, 235, 280, 261, 133, 259, 188, 189, 190, 197, 198, 199, 165,
        166, 155, 161, 272, 308, 321, 298, 323, 248, 249, 250, 310, 311, 319, 322, 304, 29, 240,
    ),
    "aarch64": (
        198, 199, 203, 202, 242, 200, 201, 220, 221, 117, 129, 130, 131, 38, 276, 34, 37, 35, 36, 52, 53, 54, 55, 45,
        46, 88, 33, 5, 6, 7, 14, 15, 16, 40, 39, 41, 51, 97, 268, 280, 241, 282, 217, 218, 219, 270, 271, 279, 281,
        265, 194, 180,
    ),
}  # fmt: skip
_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_OPENS = {"x86_64": ((2, 1), (257, 2)), "aarch64": ((56, 2),)}  # open, openat: number, position of the flags


def deny_calls(libc: ctypes.CDLL) -> bool:
    """Installs the filter in this process, for good; False: this system has none. Needs no_new_privs."""
    machine = os.uname().machine
    if machine not in _AUDIT:
        return False
    code = b"".join(_instructions(machine))
    program = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HP", len(code) // 8, ctypes.addressof(program))
    return libc.prctl(_SET_SECCOMP, _FILTER, header, 0, 0) == 0


def _instructions(machine: str) -> list[bytes]:
    """The filter as BPF: jumps count the instructions that they skip."""
    denied = [*_DENIED[machine], *_SINCE_5_0]
    checks: list[bytes] = []
    for number, position in _OPENS[machine]:
        checks += [
            _instruction(_EQUAL, number, skip_else=4),
            _instruction(_LOAD, _ARGUMENTS + 8 * position),
            _instruction(_AND, _WRITING),
            _instruction(_EQUAL, 0, skip_else=1),
            _instruction(_RETURN, _ALLOW),
            _instruction(_LOAD, _NUMBER),  # reached with another number, or with flags that write: number again
        ]
    opens = [number for number, _ in _OPENS[machine]]
    denied += opens  # what comes here wants to write
    return [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, _AUDIT[machine], skip_then=1),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER),
        *([_instruction(_AT_LEAST, _X32, skip_else=1), _instruction(_RETURN, _DENY)] if machine == "x86_64" else []),
        *checks,
        *(_instruction(_EQUAL, number, skip_then=len(denied) - at) for at, number in enumerate(denied)),
        _instruction(_RETURN, _ALLOW),
        _instruction(_RETURN, _DENY),
    ]


def _instruction(code: int, value: int, *, skip_then: int = 0, skip_else: int = 0) -> bytes:
    return struct.pack("=HBBI", code, skip_then, skip_else, value)
