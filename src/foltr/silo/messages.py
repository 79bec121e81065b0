"""The messages between asker and owner, which the server carries: msgpack of plain numbers, validated on reading.

A question holds one column a row and the shape that both must share (only the fingerprint of the key); never a term, a
sign or a tag. An answer holds cells. A message that does not decode, or does not have the announced size, is refused.

Differs from the paper: it gives no format.
"""

from typing import Literal, TypeVar

import msgspec
import numpy as np

from foltr.errors import DataError, SpecError
from foltr.silo.rtk import Cells
from foltr.silo.sketches import SketchShape
from foltr.types import Array

VERSION = 1
MAX_BYTES = 1 << 28  # of one message
_TYPES = {"documents": "<i4", "counts": "<f8", "tags": "<u2", "sizes": "<i4", "limits": "<i4"}


class Question(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    version: int
    number: bytes  # random; the answer repeats it
    what: Literal["count", "top"]
    document: int  # of `count`; else 0
    shape: tuple[int, int, str, str]
    columns: bytes  # [z] int32


class CountAnswer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    number: bytes
    cells: bytes  # [z] float64


class TopAnswer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    number: bytes
    variant: str  # of the RTK-sketch: how its lists are ranked
    top_k: int  # K that they were built for
    capacity: int  # entries of a cell, in this answer
    documents: bytes
    counts: bytes
    tags: bytes
    sizes: bytes
    limits: bytes


Kind = TypeVar("Kind", Question, CountAnswer, TopAnswer)


def encode(message: Question | CountAnswer | TopAnswer) -> bytes:
    return msgspec.msgpack.encode(message)


def decode(content: bytes, kind: type[Kind]) -> Kind:
    if len(content) > MAX_BYTES:
        raise DataError(f"a message of {len(content):,} bytes; at most {MAX_BYTES:,} are read")
    try:
        return msgspec.msgpack.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise DataError(f"a message that is no {kind.__name__} ({problem}); both ends need the same version") from None


def columns_of(question: Question, shape: SketchShape) -> Array:
    """[z] the columns asked for, each within the sketch."""
    columns = _numbers(question.columns, "<i4", (shape.rows,))
    if np.any(columns < 0) or np.any(columns >= shape.columns):
        raise SpecError(f"asked for a column beyond 0 .. {shape.columns - 1}")
    return columns


def count_cells(answer: CountAnswer, rows: int) -> Array:
    return _finite(_numbers(answer.cells, "<f8", (rows,)))


def top_answer(number: bytes, cells: Cells, *, variant: str, top_k: int) -> TopAnswer:
    """Only as many entries of each cell as the fullest has."""
    used = int(cells.sizes.max(initial=0))
    cut = cells._replace(documents=cells.documents[:, :used], counts=cells.counts[:, :used], tags=cells.tags[:, :used])
    packed = {name: np.ascontiguousarray(getattr(cut, name), kind).tobytes() for name, kind in _TYPES.items()}
    return TopAnswer(number, variant, top_k, used, **packed)


def top_cells(answer: TopAnswer, rows: int) -> Cells:
    tagged = answer.capacity if answer.variant == "sampled" else 0
    widths = {"documents": (rows, answer.capacity), "counts": (rows, answer.capacity), "tags": (rows, tagged)}
    parts = [_numbers(getattr(answer, name), kind, widths.get(name, (rows,))) for name, kind in _TYPES.items()]
    cells = Cells(*parts)
    if np.any(cells.sizes < 0) or np.any(cells.sizes > answer.capacity) or np.any(cells.documents < 0):
        raise DataError("an answer whose cells do not fit their sizes; ask again")
    return cells._replace(counts=_finite(cells.counts))


def require_same_number(question: bytes, answer: bytes) -> None:
    if question != answer:
        raise DataError("an answer to another question; ask again")


def _numbers(content: bytes, kind: str, shape: tuple[int, ...]) -> Array:
    if min(shape) < 0 or len(content) != np.dtype(kind).itemsize * int(np.prod(shape, dtype=object)):
        raise DataError(f"a message with {len(content)} bytes where {shape} numbers of {kind} were announced")
    return np.frombuffer(content, kind).reshape(shape)


def _finite(values: Array) -> Array:
    if not np.all(np.isfinite(values)):
        raise DataError("an answer with a count that is no number; ask again")
    return values
