"""The program of a child process that a file has taken over: it attacks, after the confinement of the pool's children.

`main` serves the pool as the real program does, until a file called "evil" comes. The answer to it has one document,
whose text is JSON: which attacks passed, and what every system call returned. Other helper: `attack_driver`.
"""

# Each attack is the system call that its name says.
# ruff: noqa: PTH101, PTH102, PTH104, PTH108, PTH115, PTH116, PTH208, PTH211, S103, S606

import array
import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import struct
from pathlib import Path

from foltr.node.extract import worker
from foltr.node.extract.records import ExtractedDocument, Reply, frame

CALLS = {  # numbers of calls that libc has no function for, on x86_64 and aarch64
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "tkill": (200, 130), "tgkill": (234, 131),
    "prlimit64": (302, 261), "kcmp": (312, 272), "ioprio_set": (251, 30), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "memfd_create": (319, 279), "add_key": (248, 217), "io_setup": (206, 0),
    "get_robust_list": (274, 100), "migrate_pages": (256, 238), "open_by_handle_at": (304, 265), "bpf": (321, 280),
    "seccomp": (317, 277), "mmap": (9, 222), "mprotect": (10, 226), "madvise": (28, 233), "futex": (202, 98),
    "clock_gettime": (228, 113), "sched_setattr": (314, 274), "sendto": (44, 206), "rseq": (334, 293),
    "membarrier": (324, 283), "timer_create": (222, 107), "process_madvise": (440, 440), "setxattrat": (463, 463),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438), "openat2": (437, 437),
    "io_uring_setup": (425, 425), "clone3": (435, 435), "open_tree": (428, 428), "fsopen": (430, 430),
    "statx": (332, 291), "newfstatat": (262, 79), "quotactl": (179, 60),
}  # fmt: skip
TIOCSTI = 0x5412
MACHINE = 1 if os.uname().machine == "aarch64" else 0

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p


def call(name_or_number, *arguments):
    """A system call; raises OSError where it fails."""
    number = CALLS[name_or_number][MACHINE] if isinstance(name_or_number, str) else name_or_number
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    returned = libc.syscall(ctypes.c_long(number), *given)
    if returned < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return returned


def libc_call(name, *arguments):
    returned = getattr(libc, name)(*arguments)
    if returned < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return returned


def read(path):
    return os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 4096)


def type_into_terminal():
    for letter in "echo hello\n":
        fcntl.ioctl(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY), TIOCSTI, letter)


def message_queue(secret):
    text = read(secret)
    queue = libc_call("msgget", 0, 0o666)
    try:
        libc_call("msgsnd", queue, struct.pack("@l", 1) + text, len(text), 0o4000)
    finally:
        libc.msgctl(queue, 0, None)


def signal_by_owner(victim, channel):
    fcntl.fcntl(channel, fcntl.F_SETOWN, victim)
    fcntl.fcntl(channel, fcntl.F_SETSIG, signal.SIGKILL)


