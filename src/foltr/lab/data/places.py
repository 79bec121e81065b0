"""Where collections lie on this machine, and the files of every fold in a folder of a known layout.

A folder is found in a small JSON file of the user's, in FOLTR_DATA, or in ./data. Layouts:

    five parts     S1.txt .. S5.txt: fold f trains on S_f, S_f+1, S_f+2, validates on S_f+3, tests on S_f+4,
                   counted modulo 5
    folds          Fold1/train.txt, vali.txt, test.txt .. Fold5
    LETOR 3 folds  Fold1/trainingset.txt, validationset.txt, testset.txt .. Fold5
    Yahoo          set1.train.txt, set1.valid.txt, set1.test.txt
    one split      train.txt, vali.txt, test.txt
    intent change  clueweb09_intent_change.txt, in datasets/ beside intents/: trained and tested on as a whole

Each file may be packed (.gz, .xz, .bz2). The files lie in the folder itself, in a folder in it, or in a .zip
in one of these.
"""

import os
import re
import zipfile
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from foltr.errors import DataError, StorageError
from foltr.files import write_text, xdg_folder
from foltr.lab.data.files import MEMBER, packed

MAX_FEATURES = 5_000  # of a collection that states no other limit: every document takes four bytes a feature


def _file() -> Path:
    chosen = os.environ.get("FOLTR_CONFIG")
    if chosen:
        return Path(chosen) / "data.json"
    return xdg_folder("XDG_CONFIG_HOME") / "foltr" / "data.json"


class Registered(msgspec.Struct, frozen=True, omit_defaults=True):
    """A collection that the user added."""

    path: str
    max_features: int = MAX_FEATURES
    nan: Literal["error", "zero"] = "error"  # zero: NaN is read as 0


def _registered() -> dict[str, Registered]:
    """The file's content; a plain path is an entry without options."""
    try:
        entries = msgspec.json.decode(_file().read_bytes(), type=dict[str, str | Registered])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        expected = "expected a JSON object of names and folders"
        raise StorageError(f"{_file()}: cannot be read ({error}); {expected}; fix or remove it") from error
    return {name: Registered(entry) if isinstance(entry, str) else entry for name, entry in entries.items()}


def remembered() -> dict[str, str]:
    """Name -> folder, as added by the user."""
    return {name: entry.path for name, entry in _registered().items()}


def options(name: str) -> Registered:
    """The entry of a collection; the usual options where it was not added by hand."""
    return _registered().get(name, Registered(""))


def check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name):
        raise DataError(f"the name {name!r} is not allowed; use small letters, digits, '-', '_' and '.'")


def remember(name: str, entry: Registered) -> None:
    """Stores a name, its folder and its options."""
    check_name(name)
    _store({**_registered(), name: entry})


def forget(name: str) -> None:
    """Removes a name; the files that it stands for are not touched."""
    _store({other: entry for other, entry in _registered().items() if other != name})


def _store(entries: dict[str, Registered]) -> None:
    """Replaces the file atomically."""
    plain = {name: entry.path if entry == Registered(entry.path) else entry for name, entry in entries.items()}
    text = msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()
    write_text(_file(), text, instead="another folder with FOLTR_CONFIG")


def shelves(name: str) -> list[Path]:
    """Folders where a collection is found without registration, in order."""
    folders = [Path(folder) for folder in os.environ.get("FOLTR_DATA", "").split(os.pathsep) if folder]
    return [folder.absolute() / name for folder in [*folders, Path("data")]]


def candidates(name: str) -> list[Path]:
    """Folders to look into, in order."""
    added = [Path(remembered()[name])] if name in remembered() else []
    return [*added, *shelves(name)]


class Splits(NamedTuple):
    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]


class Located(NamedTuple):
    layout: str
    folds: dict[int, Splits]


def _five_parts(fold: int) -> Splits:
    parts = [f"S{(fold - 1 + i) % 5 + 1}.txt" for i in range(5)]
    return Splits(tuple(parts[:3]), (parts[3],), (parts[4],))


def _three(train: str, validation: str, test: str) -> Splits:
    return Splits((train,), (validation,), (test,))


def _folds(train: str, validation: str, test: str) -> dict[int, Splits]:
    return {f: _three(*(f"Fold{f}/{name}.txt" for name in (train, validation, test))) for f in range(1, 6)}


def _in_folder(place: Path, name: str) -> str | None:
    path = packed(place / name)
    return str(path) if path else None


def _in_archive(place: Path, name: str) -> str | None:
    fitting = sorted((m for m in _members(place) if m == name or m.endswith(f"/{name}")), key=len)
    return f"{place}{MEMBER}{fitting[0]}" if fitting else None


def _members(archive: Path) -> list[str]:
    try:
        with zipfile.ZipFile(archive) as opened:
            return opened.namelist()
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(f"{archive}: damaged or cut short ({error}); fetch the file again") from error


def _resolve(place: Path, wanted: dict[int, Splits]) -> dict[int, Splits]:
    """The folds all of whose files are in this place."""
    find = _in_folder if place.is_dir() else _in_archive
    folds = {}
    for fold, splits in wanted.items():
        names = {name for split in splits for name in split}
        sources = {name: find(place, name) for name in names}
        if all(sources.values()):
            folds[fold] = Splits(*(tuple(str(sources[name]) for name in split) for split in splits))
    return folds


def find(root: Path) -> Located | None:
    """The first layout that fits, with the files of every fold that is whole."""
    try:
        inside = sorted(root.iterdir()) if root.is_dir() else []
    except OSError as error:
        raise DataError(f"{root}: cannot be read ({error})") from error
    folders = [path for path in [root, *inside] if path.is_dir()]
    archives = [root] if root.is_file() and root.suffix == ".zip" else []
    archives += sorted(path for folder in folders for path in folder.glob("*.zip") if path.is_file())
    for place in [*folders, *archives]:
        for layout, wanted in LAYOUTS.items():
            folds = _resolve(place, wanted)
            if folds:
                return Located(layout, folds)
    return None


LAYOUTS = {
    "five parts": {fold: _five_parts(fold) for fold in range(1, 6)},
    "folds": _folds("train", "vali", "test"),
    "LETOR 3 folds": _folds("trainingset", "validationset", "testset"),
    "Yahoo": {1: _three("set1.train.txt", "set1.valid.txt", "set1.test.txt")},
    "one split": {1: _three("train.txt", "vali.txt", "test.txt")},
    "intent change": {1: _three(*["clueweb09_intent_change.txt"] * 3)},
}
LOOKED_FOR = (
    "S1.txt .. S5.txt, or Fold1/train.txt, vali.txt, test.txt .., or set1.train.txt, set1.valid.txt, "
    "set1.test.txt, or train.txt, vali.txt, test.txt (each also as .gz, .xz, .bz2, or in a .zip)"
)
