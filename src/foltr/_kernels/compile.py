"""Decorators that compile kernels: typed, cached, without Python objects or allocations.

`kernel` marks what Python calls, `callee` what kernels call, `inlined` small functions of numbers that become part of
their callers. Other threads run meanwhile. Sums may be reordered so that the processor can add several terms at once;
NaN and infinity keep their meaning.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numba
import numpy as np

from foltr._kernels.cache import KernelCache

Function = TypeVar("Function", bound=Callable[..., Any])

# No reference counts: a kernel works in arrays that its caller allocated, and never allocates one.
_OPTIONS = {
    "nogil": True,
    "_nrt": False,
    "forceinline": True,  # one copy of every sum: compiled here or read from the cache, its digits are the same
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}
ZERO: Any = np.int64(0)  # as an argument of callees: a literal 0 is a type of its own, for which they compile again
# Code that converts a Python call's arguments is a third of the compile time of functions that take many arrays.
CALLEE_OPTIONS = {**_OPTIONS, "no_cpython_wrapper": True}


def kernel(function: Function) -> Function:
    """Compile `function` to machine code at its first call."""
    return _compiled(function, _OPTIONS)


def ordered_kernel(function: Function) -> Function:
    """Compiles a kernel whose sums keep the order in which they are written: equal to NumPy's to the bit."""
    return _compiled(function, {**_OPTIONS, "fastmath": False})


def _compiled(function: Function, options: dict[str, Any]) -> Function:
    compiled = numba.njit(**options)(function)
    compiled._cache = KernelCache(function)
    compile_signature = compiled.compile

    def compile_uninterrupted(signature: Any) -> Any:
        with _interrupts_wait():
            return compile_signature(signature)

    compiled.compile = compile_uninterrupted
    return compiled


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Ctrl-C takes effect after compilation: a KeyboardInterrupt that LLVM's callbacks meet would be lost."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    waiting: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda number, frame: waiting.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if waiting:
        handler(*waiting[0])


def callee(function: Function) -> Function:
    """Compile `function` for kernels that call it. A call from Python, as in tests, compiles a kernel of its own."""
    compiled = numba.njit(**CALLEE_OPTIONS)(function)
    compiled._cache = KernelCache(function, "callee")
    from_python = kernel(function)
    compiled.add_overload = lambda result: compiled.overloads.update({tuple(result.signature.args): result})
    compiled._compile_for_args = lambda *_, **__: from_python
    return compiled


def inlined(function: Function) -> Function:
    """Make a small function of numbers part of the kernels that call it."""
    compiled = numba.njit(**_OPTIONS, inline="always")(function)
    compiled._cache = KernelCache(function)
    return compiled
