"""The one door to numba: compile once, keep the machine code in the user's cache, stay typed.

`kernel` compiles a function that holds no Python object, allocates nothing, and lets other threads run meanwhile.
Sums may be reordered so that the processor can add several terms at once; NaN and infinity keep their meaning.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from foltr.atomic import cache_home

Function = TypeVar("Function", bound=Callable[..., Any])


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def source_fingerprint() -> str:
    """Changes with any source file that holds kernels: numba alone would keep a kernel whose callees have changed."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.parent.rglob("*.py")):
        content = path.read_bytes()
        if path.name in ("rng.py", "metrics.py", "types.py") or b"_kernels" in content or "_kernels" in path.parts:
            digest.update(content)
    return digest.hexdigest()[:16]


# numba reads this once, when it is imported
_machine_code = Path(os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_home() / "numba" / source_fingerprint())))
_CACHED = _writable(_machine_code)

import numba  # noqa: E402

# No reference counts: a kernel works in arrays that its caller made, and never makes one.
_OPTIONS = {
    "cache": _CACHED,
    "nogil": True,
    "_nrt": False,
    "forceinline": True,  # one copy of every sum: compiled here or read from the cache, its digits are the same
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
}


def kernel(function: Function) -> Function:
    """Compile `function` to machine code at its first call."""
    compiled: Function = numba.njit(**_OPTIONS)(function)
    return compiled


def inlined(function: Function) -> Function:
    """Compile a small function of numbers into the kernels that call it."""
    compiled: Function = numba.njit(**_OPTIONS, inline="always")(function)
    return compiled
