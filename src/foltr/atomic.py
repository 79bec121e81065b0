"""Atomic writes, JSON without NaN, and error messages for a full disk."""

import contextlib
import errno
import io
import json
import math
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from foltr.errors import StorageError


def cache_home() -> Path:
    """Where this user's cached data and machine code live (`FOLTR_CACHE` overrides)."""
    chosen = os.environ.get("FOLTR_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "foltr"


@contextmanager
def atomic_write(path: Path, *, instead: str = "another folder") -> Iterator[Path]:
    """A temporary path that is renamed to `path` on success and removed on failure."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as written:  # content before the name: a power cut leaves no empty file
            os.fsync(written.fileno())
        temporary.replace(path)
    except OSError as problem:
        raise explained(path, problem, instead) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def check_writable(folder: Path, *, instead: str = "another folder") -> None:
    """Refuses a folder in which no file can be written; it is created where it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        raise explained(folder, problem, instead) from None


def write_durably(path: Path, content: bytes) -> None:
    """Whole or not at all, readable by the owner only; content and name are on the disk when this returns."""
    with atomic_write(path) as temporary:
        temporary.touch(mode=0o600)
        temporary.write_bytes(content)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def is_apart(witness: Path, folder: Path) -> bool:
    """Whether a witness is outside of the folder that it watches, so that both are not restored from one backup."""
    return not witness.resolve().is_relative_to(folder.resolve())


def write_arrays(path: Path, arrays: Mapping[str, Any], *, instead: str = "another folder") -> int:
    """Writes an .npz file, returns its size; packed in memory first, because np.savez hides errors of a full disk."""
    with atomic_write(path, instead=instead) as temporary:
        packed = io.BytesIO()
        np.savez(packed, **arrays)
        return temporary.write_bytes(packed.getbuffer())


def write_text(path: Path, text: str, *, instead: str = "another folder") -> None:
    with atomic_write(path, instead=instead) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any, *, instead: str = "another folder") -> None:
    write_text(path, dump_json(content), instead=instead)


def dump_json(content: Any) -> str:
    """Every JSON text that foltr writes: NaN becomes null and an infinity "infinite", since JSON has neither."""
    return json.dumps(_without_nan(content), indent=1, ensure_ascii=False, allow_nan=False)


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "infinite" if value > 0 else "-infinite"
    return value


def explained(path: Path, problem: OSError, instead: str) -> StorageError:
    """An error of the operating system as a message that says what to do."""
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(f"{path}: the disk is full; free some space or choose {instead}, then try again")
    if problem.errno == errno.EFBIG:
        return StorageError(f"{path}: a limit on the size of files was reached; raise it (ulimit -f), then try again")
    return StorageError(f"{path}: cannot be written ({problem.strerror or problem}); choose {instead}")
