"""Whether hand-written SIMD runs on this machine, decided once at import.

The intrinsics of `_kernels.simd` are LLVM IR for processors with vectors of doubles, made through parts of numba that
may change between versions. Elsewhere, and with FOLTR_SIMD=0, plain loops with the same names take their place.
"""

import os
import platform

import numba

TESTED_NUMBA = ((0, 60), (0, 69))  # from the first version, below the second
_PROCESSORS = ("x86_64", "amd64", "aarch64", "arm64")


def simd_supported() -> bool:
    version = tuple(int(part) for part in numba.__version__.split(".")[:2])
    lowest, beyond = TESTED_NUMBA
    return platform.machine().lower() in _PROCESSORS and lowest <= version < beyond


USE_SIMD = os.environ.get("FOLTR_SIMD", "1") != "0" and simd_supported()
