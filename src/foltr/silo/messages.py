"""Messages inside the envelopes of asker and owner: msgpack of plain numbers, validated on reading.

A question holds the keyed hash of a word (to an index) or one column a row (to a sketch), and the shape that both must
share (only the fingerprint of the key); never a term, a sign or a tag. An answer holds the list of one word (one row),
cells, or a table of statistics by keyed hashes. A message that does not decode, or does
not have the announced size, is refused. Version, sender, receiver and number are those of the envelope (`envelopes`).

Differs from the paper: it gives no format.
"""

from typing import Literal, TypeVar

import msgspec
import numpy as np

from foltr.errors import DataError, SpecError
from foltr.silo.index import WORD_BYTES
from foltr.silo.rtk import Cells, TopDocuments
from foltr.silo.sketches import SketchShape
from foltr.silo.statistics import StatisticsTable
from foltr.types import Array

INDEX = "index"  # the variant of answers from an index
_TYPES = {"documents": "<i4", "counts": "<f8", "tags": "<u2", "sizes": "<i4", "limits": "<i4"}
_TABLE_TYPES = {"hashes": "<u8", "document_frequency": "<i8", "collection_frequency": "<i8",
                "lengths": "<i8", "distinct": "<i8"}  # fmt: skip


class Question(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    what: Literal["count", "top", "statistics"]
    field: str  # of the documents; the server that carries the question cannot exchange title and body
    shape: tuple[int, int, str, str]
    documents: bytes = b""  # [n] int32, of `count`
    columns: bytes = b""  # [z] int32, to a sketch
    word: bytes = b""  # 8 bytes, to an index: its keyed hash


class CountAnswer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    cells: bytes  # [documents, z] float64; z = 1 of an index


class TopAnswer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    variant: str  # "index", or of the RTK-sketch: how its lists are ranked
    top_k: int  # K that they were built for
    capacity: int  # entries of a cell
    documents: bytes
    counts: bytes
    tags: bytes
    sizes: bytes
    limits: bytes


class StatisticsAnswer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    noise: str
    epsilon: float
    buckets: int
    hashes: bytes
    document_frequency: bytes
    collection_frequency: bytes
    lengths: bytes
    distinct: bytes


Kind = TypeVar("Kind", Question, CountAnswer, TopAnswer, StatisticsAnswer)


def encode(message: Question | CountAnswer | TopAnswer | StatisticsAnswer) -> bytes:
    return msgspec.msgpack.encode(message)


def decode(content: bytes, kind: type[Kind]) -> Kind:
    try:
        return msgspec.msgpack.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise DataError(f"a message that is no {kind.__name__} ({problem}); both ends need the same version") from None


def word_of(question: Question) -> int:
    """The keyed hash asked for, of an index."""
    if len(question.word) != WORD_BYTES or question.columns:
        raise SpecError(
            "a question by columns to a party that answers from an index; ask by the word's keyed hash: an asker "
            "without real_rows does"
        )
    return int.from_bytes(question.word, "little")


def columns_of(question: Question, shape: SketchShape) -> Array:
    """[z] the columns asked for, each within the sketch."""
    if question.word:
        raise SpecError("a question by the hash of a word to a party that answers from sketches; ask with real_rows")
    columns = _numbers(question.columns, "<i4", (shape.rows,))
    if np.any(columns < 0) or np.any(columns >= shape.columns):
        raise SpecError(f"asked for a column beyond 0 .. {shape.columns - 1}")
    return columns


def documents_of(question: Question, documents: int) -> Array:
    """[n] the documents asked about, each once and each there."""
    wanted = _numbers(question.documents, "<i4", (len(question.documents) // 4,))
    if not len(wanted) or len(np.unique(wanted)) < len(wanted):
        raise SpecError("a question about no document, or twice about one; name each once")
    if np.any(wanted < 0) or np.any(wanted >= documents):
        raise SpecError(f"no document {int(wanted.max())}; use 0 to {documents - 1}")
    return wanted


def count_cells(answer: CountAnswer, documents: int, rows: int) -> Array:
    return _finite(_numbers(answer.cells, "<f8", (documents, rows)))


def top_answer(cells: Cells, *, variant: str, top_k: int) -> TopAnswer:
    """Whole cells, so that all answers of an owner have one size."""
    packed = {name: np.ascontiguousarray(getattr(cells, name), kind).tobytes() for name, kind in _TYPES.items()}
    return TopAnswer(variant, top_k, cells.documents.shape[1], **packed)


def top_list(answer: TopAnswer) -> TopDocuments:
    """The list of one word, of an index."""
    if answer.variant != INDEX:
        raise DataError(f"an answer from a sketch ({answer.variant!r}) to a question to an index; ask again")
    cells = top_cells(answer, 1)
    size = int(cells.sizes[0])
    ones = np.ones(size, np.int32)
    return TopDocuments(cells.documents[0, :size], cells.counts[0, :size], ones, int(cells.limits[0] > 0))


def top_cells(answer: TopAnswer, rows: int) -> Cells:
    tagged = answer.capacity if answer.variant == "sampled" else 0
    widths = {"documents": (rows, answer.capacity), "counts": (rows, answer.capacity), "tags": (rows, tagged)}
    parts = [_numbers(getattr(answer, name), kind, widths.get(name, (rows,))) for name, kind in _TYPES.items()]
    cells = Cells(*parts)
    if np.any(cells.sizes < 0) or np.any(cells.sizes > answer.capacity) or np.any(cells.documents < 0):
        raise DataError("an answer whose cells do not fit their sizes; ask again")
    return cells._replace(counts=_finite(cells.counts))


def statistics_answer(table: StatisticsTable) -> StatisticsAnswer:
    packed = {name: np.ascontiguousarray(getattr(table, name), kind).tobytes() for name, kind in _TABLE_TYPES.items()}
    return StatisticsAnswer(table.noise, table.epsilon, table.buckets, **packed)


def statistics_table(answer: StatisticsAnswer) -> StatisticsTable:
    parts = {
        name: _numbers(getattr(answer, name), kind, (len(getattr(answer, name)) // 8,))
        for name, kind in _TABLE_TYPES.items()
    }
    entries = answer.buckets or len(parts["hashes"])
    sizes = {len(parts["document_frequency"]), len(parts["collection_frequency"])}
    ordered = not answer.buckets or not len(parts["hashes"])
    if sizes != {entries} or len(parts["lengths"]) != len(parts["distinct"]) or not ordered:
        raise DataError("a table of statistics whose parts do not fit each other; ask again")
    return StatisticsTable(answer.noise, answer.epsilon, answer.buckets, **parts)


def _numbers(content: bytes, kind: str, shape: tuple[int, ...]) -> Array:
    if min(shape) < 0 or len(content) != np.dtype(kind).itemsize * int(np.prod(shape, dtype=object)):
        raise DataError(f"a message with {len(content)} bytes where {shape} numbers of {kind} were announced")
    return np.frombuffer(content, kind).reshape(shape)


def _finite(values: Array) -> Array:
    if not np.all(np.isfinite(values)):
        raise DataError("an answer with a count that is no number; ask again")
    return values
