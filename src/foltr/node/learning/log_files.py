"""The log as files: JSON lines with all that is logged, and User Behavior Insights (UBI 1.3.0) for other tools.

JSON lines: the first line names the format, then come impressions with their choices in the order of the log, and the
current weights. Features are little-endian single-precision numbers in base64, row after row.

UBI: a query a list (`queries.jsonl`) and an event a choice (`events.jsonl`), as its schemas describe them.
"""

import base64
import datetime
import hashlib
import json
from collections.abc import Iterator
from typing import TypeAlias

import msgspec
import numpy as np

from foltr.node.learning import versions
from foltr.node.learning.log import Log, decoded, encoded
from foltr.node.learning.memory import split_key

FORMAT, VERSION, APPLICATION = "foltr-log", 1, "foltr-node"
_LONGEST_OBJECT_ID = 256  # of UBI


class Header(msgspec.Struct, frozen=True, tag_field="type", tag="header"):
    format: str
    version: int


class ImpressionLine(msgspec.Struct, frozen=True, tag_field="type", tag="impression"):
    id: int
    time: float
    query: str | None
    documents: tuple[str | None, ...]
    propensities: tuple[float, ...]
    scores: tuple[float, ...]
    features: str  # base64
    feature_names: tuple[str, ...]
    model_version: int


class ChoiceLine(msgspec.Struct, frozen=True, tag_field="type", tag="choice"):
    impression: int
    position: int  # from 0
    time: float
    withdrawn: int = 0


class MemoryLine(msgspec.Struct, frozen=True, tag_field="type", tag="memory"):
    """A choice without a list, as an earlier import left it."""

    typed: str
    document: str
    time: float


class WeightsLine(msgspec.Struct, frozen=True, tag_field="type", tag="weights"):
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
