"""Vectors of LANES numbers in LLVM IR, and how many numbers the functions of this folder take at a time.

The sizes are the same with and without hand-written SIMD.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils

LANES = 8  # doubles of a vector
ROWS = 4  # documents whose products are summed together
UNITS = 2 * LANES  # hidden units whose sums are made together
BLOCK = 3 * LANES  # documents of an exponential race: three vectors hide the latency of one
GROUP = LANES * LANES  # keys that are sorted together
SMALLEST = 10  # keys that are found together
NORMALS = 6 * LANES  # normal numbers that are drawn together
PLACE_BITS = (1 << 20) - 1  # of a document's key in a race: the last digits hold its place
SCORE_PLACE_BITS = (1 << 29) - 1  # of a key made of a float32 score

DOUBLE, INT = ir.DoubleType(), ir.IntType(32)
DOUBLES, FLOATS = ir.VectorType(DOUBLE, LANES), ir.VectorType(ir.FloatType(), LANES)
WORD = ir.IntType(64)
WORDS = ir.VectorType(WORD, LANES)
SINGLES = ir.VectorType(ir.FloatType(), 2 * LANES)
MASK = ir.VectorType(ir.IntType(1), LANES)


def arrays(context: Any, builder: Any, signature: Any, arguments: Any, *places: int) -> list[Any]:
    """The arrays among the arguments of an intrinsic, by their places."""
    return [context.make_array(signature.args[k])(context, builder, arguments[k]) for k in places]


def constant(value: float, lanes: int = LANES) -> Any:
    """A constant double in every lane."""
    return ir.Constant(ir.VectorType(DOUBLE, lanes), [value] * lanes)


def words(value: int, lanes: int = LANES) -> Any:
    """A constant whole number in every lane."""
    return ir.Constant(ir.VectorType(WORD, lanes), [value] * lanes)


def higher(builder: Any, one: Any, other: Any) -> Any:
    """The higher of two, lane by lane."""
    return builder.select(builder.fcmp_ordered(">", one, other), one, other)


def lower(builder: Any, one: Any, other: Any) -> Any:
    """The lower of two, lane by lane; the other where one is no number."""
    return builder.select(builder.fcmp_ordered("<", one, other), one, other)


def at(builder: Any, array: Any, position: Any, kind: Any) -> Any:
    return builder.bitcast(builder.gep(array, [position]), kind.as_pointer())


def load(builder: Any, array: Any, position: Any, kind: Any) -> Any:
    return builder.load(at(builder, array, position, kind), align=_size(kind))


def store(builder: Any, vector: Any, array: Any, position: Any) -> None:
    builder.store(vector, at(builder, array, position, vector.type), align=8)


def masked(builder: Any, array: Any, position: Any, kind: Any, mask: Any) -> Any:
    """Zero where the mask is off, and nothing is read there."""
    name = f"llvm.masked.load.v{kind.count}f{8 * _size(kind)}.p0"
    read = function(builder, name, kind, [kind.as_pointer(), INT, mask.type, kind])
    nothing = ir.Constant(kind, [0.0] * kind.count)
    return builder.call(read, [at(builder, array, position, kind), INT(_size(kind)), mask, nothing])


def first(builder: Any, count: Any, lanes: int = LANES) -> Any:
    """A mask of so many lanes."""
    places = ir.Constant(ir.VectorType(count.type, lanes), list(range(lanes)))
    return builder.icmp_unsigned("<", places, spread(builder, count, lanes))


def fused(builder: Any, kind: Any) -> Any:
    """A function: product of two, plus a third, rounded once."""
    of_kind = function(builder, f"llvm.fma.v{kind.count}f{8 * _size(kind)}", kind, [kind] * 3)
    return lambda *three: builder.call(of_kind, three)


def _size(kind: Any) -> int:
    return 8 if kind.element == DOUBLE else 4


def spread(builder: Any, value: Any, lanes: int = LANES) -> Any:
    """Broadcasts a value to every lane."""
    one = builder.insert_element(ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined), value, INT(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(INT, lanes), [0] * lanes))


def chosen(builder: Any, vector: Any, places: range) -> Any:
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(INT, len(places)), list(places)))


def across(builder: Any, joined: Any, vector: Any) -> Any:
    """All lanes joined to one number, half with half."""
    size = LANES
    while size > 1:
        size //= 2
        vector = joined(*(chosen(builder, vector, range(k, k + size)) for k in (0, size)))
    return builder.extract_element(vector, INT(0))


def function(builder: Any, name: str, result: Any, arguments: Any) -> Any:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)
