"""settings.toml of a node: what is indexed, how, and what may be learned.

    roots = ["/home/me/notes", "/home/me/mail"]
    exclude = ["*.log", "/drafts/"]          # gitignore syntax, relative to every root
    allow = ["hidden folders"]               # groups of default rules that are switched off

Unknown keys are refused with the list of the right ones, so that a misspelt exclusion never goes unnoticed.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from foltr.atomic import write_text
from foltr.errors import SpecError, did_you_mean


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds on a single file; a file beyond one is skipped, with the reason."""

    file_mb: int = 256  # larger files are skipped
    seconds: float = 30.0  # extraction of one file
    memory_mb: int = 1024  # of a child process that extracts
    words: int = 400_000  # of one document; what follows is not searched

    def __post_init__(self) -> None:
        for name in ("file_mb", "seconds", "memory_mb", "words"):
            if not getattr(self, name) > 0:
                raise ValueError(f"limits.{name} = {getattr(self, name)}: must be above 0")


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    roots: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()  # gitignore syntax
    allow: tuple[str, ...] = ()  # groups of default rules, or single patterns of them, that do not exclude
    language: str = "english"  # of stop words and stems
    workers: int = 1  # child processes that extract
    on_battery: bool = False  # index while on battery
    retention_days: int = 730  # of the log
    exploration: bool = False
    learning: bool = True
    memory: bool = True
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= 64:
            raise ValueError(f"workers = {self.workers}: must be between 1 and 64")
        if self.retention_days < 1:
            raise ValueError(f"retention_days = {self.retention_days}: must be at least 1")
        for root in self.roots:
            if not Path(root).is_absolute():
                raise ValueError(f"roots: {root!r} is relative; write the whole path")


def load(path: Path) -> Settings:
    """The settings in a file; the defaults where there is no file."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return Settings()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise SpecError(f"{path}: is not valid TOML ({problem}); correct it or delete it for the defaults") from None
    return parse(content, str(path))


def parse(content: dict[str, Any], place: str = "settings") -> Settings:
    """Checked settings from a parsed file."""
    _refuse_unknown(content, Settings, place, "")
    limits = content.get("limits", {})
    if isinstance(limits, dict):
        _refuse_unknown(limits, Limits, place, "limits.")
    try:
        return msgspec.convert(content, Settings)
    except msgspec.ValidationError as problem:
        raise SpecError(f"{place}: {problem}") from None


def save(path: Path, settings: Settings) -> None:
    """Writes the settings that differ from the defaults."""
    content = _differences(settings, Settings())
    limits = content.pop("limits", None)
    lines = [f"{key} = {_toml(value)}" for key, value in content.items()]
    if limits:
        lines += ["", "[limits]", *(f"{key} = {_toml(value)}" for key, value in limits.items())]
    write_text(path, "\n".join(lines) + "\n", instead="another home (FOLTR_NODE_HOME)")


def _differences(settings: msgspec.Struct, defaults: msgspec.Struct) -> dict[str, Any]:
    chosen, usual = msgspec.to_builtins(settings), msgspec.to_builtins(defaults)
    different = {key: value for key, value in chosen.items() if value != usual[key]}
    if isinstance(different.get("limits"), dict):
        different["limits"] = {k: v for k, v in different["limits"].items() if v != usual["limits"][k]}
    return different


def _refuse_unknown(content: dict[str, Any], struct: type[msgspec.Struct], place: str, prefix: str) -> None:
    unknown = [key for key in content if key not in struct.__struct_fields__]
    if unknown:
        close = did_you_mean(unknown[0], struct.__struct_fields__)
        right = ", ".join(prefix + name for name in struct.__struct_fields__)
        raise SpecError(f"{place}: no key {prefix}{unknown[0]}; there are {right}.{close}")


def _toml(value: Any) -> str:
    """A value as TOML; JSON strings are TOML strings, except that TOML refuses an unescaped DEL."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=True, allow_nan=False).replace("\x7f", "\\u007f")
