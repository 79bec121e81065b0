"""Collections by name: finds their files on this machine, loads folds, describes them.

A collection is looked for in the folder given by `add`, then in `<folder>/<name>` for each folder of
FOLTR_DATA, then in `./data/<name>`. A name that was added but is not a published one is the user's own:
features and grades come from its files. Synthetic collections need no files; `synthetic-mslr@300` is one of
300 queries. Nothing is downloaded, since the publishers ask their users to accept a licence.
"""

import hashlib
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from foltr.errors import DataError, DataMissing, SpecError, did_you_mean
from foltr.lab.data import cache, files, letor, places, synthetic
from foltr.lab.data.files import file_of
from foltr.lab.data.normalize import check_scaling
from foltr.lab.data.published import COLLECTIONS, OWN, Collection
from foltr.types import Array, Dataset

_SYNTHETIC_FOLDS = range(1, 6)


class Fold(NamedTuple):
    """One fold of a collection, ready to train and test on."""

    name: str  # catalog name, such as "mq2007"
    fold: int  # 1 ...
    grades: int  # number of relevance grades: labels are 0 .. grades - 1
    note: str  # said wherever a number is shown: "complete", "85 % sample", "synthetic", ...
    checksum: str  # of the content and of every option that changed it
    train: Dataset
    validation: Dataset
    test: Dataset
    intents: tuple[Array, Array] | None = None  # [documents, intents] what each finds relevant, of train and of test


def select(data: Dataset, queries: Array) -> Dataset:
    """A collection with only these queries (by position), in this order."""
    starts, stops = data.offsets[queries], data.offsets[np.asarray(queries) + 1]
    rows = np.concatenate([np.arange(a, b) for a, b in zip(starts, stops, strict=True)] or [np.empty(0, int)])
    offsets = np.concatenate([[0], np.cumsum(stops - starts)]).astype(np.int64)
    return Dataset(np.ascontiguousarray(data.features[rows]), data.labels[rows], offsets, data.queries[queries])


def joined(parts: list[Dataset]) -> Dataset:
    """The queries of several data sets, one after the other."""
    ends = np.cumsum([0, *(len(part.labels) for part in parts)])
    starts = [part.offsets[:-1] + end for part, end in zip(parts, ends, strict=False)]
    features, labels, queries = (
        np.concatenate([getattr(part, field) for part in parts]) for field in ("features", "labels", "queries")
    )
    return Dataset(features, labels, np.concatenate([*starts, ends[-1:]]), queries)


class Listed(NamedTuple):
    name: str
    where: str | None  # the folder it lies in, if it is on this machine; "built in" for a synthetic one
    queries: int  # as published; 0 where only the files know
    documents: int
    features: int
    grades: int
    note: str


class Part(NamedTuple):
    files: tuple[str, ...]
    queries: int
    documents: int
    grade_counts: tuple[int, ...]  # documents of grade 0, 1, ...
    without_relevant: int  # queries of which every document has grade 0


class Description(NamedTuple):
    name: str
    where: str
    note: str
    features: int
    grades: int
    scaling: str
    folds: dict[int, dict[str, Part]]  # fold -> train, validation, test
    checksums: dict[int, str]


class Added(NamedTuple):
    layout: str
    folds: dict[int, places.Splits]
    queries: int  # of fold 1, all three parts
    documents: int
    features: int


def add(
    name: str, path: str | Path, *, max_features: int = places.MAX_FEATURES, nan: Literal["error", "zero"] = "error"
) -> Added:
    """Registers the folder (or .zip) of a collection after reading every file of every fold."""
    places.check_name(name)
    if name.partition("@")[0] in synthetic.SHAPES:
        raise DataError(f"the name {name!r} belongs to a built-in collection; choose another")
    root = Path(path).expanduser().resolve()
    found = places.find(root)
    if found is None:
        state = "none of the known layouts is there" if root.exists() else "there is no such folder"
        raise DataError(f"{root}: {state}; looked for {places.LOOKED_FOR}")
    entry = places.Registered(str(root), max_features, nan)
    loaded = [_loaded(name, fold, splits, None, entry) for fold, splits in found.folds.items()]
    places.remember(name, entry)
    parts = loaded[0].train, loaded[0].validation, loaded[0].test
    queries, documents = (sum(len(getattr(part, field)) for part in parts) for field in ("queries", "labels"))
    return Added(found.layout, found.folds, queries, documents, loaded[0].train.features.shape[1])


class Removed(NamedTuple):
    path: str  # left as it is
    copies: int  # parsed copies in the cache that were deleted


