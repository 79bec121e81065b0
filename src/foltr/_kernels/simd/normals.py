"""Standard normal numbers, many pairs at a time: the fast twin of `rng.fill_normal`."""

from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from foltr._kernels.simd import lanes
from foltr._kernels.simd.draws import exponential, uniform
from foltr._kernels.simd.elementary import cosine_and_sine
from foltr._kernels.simd.lanes import DOUBLE, INT, WORD, arrays, constant
from foltr._kernels.simd.sizes import NORMALS

_PAIRS = NORMALS // 2


@intrinsic  # type: ignore[untyped-decorator]
def fill_normals(typing: Any, word: Any, stride: Any, groups: Any, out: Any) -> Any:  # noqa: ARG001
    """out[0 .. groups * NORMALS] from the numbers of `word`, `word` + `stride` and so on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (result,) = arrays(context, builder, signature, arguments, 3)
        index, doubles = arguments[2].type, ir.VectorType(DOUBLE, _PAIRS)
        root = lanes.function(builder, f"llvm.sqrt.v{_PAIRS}f64", doubles, [doubles])
        first, stride = (lanes.spread(builder, arguments[k], _PAIRS) for k in (0, 1))
        even = ir.Constant(ir.VectorType(WORD, _PAIRS), list(range(0, NORMALS, 2)))
        paired = ir.Constant(ir.VectorType(INT, NORMALS), [k // 2 + _PAIRS * (k % 2) for k in range(NORMALS)])
        with cgutils.for_range_slice(builder, index(0), arguments[2], index(1), index) as (group, _):
            position = builder.mul(group, index(NORMALS))
            place = builder.add(lanes.spread(builder, position, _PAIRS), even)
            at = builder.add(first, builder.mul(stride, place))
            radius = builder.call(root, [builder.fmul(exponential(builder, at), constant(2.0, _PAIRS))])
            parts = cosine_and_sine(builder, uniform(builder, builder.add(at, stride)))
            both = builder.shuffle_vector(*(builder.fmul(radius, part) for part in parts), paired)
            lanes.store(builder, both, result.data, position)
        return context.get_dummy_value()

    return numba.types.void(word, stride, groups, out), generate
