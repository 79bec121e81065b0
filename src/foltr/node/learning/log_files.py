"""The log as files: JSON lines that another node imports, and User Behavior Insights (UBI 1.3.0) for other tools.

JSON lines: the first line names the format, then come impressions with their choices in the order of the log, and the
current weights. Features are little-endian single-precision numbers in base64, row after row. An import is all or
nothing: the first line that is broken, too long or out of range refuses the file with its number. Lists that the log
has already are skipped, so that importing twice changes nothing.

UBI: a query a list (`queries.jsonl`) and an event a choice (`events.jsonl`), as its schemas describe them.
"""

import base64
import binascii
import datetime
import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Annotated, NamedTuple, TypeAlias

import msgspec
import numpy as np

from foltr.errors import DataError, InputError
from foltr.node.learning import versions
from foltr.node.learning.log import FORGOTTEN, LATEST, Impression, Log, decoded, encoded
from foltr.node.learning.memory import LONGEST_TEXT, Use, split_key, typed_text
from foltr.types import Array

FORMAT, VERSION, APPLICATION = "foltr-log", 1, "foltr-node"
_LONGEST_LINE, _MOST_LINES, _LONGEST_KEY = 32_000_000, 1_000_000, 8_192
_LONGEST_OBJECT_ID = 256  # of UBI

Text = Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT)]
Key = Annotated[str, msgspec.Meta(min_length=1, max_length=_LONGEST_KEY)]
Time = Annotated[float, msgspec.Meta(ge=0, lt=LATEST)]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="header"):
    format: str
    version: int


class ImpressionLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="impression"):
    id: Number
    time: Time
    query: Text | None
    documents: Annotated[tuple[Key | None, ...], msgspec.Meta(max_length=10_000)]
    propensities: tuple[float, ...]
    scores: tuple[float, ...]
    features: str
    feature_names: tuple[str, ...]
    model_version: Number


class ChoiceLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="choice"):
    impression: Number
    position: Number  # from 0
    time: Time
    withdrawn: Annotated[int, msgspec.Meta(ge=0, le=FORGOTTEN)] = 0


class MemoryLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="memory"):
    """A choice without a list, as an earlier import left it."""

    typed: Text
    document: Key
    time: Time


class WeightsLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="weights"):
    """The current version, where it is not the start."""

    weights: versions.Weights


Line: TypeAlias = Header | ImpressionLine | ChoiceLine | MemoryLine | WeightsLine


# ---- JSON lines


def export_lines(log: Log) -> Iterator[str]:
    """The whole log, a JSON object a line."""
    yield _line(Header(FORMAT, VERSION))
    names = {number: tuple(json.loads(text)) for number, text in log.rows("SELECT id, names FROM feature_sets")}
    for (number,) in log.rows("SELECT id FROM impressions ORDER BY id"):
        yield from _impression_lines(log, number, names)
    rows = log.rows(
        "SELECT c.typed, d.key, c.time FROM choices c JOIN documents d ON d.id = c.document "
        "WHERE c.impression IS NULL AND c.typed IS NOT NULL AND d.key IS NOT NULL AND c.withdrawn = 0 ORDER BY c.id"
    )
    for typed, key, time in rows:
        yield _line(MemoryLine(typed, decoded(key), time))
    current = versions.serving(log).current
    if current.version:
        yield _line(WeightsLine(current))


def _impression_lines(log: Log, number: int, names: dict[int, tuple[str, ...]]) -> list[str]:
    """A list and its choices, as of one moment; nothing where it was deleted meanwhile."""
    lines = []
    with log.transaction():
        rows = log.rows(
            "SELECT propensities, scores, features, feature_set, model_version FROM impressions WHERE id = ?", (number,)
        )
        for propensities, scores, features, feature_set, version in rows:
            shown = log.displayed(number)
            lines.append(_line(ImpressionLine(
                number, shown.time, shown.query, shown.documents, _floats(propensities), _floats(scores),
                base64.b64encode(features).decode(), names[feature_set], version,
            )))  # fmt: skip
            lines += [_line(ChoiceLine(number, one.position, one.time, one.withdrawn)) for one in shown.choices]
    return lines


def _floats(stored: bytes) -> tuple[float, ...]:
    return tuple(np.frombuffer(stored, dtype="<f4").astype(np.float64).tolist())


def _line(content: Line) -> str:
    return json.dumps(msgspec.to_builtins(content), allow_nan=False)  # ASCII: names that are no Unicode survive


class Imported(NamedTuple):
    impressions: int
    choices: int
    skipped: int  # lists and memory that the log had already
    weights: bool


def import_lines(log: Log, lines: Iterable[str], *, where: str) -> Imported:
    """Adds an exported log, all or nothing; a line that is wrong refuses the file."""
    with log.transaction():
        state = _ImportState(log)
        number = 0
        for number, line in enumerate(lines, start=1):
            try:
                if number > _MOST_LINES:
                    raise DataError(f"more than {_MOST_LINES:,} lines")
                content = _parsed(line)
                if isinstance(content, Header) != (number == 1):
                    raise DataError(
                        f'expected the header {{"type": "header", "format": "{FORMAT}", ...}} in line 1 only'
                    )
                state.add(content)
            except InputError as problem:
                raise DataError(f"{where}, line {number}: {problem}; nothing was imported") from None
        if number == 0:
            raise DataError(f"{where}: the file is empty; expected an export of `foltr node export`")
        return state.result()


