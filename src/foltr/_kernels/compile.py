"""How kernels are compiled: typed, cached, without Python objects or allocations.

Kernels let other threads run meanwhile. Sums may be reordered so that the processor can add several terms at once; NaN
and infinity keep their meaning.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from foltr._kernels.cache import KernelCache

Function = TypeVar("Function", bound=Callable[..., Any])

# No reference counts: a kernel works in arrays that its caller allocated, and never allocates one.
OPTIONS = {
    "nogil": True,
    "_nrt": False,
    "forceinline": True,  # one copy of every sum: compiled here or read from the cache, its digits are the same
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
}


def kernel(function: Function) -> Function:
    """Compile `function` to machine code at its first call."""
    compiled = numba.njit(**OPTIONS)(function)
    compiled._cache = KernelCache(function)
    return compiled


def inlined(function: Function) -> Function:
    """Compile a small function of numbers into the kernels that call it."""
    compiled = numba.njit(**OPTIONS, inline="always")(function)
    compiled._cache = KernelCache(function)
    return compiled
