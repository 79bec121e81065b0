"""Roots as people name them: folders and files that are searched."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from foltr.errors import InputError


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
