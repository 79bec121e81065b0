"""Single runs on disk: each in one file named by everything that decides its numbers, so none is computed twice.

    <out>/singles/<key>.npz

A figure that needs a run which another figure made finds it here; a command that was stopped goes on from here. A
file appears whole or not at all. The key covers the setting, the data, the seed and the code that computes.
"""

import ast
import errno
import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import foltr
from foltr.errors import StorageError
from foltr.experiments.single import Single
from foltr.experiments.spec import Setting, resolved

# the modules that decide numbers; the data's own checksum stands for how it was read
_NUMERIC = ("rng", "kernel", "metrics", "rankers/", "clicks/", "learners/", "privacy/mechanisms", "federation/",
            "engines/compiled", "experiments/single")  # fmt: skip


def key_of(made: Setting, *, checksum: str, fold: int, seed: int) -> str:
    """Names a single run."""
    plain = resolved(made)
    plain.pop("part")
    plain["data"] = {"checksum": checksum, "fold": fold}
    plain["runs"] = {"evaluate_every": made.runs.evaluate_every, "seed": seed}
    content = json.dumps([plain, numeric_code()], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


@cache
def numeric_code() -> str:
    """Changes with the code that computes; comments and docstrings do not count."""
    home = Path(foltr.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(home.rglob("*.py")):
        name = path.relative_to(home).with_suffix("").as_posix()
        if name.startswith(_NUMERIC):
            digest.update(ast.dump(_bare(ast.parse(path.read_bytes()))).encode())
    return digest.hexdigest()


def _bare(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return tree


def path_of(out: Path, key: str) -> Path:
    return out / "singles" / f"{key}.npz"


def save(out: Path, key: str, single: Single) -> None:
    with whole_file(path_of(out, key)) as temporary, temporary.open("wb") as file:
        arrays: dict[str, Any] = {name: np.asarray(value) for name, value in single._asdict().items()}
        np.savez(file, **arrays)


def load(out: Path, key: str) -> Single | None:
    """A finished single run, or None; a damaged file counts as none and is made anew."""
    try:
        with np.load(path_of(out, key)) as arrays:
            values: dict[str, Any] = {name: arrays[name] for name in Single._fields}
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
        return None
    values |= {"interactions": int(values["interactions"]), "seconds": float(values["seconds"])}
    return Single(**values)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path that becomes `path` when all went well, and vanishes otherwise."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
    except OSError as problem:
        raise _explained(path, problem) from None
    temporary = Path(name)
    try:
        yield temporary
        temporary.replace(path)
    except OSError as problem:
        raise _explained(path, problem) from None
    finally:
        temporary.unlink(missing_ok=True)


def _explained(path: Path, problem: OSError) -> StorageError:
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(f"{path}: the disk is full; make room or choose another folder with --out, then run again")
    return StorageError(f"{path}: cannot be written ({problem.strerror}); choose another folder with --out")