def remove(name: str) -> Removed:
    """Removes the registration of a collection and its parsed copies; the user's own files stay."""
    path = registered_path(name)
    found = places.find(Path(path)) if Path(path).exists() else None
    sources = {source for splits in (found.folds.values() if found else ()) for part in splits for source in part}
    contents = {files.content_hash(file_of(source)) for source in sources}
    places.forget(name)
    return Removed(path, cache.drop(contents))


def registered_path(name: str) -> str:
    """The path that `foltr data add` stored."""
    known = places.remembered()
    if name in known:
        return known[name]
    built_in = name in COLLECTIONS or name.partition("@")[0] in synthetic.SHAPES
    why = "was not added by `foltr data add`" if built_in else "is not registered"
    raise DataMissing(f"{name!r} {why}, so there is nothing to remove.{did_you_mean(name, known)}")


def folds(name: str) -> list[int]:
    """The folds that a spec without `data.folds` runs: all of a published collection, or those that are there."""
    if name.partition("@")[0] in synthetic.SHAPES:
        return list(_SYNTHETIC_FOLDS)
    _, found = locate(name)
    return list(places.LAYOUTS[found.layout] if name in COLLECTIONS else found.folds)


def names() -> list[str]:
    """Every name that `load` takes."""
    own = [name for name in places.remembered() if name not in COLLECTIONS]
    return [*COLLECTIONS, *own, *synthetic.SHAPES]


def locate(name: str) -> tuple[Path, places.Located]:
    """The folder of a collection and its files, or DataMissing with what to do."""
    if name not in names():
        raise DataMissing(
            f"no data set {name!r}; there are {', '.join(names())}.{did_you_mean(name, names())} "
            f"Your own: foltr data add {name} PATH"
        )
    for root in places.candidates(name):
        found = places.find(root)
        if found:
            return root, found
    about = COLLECTIONS.get(name, OWN)
    raise DataMissing(
        f"the data set {name!r} is not on this machine. {about.where}\n"
        f"Put {about.files} into {places.shelves(name)[0]};\n"
        f"or leave the files in any PATH and run: foltr data add {name} PATH;\n"
        f"or set FOLTR_DATA to the folder that holds {name}/.\n"
        f"Looked in {', '.join(str(root) for root in places.candidates(name))}"
    )


def load(
    name: str, *, fold: int = 1, normalize: str | None = None, nan: Literal["error", "zero"] | None = None
) -> Fold:
    """One fold of a collection, parsed once and mapped from the cache afterwards; `nan` as it was added, if None."""
    if nan not in (None, "error", "zero"):
        raise SpecError(f"nan={nan!r} is unknown; there are 'error' and 'zero'")
    if name.partition("@")[0] in synthetic.SHAPES:
        return _synthetic_fold(name, fold, check_scaling(normalize or "none"))
    root, found = locate(name)
    if fold not in found.folds:
        raise SpecError(
            f"{name} in {root} has no fold {fold}; there are {', '.join(map(str, found.folds))}: choose with data.folds"
        )
    entry = places.options(name)
    entry = msgspec.structs.replace(entry, nan=nan) if nan else entry
    return _loaded(name, fold, found.folds[fold], normalize, entry)


def _loaded(name: str, fold: int, splits: places.Splits, normalize: str | None, entry: places.Registered) -> Fold:
    nan = "zero" if "zero" in (entry.nan, COLLECTIONS.get(name, OWN).nan) else "error"
    about = COLLECTIONS.get(name, OWN)
    scaling = check_scaling(normalize or about.scaling)
    rules = letor.Rules(
        about.features or _width(splits, entry.max_features),
        dense=about.dense,
        grades=about.grades or 128,
        zero_nan=nan == "zero",
    )
    train = _parsed(splits.train, rules, cache.Scaling(scaling))
    grades = about.grades or max(2, int(train.data.labels.max()) + 1)
    rules, same = rules._replace(grades=grades), cache.Scaling(scaling, train.zscore)
    validation, test = _parsed(splits.validation, rules, same), _parsed(splits.test, rules, same)
    documents = sum(len(entry.data.labels) for entry in (train, validation, test))
    return _fold(name, fold, grades, _note(documents, about), f"{scaling} nan={nan}", train, validation, test)


def _fold(name: str, fold: int, grades: int, note: str, options: str, *entries: cache.Entry) -> Fold:
    train, validation, test = (entry.data for entry in entries)
    content = " ".join([*(entry.content for entry in entries), options])
    checksum = hashlib.sha256(content.encode()).hexdigest()
    return Fold(name, fold, grades, note, checksum, train, validation, test)


def _parsed(sources: tuple[str, ...], rules: letor.Rules, scaling: cache.Scaling) -> cache.Entry:
    contents = [[files.content_hash(file_of(source)), _member(source)] for source in sources]
    return cache.keep(["letor", contents, *rules], lambda: letor.blocks(sources, rules), scaling)


