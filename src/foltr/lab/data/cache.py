"""Parsed collections as .npy files that every process maps.

    <cache>/data/<key>/{features,labels,offsets,queries}.npy, entry.json

The key is a hash of the input: content of the source files, every option, the format version. An entry is
written to a temporary folder and renamed when it is complete; sizes are checked when it is opened, and a
damaged entry is built again. Where the cache cannot be written, the collection is held in
memory.
"""

import contextlib
import errno
import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from foltr.errors import StorageError
from foltr.files import cache_home
from foltr.lab.data import normalize
from foltr.lab.data.letor import Block
from foltr.types import Array, Dataset

FORMAT = 1  # raise it when the meaning of the files changes
_HEADER = 128  # bytes before the numbers, a multiple of 64 so that rows stay aligned
_BLOCK_BYTES = 1 << 23
_FULL = (errno.ENOSPC, errno.EDQUOT)
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST)
_A_DAY = 86_400


class Entry(NamedTuple):
    data: Dataset
    content: str  # hash of the numbers before scaling: the same whether the files were packed or not
    zscore: Array | None  # [2, d] centre and scale of this collection, where they were asked for


class Scaling(NamedTuple):
    kind: str = "none"
    zscore: Array | None = None  # of the training set; without it, zscore takes its own


def keep(ingredients: object, pieces: Callable[[], Iterator[Block]], scaling: Scaling) -> Entry:
    """The collection of `pieces`, built once; `ingredients` (JSON values) determine it."""
    given = None if scaling.zscore is None else hashlib.sha256(scaling.zscore.tobytes()).hexdigest()
    label = json.dumps([FORMAT, ingredients, scaling.kind, given])
    place = cache_home() / "data" / hashlib.sha256(label.encode()).hexdigest()[:32]
    found = _open(place, mapped=True)
    if found:
        return found
    workshop = _workshop(place)
    folder = workshop or Path(tempfile.mkdtemp(prefix="foltr-"))
    try:
        _fill(folder, pieces(), scaling, ingredients)
        entry = _install(folder, place) if workshop else _open(folder, mapped=False)
    except OSError as error:
        raise _storage_error(folder.parent, error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if entry is None:
        raise StorageError(f"{folder.parent}: parsed data could not be read back; is the disk full or failing?")
    return entry


def drop(contents: set[str]) -> int:
    """Deletes the entries that were parsed from files of these contents alone, and returns how many there were."""
    dropped = 0
    for facts in (cache_home() / "data").glob("*/entry.json"):
        with contextlib.suppress(OSError, ValueError):
            if contents.issuperset(_files_of(json.loads(facts.read_text()))) and contents:
                shutil.rmtree(facts.parent)
                dropped += 1
    return dropped


def _files_of(facts: dict[str, Any]) -> list[str]:
    """Hashes of the files that an entry was parsed from."""
    match facts.get("made_of"):
        case ["letor", [*sources], *_]:
            return [content for content, _ in sources]
    raise ValueError("an entry of something else")


def _storage_error(folder: Path, error: OSError) -> StorageError:
    if error.errno in _FULL:
        return StorageError(
            f"{folder}: no space left for parsed data; free some there, or set FOLTR_CACHE to a folder on another disk"
        )
    return StorageError(f"{folder}: parsed data could not be stored ({error}); FOLTR_CACHE names another folder")


def _workshop(place: Path) -> Path | None:
    """A temporary folder to build in; None where the cache cannot be written."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):
            _sweep(place)
        return Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    except OSError as error:
        if error.errno in _FULL:
            raise _storage_error(place.parent, error) from error
        return None


def _sweep(place: Path) -> None:
    """Removes temporary folders of killed processes: those older than a day."""
    for left in place.parent.glob(f".{place.name}-*"):
        if time.time() - left.stat().st_mtime > _A_DAY:
            shutil.rmtree(left, ignore_errors=True)


def _install(workshop: Path, place: Path) -> Entry | None:
    """Renames the finished folder; if another process was first, uses its entry."""
    with contextlib.suppress(FileNotFoundError):
        if place.exists() and _open(place, mapped=True) is None:
            broken = tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent)
            place.rename(Path(broken) / "entry")  # so that no process opens a half-removed entry
            shutil.rmtree(broken, ignore_errors=True)
    try:
        workshop.rename(place)
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
    return _open(place, mapped=True)


def _fill(folder: Path, pieces: Iterator[Block], scaling: Scaling, ingredients: object) -> None:
    labels, starts, queries, rows, width = [], [], [], 0, 0
    content = hashlib.sha256()
    moments: normalize.Moments | None = None
    with (folder / "features.npy").open("w+b") as file:
        _write(file, bytes(_HEADER))
        for block in pieces:
            width = block.features.shape[1]
            _write(file, block.features.data)
            content.update(block.features.data)
            if scaling.kind == "zscore" and scaling.zscore is None:
                moments = normalize.add_rows(moments or normalize.no_moments(width), block.features)
            labels.append(block.labels.copy())
            starts.append(block.starts + rows)
            queries.append(block.queries.copy())
            rows += len(block.labels)
        offsets = np.concatenate([*starts, [rows]]).astype(np.int64)
        zscore = normalize.centre_and_scale(moments) if moments else scaling.zscore
        _rescale(file, offsets, width, scaling._replace(zscore=zscore))
        file.seek(0)
        _write(file, _header(rows, width))
    small = {"labels": np.concatenate(labels), "offsets": offsets, "queries": np.concatenate(queries)}
    for name, values in small.items():
        content.update(values.data)
        np.save(folder / f"{name}.npy", values)
    if moments and zscore is not None:
        np.save(folder / "zscore.npy", zscore)
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    facts = {"content": content.hexdigest(), "sizes": sizes, "made_of": ingredients}
    (folder / "entry.json").write_text(json.dumps(facts, allow_nan=False))


def _write(file: IO[bytes], data: bytes | memoryview) -> None:
    file.write(data)


def _header(rows: int, width: int) -> bytes:
    """Version 1.0 of the .npy format, of a fixed length, since the row count is known last."""
    shape = repr({"descr": "<f4", "fortran_order": False, "shape": (rows, width)}).encode()
    return b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little") + shape.ljust(_HEADER - 11) + b"\n"


def _rescale(file: IO[bytes], offsets: Array, width: int, scaling: Scaling) -> None:
    """Scale the written rows, some whole queries at a time.

    By plain reads and writes: a full disk under a mapped file kills the process without an error.
    """
    first = 0 if scaling.kind != "none" else len(offsets)
    while first < len(offsets) - 1:
        limit = offsets[first] + _BLOCK_BYTES // (4 * width)
        last = max(first + 1, int(np.searchsorted(offsets, limit, side="right")) - 1)
        where, size = (
            _HEADER + 4 * width * int(offsets[first]),
            4 * width * int(offsets[last] - offsets[first]),
        )
        file.seek(where)
        features = np.frombuffer(bytearray(file.read(size)), np.float32).reshape(-1, width)
        normalize.apply(scaling.kind, features, offsets[first : last + 1] - offsets[first], scaling.zscore)
        file.seek(where)
        _write(file, features.data)
        first = last


def _open(place: Path, *, mapped: bool) -> Entry | None:
    """The entry; None if it is absent or its files were changed."""
    try:
        facts = json.loads((place / "entry.json").read_text())
        if any((place / name).stat().st_size != size for name, size in facts["sizes"].items()):
            return None
        arrays = {name: _load(place / name, mapped) for name in facts["sizes"]}
        data = Dataset(*(arrays[f"{field}.npy"] for field in Dataset._fields))
        return Entry(data, facts["content"], arrays.get("zscore.npy"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError):
        return None


def _load(path: Path, mapped: bool) -> Array:
    array = np.asarray(np.load(path, mmap_mode="r" if mapped else None))
    array.flags.writeable = False  # so that kernels are compiled once, for mapped and for held data
    return array
