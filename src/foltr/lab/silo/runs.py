"""Single runs of cross-silo experiments, beside those that learn from clicks: what they need, do and leave.

A setting with a table `silo` is one of three kinds: `train` (regimes compared), `find` (reverse top-K measured),
`picture` (features drawn). Its data is a corpus of text by name, or `made-up-N`: N documents of a Zipf vocabulary.
Whatever protects somebody in earnest comes from the operating system; here key and noise come from the seed, so that
a run can be repeated.
"""

import hashlib
import platform
import re
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from foltr.errors import SpecError
from foltr.lab.data import corpora
from foltr.lab.silo import training as silo_training
from foltr.lab.silo.projection import Picture, drawn
from foltr.lab.silo.retrieval import Finding
from foltr.lab.silo.retrieval import measured as find
from foltr.lab.silo.tasks import Task, made_up, text
from foltr.lab.simulation.evaluation import Progress, RunResult
from foltr.lab.spec.setting import DataChoice, SiloSetting
from foltr.silo.parties import Setup, shares_of
from foltr.text import features
from foltr.text.corpus import Corpus
from foltr.types import Array

NOTES = {
    "nfcorpus": "medical abstracts, 3,633 documents",
    "vaswani": "physics abstracts, two grades",
    "msmarco-sample": "a sample of MS MARCO passages",
    corpora.BUILT_IN: f"docstrings of Python {platform.python_version()}",
}


def load(data: DataChoice) -> Corpus | Task:
    """The corpus, or documents that are made up."""
    return _load(data.name)


@lru_cache(maxsize=8)  # a figure may go back and forth between sizes, and making up documents takes its time
def _load(name: str) -> Corpus | Task:
    documents = _documents(name)
    return made_up(documents) if documents else corpora.load(name)


def _documents(name: str) -> int:
    """Of made-up-N the number, else 0."""
    found = re.fullmatch(r"made-up-(\d{1,7})", name)
    return int(found[1]) if found else 0


def check(made: SiloSetting, loaded: Corpus | Task) -> None:
    """Refuses what cannot be, before anything is computed."""
    if isinstance(loaded, Task) and not isinstance(made.silo, Finding):
        raise SpecError(f"data.name = {made.data.name!r} has no queries to learn from; use nfcorpus or docstrings")
    documents = _size(loaded)
    if isinstance(made.silo, Finding) and made.silo.top > documents:
        raise SpecError(f"silo.top = {made.silo.top} of {documents:,} documents; use at most {documents:,}")
    if isinstance(made.silo, Setup):
        shares_of(made.silo)
    if not isinstance(made.silo, Finding) and made.silo.true_rows > made.silo.rows:
        raise SpecError(f"silo.true_rows = {made.silo.true_rows} of {made.silo.rows} rows; use at most that")


def _size(loaded: Corpus | Task) -> int:
    return len(loaded.documents.lengths) if isinstance(loaded, Task) else len(loaded.ids)


def facts(made: SiloSetting, loaded: Corpus | Task) -> dict[str, Any]:
    """As the manifest has them for any data."""
    texts = isinstance(loaded, Corpus)
    return {
        "name": made.data.name,
        "note": NOTES.get(made.data.name, "a corpus of text") if texts else "synthetic, 1,000 words each",
        "checksum": checksum(loaded),
        "queries": len(loaded.query_ids) if isinstance(loaded, Corpus) else 0,
        "documents": _size(loaded),
        "features": features.WIDTH,
        "grades": int(loaded.judgments[:, 2].max(initial=0)) + 1 if isinstance(loaded, Corpus) else 0,
        "shorter_than_k": 0,
    }


def checksum(loaded: Corpus | Task) -> str:
    digest = hashlib.sha256()
    if isinstance(loaded, Task):
        for part in (loaded.documents.terms, loaded.documents.counts, loaded.asked):
            digest.update(np.ascontiguousarray(part).tobytes())
    else:
        for texts in (loaded.ids, loaded.titles, loaded.bodies, loaded.query_ids, loaded.query_texts):
            for one in texts:
                digest.update(one.encode("utf-8", "surrogatepass") + b"\0")
        digest.update(np.ascontiguousarray(loaded.judgments).tobytes())
    return digest.hexdigest()[:16]


def run_setting(made: SiloSetting, loaded: Corpus | Task, seed: int) -> Iterator[Progress | RunResult]:
    """One word on the way, the result at the end."""
    began = time.perf_counter()
    ranker: Array = np.empty(0)
    points: dict[str, Array] = {}
    if isinstance(made.silo, Finding):
        task = loaded if isinstance(loaded, Task) else _terms_of(made.data.name)
        numbers = find(task, made.silo, seed=seed)
        quality = numbers["cover"]
    elif isinstance(loaded, Task):
        raise SpecError(f"data.name = {made.data.name!r} has no queries to learn from")
    elif isinstance(made.silo, Picture):
        numbers, points = drawn(loaded, made.silo, seed=seed)
        quality = numbers["AUC"]
    else:
        numbers, ranker = silo_training.measured(loaded, made.silo, seed=seed)
        quality = silo_training.best_known(numbers)
    yield Progress(1, quality)
    yield _single(numbers, points, ranker, time.perf_counter() - began)


@lru_cache(maxsize=2)
def _terms_of(name: str) -> Task:
    return text(name)


def _single(numbers: dict[str, float], points: dict[str, Array], ranker: Array, seconds: float) -> RunResult:
    return RunResult(
        rounds=np.empty(0, np.int64),
        online=np.empty((3, 0)),
        evaluated=np.ones(1, np.int64),
        offline=np.empty((2, 0)),
        parameters=ranker,
        interactions=0,
        seconds=seconds,
        more=np.array(list(numbers.values())),
        names=np.array(list(numbers), dtype=str),
        points=np.array(list(points.values())) if points else np.empty((0, 0)),
        point_names=np.array(list(points), dtype=str),
    )
