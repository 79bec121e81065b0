"""Open a text file as it lies on disk: plain, .gz, .xz, .bz2, or one member of a .zip.

A member is written `archive.zip!folder/file.txt`. Whatever goes wrong while unpacking is a `DataError` that
names the file.
"""

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from foltr.errors import DataError

MEMBER = "!"
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile)
_OPENERS = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


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
