"""Collections in which several intents judge the same documents, and their folds.

Sources: S2 section 4.3.1; Zhuang and Zuccon (2021) for the idea of intents as users with different preferences.

    clueweb09          features by Webis beside judgements `query intent document relevant` in intents/1.txt .. 4.txt
    synthetic-intents  synthetic, 200 queries; synthetic-intents@50 is one of 50

Differs from the paper: the published set (200 queries, 105 features) is not public; this one
has 61 queries and 42 features, and its numbers cannot be compared. The union is computed from the four intents,
as in the text; the authors' program reads a fifth file, which disagrees on 13 % of the
documents of these 61 queries, in both directions. The paper tests on the queries it trained on; here there are folds
(for the paper's protocol pass the whole collection to `split` twice).
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from foltr.errors import DataError, DataMissing, SpecError
from foltr.lab.data import catalog, intents_synthetic
from foltr.lab.data.archives import file_of, opened
from foltr.lab.data.dataset import Fold, select
from foltr.rng import stream
from foltr.types import Array, Dataset

INTENTS = intents_synthetic.INTENTS
FOLDS = 5
NAMES = ("clueweb09", "synthetic-intents")
NOTE = "Webis features of 61 ClueWeb09 queries; not the published intent-change set of 200 queries"
_PACKED = ("", ".xz", ".gz", ".bz2")


class IntentData(NamedTuple):
    data: Dataset  # labels: 1 where at least one intent finds the document relevant
    intents: Array  # [documents, 4] int8: what each intent finds
    note: str  # said wherever a number is shown


def load_intents(name: str, *, normalize: str | None = None, seed: int = 1) -> IntentData:
    """A whole collection; `seed` selects a synthetic one."""
    kind, _, size = name.partition("@")
    if kind == "synthetic-intents":
        if normalize not in (None, "none", "query-minmax"):
            raise SpecError(f"normalize={normalize!r}: {name} has query-minmax scaling; leave normalize out")
        return IntentData(*intents_synthetic.generate_intents(queries=_size(name, size), seed=seed), "synthetic")
    if name != "clueweb09":
        raise SpecError(f"no collection with intents {name!r}; there are {', '.join(NAMES)}")
    return _clueweb(name, normalize)


def _size(name: str, size: str) -> int:
    queries = int(size) if size.isdecimal() else 0 if "@" in name else intents_synthetic.QUERIES
    if queries < FOLDS:
        raise SpecError(f"{name!r} does not name a size; use {NAMES[1]} or {NAMES[1]}@QUERIES with {FOLDS} or more")
    return queries


def _clueweb(name: str, normalize: str | None) -> IntentData:
    whole = catalog.load(name, normalize=normalize)
    data = _joined([whole.train, whole.validation, whole.test])
    ids = [one for part in catalog.document_ids(name).values() for one in part]
    queries = np.repeat(data.queries, np.diff(data.offsets)).tolist()
    rows = {(str(query).encode(), one.encode()): row for row, (query, one) in enumerate(zip(queries, ids, strict=True))}
    intents = np.zeros((len(ids), INTENTS), np.int8)  # a document that nobody judged is not relevant
    for intent, source in enumerate(_judgement_files(name)):
        for query, document in _relevant(source):
            if (query, document) in rows:
                intents[rows[query, document], intent] = 1
    return IntentData(data._replace(labels=intents.max(axis=1)), intents, NOTE)


def _joined(parts: list[Dataset]) -> Dataset:
    ends = np.cumsum([0, *(len(part.labels) for part in parts)])
    starts = [part.offsets[:-1] + end for part, end in zip(parts, ends, strict=False)]
    features, labels, queries = (
        np.concatenate([getattr(part, field) for part in parts]) for field in ("features", "labels", "queries")
    )
    return Dataset(features, labels, np.concatenate([*starts, ends[-1:]]), queries)


def _judgement_files(name: str) -> list[str]:
    _, found = catalog.locate(name)
    folder = file_of(found.folds[1].train[0]).parent / "intents"
    return [_judgement_file(folder, intent) for intent in range(1, INTENTS + 1)]


def _judgement_file(folder: Path, intent: int) -> str:
    for packed in _PACKED:
        path = folder / f"{intent}.txt{packed}"
        if path.is_file():
            return str(path)
    raise DataMissing(
        f"{folder}: {intent}.txt is missing (or .xz, .gz, .bz2); type 1 needs 1.txt .. {INTENTS}.txt there, "
        f"with lines 'query intent document relevant'. Without them, use {NAMES[1]}"
    )


def _relevant(source: str) -> Iterator[tuple[bytes, bytes]]:
    """Query and document of every judgement that says yes."""
    with opened(source) as handle:
        for number, line in enumerate(handle, 1):
            columns = line.split()
            if len(columns) != 4 or columns[3] not in (b"0", b"1"):
                found = line.decode(errors="replace").strip()
                raise DataError(f"{source}:{number}: found {found!r}; expected 'query intent document 0-or-1'")
            if columns[3] == b"1":
                yield columns[0], columns[2]


def load_fold(name: str, *, fold: int, normalize: str | None = None) -> Fold:
    """A fold as the catalog has them; graded by the union of the intents."""
    whole = load_intents(name, normalize=normalize)
    train, test = parts = split_fold(whole, fold, seed=1)
    nothing = select(train.data, np.empty(0, np.int64))
    digest = hashlib.sha256(f"{name} {normalize} {fold}".encode())
    for part in parts:
        for array in (part.data.features, part.data.offsets, part.intents):
            digest.update(array.tobytes())
    intents = train.intents, test.intents
    return Fold(name, fold, 2, whole.note, digest.hexdigest()[:32], train.data, nothing, test.data, intents)


def pick(whole: IntentData, queries: Array) -> IntentData:
    """The same collection with only these queries (by position), in rising order."""
    chosen = np.zeros(len(whole.data.queries), bool)
    chosen[queries] = True
    sizes = np.diff(whole.data.offsets)
    rows = np.flatnonzero(np.repeat(chosen, sizes))
    offsets = np.concatenate([[0], np.cumsum(sizes[chosen])]).astype(np.int64)
    data = Dataset(whole.data.features[rows], whole.data.labels[rows], offsets, whole.data.queries[chosen])
    return IntentData(data, whole.intents[rows], whole.note)


def split_fold(whole: IntentData, number: int, *, seed: int) -> tuple[IntentData, IntentData]:
    """Train and test of fold 1 .. 5: a seeded fifth of the queries to test on, the others to train on."""
    count = len(whole.data.queries)
    if not 1 <= number <= FOLDS:
        raise SpecError(f"fold={number} is not there; there are 1 to {FOLDS}")
    if count < FOLDS:
        raise SpecError(f"{count} queries make no {FOLDS} folds; use a collection of {FOLDS} queries or more")
    part = stream(seed, round=FOLDS, purpose="partition").permutation(count) % FOLDS + 1  # [queries], sizes differ by 1
    return pick(whole, np.flatnonzero(part != number)), pick(whole, np.flatnonzero(part == number))
