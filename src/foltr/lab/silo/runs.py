"""Single runs of cross-silo experiments: their data, their checks, and their results in the form of all runs.

A setting with a table `silo` is one of four kinds: `train` (regimes compared), `retrieval` (reverse top-K measured),
`disclosure` (what answers show beyond the asked words), `projection` (features drawn). Its data is a corpus of text by
name, or `made-up-N`: N documents of a Zipf vocabulary. Key and noise follow from the seed, so that a run can be
repeated and gives no protection. Real owners take both from the operating system.
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
from foltr.lab.silo import disclosure, retrieval, training
from foltr.lab.silo.disclosure import Disclosure
from foltr.lab.silo.projection import Projection, project
from foltr.lab.silo.retrieval import Retrieval
from foltr.lab.silo.tasks import RetrievalTask, synthetic_task, text
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


def load(data: DataChoice) -> Corpus | RetrievalTask:
    """The corpus, or synthetic documents."""
    return _load(data.name)


@lru_cache(maxsize=8)  # figures alternate between sizes, and generating documents takes time
def _load(name: str) -> Corpus | RetrievalTask:
    documents = _documents(name)
    return synthetic_task(documents) if documents else corpora.load_corpus(name)


def _documents(name: str) -> int:
    """N of made-up-N, else 0."""
    found = re.fullmatch(r"made-up-(\d{1,7})", name)
    return int(found[1]) if found else 0


def check(setting: SiloSetting, loaded: Corpus | RetrievalTask) -> None:
    """Refuses impossible settings before anything is computed."""
    asks_only = isinstance(setting.silo, Retrieval | Disclosure)
    if isinstance(loaded, RetrievalTask) and not asks_only:
        raise SpecError(f"data.name = {setting.data.name!r} has no queries to learn from; use nfcorpus or docstrings")
    if isinstance(loaded, Corpus) and not len(loaded.judgments) and not asks_only:
        raise SpecError(
            f'data.name = {setting.data.name!r} has no judged queries to learn from; use kind = "retrieval"'
        )
    documents = _size(loaded)
    if isinstance(setting.silo, Retrieval | Disclosure) and setting.silo.top > documents:
        raise SpecError(f"silo.top = {setting.silo.top} of {documents:,} documents; use at most {documents:,}")
    if isinstance(setting.silo, Setup):
        shares_of(setting.silo)
        _check_index(setting.silo)
    if isinstance(setting.silo, Setup | Projection) and setting.silo.real_rows > setting.silo.rows:
        raise SpecError(f"silo.real_rows = {setting.silo.real_rows} of {setting.silo.rows} rows; use at most that")


def _check_index(setup: Setup) -> None:
    """An index has neither rows nor the paper's noise; those are of sketches."""
    if setup.lists == "index" and setup.noise == "paper":
        raise SpecError('silo.noise = "paper" is of sketches; give silo.lists = "sampled", "sound" or "paper" too')
    if setup.lists == "index" and setup.real_rows < setup.rows:
        raise SpecError(
            f"silo.real_rows = {setup.real_rows} of {setup.rows}: an index is asked by a hash, without rows; give "
            'silo.lists = "sound", "sampled" or "paper" too'
        )


def _size(loaded: Corpus | RetrievalTask) -> int:
    return len(loaded.documents.lengths) if isinstance(loaded, RetrievalTask) else len(loaded.ids)


def facts(setting: SiloSetting, loaded: Corpus | RetrievalTask) -> dict[str, Any]:
    """Facts about the data, for the manifest."""
    texts = isinstance(loaded, Corpus)
    return {
        "name": setting.data.name,
        "note": NOTES.get(setting.data.name, "a corpus of text") if texts else "synthetic, 1,000 words each",
        "checksum": checksum(loaded),
        "queries": len(loaded.query_ids) if isinstance(loaded, Corpus) else 0,
        "documents": _size(loaded),
        "features": features.WIDTH,
        "grades": int(loaded.judgments[:, 2].max(initial=0)) + 1 if isinstance(loaded, Corpus) else 0,
        "shorter_than_k": 0,
    }


def checksum(loaded: Corpus | RetrievalTask) -> str:
    digest = hashlib.sha256()
    if isinstance(loaded, RetrievalTask):
        for part in (loaded.documents.terms, loaded.documents.counts, loaded.asked):
            digest.update(np.ascontiguousarray(part).tobytes())
    else:
        for texts in (loaded.ids, loaded.titles, loaded.bodies, loaded.query_ids, loaded.query_texts):
            for one in texts:
                digest.update(one.encode("utf-8", "surrogatepass") + b"\0")
        digest.update(np.ascontiguousarray(loaded.judgments).tobytes())
    return digest.hexdigest()[:16]


def run_setting(setting: SiloSetting, loaded: Corpus | RetrievalTask, seed: int) -> Iterator[Progress | RunResult]:
    """One progress message, then the result."""
    began = time.perf_counter()
    ranker: Array = np.empty(0)
    points: dict[str, Array] = {}
    if isinstance(setting.silo, Retrieval):
        task = loaded if isinstance(loaded, RetrievalTask) else _terms_of(setting.data.name)
        numbers = retrieval.measure(task, setting.silo, seed=seed)
        quality = numbers["recall@K"]
    elif isinstance(setting.silo, Disclosure):
        task = loaded if isinstance(loaded, RetrievalTask) else _terms_of(setting.data.name)
        numbers = disclosure.measure(task, setting.silo, seed=seed)
        quality = numbers["recall"]
    elif isinstance(loaded, RetrievalTask):
        raise SpecError(f"data.name = {setting.data.name!r} has no queries to learn from")
    elif isinstance(setting.silo, Projection):
        numbers, points = project(loaded, setting.silo, seed=seed)
        quality = numbers["AUC"]
    else:
        numbers, ranker = training.measure(loaded, setting.silo, seed=seed)
        quality = training.progress_value(numbers)
    yield Progress(1, quality)
    yield _single(numbers, points, ranker, time.perf_counter() - began)


@lru_cache(maxsize=2)
def _terms_of(name: str) -> RetrievalTask:
    return text(name)


def _single(numbers: dict[str, float], points: dict[str, Array], ranker: Array, seconds: float) -> RunResult:
    return RunResult(
        rounds=np.empty(0, np.int64),
        online=np.empty((3, 0)),
        evaluated=np.ones(1, np.int64),
        offline=np.empty((0, 0)),
        parameters=ranker,
        interactions=0,
        seconds=seconds,
        more=np.array(list(numbers.values())),
        names=np.array(list(numbers), dtype=str),
        points=np.array(list(points.values())) if points else np.empty((0, 0)),
        point_names=np.array(list(points), dtype=str),
    )
