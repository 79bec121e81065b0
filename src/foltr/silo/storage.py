"""Sketches on disk: one .npz of plain arrays and a header, written atomically, read without pickle.

The header (JSON) names kind, version, shape and hash; of the key it holds only the fingerprint. A file is validated
before use: arrays are stored uncompressed, so no array can be larger than the file that holds it, and shapes, sizes and
orders are compared with the header.
"""

import json
import os
import zipfile
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from foltr.atomic import write_arrays
from foltr.errors import DataError
from foltr.silo import rtk, sketches
from foltr.silo.sketches import SketchShape
from foltr.types import Array

VERSION = 2  # 1: of groups and analysers that are no longer in use
MAX_BYTES = 1 << 36
_HEADER_BYTES = 4096


def save(
    path: Path, sketch: sketches.Sketch | rtk.RtkSketch, *, about: dict[str, Any] | None = None,
    more: dict[str, Array] | None = None,
) -> int:  # fmt: skip
    """Writes a sketch, with what else is known `about` it and `more` arrays; returns the bytes on disk."""
    header: dict[str, Any] = {"version": VERSION, **sketch.shape._asdict()}
    if isinstance(sketch, sketches.Sketch):
        header |= {"kind": "sketch", "variant": sketch.kind}
        arrays = {"cells": sketch.cells}
    else:
        header |= {"kind": "rtk", "variant": sketch.variant, "top": sketch.top}
        members = np.array(sorted(sketch.members), np.int32)
        arrays = {"entries": sketch.entries, "sizes": sketch.sizes, "limits": sketch.limits, "members": members}
    described = {} if about is None else {"about": _as_array(about)}
    return write_arrays(path, {"header": _as_array(header), **described, **arrays, **(more or {})})


def sync_folder(path: Path) -> None:
    """The name of a file that was just written, too, survives a power cut."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _as_array(content: dict[str, Any]) -> Array:
    return np.frombuffer(json.dumps(content, allow_nan=False).encode(), np.uint8)


def load_sketch(path: Path) -> sketches.Sketch:
    """A count or count-min sketch as it was saved."""
    return load_with(path, ())[0]


def load_with(path: Path, names: tuple[str, ...]) -> tuple[sketches.Sketch, dict[str, Any], dict[str, Array]]:
    """A sketch, what is known about it, and the arrays of these names."""
    header, arrays = _read(path, "sketch")
    shape = _shape(path, header)
    _expect(path, header.get("variant") in sketches.KINDS, "it holds no known sketch")
    cells = _array(path, arrays, "cells", np.int32)
    _expect(path, cells.ndim in (2, 3) and cells.shape[-2:] == shape[:2], "its cells do not fit its header")
    _expect(path, all(name in arrays for name in names), f"it lacks one of {', '.join(names)}")
    about: dict[str, Any] = {}
    if "about" in arrays:
        try:
            about = json.loads(bytes(arrays["about"]))
        except ValueError as error:
            _damaged(path, "what it says about itself is no JSON", error)
    return sketches.Sketch(header["variant"], shape, cells), about, {name: arrays[name] for name in names}


def load_rtk(path: Path) -> rtk.RtkSketch:
    """An RTK-sketch as it was saved."""
    header, arrays = _read(path, "rtk")
    shape, variant, top = _shape(path, header), header.get("variant"), header.get("top")
    if variant not in rtk.VARIANTS or not isinstance(top, int) or top < 1:
        _damaged(path, "it holds no known variant")
    entries = _array(path, arrays, "entries", rtk.entry_type(variant))
    sizes, limits = (_array(path, arrays, name, np.int32) for name in ("sizes", "limits"))
    members = _array(path, arrays, "members", np.int32)
    loaded = rtk.RtkSketch(variant, shape, top, set(members.tolist()), entries, sizes, limits)
    _check_cells(path, loaded)
    return loaded


def _check_cells(path: Path, loaded: rtk.RtkSketch) -> None:
    cells, capacity = loaded.shape[:2], loaded.entries.shape[-1]
    fits = loaded.sizes.shape == loaded.limits.shape == cells and loaded.entries.shape == (*cells, capacity)
    _expect(path, fits and capacity >= loaded.top, "its cells do not fit its header")
    _expect(path, np.all((loaded.sizes >= 0) & (loaded.sizes <= capacity)), "a cell holds more than its capacity")
    inside = np.arange(capacity) < loaded.sizes[..., None]
    held = (loaded.entries[inside] & loaded.entries.dtype.type(0xFFFFFFFF)).astype(np.int64)
    members = np.fromiter(loaded.members, np.int64)
    _expect(path, np.all(np.isin(held, members)) and np.all(members >= 0), "a cell names a document that is no member")
    _expect(path, np.all(_in_order(loaded) | ~inside[..., 1:]), "a cell is not in order")


def _in_order(loaded: rtk.RtkSketch) -> Array:
    """[z, w, capacity - 1]: sorted, or a heap in which no entry weighs less than its parent."""
    if loaded.variant == "sampled":
        return loaded.entries[..., 1:] >= loaded.entries[..., :-1]
    weights = loaded.entries >> 32
    if loaded.variant == "sound":
        weights = np.abs(weights)
    parents = np.arange(weights.shape[-1] - 1) // 2
    return weights[..., 1:] >= weights[..., parents]


def _read(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of a file of this kind; otherwise an error that says in one sentence what is wrong."""
    if not path.is_file():
        raise DataError(f"{path} does not exist; save a sketch there first")
    try:
        with zipfile.ZipFile(path) as packed:
            arrays = {part.filename.removesuffix(".npy"): _unpack(packed, part, path) for part in packed.infolist()}
        header = json.loads(bytes(arrays.pop("header")))
    except (zipfile.BadZipFile, NotImplementedError, KeyError, ValueError, EOFError, OSError, RuntimeError) as error:
        _damaged(path, str(error), error)
    _expect(path, isinstance(header, dict), "its header is no JSON object")
    if header.get("version") != VERSION or header.get("kind") != kind:
        raise DataError(
            f"{path} holds {header.get('kind')!r}, version {header.get('version')!r}; "
            f"expected {kind!r}, version {VERSION}: give another file, or build the sketch again with this version of "
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
    raise DataError(f"{path} is damaged ({why}); restore it from a copy or build the sketch again") from cause
