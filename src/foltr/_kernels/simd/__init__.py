"""Hand-written SIMD where LLVM does not vectorise well, and plain loops with the same names where it is not used.

Which of the two runs is decided once, at import (`_kernels.machine`). Kernels take these functions from here.
"""

from foltr._kernels.machine import USE_SIMD
from foltr._kernels.simd import (
    keys,
    layers,
    normalizers,
    normals,
    pair_weights,
    plain,
    prefetching,
    products,
    race,
    selection,
)

dots = products.dots if USE_SIMD else plain.dots
add_rows = products.add_rows if USE_SIMD else plain.add_rows
unit_sums = layers.unit_sums if USE_SIMD else plain.unit_sums
weigh_pairs = pair_weights.weigh_pairs if USE_SIMD else plain.weigh_pairs
highest = normalizers.highest if USE_SIMD else plain.highest
mass_above = normalizers.mass_above if USE_SIMD else plain.mass_above
exponential_race = race.exponential_race if USE_SIMD else plain.exponential_race
smallest_k = selection.smallest_k if USE_SIMD else plain.smallest_k
fill_normals = normals.fill_normals if USE_SIMD else plain.fill_normals
fill_keys = keys.fill_keys if USE_SIMD else plain.fill_keys
highest_in_lanes = keys.highest_in_lanes if USE_SIMD else plain.highest_in_lanes
prefetch = prefetching.prefetch if USE_SIMD else plain.prefetch