def _member(source: str) -> str:
    return source.removeprefix(str(file_of(source)))


def _width(splits: places.Splits, max_features: int) -> int:
    """The highest feature number in the files of a fold, for a collection of the user's own."""

    def of(source: str) -> int:
        width = files.recall(file_of(source), f"width{_member(source)}", lambda: letor.find_width([source]))
        letor.check_width(source, width, max_features)
        return width

    width = max(of(source) for sources in splits for source in sources)
    if not width:
        raise DataError(f"{splits.train[0]}: there is no feature; expected lines such as '2 qid:7 1:0.5 2:0'")
    return width


def _note(documents: int, about: Collection) -> str:
    if not about.documents:
        return "published set" if about.queries else "own data"
    if documents == about.documents:
        return "complete"
    if documents > about.documents:
        return f"{documents:,} documents, published {about.documents:,}"
    return f"{min(99, round(100 * documents / about.documents))} % sample"


def _synthetic_fold(name: str, fold: int, scaling: str) -> Fold:
    """A fold of a synthetic collection: of five queries, three to train on, one to validate, one to test."""
    kind, _, size = name.partition("@")
    shape = synthetic.SHAPES[kind]
    queries = int(size or shape.queries) if not size or size.isdecimal() else 0
    if queries < 5:
        raise SpecError(f"{name!r} does not name a size; use {kind} or {kind}@QUERIES with 5 queries or more")
    if fold not in _SYNTHETIC_FOLDS:
        raise SpecError(f"{name} has no fold {fold}; there are {', '.join(map(str, _SYNTHETIC_FOLDS))}")
    ends = [0, 3 * queries // 5, 4 * queries // 5, queries]

    def part(index: int, zscore: Array | None = None) -> cache.Entry:
        first, last = ends[index], ends[index + 1]
        return cache.keep(
            ["synthetic", synthetic.VERSION, *shape, fold, first, last],
            lambda: synthetic.blocks(kind, first=first, last=last, seed=fold),
            cache.Scaling(scaling, zscore),
        )

    train = part(0)
    rest = part(1, train.zscore), part(2, train.zscore)
    return _fold(name, fold, len(shape.grade_shares), "synthetic", scaling, train, *rest)


def listing() -> list[Listed]:
    """Every collection and the folder it lies in; nothing is parsed."""
    built_in = [
        Listed(name, "built in", s.queries, s.documents, s.features, len(s.grade_shares), "synthetic")
        for name, s in synthetic.SHAPES.items()
    ]
    return [*(_listed(name) for name in names() if name not in synthetic.SHAPES), *built_in]


def _listed(name: str) -> Listed:
    about = COLLECTIONS.get(name, OWN)
    facts = (about.queries, about.documents, about.features, about.grades)
    try:
        root, found = locate(name)
    except DataMissing:
        return Listed(name, None, *facts, note="not on this machine")
    except DataError as error:
        return Listed(name, None, *facts, note=str(error))
    return Listed(name, str(root), *facts, note=f"{found.layout}, fold {', '.join(map(str, found.folds))}")


def describe(name: str) -> Description:
    """Counts, grades, files and checksums of every fold; parses what is not in the cache yet."""
    about = COLLECTIONS.get(name, OWN)
    if name.partition("@")[0] in synthetic.SHAPES:
        where, folds = "built in", {1: places.Splits((), (), ())}  # the others differ only by their seed
    else:
        root, found = locate(name)
        where, folds = str(root), found.folds
    loaded = {fold: load(name, fold=fold) for fold in folds}
    parts = {
        fold: {
            split: _part(sources, getattr(loaded[fold], split), loaded[fold].grades)
            for split, sources in splits._asdict().items()
        }
        for fold, splits in folds.items()
    }
    checksums = {fold: data.checksum for fold, data in loaded.items()}
    one = loaded[min(loaded)]
    width = one.train.features.shape[1]
    return Description(name, where, one.note, width, one.grades, about.scaling, parts, checksums)


def _part(sources: tuple[str, ...], data: Dataset, grades: int) -> Part:
    best = np.maximum.reduceat(data.labels, data.offsets[:-1])
    counts = tuple(int(count) for count in np.bincount(data.labels, minlength=grades))
    return Part(sources, len(data.queries), len(data.labels), counts, int((best == 0).sum()))


def document_ids(name: str, *, fold: int = 1) -> dict[str, list[str]]:
    """The id of every document of a fold, from the comments: split -> ids, in the order of rows."""
    _, found = locate(name)
    return {split: letor.document_ids(sources) for split, sources in found.folds[fold]._asdict().items()}
