"""settings.toml of a node: what is indexed, how, and what may be learned.

    roots = ["/home/me/notes", "/home/me/mail"]
    exclude = ["*.log", "/drafts/"]          # gitignore syntax, relative to every root
    allow = ["hidden folders"]               # groups of default rules that are switched off

Every way in has the same checks: the file, the form of the page, commands, and an export of another machine. Unknown
keys are refused with the list of the right ones, so that a misspelt exclusion never goes unnoticed. Numbers have
bounds, so that no file can switch a limit off by a large one.
"""

import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from foltr.errors import InputError, SpecError, did_you_mean
from foltr.files import atomic_write
from foltr.text.analysis import LANGUAGES

RANGES: dict[str, tuple[float, float]] = {
    "workers": (1, 64),
    "retention_days": (1, 36_500),
    "limits.file_mb": (1, 4_096),
    "limits.seconds": (0.1, 3_600),
    "limits.memory_mb": (128, 65_536),
    "limits.words": (1, 10_000_000),
}
_MAX_ENTRIES = 5_000  # of a list
_MAX_PATH = 4_096  # bytes
_MAX_PATTERN = 1_024  # characters: rules do not read longer ones
_SYSTEM = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/usr", "/var")
_SHARED = ("/run/media/", "/usr/share/doc", "/usr/share/man")  # where people's disks and documents are


def _check_range(key: str, value: float) -> None:
    low, high = RANGES[key]
    if not low <= value <= high:
        raise ValueError(f"{key} = {value}: must be between {low:,} and {high:,}; correct it, or leave it out")


def _check_root(root: str) -> None:
    try:
        encoded = root.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"roots: {_short(root)} is no UTF-8; write a folder above it") from None
    if not Path(root).is_absolute():
        raise ValueError(f"roots: {_short(root)} is relative; write the whole path")
    if len(encoded) >= _MAX_PATH or "\0" in root or ".." in Path(root).parts:
        raise ValueError(f"roots: {_short(root)} is no path of a folder; write it without `..`")


def _check_pattern(key: str, pattern: str) -> None:
    if any(sign in pattern for sign in "\n\r\0"):
        raise ValueError(f"{key}: the pattern {_short(pattern)} has a line break; write one pattern an entry")
    if len(pattern) > _MAX_PATTERN:
        raise ValueError(f"{key}: the pattern {_short(pattern)} is too long; write at most {_MAX_PATTERN} characters")
    try:
        pattern.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{key}: the pattern {_short(pattern)} is no UTF-8; write `?` for such letters") from None


def _short(text: str) -> str:
    return ascii(text if len(text) <= 80 else text[:80] + "...")


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds on a single file; a file beyond one is skipped, with the reason."""

    file_mb: int = 256  # larger files are skipped
    seconds: float = 30.0  # extraction of one file
    memory_mb: int = 1024  # of a child process that extracts
    words: int = 400_000  # of one document; what follows is not searched

    def __post_init__(self) -> None:
        for name in ("file_mb", "seconds", "memory_mb", "words"):
            _check_range(f"limits.{name}", getattr(self, name))


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
        for name in ("workers", "retention_days"):
            _check_range(name, getattr(self, name))
        if self.language not in LANGUAGES:
            raise ValueError(f"language = {_short(self.language)}: is unknown; there are {', '.join(LANGUAGES)}")
        for name in ("roots", "exclude", "allow"):
            if len(getattr(self, name)) > _MAX_ENTRIES:
                raise ValueError(f"{name}: {len(getattr(self, name)):,} entries; write at most {_MAX_ENTRIES:,}")
        for root in self.roots:
            _check_root(root)
        for name in ("exclude", "allow"):
            for pattern in getattr(self, name):
                _check_pattern(name, pattern)


STRICTEST = Settings(learning=False, memory=False)  # for searching while the person's own cannot be read


def load(path: Path) -> Settings:
    """The settings in a file; the defaults where there is no file."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return Settings()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise SpecError(f"{path}: is not valid TOML ({problem}); correct it or delete it for the defaults") from None
    except OSError as problem:
        raise SpecError(f"{path}: cannot be read ({problem.strerror}); correct it or choose another home") from None
    return parse(content, str(path))


