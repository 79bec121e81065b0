"""Where a node keeps its files: settings, what must not be lost, witnesses of that, and what can be rebuilt.

    config   settings.toml                                      $XDG_CONFIG_HOME/foltr
    data     log, memory of choices, learned weights             $XDG_DATA_HOME/foltr/node    0700, files 0600
    state    witnesses of a federation's ledger and rounds       $XDG_STATE_HOME/foltr/node   0700, files 0600
    cache    the index, marked with CACHEDIR.TAG for backups     $XDG_CACHE_HOME/foltr/node   0700, files 0600

`FOLTR_NODE_HOME`, or `home=`, puts all four below one folder. A witness notices that `data` was restored from a backup,
so a backup leaves `state` out.
"""

import os
from pathlib import Path

import msgspec

from foltr.files import private_file, private_folder, xdg_folder

_TAG = """Signature: 8a477f597d28d172789f06886806bc55
# The index of a foltr search node. It can be rebuilt at any time; backups may leave it out.
# https://bford.info/cachedir/
"""


class Places(msgspec.Struct, frozen=True):
    config: Path
    data: Path
    cache: Path
    state: Path

    @property
    def settings_file(self) -> Path:
        return self.config / "settings.toml"

    @property
    def pause_file(self) -> Path:
        """While it exists, nothing is indexed."""
        return self.data / "paused"

    @property
    def witnesses(self) -> Path:
        """Of federations: what notices that `data` went back."""
        return self.state / "federation"

    @property
    def folders(self) -> tuple[Path, ...]:
        return (self.config, self.data, self.cache, self.state)


def find(home: str | Path | None = None) -> Places:
    """The folders of this user's node; nothing is created."""
    chosen = home or os.environ.get("FOLTR_NODE_HOME")
    if chosen:
        base = Path(chosen).expanduser().absolute()
        return Places(config=base / "config", data=base / "data", cache=base / "cache", state=base / "state")
    return Places(
        config=xdg_folder("XDG_CONFIG_HOME") / "foltr",
        data=xdg_folder("XDG_DATA_HOME") / "foltr" / "node",
        cache=xdg_folder("XDG_CACHE_HOME") / "foltr" / "node",
        state=xdg_folder("XDG_STATE_HOME") / "foltr" / "node",
    )


def create(places: Places) -> Places:
    """Creates the folders, readable by their owner only, and marks the cache as one."""
    for folder in places.folders:
        private_folder(folder)
    tag = places.cache / "CACHEDIR.TAG"
    if not tag.exists():
        private_file(tag)
        tag.write_text(_TAG, "utf-8")
    return places


def stored_files(places: Places) -> list[tuple[Path, int]]:
    """The files of the node with their sizes."""
    return [found for folder in places.folders for file in sorted(folder.rglob("*")) for found in _with_size(file)]


def _with_size(file: Path) -> list[tuple[Path, int]]:
    try:
        return [(file, file.stat().st_size)] if file.is_file() else []
    except OSError:  # a file of the index that was replaced meanwhile
        return []


def identities(places: Places) -> frozenset[tuple[int, int]]:
    """Device and inode of the node's folders and of all folders in them: the same by whatever path they are reached,
    through a link or mounted elsewhere."""
    every = [folder for top in places.folders for folder, _, _ in os.walk(top)]
    return frozenset(identity for folder in every for identity in _identity(folder))


def _identity(folder: str) -> list[tuple[int, int]]:
    try:
        status = Path(folder).stat()
    except OSError:  # a folder of the index that was deleted meanwhile
        return []
    return [(status.st_dev, status.st_ino)]


def bytes_below(folder: Path) -> int:
    """The size of all files below a folder."""
    total = 0
    for name, _, files in os.walk(folder):
        for file in files:
            try:
                total += (Path(name) / file).lstat().st_size
            except FileNotFoundError:  # an index that is being written
                continue
    return total