def attacks(at, channel):
    """{name: attack}, each of which raises OSError where it is refused. `at`: paths and processes to attack."""
    parent, victim, secret, folder = at["parent"], at["victim"], at["secret"], at["folder"]
    own, high = os.getpid(), 1 << 32
    information = struct.pack("@iii", signal.SIGUSR1, 0, -1) + bytes(116)  # si_code SI_QUEUE
    size = ctypes.c_size_t
    vector = lambda: struct.pack("@PP", ctypes.addressof(ctypes.create_string_buffer(8)), 8)  # noqa: E731
    send = lambda: channel.sendmsg([b""], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])  # noqa: E731
    return {
        # files: reading
        "read the cookie": lambda: read(secret),
        "read the environment of the parent": lambda: read(f"/proc/{parent}/environ"),
        "read the memory of the parent": lambda: os.open(f"/proc/{parent}/mem", os.O_RDONLY),
        "read the system's users": lambda: read("/etc/passwd"),
        "list a folder": lambda: os.listdir(folder),
        "read the size of a file": lambda: os.stat(secret),
        "read the size with statx": lambda: call(
            "statx", -100, secret.encode(), 0, 0xFFF, ctypes.create_string_buffer(256)
        ),
        "read a link": lambda: os.readlink("/proc/self/exe"),
        "open with openat2": lambda: call("openat2", -100, secret.encode(), bytes(24), 24),
        "open a tree": lambda: call("open_tree", -100, b"/", 0),
        "open by handle": lambda: call("open_by_handle_at", -100, struct.pack("@Ii", 8, 1) + bytes(8), 0),
        "change the folder": lambda: os.chdir(folder),
        # files: writing
        "write": lambda: os.open(folder + "/new", os.O_WRONLY | os.O_CREAT),
        "append": lambda: os.open(secret, os.O_WRONLY | os.O_APPEND),
        "remove": lambda: os.unlink(folder + "/other"),
        "rename": lambda: os.rename(folder + "/other", folder + "/new"),
        "link": lambda: os.symlink("/", folder + "/new"),
        "make a folder": lambda: os.mkdir(folder + "/new"),
        "chmod": lambda: os.chmod(secret, 0o777),
        "truncate": lambda: os.truncate(secret, 0),
        "set a time": lambda: os.utime(secret),
        "set an attribute": lambda: os.setxattr(secret, "user.x", b"y"),
        "set an attribute with setxattrat": lambda: call(
            "setxattrat",
            -100,
            secret.encode(),
            0,
            b"user.x",
            struct.pack("@QII", ctypes.addressof(ctypes.create_string_buffer(b"y")), 1, 0),
            16,
        ),
        "write into memory that is a file": lambda: call("memfd_create", b"x", 0),
        "lock its file": lambda: fcntl.flock(at["file"], fcntl.LOCK_SH),
        # processes
        "signal the parent": lambda: os.kill(parent, 0),
        "queue a signal for the parent": lambda: call("rt_sigqueueinfo", parent, signal.SIGUSR1, information),
        "queue a signal for a thread": lambda: call("rt_tgsigqueueinfo", parent, parent, signal.SIGUSR1, information),
        "signal a thread": lambda: call("tkill", victim, signal.SIGUSR1),
        "signal a thread of a process": lambda: call("tgkill", victim, victim, signal.SIGUSR1),
        "signal a thread with a number in the high half": lambda: call("tgkill", own | high, victim, signal.SIGUSR1),
        "signal by the owner of a descriptor": lambda: signal_by_owner(victim, channel),
        "signal by a timer": lambda: call(
            "timer_create", 1, struct.pack("@Qiii", 0, 9, 4, victim) + bytes(44), bytes(8)
        ),
        "open a process": lambda: call("pidfd_open", victim, 0),
        "signal through a descriptor": lambda: call("pidfd_send_signal", 0, signal.SIGUSR1, None, 0),
        "take a descriptor": lambda: call("pidfd_getfd", 0, 0, 0),
        "limits of another process": lambda: call(
            "prlimit64", victim, resource.RLIMIT_NOFILE, struct.pack("@QQ", 9, 9), None
        ),
        "limits with a number in the high half": lambda: call(
            "prlimit64", high, 0, None, ctypes.create_string_buffer(16)
        ),
        "its own limit on memory": lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40)),
        "affinity of another process": lambda: os.sched_setaffinity(victim, {0}),
        "ask for the affinity": lambda: os.sched_getaffinity(victim),
        "scheduler of another process": lambda: os.sched_setscheduler(victim, os.SCHED_BATCH, os.sched_param(0)),
        "scheduler with attributes": lambda: call(
            "sched_setattr", victim, struct.pack("@IIQiIQQQ", 48, 3, 0, 0, 0, 0, 0, 0), 0
        ),
        "priority of another process": lambda: os.setpriority(os.PRIO_PROCESS, victim, 5),
        "disk priority of another process": lambda: call("ioprio_set", 1, victim, 3 << 13),
        "memory of another process": lambda: libc_call(
            "process_vm_readv", parent, vector(), size(1), vector(), size(1), size(0)
        ),
        "write memory of another process": lambda: libc_call(
            "process_vm_writev", parent, vector(), size(1), vector(), size(1), size(0)
        ),
        "compare processes": lambda: call("kcmp", parent, own, 0, 0, 0),
        "trace": lambda: libc_call("ptrace", 16, victim, None, None),
        "robust list of another process": lambda: call("get_robust_list", victim, bytes(8), bytes(8)),
        "pages of another process": lambda: call("migrate_pages", victim, 64, bytes(8), bytes(8)),
        "processor time of another process": lambda: call(
            "clock_gettime", (~victim << 3) | 2, ctypes.create_string_buffer(16)
        ),
        "advise another process": lambda: call("process_madvise", 0, vector(), 1, 4, 0),
        "fork": lambda: os.fork() or os._exit(0),
        "clone": lambda: (
            call("clone3", struct.pack("@4Q", 0, 0, 0, 0) + struct.pack("@Q", 17) + bytes(48), 88) or os._exit(0)
        ),
        "execute": lambda: os.execv(folder + "/none", ["none"]),
        "run as it executes": lambda: libc_call("prctl", 4, 0, 0, 0, 0),
        "name a session": lambda: os.setsid(),
        # sending
        "internet": lambda: socket.socket(socket.AF_INET),
        "local sockets": lambda: socket.socket(socket.AF_UNIX),
        "socket pair": lambda: socket.socketpair(),
        "message queue": lambda: message_queue(secret),
        "semaphore": lambda: libc_call("semctl", libc_call("semget", 0, 1, 0o600), 0, 0),  # made and removed
        "shared memory": lambda: libc_call("shmctl", libc_call("shmget", 0, size(4096), 0o600), 0, None),
        "a named queue": lambda: libc_call("mq_open", b"/foltr", os.O_RDWR),
        "descriptors to the parent": send,
        "urgent data": lambda: channel.send(b"", socket.MSG_OOB),
        "another address": lambda: call("sendto", channel.fileno(), b"", 0, 0, b"\1\0\0x", 4),
        "keys of the user": lambda: call("add_key", b"user", b"x", b"y", 1, -4),
        # the terminal
        "type into the terminal": type_into_terminal,
        "ask a terminal": lambda: fcntl.ioctl(1, 0x5401, bytes(64)),
        "bytes that wait in the socket": lambda: fcntl.ioctl(channel, 0x541B, bytes(4)),
        # the kernel
        "performance counters": lambda: call(
            "perf_event_open", struct.pack("@IIQ", 1, 112, 1) + bytes(100), 0, -1, -1, 0
        ),
        "page faults": lambda: call("userfaultfd", 1),
        "io_uring": lambda: call("io_uring_setup", 1, ctypes.create_string_buffer(120)),
        "programs in the kernel": lambda: call("bpf", 0, bytes(72), 72),
        "another filter": lambda: call("seccomp", 2, 0, b"\6\0\0\0\0\0\xff\x7f"),
        "a file system": lambda: call("fsopen", b"tmpfs", 0),
        "restartable sequences": lambda: call("rseq", ctypes.create_string_buffer(32), 32, 0, 0),
        "barriers": lambda: call("membarrier", 0, 0, 0),
        "system information": lambda: (
            os.sysconf("SC_AVPHYS_PAGES") and libc_call("sysinfo", ctypes.create_string_buffer(128))
        ),
        "executable memory": lambda: call("mmap", 0, 4096, 5, 0x22, -1, 0),
        "make memory executable": lambda: call("mprotect", libc.mmap(None, size(4096), 3, 0x22, -1, 0), 4096, 5),
        "map its file for others": lambda: call("mmap", 0, 4096, 1, 1, at["file"], 0),
        "poison memory": lambda: call("madvise", libc.mmap(None, size(4096), 3, 0x22, -1, 0), 4096, 100),
        "wake waiters outside": lambda: call("futex", ctypes.create_string_buffer(8), 1, 1, 0, 0, 0),
    }


