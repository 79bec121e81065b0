"""Vectors of LANES numbers, as the makers of machine code in this folder use them."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils

LANES = 8  # doubles in the works at once
DOUBLE, INT = ir.DoubleType(), ir.IntType(32)
DOUBLES, FLOATS = ir.VectorType(DOUBLE, LANES), ir.VectorType(ir.FloatType(), LANES)
MASK = ir.VectorType(ir.IntType(1), LANES)


def arrays(context: Any, builder: Any, signature: Any, arguments: Any, *places: int) -> list[Any]:
    """The arrays among the arguments of an intrinsic, by their places."""
    return [context.make_array(signature.args[k])(context, builder, arguments[k]) for k in places]


def constant(value: float) -> Any:
    """The same double in every lane, known beforehand."""
    return ir.Constant(DOUBLES, [value] * LANES)


def higher(builder: Any, one: Any, other: Any) -> Any:
    """The higher of two, lane by lane."""
    return builder.select(builder.fcmp_ordered(">", one, other), one, other)


def at(builder: Any, array: Any, position: Any, kind: Any) -> Any:
    return builder.bitcast(builder.gep(array, [position]), kind.as_pointer())


def load(builder: Any, array: Any, position: Any, kind: Any) -> Any:
    return builder.load(at(builder, array, position, kind), align=4 if kind is FLOATS else 8)


def store(builder: Any, vector: Any, array: Any, position: Any) -> None:
    builder.store(vector, at(builder, array, position, vector.type), align=8)


def masked(builder: Any, array: Any, position: Any, kind: Any, mask: Any) -> Any:
    """Zero where the mask is off, and nothing is read there."""
    size, align = ("f32", 4) if kind is FLOATS else ("f64", 8)
    read = function(builder, f"llvm.masked.load.v{LANES}{size}.p0", kind, [kind.as_pointer(), INT, MASK, kind])
    return builder.call(read, [at(builder, array, position, kind), INT(align), mask, ir.Constant(kind, [0.0] * LANES)])


def first(builder: Any, count: Any) -> Any:
    """A mask of so many lanes."""
    lanes = ir.Constant(ir.VectorType(count.type, LANES), list(range(LANES)))
    return builder.icmp_unsigned("<", lanes, spread(builder, count))


def spread(builder: Any, value: Any) -> Any:
    """The same value in every lane."""
    lanes = ir.VectorType(value.type, LANES)
    one = builder.insert_element(ir.Constant(lanes, ir.Undefined), value, INT(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(INT, LANES), [0] * LANES))


def function(builder: Any, name: str, result: Any, arguments: Any) -> Any:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)
