"""Opening and reading files that somebody else may be changing, replacing or forging.

The parent opens a file and passes the descriptor to a child, which reads it. Only regular files are read, and never
through a symbolic link as the last part of a path; a FIFO or a device is opened without blocking and refused. A file
whose size or time of change differs after reading is not trusted.
"""

import errno
import os
import stat
from typing import NamedTuple

from foltr.node.extract.file_version import bounded_size, bounded_time
from foltr.node.extract.formats import HEAD
from foltr.node.extract.records import Refused

_REASONS = {
    errno.ELOOP: ("skipped", "a symbolic link"),
    errno.ENXIO: ("skipped", "not a regular file"),
    errno.ENODEV: ("skipped", "not a regular file"),
    errno.EACCES: ("failed", "no permission to read it"),
    errno.EPERM: ("failed", "no permission to read it"),
    errno.ENOENT: ("failed", "vanished before it was read"),
    errno.ENOTDIR: ("failed", "vanished before it was read"),
    errno.ESTALE: ("failed", "vanished before it was read"),
    errno.EMFILE: ("waiting", "too many open files"),
    errno.ENFILE: ("waiting", "too many open files"),
    errno.ETOOMANYREFS: ("waiting", "too many open files"),  # on their way to children
}


class OpenedFile(NamedTuple):
    """The parent's side: a regular file, open for reading, with the version that was seen when it was opened."""

    descriptor: int
    size: int
    modified: int  # st_mtime_ns, within 64 bits
    changed: int  # st_ctime_ns: also moves where somebody sets the time of modification back


class ReceivedFile(NamedTuple):
    """The child's side: a descriptor that the parent opened. The offset is shared with the parent, hence not used."""

    descriptor: int
    name: str  # the last part of the path, as text
    head: bytes
    size: int  # when it was opened


def open_regular(path: bytes) -> OpenedFile:
    """The file at `path`; raises Refused where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as problem:
        raise refused(problem) from None
    except ValueError:  # a NUL byte in the path
        raise Refused("failed", "not a valid path") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Refused("skipped", "not a regular file", unnamed=True)
    except BaseException as problem:
        os.close(descriptor)
        if isinstance(problem, OSError):
            raise refused(problem) from None
        raise
    size, modified = bounded_size(status.st_size), bounded_time(status.st_mtime_ns)
    return OpenedFile(descriptor, size, modified, status.st_ctime_ns)


def check_unchanged(file: OpenedFile) -> None:
    """Raises Refused where the file is not the one that was opened any more."""
    try:
        status = os.fstat(file.descriptor)
    except OSError as problem:
        raise refused(problem) from None
    if (bounded_size(status.st_size), bounded_time(status.st_mtime_ns)) != (file.size, file.modified):
        raise Refused("waiting", "changed while it was read")
    if status.st_ctime_ns != file.changed and status.st_nlink > 0:
        raise Refused("waiting", "changed while it was read")
    if status.st_nlink == 0:
        raise Refused("failed", "vanished while it was read")


def received_file(descriptor: int, name: bytes, size: int) -> ReceivedFile:
    """A descriptor with the first bytes of its file."""
    return ReceivedFile(descriptor, os.fsdecode(name), os.pread(descriptor, HEAD, 0), size)


def read_all(file: ReceivedFile, limit: int) -> bytes:
    """All bytes of a file."""
    if file.size > limit:
        raise Refused("skipped", f"larger than {_megabytes(limit)}")
    pieces = [file.head]
    done = len(file.head)
    while done < file.size:
        piece = os.pread(file.descriptor, file.size - done + 1, done)  # a byte more: a file that grows is not parsed
        if not piece:
            break
        pieces.append(piece)
        done += len(piece)
    if done != file.size:
        raise Refused("waiting", "changed while it was read")
    return b"".join(pieces)


def refused(problem: OSError) -> Refused:
    """An error of the operating system as a state with a reason."""
    state, reason = _REASONS.get(problem.errno or 0, ("failed", f"cannot be read ({problem.strerror})"))
    return Refused(state, reason, unnamed=state == "skipped")  # type: ignore[arg-type]


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):g} MB"
