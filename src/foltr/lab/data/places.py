"""Where collections lie on this machine: a small JSON file of the user's, FOLTR_DATA, and ./data."""

import json
import os
import re
from pathlib import Path

from foltr.atomic import write_text
from foltr.errors import DataError, StorageError


def _file() -> Path:
    chosen = os.environ.get("FOLTR_CONFIG")
    if chosen:
        return Path(chosen) / "data.json"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "foltr" / "data.json"


def remembered() -> dict[str, str]:
    """Name -> folder, as added by the user."""
    try:
        known = json.loads(_file().read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise StorageError(f"{_file()}: cannot be read ({error}); fix or remove it") from error
    if not isinstance(known, dict) or not all(isinstance(path, str) for path in known.values()):
        raise StorageError(f"{_file()}: expected a JSON object of names and folders; fix or remove it")
    return known


def remember(name: str, root: Path) -> None:
    """Stores a name and its folder; the file is replaced atomically."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name):
        raise DataError(f"the name {name!r} is not allowed; use small letters, digits, '-', '_' and '.'")
    known = {**remembered(), name: str(root)}
    write_text(_file(), json.dumps(known, indent=2, allow_nan=False), instead="another folder with FOLTR_CONFIG")


def shelves(name: str) -> list[Path]:
    """Folders where a collection is found without registration, in order."""
    folders = [Path(folder) for folder in os.environ.get("FOLTR_DATA", "").split(os.pathsep) if folder]
    return [folder.absolute() / name for folder in [*folders, Path("data")]]


def candidates(name: str) -> list[Path]:
    """Folders to look into, in order."""
    added = [Path(remembered()[name])] if name in remembered() else []
    return [*added, *shelves(name)]
