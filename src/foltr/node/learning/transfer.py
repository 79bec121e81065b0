"""Settings, memory and weights as one JSON file, to move them to another machine.

A file that comes from elsewhere is checked as a whole before anything is written: sizes, types, finite numbers, known
features, absolute paths. It can make a node stricter, never less strict:

- folders to search are taken over one by one, where the person says so
- exclusions are added before the person's own, which go on to decide; inclusions (`!pattern`) and `allow` stay behind
- of limits, retention and switches the stricter value stays: the file's or the person's own

The log of displayed lists does not travel: it stays on the machine on which it was recorded.
"""

import math
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import msgspec

from foltr.errors import DataError, InputError
from foltr.files import atomic_write, write_json
from foltr.node import settings as node_settings
from foltr.node.learning import versions
from foltr.node.learning.log import Log
from foltr.node.learning.memory import Use, document_key, split_key
from foltr.node.learning.versions import Weights
from foltr.node.settings import Limits, Settings, united
from foltr.text.analysis import stemmer

FORMAT = "foltr-node"
PARTS = ("settings", "memory", "weights")
_MAX_BYTES = 64_000_000
_MAX_USES = 200_000
_MAX_TEXT = 4_096  # characters of a path or a query
_STRICTER = ("workers", "retention_days", "on_battery", "exploration", "learning", "memory")  # the smaller one stays


class Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    typed: str
    path: str
    time: float
    part: str = ""


