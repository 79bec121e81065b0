"""What a child process gives up before it touches a file: priority, memory, time, network, writing, processes.

All of it is best effort: what an operating system does not offer is left out. The parent's clock is the last resort.
"""

import contextlib
import ctypes
import os
import resource
import sys

from foltr.node.extract.seccomp import deny_calls

_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
_IDLE = 3 << 13  # class "idle" of the disk scheduler
_NO_NEW_PRIVILEGES = 38


def confine(memory: int) -> None:
    """Lowest priority, `memory` bytes of address space, no core files, no files written, no new privileges."""
    sys.dont_write_bytecode = True
    with contextlib.suppress(OSError):
        os.nice(19)
    for limit, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))
    if sys.platform == "linux":
        _confine_linux()


def allow_seconds(seconds: int) -> None:
    """Processor time from now on; beyond it the kernel ends this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def peak_memory() -> int:
    """Largest resident memory of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _confine_linux() -> None:
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        machine = os.uname().machine
        if machine in _IOPRIO_SET:
            libc.syscall(_IOPRIO_SET[machine], 1, 0, _IDLE)
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0:
            deny_calls(libc)
