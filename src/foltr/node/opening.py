"""Opening a result with the program of the desktop. What would run is only revealed: its folder is opened instead.

A search shows what somebody may have sent by mail or left in a download folder, and a title says nothing about what a
file does. So a file is opened only when nothing about it says that it would be executed: not its permissions, not its
ending, not its first bytes. Browsers block links to files, so that a page asks the node to do this too.
"""

import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

from foltr.errors import InputError

_LAUNCHERS = (
    ".desktop .directory .lnk .url .webloc .scf .appref-ms .library-ms .search-ms .service .action .theme .kdelnk"
)
_PROGRAMS = (
    ".exe .com .scr .pif .msi .msp .dll .cpl .sys .app .appimage .bin .run .out .elf .so .dylib .o .ko .jar .jnlp"
)
_PACKAGES = ".deb .rpm .snap .flatpak .flatpakref .flatpakrepo .apk .pkg .dmg .mpkg .iso .img .xpi .crx .whl .reg"
_SCRIPTS = (
    ".sh .bash .zsh .fish .csh .ksh .tcsh .command .tool .bat .cmd .ps1 .psm1 .vbs .vbe .js .jse .mjs .ws .wsf .hta"
    " .py .pyw .pyc .pyz .pl .rb .php .lua .tcl .awk .scpt .scptd .applescript .workflow .terminal .gadget .inf .ipynb"
    " .docm .dotm .xlsm .xltm .pptm .potm .r .jl .groovy .ahk .au3 .wsh"
)
RUNS = frozenset(f"{_LAUNCHERS} {_PROGRAMS} {_PACKAGES} {_SCRIPTS}".split())

_MAGIC = (
    b"#!",
    b"\x7fELF",
    b"MZ",
    b"\xfe\xed\xfa",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"!<arch>",
)
_HEAD = 4096
_EXECUTABLE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


def reason_not_to_open(path: Path) -> str | None:
    """Why a file is only revealed; None when it may be opened."""
    target = path.resolve()
    try:
        found = target.stat()
    except OSError as problem:
        return f"it cannot be read ({problem.strerror})"
    if not stat.S_ISREG(found.st_mode):
        return "it is no regular file"
    if found.st_mode & _EXECUTABLE:
        return "it is marked as executable"
    endings = {Path(one.name.rstrip(". ")).suffix.lower() for one in (path, target)}  # Windows drops dots and spaces
    if endings & RUNS:
        return f"files with the ending {min(endings & RUNS)} may run as a program"
    return _reason_in_content(target)


def open_file(path: Path) -> str | None:
    """Opens a file, or its folder when the file could run; gives the reason for the latter."""
    reason = reason_not_to_open(path)
    target = path.resolve()
    _launch(target if reason is None else target.parent)
    return reason


def show_folder(path: Path) -> None:
    """Opens the folder of a file."""
    _launch(path.parent)


def _reason_in_content(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as problem:
        return f"it cannot be read ({problem.strerror})"
    if head.startswith(_MAGIC):
        return "it begins as a program or a script does"
    if b"[Desktop Entry]" in head:
        return "it is a launcher"
    return None


def _launch(path: Path) -> None:
    """Starts the desktop's program and does not wait for it; the path is absolute, so that it is never an option."""
    if sys.platform == "win32":
        os.startfile(path)  # noqa: S606
        return
    name = "open" if sys.platform == "darwin" else "xdg-open"
    program = shutil.which(name)
    if program is None:
        raise InputError(f"{name} is not installed: use `foltr node open N --print` and open the file yourself")
    quiet = subprocess.DEVNULL
    started = subprocess.Popen([program, str(path)], stdin=quiet, stdout=quiet, stderr=quiet, process_group=0)
    threading.Thread(target=started.wait, daemon=True).start()  # so that a node that serves leaves no zombies