class Export(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    version: int
    exported: str  # date
    settings: dict[str, Any]
    memory: tuple[Choice, ...]
    weights: dict[str, Any] | None  # the version in use; None: the start weights


class Content(NamedTuple):
    """Checked content of a file."""

    settings: Settings  # without `allow` and without inclusions
    uses: list[Use]  # in the order of time
    weights: Weights | None
    not_taken: tuple[str, ...]  # what `allow` had, and inclusions


class Imported(NamedTuple):
    """Parts of an import that were taken over."""

    choices: int
    roots: int  # that are new
    exclusions: int  # that are new
    weights: bool
    not_taken: tuple[str, ...]  # what the other machine indexes although it is excluded by default
    stricter: tuple[str, ...]  # own settings that stay


class Joined(NamedTuple):
    """The person's settings after an import."""

    settings: Settings
    stricter: tuple[str, ...]  # own values that are stricter than those of the file


def write(path: Path, settings: Settings, uses: list[Use], weights: Weights | None) -> None:
    """Writes the file, readable by its owner only."""
    chosen = msgspec.to_builtins(settings)
    memory = [
        {"typed": one.typed, "path": key[0], "part": key[1], "time": one.time}
        for one, key in ((use, split_key(use.document)) for use in uses)
        if _is_text(key[0])
    ]
    today = time.strftime("%Y-%m-%d", time.gmtime())
    content = {"format": FORMAT, "version": 1, "exported": today, "settings": chosen, "memory": memory}
    write_json(path, {**content, "weights": None if weights is None else msgspec.to_builtins(weights)}, private=True)


def read(path: Path, moved: Mapping[str, str] | None = None) -> Content:
    """Checked content of a file; `moved` names folders that have another path here (old -> new)."""
    found = _decoded(path)
    if found.format != FORMAT or found.version != 1:
        raise DataError(f"{path}: format {found.format!r} version {found.version}; expected {FORMAT!r} version 1")
    if len(found.memory) > _MAX_USES:
        raise DataError(f"{path}: {len(found.memory):,} choices; at most {_MAX_USES:,} are read")
    for number, one in enumerate(found.memory):
        _check_choice(path, number, one)
    settings, not_taken = _settings(path, found.settings, moved or {})
    now = time.time()
    uses = [
        Use(
            one.typed, document_key(_moved(one.path, moved or {}), one.part), min(one.time, now)
        )  # later: never forgotten
        for one in found.memory
    ]
    weights = None
    if found.weights is not None:
        weights = versions.parse_weights(msgspec.json.encode(found.weights), where=f"{path}: weights")
    return Content(settings, sorted(uses, key=lambda use: use.time), weights, not_taken)


def joined(own: Settings, other: Settings, roots: Collection[str]) -> Joined:
    """The person's settings with those of a file, as far as they are no less strict, and with some of its roots."""
    limits = {name: min(getattr(own.limits, name), getattr(other.limits, name)) for name in Limits.__struct_fields__}
    settings = node_settings.changed(
        own,
        roots=united(own.roots, (root for root in other.roots if root in roots)),
        exclude=united([one for one in other.exclude if one not in own.exclude], own.exclude),
        language=other.language,
        **{name: min(getattr(own, name), getattr(other, name)) for name in _STRICTER},
        limits=limits,
    )
    stricter = [
        f"{name} = {_word(getattr(own, name))}" for name in _STRICTER if getattr(own, name) < getattr(other, name)
    ]
    stricter += [f"limits.{name} = {limits[name]}" for name in limits if limits[name] < getattr(other.limits, name)]
    return Joined(settings, tuple(stricter))


def take_over(
    log: Log, file: Path, own: Settings, content: Content, *, roots: Collection[str], parts: Collection[str]
) -> tuple[Settings, Imported]:
    """Writes parts of an export to log and settings file: all or nothing. The person's settings afterwards."""
    unknown = [part for part in parts if part not in PARTS]
    if unknown or not parts:
        raise InputError(f"{', '.join(unknown) or 'nothing'}: no part of an export; there are {', '.join(PARTS)}")
    settings, stricter = joined(own, content.settings if "settings" in parts else own, roots)
    uses = content.uses if "memory" in parts and own.memory else []
    weights = content.weights if "weights" in parts else None
    with node_settings.replacing(file, settings) if settings != own else nullcontext(), log.transaction():
        log.remember(uses)
        if weights is not None:
            versions.adopt(log, weights)
    return settings, Imported(
        choices=len(uses),
        roots=len(settings.roots) - len(own.roots),
        exclusions=len(settings.exclude) - len(own.exclude),
        weights=weights is not None,
        not_taken=content.not_taken if "settings" in parts else (),
        stricter=stricter,
    )


def _settings(path: Path, content: Mapping[str, Any], moved: Mapping[str, str]) -> tuple[Settings, tuple[str, ...]]:
    """Checked settings of a file, and what is never taken over: `allow`, and patterns that include."""
    place = f"{path}: settings"
    found = node_settings.parse({**content, "roots": _roots(path, content)}, place)
    stemmer(found.language)  # an error where its package is not installed
    inclusions = tuple(one for one in found.exclude if one.startswith("!"))
    taken = {
        **msgspec.to_builtins(found),
        "allow": (),
        "exclude": tuple(one for one in found.exclude if one not in inclusions),
        "roots": tuple(dict.fromkeys(_moved(one, moved) for one in found.roots)),
    }
    return node_settings.parse(taken, place), (*found.allow, *inclusions)


def _decoded(path: Path) -> Export:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise DataError(f"{path}: larger than {_MAX_BYTES // 10**6} MB; this is no export of a node")
        return msgspec.json.decode(path.read_bytes(), type=Export)
    except OSError as problem:
        raise DataError(f"{path}: cannot be read ({problem.strerror})") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise DataError(f"{path}: is no export of a node ({problem}); write one with `foltr node export`") from None


def _check_choice(path: Path, number: int, one: Choice) -> None:
    place = f"{path}: memory[{number}]"
    if not one.path.startswith("/") or ".." in PurePosixPath(one.path).parts or "\0" in one.path + one.part:
        raise DataError(f"{place}: {one.path!r} is no absolute path of a file")
    if not (math.isfinite(one.time) and 0 <= one.time < 1e11):
        raise DataError(f"{place}: time {one.time} is no time in seconds since 1970")
    if not one.typed or max(len(one.typed), len(one.path), len(one.part)) > _MAX_TEXT:
        raise DataError(f"{place}: an empty query, or a text of more than {_MAX_TEXT:,} characters")


def _roots(path: Path, settings: Mapping[str, Any]) -> list[str]:
    roots = settings.get("roots", [])
    if not isinstance(roots, list) or not all(isinstance(one, str) and len(one) <= _MAX_TEXT for one in roots):
        raise DataError(f"{path}: settings.roots must be a list of paths")
    if any(".." in PurePosixPath(one).parts or "\0" in one for one in roots):
        raise DataError(f"{path}: settings.roots must be paths without `..`")
    return roots


def _word(value: Any) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else f"{value}"


def _moved(path: str, moved: Mapping[str, str]) -> str:
    """A path with the first folder that was moved replaced."""
    for old, new in moved.items():
        beginning = old.rstrip("/")
        if path == beginning or path.startswith(beginning + "/"):
            return new.rstrip("/") + path[len(beginning) :]
    return path


def _is_text(path: str) -> bool:
    """Whether a path has a form in JSON: a name that is no UTF-8 has none."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Writes lines to a file that its owner only can read; how many."""
    written = 0
    with atomic_write(path, private=True) as temporary, temporary.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(line.rstrip("\n") + "\n")
            written += 1
    return written