def stamp(path: Path) -> tuple[int, int] | None:
    """A value that is another one after each change of the file; None while there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino


def parse(content: dict[str, Any], place: str = "settings") -> Settings:
    """Checked settings from a parsed file."""
    _refuse_unknown(content, Settings, place, "")
    limits = content.get("limits", {})
    if isinstance(limits, dict):
        _refuse_unknown(limits, Limits, place, "limits.")
    language = content.get("language")
    if isinstance(language, str):
        content = {**content, "language": language.strip().casefold()}  # "German" is german
    try:
        return msgspec.convert(content, Settings)
    except (msgspec.ValidationError, ValueError, OverflowError) as problem:
        raise SpecError(f"{place}: {problem}") from None


def changed(settings: Settings, **values: Any) -> Settings:
    """Settings with other values, after all checks."""
    return parse({**msgspec.to_builtins(settings), **values})


def save(path: Path, settings: Settings) -> None:
    """Writes the settings that differ from the defaults."""
    with replacing(path, settings):
        pass


@contextmanager
def replacing(path: Path, settings: Settings) -> Iterator[None]:
    """Writes the new content beside the file, and replaces the file when this is left; an error leaves the old one."""
    content = _differences(settings, Settings())
    limits = content.pop("limits", None)
    lines = [f"{key} = {_toml(value)}" for key, value in content.items()]
    if limits:
        lines += ["", "[limits]", *(f"{key} = {_toml(value)}" for key, value in limits.items())]
    with atomic_write(path, instead="another home (FOLTR_NODE_HOME)", private=True) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
        yield


def _differences(settings: msgspec.Struct, defaults: msgspec.Struct) -> dict[str, Any]:
    chosen, usual = msgspec.to_builtins(settings), msgspec.to_builtins(defaults)
    different = {key: value for key, value in chosen.items() if value != usual[key]}
    if isinstance(different.get("limits"), dict):
        different["limits"] = {k: v for k, v in different["limits"].items() if v != usual["limits"][k]}
    return different


def _refuse_unknown(content: dict[str, Any], struct: type[msgspec.Struct], place: str, prefix: str) -> None:
    unknown = [key for key in content if key not in struct.__struct_fields__]
    if unknown:
        key, names = str(unknown[0]), struct.__struct_fields__
        right = ", ".join(prefix + name for name in names)
        raise SpecError(f"{place}: no key {prefix}{_short(key)[1:-1]}; there are {right}.{did_you_mean(key, names)}")


def _toml(value: Any) -> str:
    """A value as TOML; JSON strings are TOML strings, except that TOML refuses an unescaped DEL."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=True, allow_nan=False).replace("\x7f", "\\u007f")


# ---- roots as people name them


def absolute_path(path: str | Path) -> str:
    """A path from the root on; `~` is the home folder, and `~name` that of a user, unless there is no such user."""
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - links stay as they are; Path would raise


def check_root(path: str) -> None:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{path!r}: the name is no UTF-8; add a folder above it") from None
    if not Path(path).exists():
        raise InputError(f"{path}: there is no such folder or file")


def root_warning(path: str) -> str | None:
    """Why somebody may not want to search a folder; None: nothing speaks against it."""
    real = os.path.realpath(path)
    home = os.path.realpath(Path.home())
    if real == "/":
        return "this is the whole machine"
    if real == home or (f"{home}/").startswith(f"{real}/") or os.path.dirname(real) in ("/home", "/Users"):  # noqa: PTH120
        return "this is a whole home folder, with all that programs keep there"
    if any(real == folder or real.startswith(f"{folder}/") for folder in _SYSTEM) and not real.startswith(_SHARED):
        return "this is a folder of the system"
    return None


def united(old: Sequence[str], new: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*old, *new]))
