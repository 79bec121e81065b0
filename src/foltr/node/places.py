"""Where a node keeps its files: settings, what must not be lost, and what can be rebuilt.

    config   settings.toml                                      $XDG_CONFIG_HOME/foltr
    data     log, memory of choices, learned weights             $XDG_DATA_HOME/foltr/node    0700, files 0600
    cache    the index, marked with CACHEDIR.TAG for backups     $XDG_CACHE_HOME/foltr/node   0700, files 0600

`FOLTR_NODE_HOME`, or `home=`, puts all three below one folder.
"""

import contextlib
import os
from pathlib import Path
from typing import Any

import msgspec

from foltr.atomic import atomic_write, dump_json
from foltr.errors import StorageError

_TAG = """Signature: 8a477f597d28d172789f06886806bc55
# The index of a foltr search node. It can be rebuilt at any time; backups may leave it out.
# https://bford.info/cachedir/
"""


class Places(msgspec.Struct, frozen=True):
    config: Path
    data: Path
    cache: Path

    @property
    def settings_file(self) -> Path:
        return self.config / "settings.toml"

    @property
    def pause_file(self) -> Path:
        """While it exists, nothing is indexed."""
        return self.data / "paused"


def find(home: str | Path | None = None) -> Places:
    """The folders of this user's node; nothing is created."""
    chosen = home or os.environ.get("FOLTR_NODE_HOME")
    if chosen:
        base = Path(chosen).expanduser().absolute()
        return Places(config=base / "config", data=base / "data", cache=base / "cache")
    return Places(
        config=_xdg("XDG_CONFIG_HOME", ".config") / "foltr",
        data=_xdg("XDG_DATA_HOME", ".local/share") / "foltr" / "node",
        cache=_xdg("XDG_CACHE_HOME", ".cache") / "foltr" / "node",
    )


def create(places: Places) -> Places:
    """Creates the folders, readable by their owner only, and marks the cache as one."""
    for folder in (places.config, places.data, places.cache):
        private_folder(folder)
    tag = places.cache / "CACHEDIR.TAG"
    if not tag.exists():
        private_file(tag)
        tag.write_text(_TAG, "utf-8")
    return places


def private_folder(folder: Path) -> Path:
    """Creates a folder with mode 0700; one that exists is tightened."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as problem:
        raise StorageError(
            f"{folder}: cannot be used ({problem.strerror}); set FOLTR_NODE_HOME to a folder of your own"
        ) from None
    return folder


def private_file(path: Path) -> Path:
    """Creates an empty file with mode 0600 unless it exists; a link in its place is refused."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        path.chmod(0o600)
    except OSError as problem:
        raise StorageError(
            f"{path}: cannot be written ({problem.strerror}); free the path or choose another home"
        ) from None
    return path


def private_files(folder: Path) -> None:
    """Gives the files of a folder mode 0600: for those that a library creates by the process's own rules."""
    for file in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # merged with others meanwhile
            file.chmod(0o600)


def private_json(path: Path, content: Any) -> None:
    """Replaces a JSON file, readable by its owner only from the first byte on."""
    with atomic_write(path) as temporary:
        private_file(temporary).write_text(dump_json(content), "utf-8")


def stored_files(places: Places) -> list[tuple[Path, int]]:
    """The files of the node with their sizes."""
    folders = (places.config, places.data, places.cache)
    return [found for folder in folders for file in sorted(folder.rglob("*")) for found in _with_size(file)]


def _with_size(file: Path) -> list[tuple[Path, int]]:
    try:
        return [(file, file.stat().st_size)] if file.is_file() else []
    except OSError:  # a file of the index that was replaced meanwhile
        return []


def identities(places: Places) -> frozenset[tuple[int, int]]:
    """Device and inode of the node's folders and of all folders in them: the same by whatever path they are reached,
    through a link or mounted elsewhere."""
    folders = (places.config, places.data, places.cache)
    every = [folder for top in folders for folder, _, _ in os.walk(top)]
    return frozenset(identity for folder in every for identity in _identity(folder))


def _identity(folder: str) -> list[tuple[int, int]]:
    try:
        status = Path(folder).stat()
    except OSError:  # a folder of the index that was deleted meanwhile
        return []
    return [(status.st_dev, status.st_ino)]


def synced(folder: Path) -> None:
    """Names in a folder reach the disk: files that were created, renamed or deleted in it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _xdg(variable: str, default: str) -> Path:
    """An XDG folder; the standard says that a relative path is to be ignored."""
    chosen = os.environ.get(variable, "")
    return Path(chosen) if chosen.startswith("/") else Path.home() / default
