"""Confinement of a child process before it reads a file: no files, network, processes, signals or privileges.

A forged file that takes over a parser can then compute, read the descriptors that the parent passed, and answer on the
socket. A system that lacks a part of this goes on without it; `confine` returns which parts hold.

The filter of system calls (seccomp) allows by name. It was made by tracing Python, libc, PDFium and Lexbor after all
imports; a call that a later version adds fails with an error, which costs one file. `ioctl` and `fcntl` are not among
the names at all. Numbers are compared in all 64 bits.

Landlock (Linux 5.13 and later) stands behind the filter and holds where a call that opens files should pass the filter
by mistake. Its rule set names every right to open, connect and signal that the kernel knows, and grants none.
Descriptors that are open already stay usable.
"""

import contextlib
import ctypes
import errno
import os
import resource
import struct
import sys
from functools import cache
from typing import NamedTuple

from foltr.node.extract.records import Protections

_SET_NO_NEW_PRIVILEGES = 38  # of prctl
_SET_FILTER, _ALL_THREADS = 1, 1  # of seccomp
_SECCOMP, _CAPSET = {"x86_64": 317, "aarch64": 277}, {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION = 0x20080522
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
_IDLE = 3 << 13  # class "idle" of the disk scheduler

_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06  # opcodes of BPF on 32-bit words
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data, little-endian
_SINCE_5_1 = 424  # from here on all architectures share their numbers
_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# The numbers of every allowed call, the frequent ones first.
NUMBERS = {
    "x86_64": {
        "pread64": 17, "recvmsg": 47, "sendto": 44, "close": 3, "prlimit64": 302, "setitimer": 38, "getrusage": 98,
        "brk": 12, "mmap": 9, "munmap": 11, "mremap": 25, "madvise": 28, "mprotect": 10,
        "futex": 202, "sched_yield": 24, "clock_gettime": 228, "gettimeofday": 96, "getrandom": 318,
        "getpid": 39, "gettid": 186, "tgkill": 234, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15,
        "restart_syscall": 219, "exit": 60, "exit_group": 231,
    },
    "aarch64": {
        "pread64": 67, "recvmsg": 212, "sendto": 206, "close": 57, "prlimit64": 261, "setitimer": 103, "getrusage": 165,
        "brk": 214, "mmap": 222, "munmap": 215, "mremap": 216, "madvise": 233, "mprotect": 226,
        "futex": 98, "sched_yield": 124, "clock_gettime": 113, "gettimeofday": 169, "getrandom": 278,
        "getpid": 172, "gettid": 178, "tgkill": 131, "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139,
        "restart_syscall": 128, "exit": 93, "exit_group": 94,
    },
}  # fmt: skip
_ALL = 0xFFFFFFFFFFFFFFFF
_NOT_EXECUTABLE = _ALL ^ 0b11  # of a protection: nothing but PROT_READ and PROT_WRITE
_NO_FILE = _ALL ^ 0x124010  # of mmap's flags: MAP_FIXED, MAP_NORESERVE, MAP_STACK, MAP_FIXED_NOREPLACE may be set

# of Landlock; the numbers of its calls are those of every architecture
_CREATE_RULESET, _RESTRICT_SELF = 444, 446
_ASK_VERSION = 1  # flag: return the version of the interface instead of a rule set
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}  # added by version: all, refer, truncate, ioctl
_TCP_RIGHTS = {4: 0b11}  # bind, connect
_SCOPES = {6: 0b11}  # abstract Unix sockets and signals of processes outside


class Condition(NamedTuple):
    """An argument of a call, masked, has one value."""

    position: int
    mask: int
    value: int


def conditions(process: int) -> dict[str, tuple[tuple[Condition, ...], ...]]:
    """Calls that are allowed with some arguments only: alternatives of conditions that hold together."""
    return {
        "sendto": ((Condition(3, _ALL, 0), Condition(4, _ALL, 0)),),  # no urgent data, no other address
        "recvmsg": ((Condition(2, _ALL, 0),),),
        "prlimit64": ((Condition(0, _ALL, 0), Condition(1, _ALL, resource.RLIMIT_CPU)),),  # 0: this process
        "mmap": ((Condition(2, _NOT_EXECUTABLE, 0), Condition(3, _NO_FILE, 0x22)),),  # MAP_PRIVATE | MAP_ANONYMOUS
        "mprotect": ((Condition(2, _NOT_EXECUTABLE, 0),),),
        "mremap": ((Condition(3, _ALL, 1),),),  # MREMAP_MAYMOVE
        "madvise": ((Condition(2, _ALL, 4),), (Condition(2, _ALL, 8),)),  # MADV_DONTNEED, MADV_FREE
        "futex": ((Condition(1, 0x80, 0x80),),),  # of this process only
        "clock_gettime": ((Condition(0, _ALL ^ 0xF, 0),),),  # not the processor time of another process
        "tgkill": ((Condition(0, _ALL, process), Condition(1, _ALL, process)),),  # abort() signals the process itself
    }


