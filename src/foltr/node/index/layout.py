"""The folders of the index inside of the cache, and which of them is live.

    index.json           {"live": "index-3"}
    index.lock           held by the one process that writes
    index-3/             index.sqlite, candidates.json, candidates-7/, names.json, names-2/

An index is built anew only when the analysis of texts changed, or its tables without a script that changes them in
place. The new one grows in a folder of its own; the old one is read (`schema` says which versions can be) and not
written until the new one is complete. Then `publish` replaces index.json, and after that the old folder is deleted: a
process that is killed, or a power cut, leaves one of the two live, and the next run goes on or cleans up. What was
learned is not here. What must be erased does not wait: then the new index is published at once, as far as it is.
"""

import contextlib
import shutil
import sqlite3
from pathlib import Path
from typing import NamedTuple

import msgspec

from foltr.errors import StorageError
from foltr.files import private_folder, sync_folder, write_json
from foltr.node.index import schema
from foltr.node.index.candidates import Candidates
from foltr.node.index.store import Store
from foltr.node.index.writing import Writer, fingerprint
from foltr.node.places import Places
from foltr.text.analysis import TextAnalysis


class Rebuild(NamedTuple):
    """Progress of a new index while an earlier one is searched."""

    done: int  # files that it has looked at
    total: int  # files that it knows; 0: it has not been begun


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
    write_json(places.cache / "index.json", {"live": folder.name}, private=True)
    sync_folder(places.cache)  # the new name is on the disk before the old folder vanishes
    _delete_others(places, folder)


def _delete_others(places: Places, folder: Path) -> None:
    for other in places.cache.glob("index-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


def writing_folder(places: Places, analysis: TextAnalysis) -> Path:
    """The folder to write to: the live one if its tables and analysis are those of today, else the next one."""
    live = live_folder(places)
    if live is not None:
        _migrate(live)
    if live is not None and is_current(live, analysis):
        _delete_others(places, live)  # of a change that was taken back, or of a process that was killed
        return live
    following = _following(places, live)
    if following.exists() and not is_current(following, analysis):
        shutil.rmtree(following, ignore_errors=True)
    private_folder(following)
    if live is None:
        publish(places, following)
    return following


def _migrate(folder: Path) -> None:
    """Brings the tables of an earlier version up to date; what fails, such as on a damaged index, is built anew."""
    with contextlib.suppress(StorageError), contextlib.closing(Store(folder / "index.sqlite")) as store:
        if store.version == schema.SCHEMA or not schema.can_migrate(store.version):
            return
    with contextlib.suppress(sqlite3.Error):
        schema.migrate(folder / "index.sqlite")


def is_current(folder: Path, analysis: TextAnalysis) -> bool:
    """Whether an index can be continued. A damaged one cannot."""
    with contextlib.suppress(StorageError), contextlib.closing(Store(folder / "index.sqlite")) as store:
        return _is_of_today(store, analysis)
    return False


def _is_of_today(store: Store, analysis: TextAnalysis) -> bool:
    return store.version == schema.SCHEMA and store.meta("fingerprint", "") == fingerprint(analysis)


def rebuilding(places: Places, live: Store, analysis: TextAnalysis) -> Rebuild | None:
    """Progress of the successor of the live index; None where the live one has the analysis of today, and tables that
    are those of today or become so in place."""
    same_analysis = live.meta("fingerprint", "") == fingerprint(analysis)
    if same_analysis and schema.can_migrate(live.version):
        return None
    path = _following(places, live.path.parent) / "index.sqlite"
    with contextlib.suppress(StorageError), contextlib.closing(Store(path)) as new:
        if _is_of_today(new, analysis):
            states = new.states()
            return Rebuild(sum(states.values()) - states["waiting"], sum(states.values()))
    return Rebuild(0, 0)


def open_writer(places: Places, folder: Path, analysis: TextAnalysis, *, max_words: int) -> Writer:
    """The writer of a folder; a new index goes on with the document numbers of the one that is live."""
    live = live_folder(places)
    last = 0 if live is None or live == folder else last_number(live)
    return Writer(folder / "index.sqlite", analysis, max_words=max_words, last_number=last)


def last_number(folder: Path) -> int:
    """The largest number that a document of an index ever had; of any version, 0 where it cannot be read."""
    path = folder / "index.sqlite"
    with contextlib.suppress(StorageError, sqlite3.Error), contextlib.closing(schema.connect(path, write=False)) as old:
        found = old.execute("SELECT seq FROM sqlite_sequence WHERE name = 'documents'").fetchone()
        return int(found[0]) if found else 0
    return 0


class Reader:
    """The live index for searching: `store`, `candidates` and `names` (candidates of which only the name is known),
    which `refresh` replaces when another one is live."""

    store: Store
    candidates: Candidates
    names: Candidates

    def __init__(self, places: Places) -> None:
        self._places = places
        self._folder: Path | None = None
        self.refresh()

    def refresh(self) -> "Reader":
        """Switches to the live index where it was replaced; to be called before a search. Reads one small file."""
        folder = self._live()
        if folder != self._folder:
            store, candidates, names = self._opened(folder)
            self.close()
            self.store, self.candidates, self.names, self._folder = store, candidates, names, store.path.parent
        return self

    def _live(self) -> Path:
        folder = live_folder(self._places)
        if folder is None:
            raise StorageError(f"{self._places.cache}: there is no index yet; run `foltr node index`")
        return folder

    def _opened(self, folder: Path) -> tuple[Store, Candidates, Candidates]:
        """Opens an index; where it was replaced and deleted meanwhile, the one that is live now."""
        while True:
            try:
                return Store(folder / "index.sqlite"), Candidates(folder), Candidates(folder, names=True)
            except StorageError:
                if (now := self._live()) == folder:
                    raise
                folder = now

    def close(self) -> None:
        if self._folder is not None:
            self.store.close()
            self.candidates.close()
            self.names.close()
            self._folder = None


def _following(places: Places, live: Path | None) -> Path:
    return places.cache / f"index-{_number(live) + 1}"


def _number(folder: Path | None) -> int:
    with contextlib.suppress(ValueError):
        return int(folder.name.rpartition("-")[2]) if folder else 0
    return 0