def passed(at, channel):
    """Names of the attacks that were not refused."""
    names = []
    for name, attack in attacks(at, channel).items():
        if name in at.get("skip", ()):
            continue
        try:
            attack()
        except (OSError, ValueError, AttributeError):  # AttributeError: this libc lacks the function
            continue
        except Exception as problem:
            raise SystemExit(f"{name}: {problem!r}") from None
        names.append(name)
    return names


def sweep(calls, path):
    """Error number of every call; 0: it passed. The word "path" among the arguments is the address of a path."""
    address = ctypes.addressof(text := ctypes.create_string_buffer(path.encode(), 4096))
    returned = []
    for number, arguments in calls:
        given = [ctypes.c_long(address if one == "path" else one) for one in arguments]
        returned.append(ctypes.get_errno() if libc.syscall(ctypes.c_long(number), *given) == -1 else 0)
    return returned, text.raw[:200].decode("latin-1")


def readable_text():
    """Whatever can be read through any descriptor."""
    texts = []
    for descriptor in range(64):
        try:
            texts.append(os.pread(descriptor, 4096, 0).decode("latin-1"))
        except OSError:
            continue
    return texts


def main(descriptor, settings):
    """Serves as the worker does; "without" in the settings names a protection that this system is made to lack."""
    at = json.loads(Path(settings).read_text())
    if at["without"] == "Landlock":
        from foltr.node.extract import confine

        confine.restrict_with_landlock = lambda _: 0
    elif at["without"] == "the filter":
        from foltr.node.extract import confine

        confine._filter_calls = lambda *_: False
    serve = worker._serve

    def taken_over(channel, request, *rest):
        if b"evil" not in (request.name if hasattr(request, "name") else request.path):
            serve(channel, request, *rest)
            return
        at["file"] = rest[0] if len(rest) > 1 else 0
        found = {"passed": passed(at, channel)} if "sweep" not in at else {}
        if "sweep" in at:
            found["sweep"], found["path"] = sweep(at["sweep"], at["secret"])
        found["readable"] = readable_text()
        document = ExtractedDocument("", json.dumps(found), "text")
        channel.sendall(frame(worker._encode(Reply(request.number, [document]))))

    worker._serve = taken_over
    worker.main(descriptor)
