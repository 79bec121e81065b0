"""Two things that kernels say to the processor themselves, because no loop makes the compiler say them well."""

from typing import Any

import numba.core.cgutils
import numba.extending
from llvmlite import ir

import foltr.kernel  # noqa: F401  it tells numba where machine code is kept, before numba is first used

_LANES = 16  # features multiplied at once


@numba.extending.intrinsic  # type: ignore[untyped-decorator]
def prefetch(typing: Any, array: Any, index: Any) -> Any:  # noqa: ARG001
    """Ask the processor to bring array[index] (of a flat array) near, without waiting for it.

    Near is the second cache: what is being worked on now keeps the first, which a long list would fill.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        flat = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.bitcast(builder.gep(flat.data, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        function = numba.core.cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
        builder.call(function, [pointer, number(0), number(2), number(1)])  # read, into the second cache, data
        return context.get_dummy_value()

    return numba.types.void(array, index), generate


@numba.extending.intrinsic  # type: ignore[untyped-decorator]
def dot(typing: Any, row: Any, weights: Any) -> Any:  # noqa: ARG001
    """Sum of row (float32) times weights (float64) in doubles, both contiguous and equally long.

    The last few are read under a mask: left to itself the compiler takes them one by one.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = [context.make_array(k)(context, builder, a) for k, a in zip(signature.args, arguments, strict=True)]
        return _dot(builder, arrays[0].data, arrays[1].data, builder.extract_value(arrays[1].shape, 0))

    return numba.types.float64(row, weights), generate


def _dot(builder: Any, row: Any, weights: Any, size: Any) -> Any:
    index, number, double = size.type, ir.IntType(32), ir.DoubleType()
    floats, doubles, mask = (ir.VectorType(kind, _LANES) for kind in (ir.FloatType(), double, ir.IntType(1)))
    nothing = ir.Constant(doubles, [0.0] * _LANES)
    fused = _function(builder, f"llvm.fma.v{_LANES}f64", doubles, [doubles] * 3)
    total = numba.core.cgutils.alloca_once_value(builder, nothing)
    whole = builder.and_(size, ir.Constant(index, -_LANES))

    def at(array: Any, position: Any, kind: Any) -> Any:
        return builder.bitcast(builder.gep(array, [position]), kind.as_pointer())

    def add(some: Any, others: Any) -> None:
        builder.store(builder.call(fused, [builder.fpext(some, doubles), others, builder.load(total)]), total)

    def first_few(array: Any, kind: Any, name: str, align: int) -> Any:
        read = _function(builder, f"llvm.masked.load.{name}.p0", kind, [kind.as_pointer(), number, mask, kind])
        return builder.call(read, [at(array, whole, kind), number(align), few, ir.Constant(kind, [0.0] * _LANES)])

    steps = ir.Constant(index, 0), whole, ir.Constant(index, _LANES)
    with numba.core.cgutils.for_range_slice(builder, *steps, index) as (position, _):
        add(builder.load(at(row, position, floats), align=4), builder.load(at(weights, position, doubles), align=8))
    few = builder.icmp_unsigned("<", ir.Constant(ir.VectorType(index, _LANES), list(range(_LANES))),
                                _spread(builder, builder.sub(size, whole)))  # fmt: skip
    add(first_few(row, floats, f"v{_LANES}f32", 4), first_few(weights, doubles, f"v{_LANES}f64", 8))
    summed = _function(builder, f"llvm.vector.reduce.fadd.v{_LANES}f64", double, [double, doubles])
    return builder.call(summed, [double(0.0), builder.load(total)], fastmath=("reassoc",))


def _spread(builder: Any, value: Any) -> Any:
    """The same value in every lane."""
    lanes, number = ir.VectorType(value.type, _LANES), ir.IntType(32)
    one = builder.insert_element(ir.Constant(lanes, ir.Undefined), value, number(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(number, _LANES), [0] * _LANES))


def _function(builder: Any, name: str, result: Any, arguments: Any) -> Any:
    return numba.core.cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)
