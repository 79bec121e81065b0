"""Single runs on disk: each in one file named by everything that decides its numbers, so none is computed twice.

    <out>/singles/<key>.npz

A figure that needs a run which another figure made finds it here; a command that was stopped goes on from here. A
file appears whole or not at all (`files`). The key covers the setting, the data, the seed and the code that computes.
"""

import ast
import hashlib
import json
import lzma
import zipfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import foltr
from foltr.lab.simulation.evaluation import RunResult
from foltr.lab.spec.setting import AnySetting, SiloSetting, resolved
from foltr.atomic import write_arrays

ELSEWHERE = "another folder with --out"

_NUMERIC = ("",)  # every module
_OF_SILOS = _NUMERIC


def key_of(made: AnySetting, *, checksum: str, fold: int, seed: int) -> str:
    """Names a single run."""
    plain = resolved(made)
    plain.pop("part")
    plain["data"] = {"checksum": checksum, "fold": fold}
    plain["runs"] = {"evaluate_every": made.runs.evaluate_every, "seed": seed}
    code = numeric_code(_OF_SILOS) if isinstance(made, SiloSetting) else numeric_code()
    content = json.dumps([plain, code], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


@cache
def numeric_code(modules: tuple[str, ...] = _NUMERIC) -> str:
    """Changes with the code that computes; comments, docstrings and annotations do not count."""
    home = Path(foltr.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(home.rglob("*.py")):
        name = path.relative_to(home).with_suffix("").as_posix()
        if name.startswith(modules):
            digest.update(ast.dump(_bare(ast.parse(path.read_bytes()))).encode())
    return digest.hexdigest()


def _bare(tree: ast.Module) -> ast.Module:
    """Without docstrings and annotations of functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
    return tree


def path_of(out: Path, key: str) -> Path:
    return out / "singles" / f"{key}.npz"


def save(out: Path, key: str, single: RunResult) -> None:
    arrays = {name: np.asarray(value) for name, value in single._asdict().items()}
    write_arrays(path_of(out, key), arrays, instead=ELSEWHERE)


def load(out: Path, key: str) -> RunResult | None:
    """A finished single run, or None; a damaged file counts as none and is made anew."""
    path = path_of(out, key)
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.testzip() is not None:  # numpy does not read on to where the checksum is
                return None
        with np.load(path) as arrays:
            values: dict[str, Any] = {name: arrays[name] for name in RunResult._fields}
    except _DAMAGE:
        return None
    values |= {"interactions": int(values["interactions"]), "seconds": float(values["seconds"])}
    return RunResult(**values)


# what an archive with a wrong byte somewhere makes of itself
_DAMAGE = (OSError, KeyError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
