"""Source files: opening them as they are on disk, and facts about them that cost a full read.

A file is plain, .gz, .xz, .bz2, or one member of a .zip, which is written `archive.zip!folder/file.txt`. Whatever goes
wrong while unpacking is a `DataError` that names the file.

Facts are remembered while size and time of change stay the same. They lie in `<cache>/data/files.json`; losing them
costs only time.
"""

import bz2
import contextlib
import gzip
import hashlib
import json
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

from foltr.errors import DataError
from foltr.files import cache_home, write_text

Fact = TypeVar("Fact", int, str)
MEMBER = "!"
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile)
_OPENERS = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def packed(path: Path) -> Path | None:
    """The file of this name as it is on disk: plain, or packed with an ending more."""
    return next((found for ending in ("", *_OPENERS) if (found := path.with_name(path.name + ending)).is_file()), None)


def file_of(source: str) -> Path:
    """The file on disk behind a source."""
    return Path(source.split(MEMBER, 1)[0] if f".zip{MEMBER}" in source else source)


def _open(source: str) -> IO[bytes]:
    path = file_of(source)
    if str(path) != source:
        with zipfile.ZipFile(path) as archive:
            return archive.open(source[len(str(path)) + len(MEMBER) :])
    opener = _OPENERS.get(path.suffix, open)
    return opener(path, "rb")  # type: ignore[operator]  # four openers, one shape


@contextmanager
def opened(source: str) -> Iterator[IO[bytes]]:
    """The unpacked bytes of a source; every failure to open or unpack names it."""
    try:
        with _open(source) as handle:
            yield handle
    except FileNotFoundError as error:
        raise DataError(f"{source}: there is no such file") from error
    except KeyError as error:
        raise DataError(f"{source}: the archive has no such member") from error
    except _DAMAGE as error:
        raise DataError(f"{source}: damaged or cut short ({error}); fetch the file again") from error
    except (OSError, RuntimeError) as error:  # no permission; an archive with a password or an exotic method
        raise DataError(f"{source}: cannot be read ({error})") from error


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
    write_text(_place(), json.dumps(book, allow_nan=False))
