"""Opening a result with a program of the desktop, or showing it in its folder. Page and command line use these.

    opening    the program for a file, or a question where it could run code; `revealing`: for its folder
    start      starts that program, and raises an error where it fails

What is opened is the file that was indexed, below a root, now. Every folder from the root down and the file itself are
opened without following links; what says whether a file would run (`launchable`) is read from that open file. A link
in the place of the file, or of a folder above it, is refused: it was none when it was indexed.

Text and source code go to a text editor, which runs nothing, whatever the program for their type would do. What can
run code in its program is a question first, once for a kind of files (`consents`). What hides what it is, by its name
or by a place that another file took, is only shown in its folder.

Which file is "the one that was indexed"? Programs save a file under another name and rename it, so that its inode
changes with every edit, and such a file must still open. So another inode is accepted where the file has one name only.
With several names (hard links) it may be a file from elsewhere that somebody linked to this place, and it is only
shown. The inode alone names a file on one device only, and device numbers change when a drive is mounted again, so that
a stored one would be wrong after a restart: an equal inode counts only where the file is on the device of its folder.

A program is given a path, not the open file: whoever can rename files in that folder at the very moment can still
exchange it in between.
"""

import errno
import logging
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import NamedTuple

from foltr.errors import InputError
from foltr.node.extract.file_version import signed
from foltr.node.extract.files import received_file
from foltr.node.search import applications, launchable, messages
from foltr.node.search.applications import PLAIN_TEXT, Application
from foltr.node.search.launchable import HEAD, Risk, has_control
from foltr.node.search.snippets import escaped

_LOG = logging.getLogger(__name__)
_MOUNTS = Path("/proc/self/mountinfo")
_MAIL = "message/rfc822"
_SECONDS = 3.0  # a program that has not ended by then has opened the file
_XDG_OPEN = {2: "the file is not there", 3: "no program for this kind of file is installed", 4: "the program failed"}

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class IndexedFile(NamedTuple):
    """A file as the index knows it."""

    path: str
    root: str | None  # the innermost root above it; None: it is below none
    inode: int | None  # None: the index does not have it any more
    kind: str = ""  # of the document
    part: str = ""  # a message of a mailbox
    page: int | None = None  # of a PDF, with the words of the query
    line: int | None = None  # of a text


class _Place(NamedTuple):
    """The folder of a file, reached without links."""

    descriptor: int
    top: PurePath  # the root, or the folder of a root that is a file, without links
    path: PurePath  # of the file, without links


class Launch(NamedTuple):
    """A program with its arguments; not started yet."""

    command: tuple[str, ...]
    revealed: str | None = None  # why the folder is shown in place of the file


class Question(NamedTuple):
    """What a person must agree to before a file is opened."""

    risk: Risk
    name: str  # of the file


def opening(
    file: IndexedFile, copies: Path, *, allowed: Collection[str] = (), application: str = ""
) -> Launch | Question:
    """The program that opens a file, the one that shows its folder, or a question.

    `copies` is the folder for single messages of mailboxes, `allowed` the kinds of risks that the person agreed to,
    `application` the program that the person chose (`choices`).
    """
    with _place(file) as place, _content(file, place) as content:
        if isinstance(content, str):
            return _revealing(place, content)
        reason = _reason_to_reveal(file, place, content)
        if reason is not None:
            return _revealing(place, reason)
        path, text = str(place.path), launchable.is_text(place.path.name, content.head)
        if _is_copied(file):
            path = str(messages.write_message(copies, received_file(content.descriptor, os.fsencode(place.path.name),
                                                                    content.status.st_size), file.part))  # fmt: skip
            risk = None
        else:
            risk = _risk(place, content)
        return _program(file, path, risk, text=text, allowed=allowed, application=application)


def revealing(file: IndexedFile) -> Launch:
    """The program that shows a file in its folder."""
    with _place(file) as place:
        return _revealing(place, None)


def choices(file: IndexedFile) -> list[Application]:
    """The programs that a person may choose for a file, the default first."""
    kinds = [_MAIL] if _is_copied(file) else [applications.type_of(PurePath(file.path).name)]
    kinds += [PLAIN_TEXT] if file.kind in ("text", "markdown", "code") else []
    found = (application for kind in kinds for application in applications.applications(kind))
    return list(dict.fromkeys(found))


def _is_copied(file: IndexedFile) -> bool:
    """Whether a mail program gets a copy: of one message of a mailbox, or of a mail whose name does not say so."""
    ending = PurePath(file.path).suffix.lower()
    return bool(file.part) or (file.kind == "mail" and ending not in (".eml", ".gz"))


def _program(
    file: IndexedFile, path: str, risk: Risk | None, *, text: bool, allowed: Collection[str], application: str
) -> Launch | Question:
    kind = applications.type_of(PurePath(path).name)
    question = None if risk is None or risk.kind in allowed else Question(risk, PurePath(path).name)
    if application:
        chosen = next((one for one in choices(file) if one.id == application), None)
        if chosen is None:
            raise InputError(f"{escaped(application[:100])}: no such program opens this kind of file; choose another")
        if question is not None and not (text and chosen.edits_text):
            return question
        return Launch(tuple(applications.command_for(chosen, path, page=file.page, line=file.line)))
    if text and risk is not None and sys.platform == "darwin":
        return Launch(("open", "-t", path))  # in the text editor
    program = applications.text_editor(kind) if text else applications.default_application(kind)
    knows_place = program is not None and applications.goes_to(program, page=file.page, line=file.line)
    if program is not None and (knows_place or (text and risk is not None)) and (text or question is None):
        return Launch(tuple(applications.command_for(program, path, page=file.page, line=file.line)))
    return question or Launch((_desktop_program(), path))


