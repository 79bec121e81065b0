"""The folders of the index inside of the cache, and which of them is live.

    index.json           {"live": "index-3"}
    index.lock           held by the one process that writes
    index-3/             index.sqlite, candidates.json, candidates-7/

An index is built anew only when its tables or the analysis of texts changed. The new one grows in a folder of its own;
the old one serves until the new one is complete.
"""

import contextlib
import shutil
from pathlib import Path

import msgspec

from foltr.atomic import write_json
from foltr.errors import StorageError
from foltr.node.candidates import Candidates
from foltr.node.places import Places, private_folder
from foltr.node.store import Store
from foltr.node.writing import Writer, fingerprint
from foltr.text.analysis import TextAnalysis


class Live(msgspec.Struct, frozen=True):
    live: str


def live_folder(places: Places) -> Path | None:
    """The folder of the index that is searched; None: nothing has been indexed yet."""
    try:
        live = msgspec.json.decode((places.cache / "index.json").read_bytes(), type=Live).live
    except (OSError, msgspec.MsgspecError):
        return None
    folder = places.cache / live
    return folder if live.startswith("index-") and "/" not in live and folder.is_dir() else None


def publish(places: Places, folder: Path) -> None:
    """Makes a folder the live one and deletes the others."""
    write_json(places.cache / "index.json", {"live": folder.name})
    for other in places.cache.glob("index-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


def writing_folder(places: Places, analysis: TextAnalysis) -> Path:
    """The folder to write to: the live one if its tables and analysis are those of today, else the next one."""
    live = live_folder(places)
    if live is not None and is_current(live, analysis):
        return live
    following = places.cache / f"index-{_number(live) + 1}"
    if following.exists() and not is_current(following, analysis):
        shutil.rmtree(following, ignore_errors=True)
    private_folder(following)
    if live is None:
        publish(places, following)
    return following


def is_current(folder: Path, analysis: TextAnalysis) -> bool:
    """Whether an index can be continued. A damaged one cannot."""
    with contextlib.suppress(StorageError), contextlib.closing(Store(folder / "index.sqlite")) as store:
        return store.meta("fingerprint", "") == fingerprint(analysis)
    return False


def open_writer(folder: Path, analysis: TextAnalysis, *, max_words: int) -> Writer:
    return Writer(folder / "index.sqlite", analysis, max_words=max_words)


class Reader:
    """The live index for searching: `store` and `candidates`, which `refresh` replaces when another one is live."""

    store: Store
    candidates: Candidates

    def __init__(self, places: Places) -> None:
        self._places = places
        self._folder: Path | None = None
        self.refresh()

    def refresh(self) -> "Reader":
        """To be called before a search: a look at one small file."""
        folder = live_folder(self._places)
        if folder is None:
            raise StorageError(f"{self._places.cache}: there is no index yet; run `foltr node index`")
        if folder != self._folder:
            store, candidates = Store(folder / "index.sqlite"), Candidates(folder)
            self.close()
            self.store, self.candidates, self._folder = store, candidates, folder
        return self

    def close(self) -> None:
        if self._folder is not None:
            self.store.close()
            self.candidates.close()
            self._folder = None


def _number(folder: Path | None) -> int:
    with contextlib.suppress(ValueError):
        return int(folder.name.rpartition("-")[2]) if folder else 0
    return 0
