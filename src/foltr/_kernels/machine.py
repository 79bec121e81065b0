"""Whether this numba can run kernels, and whether hand-written SIMD runs on this machine; decided once at import.

The intrinsics of `_kernels.simd` are LLVM IR for processors with vectors of doubles, made through parts of numba that
may change between versions. Elsewhere, and with FOLTR_SIMD=0, plain loops with the same names take their place.

numba 0.60 and older recognise the types of a call by a fingerprint of which they lose the first 40 bytes (its writer
grows its buffer without copying it). Kernels take records of arrays, which are longer: such a numba may run the machine
code of other types on them, so it is refused.
"""

import os
import platform

import numba

from foltr.errors import FoltrError

TESTED_NUMBA = ((0, 61), (0, 69))  # from the first version, below the second
_PROCESSORS = ("x86_64", "amd64", "aarch64", "arm64")


def simd_supported() -> bool:
    return platform.machine().lower() in _PROCESSORS and _version() < TESTED_NUMBA[1]


def _version() -> tuple[int, ...]:
    """Of numba, major and minor."""
    return tuple(int(part) for part in numba.__version__.split(".")[:2])


if _version() < TESTED_NUMBA[0]:
    raise FoltrError(f"numba {numba.__version__} may run kernels on arrays of other types; install numba 0.61 or newer")
USE_SIMD = os.environ.get("FOLTR_SIMD", "1") != "0" and simd_supported()
