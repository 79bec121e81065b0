"""The compile cache: machine code of kernels on disk, in one folder for every state of their sources.

A folder is named after a fingerprint: the syntax trees of `_kernels` and of the foltr modules that it imports, without
docstrings, and whether hand-written SIMD is used. An edited kernel therefore never runs stale code, whether numba was
imported before foltr or not, and an edited comment or docstring compiles nothing. numba's own cache cannot do this: it
looks at the source file of a kernel and not at those of its callees, and at all of its text. numba's settings stay as
they are, so functions of other packages are cached where they were.

A cache file is one overload of one kernel behind its checksum. A damaged file is deleted and the kernel is compiled
again. Where nothing can be written, nothing is cached.
"""

import ast
import contextlib
import hashlib
import os
import pickle
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from foltr._kernels.machine import USE_SIMD
from foltr.files import cache_home

_PACKAGE = Path(__file__).parent.parent
_FOLDERS = 2  # fingerprints whose machine code is stored; older ones are deleted
_CHECKSUM = 32  # bytes


def source_fingerprint(package: Path = _PACKAGE) -> str:
    """Changes with the code of the kernels and of what they import, and with the choice of SIMD."""
    digest = hashlib.sha256(f"simd={USE_SIMD}".encode())
    for name, tree in sorted(_sources(package).items()):
        digest.update(f"{name}\n{ast.dump(_without_docstrings(tree))}\n".encode())
    return digest.hexdigest()[:16]


def _sources(package: Path) -> dict[str, ast.Module]:
    """Syntax trees of the modules of `_kernels` and of the foltr modules that they import, directly or not."""
    found: dict[str, ast.Module] = {}
    waiting = [path.relative_to(package) for path in (package / "_kernels").rglob("*.py")]
    while waiting:
        path = waiting.pop()
        if path.as_posix() in found:
            continue
        tree = found[path.as_posix()] = ast.parse((package / path).read_bytes())
        waiting += [
            candidate for name in _imported(tree) for candidate in _files(name) if (package / candidate).exists()
        ]
    return found


def _imported(tree: ast.Module) -> Iterator[str]:
    """foltr modules that are imported anywhere in a module; names imported from a package may be modules as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "foltr":
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "foltr")


def _files(module: str) -> tuple[Path, Path]:
    below = Path(*module.split(".")[1:])
    return below.with_suffix(".py") if below.name else Path("__init__.py"), below / "__init__.py"


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:]
    return tree


def _prepared_folder() -> Path:
    """The folder of these sources, in NUMBA_CACHE_DIR where that is set; only the newest few stay."""
    home = Path(os.environ.get("NUMBA_CACHE_DIR") or cache_home() / "numba")
    folder = home / f"foltr-{source_fingerprint()}"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        newest = sorted(home.glob("foltr-*"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in newest[_FOLDERS:]:
            shutil.rmtree(old, ignore_errors=True)
    return folder


FOLDER = _prepared_folder()


class KernelCache:
    """Machine code of one kernel, as numba's dispatchers ask for it: the interface of numba.core.caching._Cache."""

    def __init__(self, function: Callable[..., Any], form: str = "kernel") -> None:
        self._name = f"{function.__module__}.{function.__qualname__}-{form}".replace("<", "").replace(">", "")
        self._stamp = "" if function.__module__.startswith("foltr._kernels.") else _file_digest(function)

    @property
    def cache_path(self) -> str:
        return str(FOLDER)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The compiled overload of this signature, or None where it has to be compiled."""
        context.refresh()
        path = self._path(signature, context.codegen())
        try:
            content = path.read_bytes()
        except OSError:
            return None
        checksum, payload = content[:_CHECKSUM], content[_CHECKSUM:]
        if hashlib.sha256(payload).digest() == checksum:
            with contextlib.suppress(Exception):  # an unreadable file costs a compilation and nothing else
                return CompileResult._rebuild(context, *pickle.loads(payload))  # noqa: S301  our own file
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        if compiled.lifted or compiled.library.has_dynamic_globals:  # holds addresses of this process
            return
        path = self._path(signature, compiled.codegen)
        payload = dumps(compiled._reduce())
        temporary = path.with_suffix(f".{os.getpid()}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(hashlib.sha256(payload).digest() + payload)
            temporary.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)

    def enable(self) -> None:
        """Always enabled."""

    def disable(self) -> None:
        """Always enabled."""

    def flush(self) -> None:
        """Nothing is held back."""

    def _path(self, signature: Any, codegen: Any) -> Path:
        versions = (sys.version_info[:2], numba.__version__, llvmlite.__version__)
        key = repr((versions, codegen.magic_tuple(), str(signature), self._stamp))
        return FOLDER / f"{self._name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.bin"


def _file_digest(function: Callable[..., Any]) -> str:
    """Of the source file of a kernel outside `_kernels`, which the fingerprint does not cover."""
    return hashlib.sha256(Path(function.__code__.co_filename).read_bytes()).hexdigest()
