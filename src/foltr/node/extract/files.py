"""Opening and reading files that somebody else may be changing, replacing or forging.

Only regular files are read, and never through a symbolic link as the last part of a path; a FIFO or a device is
opened without blocking and refused. A file whose size or time of change differs after reading is not trusted.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from foltr.node.extract.formats import HEAD
from foltr.node.extract.records import Refused
from foltr.node.file_version import bounded_size, bounded_time

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
}


class OpenFile(NamedTuple):
    """A regular file, open for reading, with the version that was seen when it was opened."""

    descriptor: int
    name: str  # the path as text
    head: bytes
    size: int
    modified: int  # st_mtime_ns, within 64 bits
    changed: int  # st_ctime_ns: also moves where somebody sets the time of modification back


@contextmanager
def open_file(path: bytes) -> Iterator[OpenFile]:
    """The file at `path`; raises Refused where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as problem:
        raise _refused(problem) from None
    except ValueError:  # a NUL byte in the path
        raise Refused("failed", "not a valid path") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Refused("skipped", "not a regular file")
        head = os.read(descriptor, HEAD)
        size, modified = bounded_size(status.st_size), bounded_time(status.st_mtime_ns)
        yield OpenFile(descriptor, os.fsdecode(path), head, size, modified, status.st_ctime_ns)
    except OSError as problem:
        raise _refused(problem) from None
    finally:
        os.close(descriptor)


def read_all(file: OpenFile, limit: int) -> bytes:
    """All bytes of a file."""
    if file.size > limit:
        raise Refused("skipped", f"larger than {_megabytes(limit)}")
    pieces = [file.head]
    missing = file.size - len(file.head)
    while missing > 0:
        piece = os.read(file.descriptor, missing)
        if not piece:
            break
        pieces.append(piece)
        missing -= len(piece)
    if missing > 0 or len(file.head) > file.size:
        raise Refused("waiting", "changed while it was read")
    return b"".join(pieces)


def check_unchanged(file: OpenFile) -> None:
    """Raises Refused where the file is not the one that was opened any more."""
    status = os.fstat(file.descriptor)
    if (bounded_size(status.st_size), bounded_time(status.st_mtime_ns)) != (file.size, file.modified):
        raise Refused("waiting", "changed while it was read")
    if status.st_ctime_ns != file.changed and status.st_nlink > 0:
        raise Refused("waiting", "changed while it was read")
    if status.st_nlink == 0:
        raise Refused("failed", "vanished while it was read")


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):g} MB"


def _refused(problem: OSError) -> Refused:
    state, reason = _REASONS.get(problem.errno or 0, ("failed", f"cannot be read ({problem.strerror})"))
    return Refused(state, reason)  # type: ignore[arg-type]
