"""Numbers of files as SQLite can store them, and errors about files as text that it can store.

A file system may hold any date: a tar archive carries one of the year 3000, and nanoseconds since 1970 leave 64 bits
in 2262. Inode and device numbers are unsigned. Whatever reads the status of a person's file takes the numbers from
here, so that none of them can stop a statement.
"""

import os
from typing import NamedTuple

SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1  # of SQLite's integers
_LONGEST_REASON = 300  # characters


class FileVersion(NamedTuple):
    """Numbers that tell two versions of a file apart; every number has at most 64 bits, with a sign."""

    size: int
    mtime_ns: int
    inode: int


def file_version(status: os.stat_result) -> FileVersion:
    size, mtime_ns, inode = status.st_size, status.st_mtime_ns, status.st_ino
    if 0 <= size <= LARGEST and SMALLEST <= mtime_ns <= LARGEST and 0 <= inode <= LARGEST:  # nearly every file
        return FileVersion(size, mtime_ns, inode)
    return FileVersion(bounded_size(size), bounded_time(mtime_ns), signed(inode))


def bounded_size(size: int) -> int:
    return min(max(size, 0), LARGEST)


def bounded_time(nanoseconds: int) -> int:
    """The nearest time from 1677 to 2262. It is the same at every look, so that the file is not read again."""
    return min(max(nanoseconds, SMALLEST), LARGEST)


def signed(number: int) -> int:
    """The signed number with the same 64 bits: inodes from 2^63 on stay different from each other."""
    low = number & 0xFFFF_FFFF_FFFF_FFFF
    return low - (1 << 64) if low > LARGEST else low


def reason_text(reason: str) -> str:
    """A reason as it can be stored: it may quote a name that is no Unicode, or a whole file."""
    return reason[:_LONGEST_REASON].encode("utf-8", "backslashreplace").decode("utf-8")


def reason_of(problem: BaseException) -> str:
    """An unexpected error as the reason of a state."""
    said = str(problem).strip()
    return reason_text(f"an error that was not expected ({type(problem).__name__}{': ' if said else ''}{said})")
