"""Asking for what is needed soon."""

from typing import Any

import numba
from llvmlite import ir
from numba.extending import intrinsic

from foltr._kernels.simd import lanes
from foltr._kernels.simd.lanes import INT, arrays


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typing: Any, array: Any, index: Any) -> Any:  # noqa: ARG001
    """Ask the processor to bring array[index] (of a flat array) near, without waiting for it.

    Near is the second cache: what is being worked on now keeps the first, which a long list would fill.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (flat,) = arrays(context, builder, signature, arguments, 0)
        pointer = builder.bitcast(builder.gep(flat.data, [arguments[1]]), ir.IntType(8).as_pointer())
        function = lanes.function(builder, "llvm.prefetch.p0", ir.VoidType(), [pointer.type, INT, INT, INT])
        builder.call(function, [pointer, INT(0), INT(2), INT(1)])  # read, into the second cache, data
        return context.get_dummy_value()

    return numba.types.void(array, index), generate
