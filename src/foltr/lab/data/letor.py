"""LETOR text: `label qid:ID 1:v 2:v ... # comment`, one document a line, the documents of a query together.

Features are numbered from 1, may come in any order, and are 0 where they are missing. Blank lines and lines
with only a comment are skipped. A source is a path, plain or packed, or a member of an archive (see
`files`); several sources are read as one collection. The text is streamed: a chunk of it and a block of
rows are all that is held at a time.

A wrong line is a `DataError` "file:line:column: found, expected"; of several, the first in the file is named.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from foltr._kernels import letor as letor_scan
from foltr.errors import DataError
from foltr.lab.data.files import opened
from foltr.lab.data.places import MAX_FEATURES
from foltr.types import Array, Dataset

CHUNK = 1 << 20  # bytes of text at a time: it fits a core's cache beside the rows it becomes
_LONGEST_LINE = 1 << 26
_BLOCK_BYTES = 1 << 22


class Rules(NamedTuple):
    """Limits that the lines of a collection must keep."""

    width: int  # highest feature number
    guessed: bool = False  # the width may grow: a higher feature raises WiderThanGuessed
    dense: bool = False  # every line gives every feature
    grades: int = 128  # labels are 0 .. grades - 1
    zero_nan: bool = False  # read NaN as 0 rather than refuse it


class Block(NamedTuple):
    """Some rows of a collection, in order; the arrays are used again for the next block."""

    features: Array  # [rows, d] float32
    labels: Array  # [rows] int8
    starts: Array  # [new queries] row at which each begins
    queries: Array  # [new queries] their ids


class WiderThanGuessed(Exception):  # a signal within the reader, not an error of the user's
    """A line has a feature beyond a width that was a guess."""


def blocks(sources: Sequence[str], rules: Rules, *, chunk: int = CHUNK) -> Iterator[Block]:
    """Read the sources block by block; no query may be in two places, nor in two files."""
    rows = max(1, _BLOCK_BYTES // (4 * max(rules.width, 1)))
    filled = letor_scan.Rows(
        np.empty((rows, rules.width), np.float32),
        np.empty(rows, np.int8),
        np.empty(rows, np.int64),
        np.empty(rows, np.int64),
    )
    began: dict[int, tuple[str, int]] = {}  # query -> file and line
    for source in sources:
        documents = 0
        for block in _file_blocks(source, rules, filled, began, chunk):
            documents += len(block.labels)
            yield block
        if not documents:
            raise DataError(f"{source}: it holds no document; expected lines such as '2 qid:7 1:0.5 2:0'")


def _file_blocks(
    source: str, rules: Rules, filled: letor_scan.Rows, began: dict[int, tuple[str, int]], chunk: int
) -> Iterator[Block]:
    seen, line, current = np.zeros(rules.width + 1, np.int64), 0, None
    form = letor_scan.Form(rules.grades, rules.dense, rules.zero_nan)
    for text in _chunks(source, chunk):
        at = 0
        while at < text.size:
            rows, at, line, problem, wrong = letor_scan.scan(text, at, line, form, filled, seen)
            starts = _new_queries(filled.queries[:rows], current)
            for row in starts:  # before the problem is told, since these lines come before it
                _note_query(int(filled.queries[row]), source, int(filled.lines[row]), began)
            if problem == letor_scan.TOO_WIDE and rules.guessed:
                raise WiderThanGuessed
            if problem:
                raise DataError(_complaint(problem, text, wrong, source, line + 1, rules))
            if rows:
                current = int(filled.queries[rows - 1])
                yield Block(filled.features[:rows], filled.labels[:rows], starts, filled.queries[starts])


def _chunks(source: str, size: int) -> Iterator[Array]:
    """The text in pieces that end at a line end."""
    with opened(source) as handle:
        rest = b""
        while piece := handle.read(size):
            cut = piece.rfind(b"\n") + 1
            if cut:
                yield np.frombuffer(rest + piece[:cut], np.uint8)
                rest = piece[cut:]
            else:
                rest += piece
            if len(rest) > _LONGEST_LINE:
                raise DataError(f"{source}: no line end within {_LONGEST_LINE:,} bytes; expected LETOR text")
        if rest:
            yield np.frombuffer(rest + b"\n", np.uint8)


def _new_queries(ids: Array, current: int | None) -> Array:
    """Rows at which another query begins than the one before."""
    changed = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    return np.concatenate([[0], changed]) if ids.size and ids[0] != current else changed


def _note_query(query: int, source: str, line: int, began: dict[int, tuple[str, int]]) -> None:
    if query in began:
        earlier, first = began[query]
        raise DataError(
            f"{source}:{line}:1: query {query} comes back; it began at {earlier}:{first} and had ended. "
            "Expected the documents of a query together: sort the file by qid, or drop the repetition"
        )
    began[query] = source, line


def _complaint(problem: int, text: Array, at: int, source: str, line: int, rules: Rules) -> str:
    before, after = text[:at].tobytes(), text[at : at + 80].tobytes()
    column = at - before.rfind(b"\n")
    word = b"" if after[:1].isspace() else after.split()[0]
    found = repr(word.decode(errors="replace")) if word else "nothing"
    expected = {
        letor_scan.BAD_LABEL: "expected a label, a whole number from 0 to 127",
        letor_scan.LABEL_TOO_HIGH: f"expected a label from 0 to {rules.grades - 1}",
        letor_scan.NO_QID: "expected qid:NUMBER after the label",
        letor_scan.BAD_QID: "expected qid: and a whole number of at most 63 bits",
        letor_scan.BAD_FEATURE: "expected FEATURE:VALUE with a feature number from 1",
        letor_scan.TOO_WIDE: f"expected features from 1 to {rules.width}",
        letor_scan.TWICE: "expected each feature once, but this line gave it before",
        letor_scan.NOT_A_NUMBER: "expected a number",
        letor_scan.IS_NAN: 'expected a number (nan="zero", or foltr data add --nan zero, reads it as 0)',
        letor_scan.IS_INFINITE: "expected a finite number that fits 32 bits",
        letor_scan.WRONG_COUNT: f"expected all of {rules.width} features on every line",
    }[problem]
    return f"{source}:{line}:{column}: found {found}; {expected}"


def find_width(sources: Sequence[str], *, chunk: int = CHUNK) -> int:
    """The highest feature number in the files."""
    return max((letor_scan.widest(text) for source in sources for text in _chunks(source, chunk)), default=0)


def check_width(source: str, width: int, max_features: int) -> None:
    """Refuses a file whose highest feature number is above the limit, with the line that has it.

    Every document takes memory for every feature up to the highest, so that a single wrong number could take it all.
    """
    if width <= max_features:
        return
    with opened(source) as handle:
        for number, line in enumerate(handle, 1):
            text = np.frombuffer(line.rstrip(b"\n") + b"\n", np.uint8)
            if letor_scan.widest(text) > max_features:
                raise DataError(
                    f"{source}:{number}: feature {letor_scan.widest(text):,} is above the limit of {max_features:,} "
                    f"features; correct the line, or raise the limit: foltr data add NAME PATH --max-features N"
                )


def read(
    sources: str | Sequence[str], *, width: int | None = None, nan: str = "error", chunk: int = CHUNK,
    max_features: int = MAX_FEATURES,
) -> Dataset:  # fmt: skip
    """The sources as one collection in memory; without a width, as wide as the highest feature in them."""
    sources = [sources] if isinstance(sources, str) else list(sources)
    rules = Rules(width=width or 0, zero_nan=nan == "zero")
    if width is not None:
        return gather(blocks(sources, rules, chunk=chunk))
    guess = next((letor_scan.widest(text) for text in _chunks(sources[0], chunk)), 0)
    check_width(sources[0], guess, max_features)
    try:
        return gather(blocks(sources, rules._replace(width=guess, guessed=True), chunk=chunk))
    except WiderThanGuessed:
        widths = {source: find_width([source], chunk=chunk) for source in sources}
        for source, highest in widths.items():
            check_width(source, highest, max_features)
        return gather(blocks(sources, rules._replace(width=max(widths.values())), chunk=chunk))


def gather(pieces: Iterator[Block]) -> Dataset:
    """All blocks as one collection in memory, read-only like a mapped one."""
    features = np.empty((0, 0), np.float32)
    labels, starts, queries, rows = [], [], [], 0
    for block in pieces:
        need, width = rows + len(block.labels), block.features.shape[1]
        if need > len(features):  # by a quarter and in place, so that there are never two copies
            features.resize((max(need, len(features) * 5 // 4), width), refcheck=False)
        features[rows:need] = block.features
        labels.append(block.labels.copy())
        starts.append(block.starts + rows)
        queries.append(block.queries)
        rows = need
    features.resize((rows, features.shape[1]), refcheck=False)
    offsets = np.concatenate([*starts, [len(features)]]).astype(np.int64)
    data = Dataset(features, np.concatenate(labels), offsets, np.concatenate(queries))
    for array in data:
        array.flags.writeable = False
    return data


def document_ids(sources: Sequence[str]) -> list[str]:
    """One id a document: what follows `docid =` in its comment, or else the whole comment."""
    ids = []
    for source in sources:
        with opened(source) as handle:
            for line in handle:
                numbers, _, comment = line.partition(b"#")
                if numbers.strip():
                    ids.append(_id_in(comment.decode(errors="replace").strip()))
    return ids


def _id_in(comment: str) -> str:
    key, equals, rest = comment.partition("=")
    return rest.split()[0] if equals and key.strip() == "docid" and rest.strip() else comment
