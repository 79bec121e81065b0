"""Roots as people name them: folders and files that are searched."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from foltr.errors import InputError

_SYSTEM = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/usr", "/var")
_SHARED = ("/run/media/", "/usr/share/doc", "/usr/share/man")  # where people's disks and documents are


def absolute(path: str | Path) -> str:
    """A path from the root on; `~` is the home folder, and `~name` that of a user, unless there is no such user."""
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - links stay as they are; Path would raise


def check_root(path: str) -> None:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{path!r}: the name is no UTF-8; add a folder above it") from None
    if not Path(path).exists():
        raise InputError(f"{path}: there is no such folder or file")


def warning(path: str) -> str | None:
    """Why somebody may not want to search a folder; None: nothing speaks against it."""
    real = os.path.realpath(path)
    home = os.path.realpath(Path.home())
    if real == "/":
        return "this is the whole machine"
    if real == home or (f"{home}/").startswith(f"{real}/") or os.path.dirname(real) in ("/home", "/Users"):  # noqa: PTH120
        return "this is a whole home folder, with all that programs keep there"
    if any(real == folder or real.startswith(f"{folder}/") for folder in _SYSTEM) and not real.startswith(_SHARED):
        return "this is a folder of the system"
    return None


def united(old: Sequence[str], new: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*old, *new]))


def bytes_below(folder: Path) -> int:
    """The size of all files below a folder."""
    total = 0
    for name, _, files in os.walk(folder):
        for file in files:
            try:
                total += (Path(name) / file).lstat().st_size
            except FileNotFoundError:  # an index that is being written
                continue
    return total
