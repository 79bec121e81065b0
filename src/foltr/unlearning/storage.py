"""Named arrays in one .npz file: written whole or not at all, read without pickle, damaged files named as such."""

import zipfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from foltr.atomic import write_arrays
from foltr.errors import StorageError
from foltr.types import Array


def write(path: Path, kind: str, arrays: Mapping[str, Array]) -> int:
    """Writes the arrays under the name of their kind; returns the bytes on disk."""
    return write_arrays(path, {"kind": np.array(kind), **arrays})


def read(path: Path, kind: str, names: Collection[str]) -> dict[str, Array]:
    """The arrays of that kind."""
    if not path.is_file():
        raise StorageError(f"{path} does not exist; save a {kind.partition('-')[0]} there first")
    try:
        with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as file:
            found = str(file["kind"])
            arrays = {name: file[name] for name in names} if found == kind else {}
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, OSError) as error:
        raise damaged(path, str(error)) from error
    if found != kind:
        raise StorageError(f"{path} holds {found!r}, expected {kind!r}; give a file that this version saved as that")
    return arrays


def damaged(path: Path, why: str) -> StorageError:
    return StorageError(f"{path} is damaged ({why}); restore it from a copy or make it again")