def start(launch: Launch) -> None:
    """Starts a program and looks how it ends. One that goes on has opened the file, or shows the folder."""
    program = shutil.which(launch.command[0])
    if program is None:
        raise InputError(
            f"{launch.command[0]} is not installed: use `foltr node open N --print` and open the file yourself"
        )
    quiet = subprocess.DEVNULL
    try:
        started = subprocess.Popen(
            [program, *launch.command[1:]], stdin=quiet, stdout=quiet, stderr=quiet, process_group=0
        )
    except OSError as problem:
        raise InputError(f"{program} cannot be started ({problem.strerror})") from None
    try:
        _check_end(launch, started.wait(_SECONDS))
    except subprocess.TimeoutExpired:
        threading.Thread(target=_log_end, args=(started,), daemon=True).start()  # a node that serves leaves no zombies


def _check_end(launch: Launch, code: int) -> None:
    if code == 0:
        return
    name = PurePath(launch.command[0]).name
    why = f": {_XDG_OPEN[code]}" if name == "xdg-open" and code in _XDG_OPEN else ""
    ended = f"signal {-code}" if code < 0 else f"exit code {code}"
    raise InputError(f"{name} could not open it (it ended with {ended}{why}); choose another program with “Open with”")


def _log_end(started: "subprocess.Popen[bytes]") -> None:
    code = started.wait()
    if code:
        _LOG.info("a program that was started for a file ended later with exit code %d", code)


@contextmanager
def _place(file: IndexedFile) -> Iterator[_Place]:
    if file.root is None:
        raise InputError(f"{escaped(file.path)}: is below none of the folders that are searched; search again")
    top = file.root.rpartition("/")[0] or "/" if file.path == file.root else file.root
    *folders, name = file.path[len(top.rstrip("/")) + 1 :].split("/")
    try:
        descriptor = _descended(top, folders)
    except OSError as problem:
        away = "" if os.path.exists(top) else f"; {escaped(top)} is away: connect the disk"  # noqa: PTH110
        raise InputError(f"{escaped(file.path)}: its folder cannot be opened ({problem.strerror}){away}") from None
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


class _Content(NamedTuple):
    """An open file."""

    descriptor: int
    status: os.stat_result
    head: bytes  # its first bytes


@contextmanager
def _content(file: IndexedFile, place: _Place) -> Iterator[_Content | str]:
    """The file at its place, open for reading; the reason where it cannot be read."""
    try:
        descriptor = os.open(place.path.name, _FILE, dir_fd=place.descriptor)
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise _replaced(file.path) from None
        yield f"it cannot be read ({problem.strerror})"
        return
    try:
        status = os.fstat(descriptor)
        content: _Content | str = "it is no regular file"
        if stat.S_ISREG(status.st_mode):
            try:
                content = _Content(descriptor, status, os.pread(descriptor, HEAD, 0))
            except OSError as problem:
                content = f"it cannot be read ({problem.strerror})"
        yield content
    finally:
        os.close(descriptor)


def _reason_to_reveal(file: IndexedFile, place: _Place, content: _Content) -> str | None:
    """Why a file is only shown in its folder."""
    if file.inode is None:
        return "the index does not have it any more"
    if _may_be_from_elsewhere(file.inode, content.status, os.fstat(place.descriptor)):
        return "since it was indexed, another file with several names (hard links) took its place"
    if has_control(str(place.path.parent)):
        return "the name of a folder above it has control characters"
    return launchable.hidden_name(place.path.name)


def _risk(place: _Place, content: _Content) -> Risk | None:
    try:
        mounts = _MOUNTS.read_text("utf-8", "surrogateescape")
    except OSError:  # other systems
        mounts = ""
    file_system = launchable.mount_type(content.status.st_dev, mounts)
    return launchable.risk_of(place.path.name, content.status, content.head, file_system=file_system)


def _may_be_from_elsewhere(inode: int, status: os.stat_result, folder: os.stat_result) -> bool:
    is_indexed = signed(status.st_ino) == inode and status.st_dev == folder.st_dev
    return not is_indexed and status.st_nlink > 1


def _revealing(place: _Place, reason: str | None) -> Launch:
    """Shows a file in its folder, or the folder where the file is gone. Finder would start a folder that is a bundle
    (`X.app`), so that it is asked to show what is in it; other desktops are given the folder."""
    if sys.platform == "darwin":
        return Launch(("open", "-R", str(place.path if _exists(place) else place.path.parent)), reason)
    inside = [folder for folder in place.path.parents if folder.is_relative_to(place.top)]
    safe = next((folder for folder in inside if not has_control(str(folder))), None)
    if safe is None:
        raise InputError(f"{escaped(str(place.top))}: has control characters in its name; open the folder yourself")
    return Launch((_desktop_program(), str(safe)), reason)


def _exists(place: _Place) -> bool:
    try:
        os.stat(place.path.name, dir_fd=place.descriptor, follow_symlinks=False)
    except OSError:
        return False
    return True


def _desktop_program() -> str:
    """What opens a file with the program for its type. Paths are absolute, so that none is ever an option."""
    return "open" if sys.platform == "darwin" else "xdg-open"