NICENESS = 10  # of processes that index: a tenth of the share of others, so that they advance under load


def confine(memory: int) -> Protections:
    """Low priority, `memory` bytes of address space, no privileges, and no calls but those of the table."""
    sys.dont_write_bytecode = True
    with contextlib.suppress(OSError):
        os.nice(max(0, NICENESS - os.nice(0)))
    resident_memory()  # opens what it reads
    _hard_cpu_limit()
    for limit, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            return _confine_linux(ctypes.CDLL(None, use_errno=True), os.uname().machine)
    return Protections()


def allow_seconds(seconds: int) -> None:
    """Processor time from now on; beyond it the kernel ends this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + 1 + seconds
    hard = _hard_cpu_limit()
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def resident_memory() -> int:
    """Memory of this process in bytes; its peak where the system does not tell more."""
    try:
        pages = os.pread(_memory_status(), 100, 0).split()[1]
    except (OSError, IndexError):  # getrusage after fork and exec starts with the peak of the parent
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return int(pages) * resource.getpagesize()


@cache
def _memory_status() -> int:
    """Seven numbers about this process's own memory, opened for reading; nothing else can be reached through it."""
    return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)


@cache
def _hard_cpu_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_CPU)[1]


def _confine_linux(libc: ctypes.CDLL, machine: str) -> Protections:
    if libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        return Protections()
    capabilities = False
    if machine in _AUDIT:
        libc.syscall(_IOPRIO_SET[machine], 1, 0, _IDLE)
        header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
        capabilities = libc.syscall(_CAPSET[machine], header, bytes(24)) == 0  # matters where root indexes
    version = restrict_with_landlock(libc)
    return Protections(_filter_calls(libc, machine), version, capabilities)


def _filter_calls(libc: ctypes.CDLL, machine: str) -> bool:
    """Installs the filter in this process, for good; False: this system has none. Needs no_new_privs."""
    if machine not in _AUDIT or sys.byteorder != "little":
        return False
    code = b"".join(program(machine, os.getpid()))
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    return bool(libc.syscall(_SECCOMP[machine], _SET_FILTER, _ALL_THREADS, header) == 0)


def program(machine: str, process: int) -> list[bytes]:
    """The filter as instructions of BPF. A denied call fails with EPERM; one that is newer than Linux 5.0 fails with
    ENOSYS, so that libc uses the older call instead."""
    limited = conditions(process)
    rules: list[bytes] = []
    for name, number in NUMBERS[machine].items():
        for alternative in limited.get(name, ((),)):
            rules += _allow(number, alternative)
    return [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, _AUDIT[machine], skip_then=1),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER),
        *rules,
        _instruction(_AT_LEAST, _SINCE_5_1, skip_else=1),
        _instruction(_RETURN, _ERROR | errno.ENOSYS),
        _instruction(_RETURN, _ERROR | errno.EPERM),
    ]


def _allow(number: int, required: tuple[Condition, ...]) -> list[bytes]:
    """Allows a call under conditions; otherwise goes on behind the rule. Jumps count instructions that are skipped."""
    halves = [
        (_ARGUMENTS + 8 * position + 4 * half, mask >> 32 * half & 0xFFFFFFFF, value >> 32 * half & 0xFFFFFFFF)
        for position, mask, value in required
        for half in (0, 1)
        if mask >> 32 * half & 0xFFFFFFFF
    ]
    checks: list[bytes] = []
    for at, (offset, mask, value) in enumerate(halves):
        left = 3 * (len(halves) - at - 1) + 1  # instructions between this comparison and the end of the rule
        checks += [_instruction(_LOAD, offset), _instruction(_AND, mask), _instruction(_EQUAL, value, skip_else=left)]
    reload = [_instruction(_LOAD, _NUMBER)] if halves else []
    body = [*checks, _instruction(_RETURN, _ALLOW), *reload]
    return [_instruction(_EQUAL, number, skip_else=len(body)), *body]


def _instruction(code: int, value: int, *, skip_then: int = 0, skip_else: int = 0) -> bytes:
    return struct.pack("=HBBI", code, skip_then, skip_else, value)


def restrict_with_landlock(libc: ctypes.CDLL) -> int:
    """Takes every right from this process, for good; returns the version of Landlock, 0 where there is none.

    Needs no_new_privs.
    """
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
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
