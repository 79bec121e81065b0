"""An owner's index on disk: one .npz of plain arrays and a header, written atomically, read without pickle.

The header (JSON) names kind, version, shape and hash; of the key it holds only the fingerprint. A file is validated
before use: arrays are stored uncompressed, so no array can be larger than the file that holds it, and shapes, sizes and
orders are compared with the header. Files of earlier versions hold sketches: those of `foltr silo build` are refused,
of noised sketches (`releases`) only what was spent is read.
"""

import json
import zipfile
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from foltr.errors import DataError
from foltr.files import write_arrays
from foltr.silo.index import VERSION_BYTES, Index
from foltr.silo.sketches import SketchShape
from foltr.types import Array

VERSION = 2  # 1: of groups and analysers that are no longer in use
MAX_BYTES = 1 << 36
_HEADER_BYTES = 4096
_TYPES = {"hashes": np.uint64, "starts": np.int64, "documents": np.int32, "counts": np.int32, "versions": np.uint8}


def save_index(path: Path, index: Index) -> int:
    """Returns the bytes on disk."""
    header = {"version": VERSION, **index.shape._asdict(), "kind": "index", "top": index.top}
    return write_arrays(path, {"header": _as_array(header), **{name: getattr(index, name) for name in _TYPES}})


def _as_array(content: dict[str, Any]) -> Array:
    return np.frombuffer(json.dumps(content, allow_nan=False).encode(), np.uint8)


def load_index(path: Path) -> Index:
    """An index as it was saved."""
    header, arrays = _read(path, "index")
    shape, top = _shape(path, header), header.get("top")
    _expect(path, isinstance(top, int) and top >= 1, "it says no K")
    parts = {name: _array(path, arrays, name, kind) for name, kind in _TYPES.items()}
    loaded = Index(shape, int(top or 1), **parts)
    starts, documents = loaded.starts, loaded.documents
    fits = starts.shape == (len(loaded.hashes) + 1,) and loaded.counts.shape == documents.shape
    _expect(path, fits and loaded.versions.shape[1:] == (VERSION_BYTES,), "its arrays do not fit each other")
    _expect(path, np.all(loaded.hashes[1:] > loaded.hashes[:-1]), "its words are not in order")
    _expect(path, starts[0] == 0 and starts[-1] == len(documents) and np.all(np.diff(starts) > 0), "its lists overlap")
    inside = np.all((documents >= 0) & (documents < len(loaded.versions)))
    _expect(path, inside and np.all(loaded.counts > 0), "a list names a document that is not there")
    return loaded


def releases_of_earlier_version(path: Path) -> tuple[dict[str, Any], list[int]]:
    """Header of a file of noised sketches, and how often each of its documents was released."""
    _, arrays = _read(path, "sketch")
    _expect(path, "times" in arrays and "about" in arrays, "it holds no releases of documents")
    try:
        return json.loads(bytes(arrays["about"])), [int(times) for times in arrays["times"].ravel().tolist()]
    except ValueError as error:
        _damaged(path, "what it says about itself is no JSON", error)


def _read(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of a file of this kind; otherwise an error that says in one sentence what is wrong."""
    if not path.is_file():
        raise DataError(f"{path} does not exist; write an index there first (foltr silo build)")
    try:
        with zipfile.ZipFile(path) as packed:
            arrays = {part.filename.removesuffix(".npy"): _unpack(packed, part, path) for part in packed.infolist()}
        header = json.loads(bytes(arrays.pop("header")))
    except (zipfile.BadZipFile, NotImplementedError, KeyError, ValueError, EOFError, OSError, RuntimeError) as error:
        _damaged(path, str(error), error)
    _expect(path, isinstance(header, dict), "its header is no JSON object")
    if header.get("kind") == "rtk" and kind == "index":
        raise DataError(
            f"{path} holds a sketch of an earlier version of foltr, which shows an asker more than the asked word; "
            "build it again: foltr silo build now writes an index"
        )
    if header.get("version") != VERSION or header.get("kind") != kind:
        raise DataError(
            f"{path} holds {header.get('kind')!r}, version {header.get('version')!r}; "
            f"expected {kind!r}, version {VERSION}: give another file, or build the index again with this version of "
            "foltr (foltr silo build), under a new key"
        )
    return header, arrays


def _unpack(packed: zipfile.ZipFile, part: zipfile.ZipInfo, path: Path) -> Array:
    if part.compress_type != zipfile.ZIP_STORED or part.file_size > min(path.stat().st_size, MAX_BYTES):
        raise ValueError(f"{part.filename} is compressed, or larger than the file")
    with packed.open(part) as file:
        shape, kind = _announced(file)
        if any(side < 0 for side in shape) or kind.hasobject:
            raise ValueError(f"{part.filename} is no plain array")
        size = kind.itemsize
        for side in shape:
            size *= side
        if size > part.file_size or (part.filename == "header.npy" and size > _HEADER_BYTES):
            raise ValueError(f"{part.filename} announces more than it holds")
    with packed.open(part) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _announced(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("an array in a layout of another version")
    shape, _, kind = np.lib.format.read_array_header_1_0(file)
    return shape, kind


def _shape(path: Path, header: dict[str, Any]) -> SketchShape:
    try:
        shape = SketchShape(*(header[name] for name in SketchShape._fields))
    except KeyError as error:
        _damaged(path, f"its header lacks {error}", error)
    whole = all(isinstance(side, int) and side >= 1 for side in shape[:2])
    _expect(path, whole and all(isinstance(text, str) for text in shape[2:]), "its header has no shape")
    return shape


def _array(path: Path, arrays: dict[str, Array], name: str, kind: type) -> Array:
    _expect(path, name in arrays and arrays[name].dtype == kind, f"it lacks {name}")
    return arrays[name]


def _expect(path: Path, right: Any, otherwise: str) -> None:
    if not right:
        _damaged(path, otherwise)


def _damaged(path: Path, why: str, cause: Exception | None = None) -> NoReturn:
    raise DataError(f"{path} is damaged ({why}); restore it from a copy or build it again") from cause
