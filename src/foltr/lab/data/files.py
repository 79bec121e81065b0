"""Facts about source files that cost a full read, remembered while size and time of change stay the same.

They lie in `<cache>/data/files.json`; losing them costs only time.
"""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from foltr.atomic import cache_home
from foltr.errors import DataError

Fact = TypeVar("Fact", int, str)


def recall(path: Path, what: str, read: Callable[[], Fact]) -> Fact:
    """The remembered fact, or the computed one, remembered from now on."""
    state = path.stat()
    name, stamp = f"{what} {path.resolve()}", [state.st_size, state.st_mtime_ns]
    known = _book().get(name)
    if isinstance(known, list) and known[0] == stamp:
        fact: Fact = known[1]
        return fact
    value = read()
    with contextlib.suppress(OSError):
        _write({**_book(), name: [stamp, value]})
    return value


def content_hash(path: Path) -> str:
    """sha256 of the bytes of a file."""

    def digest() -> str:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    try:
        return recall(path, "sha256", digest)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error})") from error


def _place() -> Path:
    return cache_home() / "data" / "files.json"


def _book() -> dict[str, object]:
    try:
        book = json.loads(_place().read_text())
    except (OSError, ValueError):
        return {}
    return book if isinstance(book, dict) else {}


def _write(book: dict[str, object]) -> None:
    _place().parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(prefix=".files-", dir=_place().parent)
    try:
        with os.fdopen(handle, "w") as file:
            json.dump(book, file, allow_nan=False)
        Path(draft).replace(_place())
    finally:
        Path(draft).unlink(missing_ok=True)