def _parsed(line: str) -> Line:
    if len(line) > _LONGEST_LINE:
        raise DataError(f"longer than {_LONGEST_LINE:,} characters")
    try:
        return msgspec.convert(json.loads(line, parse_constant=_refuse_constant), Line)
    except (ValueError, RecursionError, msgspec.MsgspecError) as problem:
        raise DataError(f"no line of a log ({str(problem)[:200]})") from None


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


class _ImportState:
    """Numbers of lists as the file has them, and as this log has them."""

    def __init__(self, log: Log) -> None:
        self._log, self._numbers = log, dict[int, int | None]()
        self._impressions = self._choices = self._skipped = 0
        self._weights = False
        self._known = set(
            log.rows("SELECT i.time, q.text FROM impressions i LEFT JOIN queries q ON q.impression = i.id")
        )
        self._uses = set(log.uses())

    def result(self) -> Imported:
        return Imported(self._impressions, self._choices, self._skipped, self._weights)

    def add(self, content: Line) -> None:
        match content:
            case Header():
                if (content.format, content.version) != (FORMAT, VERSION):
                    raise DataError(f"format {content.format!r} {content.version}; expected {FORMAT!r} {VERSION}")
            case ImpressionLine():
                self._add_impression(content)
            case ChoiceLine():
                self._add_choice(content)
            case MemoryLine():
                self._add_memory(content)
            case WeightsLine():
                text = msgspec.json.encode(content.weights)
                versions.adopt(self._log, versions.parse_weights(text, where="weights"))
                self._weights = True

    def _add_impression(self, content: ImpressionLine) -> None:
        if content.id in self._numbers:
            raise DataError(f"list {content.id} comes twice")
        if (content.time, content.query) in self._known:
            self._numbers[content.id], self._skipped = None, self._skipped + 1
            return
        width = len(content.feature_names)
        impression = Impression(
            content.query, content.time, content.documents, np.array(content.propensities), np.array(content.scores),
            _features(content.features, len(content.scores), width), content.feature_names, content.model_version,
        )  # fmt: skip
        self._numbers[content.id] = self._log.record(impression)
        self._impressions += 1

    def _add_choice(self, content: ChoiceLine) -> None:
        if content.impression not in self._numbers:
            raise DataError(f"a choice from list {content.impression}, which does not come before it")
        number = self._numbers[content.impression]
        if number is not None:
            self._log.choose_position(number, content.position, content.time, withdrawn=content.withdrawn)
            self._choices += 1

    def _add_memory(self, content: MemoryLine) -> None:
        use = Use(typed_text(content.typed), content.document, content.time)
        if use in self._uses:
            self._skipped += 1
            return
        self._choices += self._log.remember([use])


def _features(text: str, rows: int, width: int) -> Array:
    try:
        found = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4")
    except (binascii.Error, ValueError):
        raise DataError("features are no base64 of single-precision numbers") from None
    if len(found) != rows * width:
        raise DataError(f"{len(found)} feature values; expected {rows} candidates x {width} features")
    return found.reshape(rows, width)


# ---- UBI


def ubi_queries(log: Log) -> Iterator[str]:
    """Lines of `queries.jsonl`: every list with the documents as shown."""
    for (number,) in log.rows("SELECT id FROM impressions ORDER BY id"):
        shown = log.displayed(number)
        hits = [object_id(one) for one in shown.documents]
        yield json.dumps({
            "application": APPLICATION, "query_id": _query_id(number), "user_query": shown.query or "",
            "timestamp": _timestamp(shown.time), "object_id_field": "path", "query_response_hit_ids": hits,
        }, allow_nan=False)  # fmt: skip


def ubi_events(log: Log) -> Iterator[str]:
    """Lines of `events.jsonl`: every choice; one that was withdrawn says so."""
    rows = log.rows(
        "SELECT c.impression, d.key, c.position, c.time, c.withdrawn FROM choices c JOIN documents d "
        "ON d.id = c.document WHERE c.impression IS NOT NULL ORDER BY c.id"
    )
    for number, key, position, time, withdrawn in rows:
        thing = {"object_id": object_id(None if key is None else decoded(key)), "object_id_field": "path"}
        attributes = {"object": thing, "position": {"ordinal": position + 1}}
        yield json.dumps({
            "application": APPLICATION, "action_name": "click", "query_id": _query_id(number),
            "timestamp": _timestamp(time), "event_attributes": attributes | ({"withdrawn": True} if withdrawn else {}),
        }, allow_nan=False)  # fmt: skip


def object_id(key: str | None) -> str:
    """A document in UBI: its path, or a digest of a path that is longer than UBI allows or no Unicode."""
    if key is None:
        return "erased"
    path, part = split_key(key)
    name = f"{path}#{part}" if part else path
    if len(name) <= _LONGEST_OBJECT_ID and name.encode("utf-8", "replace").decode() == name:
        return name
    return "sha256:" + hashlib.sha256(encoded(key)).hexdigest()


def _query_id(number: int) -> str:
    return f"{APPLICATION}-{number}"


def _timestamp(time: float) -> str:
    found = datetime.datetime.fromtimestamp(time, tz=datetime.UTC)
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")
