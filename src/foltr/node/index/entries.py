"""The entries of one folder: listing them, and what each of them should be in the index.

Whatever goes wrong with an entry is its state, `failed` with the reason, so that no entry stops a scan.
"""

import os
import stat
from collections.abc import Collection
from typing import NamedTuple

from foltr.node.extract.file_version import file_version, reason_of, reason_text
from foltr.node.extract.formats import without_text
from foltr.node.index.rules import OWN, FolderRules

NAME_ONLY = "no text is read from a file of the kind {}; it is found by its name"


class Seen(NamedTuple):
    """An entry of a folder as it should stand in the index."""

    name: bytes
    is_folder: bool
    size: int
    mtime_ns: int
    inode: int
    state: str
    reason: str | None
    named: bool = False  # it is found by its name, now or until its text has been read


def entries_of(here: FolderRules) -> dict[str, os.stat_result | Exception] | OSError:
    """The entries of a folder. It is not opened through a link that took its place since it was seen."""
    link = os.O_NOFOLLOW if here.below_root else 0
    try:
        descriptor = os.open(here.folder or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | link)
    except OSError as problem:
        return problem
    listed: dict[str, os.stat_result | Exception] = {}
    try:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                try:
                    listed[entry.name] = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # it has just vanished
                except Exception as problem:
                    listed[entry.name] = problem
    except OSError as problem:
        return problem
    finally:
        os.close(descriptor)
    return listed


def judged(
    here: FolderRules, name: str, status: os.stat_result | Exception, beside: Collection[str]
) -> Seen | FolderRules:
    """Returns what an entry should be in the index, or the rules of a folder that is to be entered."""
    if isinstance(status, Exception):
        reason = reason_text(str(status.strerror)) if isinstance(status, OSError) else reason_of(status)
        return failed(os.fsencode(name), False, reason)
    is_folder = stat.S_ISDIR(status.st_mode)
    try:
        return _folder_entry(here, name, status, beside) if is_folder else _file_entry(here, name, status, beside)
    except Exception as problem:
        return failed(os.fsencode(name), is_folder, reason_of(problem))


def failed(name: bytes, is_folder: bool, reason: str) -> Seen:
    return Seen(name, is_folder, 0, 0, 0, "failed", reason)


def _folder_entry(here: FolderRules, name: str, status: os.stat_result, beside: Collection[str]) -> Seen | FolderRules:
    inside = here.below(name)
    reason = OWN if here.rules.is_own(status) else here.verdict(name, is_folder=True, beside=beside)
    reason = reason or inside.verdict_inside()
    # what is in an excluded folder changes without being looked at
    return Seen(os.fsencode(name), True, 0, 0, 0, "excluded", reason_text(reason)) if reason else inside


def _file_entry(here: FolderRules, name: str, status: os.stat_result, beside: Collection[str]) -> Seen:
    state, reason = "waiting", here.verdict(name, is_folder=False, beside=beside)
    if reason is not None:
        state, reason = "excluded", reason_text(reason)
    elif not stat.S_ISREG(status.st_mode):
        state, reason = "skipped", "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a regular file"
    elif (kind := without_text(name)) is not None and not here.rules.reads_binaries:
        return Seen(os.fsencode(name), False, *file_version(status), "skipped", NAME_ONLY.format(kind), named=True)
    return Seen(os.fsencode(name), False, *file_version(status), state, reason, named=state == "waiting")
