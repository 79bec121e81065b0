"""Opening a result with the program of the desktop, or showing it in its folder. Page and command line use these two.

What is opened is the file that was indexed, below a root, now. Every folder from the root down and the file itself are
opened without following links; what says whether a file would run (`launchable`) is read from that open file. A link
in the place of the file, or of a folder above it, is refused: it was none when it was indexed.

Which file is "the one that was indexed"? Programs save a file under another name and rename it, so that its inode
changes with every edit, and such a file must still open. So another inode is accepted where the file has one name only.
With several names (hard links) it may be a file from elsewhere that somebody linked to this place, and it is only
shown. The inode alone names a file on one device only, and device numbers change when a drive is mounted again, so that
a stored one would be wrong after a restart: an equal inode counts only where the file is on the device of its folder.

The desktop's program is given a path, not the open file: whoever can rename files in that folder at the very moment can
still exchange it in between.
"""

import errno
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import NamedTuple

from foltr.errors import InputError
from foltr.node.file_version import signed
from foltr.node.search.launchable import HEAD, has_control, reason_to_reveal
from foltr.node.search.snippets import escaped

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class IndexedFile(NamedTuple):
    """A file as the index knows it."""

    path: str
    root: str | None  # the innermost root above it; None: it is below none
    inode: int | None  # None: the index does not have it any more


class _Place(NamedTuple):
    """The folder of a file, reached without links."""

    descriptor: int
    top: PurePath  # the root, or the folder of a root that is a file, without links
    path: PurePath  # of the file, without links


def open_file(file: IndexedFile) -> str | None:
    """Opens a file, or shows it in its folder; gives the reason for the latter."""
    with _place(file) as place:
        reason = _reason_to_reveal(file, place)
        if reason is None:
            _launch([str(place.path)])
        else:
            _reveal(place)
    return reason


def show_folder(file: IndexedFile) -> None:
    """Shows a file in its folder."""
    with _place(file) as place:
        _reveal(place)


@contextmanager
def _place(file: IndexedFile) -> Iterator[_Place]:
    if file.root is None:
        raise InputError(f"{escaped(file.path)}: is below none of the folders that are searched; search again")
    top = file.root.rpartition("/")[0] or "/" if file.path == file.root else file.root
    *folders, name = file.path[len(top.rstrip("/")) + 1 :].split("/")
    try:
        descriptor = _descended(top, folders)
    except OSError as problem:
        raise InputError(f"{escaped(file.path)}: its folder cannot be opened ({problem.strerror})") from None
    try:
        resolved = PurePath(os.path.realpath(top))
        yield _Place(descriptor, resolved, resolved.joinpath(*folders, name))
    finally:
        os.close(descriptor)


def _descended(top: str, folders: list[str]) -> int:
    """A descriptor of a folder below a root, which may be a link itself: the person chose it."""
    descriptor = os.open(top, _FOLDER)
    try:
        for depth, folder in enumerate(folders, start=1):
            inner = _entered(descriptor, folder, "/".join([top.rstrip("/"), *folders[:depth]]))
            os.close(descriptor)
            descriptor = inner
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _entered(above: int, name: str, path: str) -> int:
    """A descriptor of a folder in a folder."""
    if name in ("", ".", ".."):
        raise InputError(f"{escaped(path)}: no path of an index")
    if stat.S_ISLNK(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
        raise _replaced(path)
    return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=above)


def _replaced(path: str) -> InputError:
    return InputError(
        f"{escaped(path)}: was replaced by a symbolic link since it was indexed, so that nothing is opened through it; "
        "look where it leads, and index again (`foltr node index`)"
    )


def _reason_to_reveal(file: IndexedFile, place: _Place) -> str | None:
    """Why a file is only shown. All that is looked at belongs to the file that this opens."""
    try:
        descriptor = os.open(place.path.name, _FILE, dir_fd=place.descriptor)
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise _replaced(file.path) from None
        return f"it cannot be read ({problem.strerror})"
    try:
        status = os.fstat(descriptor)
        head = os.read(descriptor, HEAD) if stat.S_ISREG(status.st_mode) else b""
    except OSError as problem:
        return f"it cannot be read ({problem.strerror})"
    finally:
        os.close(descriptor)
    if file.inode is None:
        return "the index does not have it any more"
    if _may_be_from_elsewhere(file.inode, status, os.fstat(place.descriptor)):
        return "since it was indexed, another file with several names (hard links) took its place"
    if has_control(str(place.path.parent)):
        return "the name of a folder above it has control characters"
    return reason_to_reveal(place.path.name, status, head)


def _may_be_from_elsewhere(inode: int, status: os.stat_result, folder: os.stat_result) -> bool:
    is_indexed = signed(status.st_ino) == inode and status.st_dev == folder.st_dev
    return not is_indexed and status.st_nlink > 1


def _reveal(place: _Place) -> None:
    """Shows a file in its folder, or the folder where the file is gone. Finder would start a folder that is a bundle
    (`X.app`), so that it is asked to show what is in it; other desktops are given the folder."""
    if sys.platform == "darwin":
        _launch(["-R", str(place.path if _exists(place) else place.path.parent)])
        return
    inside = [folder for folder in place.path.parents if folder.is_relative_to(place.top)]
    safe = next((folder for folder in inside if not has_control(str(folder))), None)
    if safe is None:
        raise InputError(f"{escaped(str(place.top))}: has control characters in its name; open the folder yourself")
    _launch([str(safe)])


def _exists(place: _Place) -> bool:
    try:
        os.stat(place.path.name, dir_fd=place.descriptor, follow_symlinks=False)
    except OSError:
        return False
    return True


def _launch(arguments: list[str]) -> None:
    """Starts the desktop's program and does not wait for it; paths are absolute, so that none is ever an option."""
    name = "open" if sys.platform == "darwin" else "xdg-open"
    program = shutil.which(name)
    if program is None:
        raise InputError(f"{name} is not installed: use `foltr node open N --print` and open the file yourself")
    quiet = subprocess.DEVNULL
    started = subprocess.Popen([program, *arguments], stdin=quiet, stdout=quiet, stderr=quiet, process_group=0)
    threading.Thread(target=started.wait, daemon=True).start()  # so that a node that serves leaves no zombies
