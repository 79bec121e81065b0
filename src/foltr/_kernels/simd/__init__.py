"""Hand-written SIMD where LLVM does not vectorise well, and plain loops with the same names where it is not used.

Which of the two runs is decided once, at import (`_kernels.machine`). Kernels take these functions from here.
"""

from foltr._kernels.machine import USE_SIMD

if USE_SIMD:
    from foltr._kernels.simd.draws import exponential_race, fill_normals
    from foltr._kernels.simd.pair_weights import highest, mass_above, weigh_pairs
    from foltr._kernels.simd.products import add_rows, dots, prefetch, unit_sums
    from foltr._kernels.simd.selection import fill_keys, highest_two_in_lanes, smallest_k
else:
    from foltr._kernels.simd.plain import (
        add_rows,
        dots,
        exponential_race,
        fill_keys,
        fill_normals,
        highest,
        highest_two_in_lanes,
        mass_above,
        prefetch,
        smallest_k,
        unit_sums,
        weigh_pairs,
    )

__all__ = [
    "add_rows", "dots", "exponential_race", "fill_keys", "fill_normals", "highest", "highest_two_in_lanes",
    "mass_above", "prefetch", "smallest_k", "unit_sums", "weigh_pairs",
]  # fmt: skip
