"""Known layouts of a collection in a folder, and the files of every fold.

    five parts     S1.txt .. S5.txt: fold f trains on S_f, S_f+1, S_f+2, validates on S_f+3, tests on S_f+4,
                   counted modulo 5
    folds          Fold1/train.txt, vali.txt, test.txt .. Fold5
    LETOR 3 folds  Fold1/trainingset.txt, validationset.txt, testset.txt .. Fold5
    Yahoo          set1.train.txt, set1.valid.txt, set1.test.txt
    one split      train.txt, vali.txt, test.txt

Each file may be packed (.gz, .xz, .bz2). The files lie in the folder itself, in a folder in it, or in a .zip.
"""

import zipfile
from pathlib import Path
from typing import NamedTuple

from foltr.errors import DataError
from foltr.lab.data.archives import MEMBER

_PACKED = ("", ".gz", ".xz", ".bz2")


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
    candidates = (place / f"{name}{packed}" for packed in _PACKED)
    return next((str(path) for path in candidates if path.is_file()), None)


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
    archives = [path for path in [root, *inside] if path.is_file() and path.suffix == ".zip"]
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
}
LOOKED_FOR = (
    "S1.txt .. S5.txt, or Fold1/train.txt, vali.txt, test.txt .., or set1.train.txt, set1.valid.txt, "
    "set1.test.txt, or train.txt, vali.txt, test.txt (each also as .gz, .xz, .bz2, or in a .zip)"
)
