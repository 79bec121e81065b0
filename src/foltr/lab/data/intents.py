"""Collections in which several intents judge the same documents, and their folds.

Sources: S2 section 4.3.1; Zhuang and Zuccon (2021) for the idea of intents as users with different preferences.

    intent-change      the published set (200 queries, 105 features; Zhuang and Zuccon 2021): features in datasets/, and
                       judgements `query intent document relevant` in intents/1.txt .. 4.txt
    clueweb09          features by Webis (61 queries, 42 features) beside the same judgements
    synthetic-intents  synthetic, 200 queries; synthetic-intents@50 is one of 50

Differs from the paper: the union is computed from the four intents, as in the text; the authors' program reads a fifth
file, 0.txt, which disagrees on 13 % of the documents of the 61 queries of clueweb09, in both directions. The paper
tests on the queries that it trained on: so does `intent-change`, which has one fold; the others have five folds, and
their numbers cannot be compared with the published ones.

The synthetic collection has four intents that want different documents. A document has 46 standard normal features: 10
that every intent likes, 6 that one intent likes and the three others dislike a little (four such groups), and 12 that
no intent uses. The utility of a document for an intent is their weighted sum plus noise plus a random offset of intent
and query; the document is relevant above a threshold. Features are then scaled from 0 to 1 within the query. The
weights are constants: collections of different seeds have the same four optimal rankers.

Shares of relevant documents are near those of the ClueWeb09 features by Webis (.148 .104 .092 .033), with far fewer
documents a query. The preferences conflict: the mean of the four weight vectors keeps only what all intents like.
nDCG@10 over queries with a relevant document, 2,000 queries, mean of the four intents: random ranking .18, the weights
of another intent .22, the mean of the weights .38, its own weights .56. (For the union of the intents: random .34, the
mean of the weights .61.)
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from foltr.errors import DataError, DataMissing, SpecError
from foltr.lab.data import catalog
from foltr.lab.data.catalog import Fold, joined, select
from foltr.lab.data.files import file_of, opened, packed
from foltr.lab.data.normalize import query_minmax
from foltr.rng import stream
from foltr.types import Array, Dataset

INTENTS = 4
FOLDS = 5
QUERIES = 200  # of the synthetic collection
CLUEWEB, SYNTHETIC, PUBLISHED = NAMES = ("clueweb09", "synthetic-intents", "intent-change")
NOTES = {
    PUBLISHED: "published set; tested on the queries that it trains on, as published",
    CLUEWEB: "Webis features of 61 ClueWeb09 queries; not the published intent-change set of 200 queries",
}


class IntentData(NamedTuple):
    data: Dataset  # labels: 1 where at least one intent finds the document relevant
    intents: Array  # [documents, 4] int8: what each intent finds
    note: str  # said wherever a number is shown


def load_intents(name: str, *, normalize: str | None = None, seed: int = 1) -> IntentData:
    """A whole collection; `seed` selects a synthetic one."""
    kind, _, size = name.partition("@")
    if kind == SYNTHETIC:
        if normalize not in (None, "none", "query-minmax"):
            raise SpecError(f"normalize={normalize!r}: {name} has query-minmax scaling; leave normalize out")
        return IntentData(*generate_intents(queries=_size(name, size), seed=seed), "synthetic")
    if name not in NOTES:
        raise SpecError(f"no collection with intents {name!r}; there are {', '.join(NAMES)}")
    return _judged(name, normalize)


def _size(name: str, size: str) -> int:
    queries = int(size) if size.isdecimal() else 0 if "@" in name else QUERIES
    if queries < FOLDS:
        raise SpecError(f"{name!r} does not name a size; use {SYNTHETIC} or {SYNTHETIC}@QUERIES with {FOLDS} or more")
    return queries


def _judged(name: str, normalize: str | None) -> IntentData:
    """The features of a collection with the judgements of the four intents."""
    whole, ids = catalog.load(name, normalize=normalize), catalog.document_ids(name)
    parts = ["train"] if name == PUBLISHED else ["train", "validation", "test"]
    return _through_judgements(
        name, joined([getattr(whole, part) for part in parts]), [document for part in parts for document in ids[part]]
    )


def _through_judgements(name: str, data: Dataset, ids: list[str]) -> IntentData:
    queries = np.repeat(data.queries, np.diff(data.offsets)).tolist()
    rows = {(str(query).encode(), one.encode()): row for row, (query, one) in enumerate(zip(queries, ids, strict=True))}
    intents = np.zeros((len(ids), INTENTS), np.int8)  # a document that nobody judged is not relevant
    for intent, source in enumerate(_judgement_files(name)):
        for query, document in _relevant(source):
            if (query, document) in rows:
                intents[rows[query, document], intent] = 1
    return IntentData(data._replace(labels=intents.max(axis=1)), intents, NOTES[name])


def _judgement_files(name: str) -> list[str]:
    _, found = catalog.locate(name)
    beside = file_of(found.folds[1].train[0]).parent
    folder = beside.parent / "intents" if beside.name == "datasets" else beside / "intents"
    return [_judgement_file(folder, intent) for intent in range(1, INTENTS + 1)]


def _judgement_file(folder: Path, intent: int) -> str:
    path = packed(folder / f"{intent}.txt")
    if path:
        return str(path)
    raise DataMissing(
        f"{folder}: {intent}.txt is missing (or .xz, .gz, .bz2); type 1 needs 1.txt .. {INTENTS}.txt there, "
        f"with lines 'query intent document relevant'. Without them, use {SYNTHETIC}"
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


def folds(name: str) -> list[int]:
    return [1] if name == PUBLISHED else list(range(1, FOLDS + 1))


def load_fold(name: str, *, fold: int, normalize: str | None = None) -> Fold:
    """A fold as the catalog has them; graded by the union of the intents."""
    whole = load_intents(name, normalize=normalize)
    if name == PUBLISHED and fold != 1:
        raise SpecError(f"{name} has no fold {fold}; there is 1, the whole, as published: choose with data.folds")
    train, test = parts = (whole, whole) if name == PUBLISHED else split_fold(whole, fold, seed=1)
    nothing = select(train.data, np.empty(0, np.int64))
    digest = hashlib.sha256(f"{name} {normalize} {fold}".encode())
    for part in parts:
        for array in (part.data.features, part.data.offsets, part.intents):
            digest.update(array.tobytes())
    intents = train.intents, test.intents
    return Fold(name, fold, 2, whole.note, digest.hexdigest()[:32], train.data, nothing, test.data, intents)


def pick(whole: IntentData, queries: Array) -> IntentData:
    """A collection with only these queries (by position), in rising order."""
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


# --- the synthetic collection ---------------------------------------------------------------------------------------


_COMMON, _OWN, _IDLE = 10, 6, 12  # features liked by all, by each intent, by nobody
_FEATURES = _COMMON + INTENTS * _OWN + _IDLE
_SHORTEST, _LONGEST = 30, 50  # documents of a query
_RELEVANT = (0.15, 0.10, 0.09, 0.05)  # share of the documents, intent by intent
_MOOD = 0.5  # sd over queries of the offset of an intent
_KNOWN = 0.35  # share of the utility's variance that the features explain


def tastes() -> Array:
    """[intents, d] weights of each intent, of norm 1."""
    weights = np.zeros((INTENTS, _FEATURES))
    weights[:, :_COMMON] = 0.4
    for intent in range(INTENTS):
        own = slice(_COMMON + _OWN * intent, _COMMON + _OWN * (intent + 1))
        weights[:, own] = -0.2
        weights[intent, own] = 0.6
    return weights / np.linalg.norm(weights, axis=1, keepdims=True)


def generate_intents(*, queries: int = QUERIES, seed: int = 1) -> tuple[Dataset, Array]:
    """Features with the union as labels, and what each intent finds relevant: [documents, intents]."""
    if queries < 1:
        raise SpecError(f"queries={queries} makes no collection; use at least 1")
    generated = [_query(seed, query) for query in range(queries)]
    offsets = np.concatenate([[0], np.cumsum([len(features) for features, _ in generated])]).astype(np.int64)
    features = np.concatenate([features for features, _ in generated]).astype(np.float32)
    query_minmax(features, offsets)
    intents = np.concatenate([relevant for _, relevant in generated]).astype(np.int8)
    return Dataset(features, intents.max(axis=1), offsets, np.arange(1, queries + 1)), intents


def _query(seed: int, query: int) -> tuple[Array, Array]:
    """Raw features and relevance of one query; independent of the other queries."""
    draws = stream(seed, client=query, purpose="data")
    documents = _SHORTEST + int(draws.integers(_LONGEST - _SHORTEST + 1, 1)[0])
    moods = draws.skip(2).normal(INTENTS) * _MOOD
    numbers = draws.skip(2 + INTENTS).normal(documents * (_FEATURES + INTENTS)).reshape(documents, -1)
    features, blur = numbers[:, :_FEATURES], numbers[:, _FEATURES:]
    opinions = np.sqrt(_KNOWN) * features @ tastes().T + np.sqrt(1 - _KNOWN) * blur + moods
    demands = -ndtri(_RELEVANT) * np.sqrt(1 + _MOOD**2)
    return features, opinions > demands
