"""Single runs with simulated people: their data, their checks, and their results in the form of all runs."""

import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from foltr.clicks import USERS
from foltr.errors import SpecError
from foltr.lab.people import spill, together
from foltr.lab.people.comparison import FIRST, known_items, topical
from foltr.lab.people.corpora import Texts, by_senders, checksum, load_texts, shortened
from foltr.lab.people.machine import LIMIT
from foltr.lab.people.searching import Searcher
from foltr.lab.people.settings import Folders, KnownItems, Spill, Together, Topical
from foltr.lab.people.weights import Weights, digest, weights_for
from foltr.lab.simulation.evaluation import Progress, RunResult
from foltr.lab.spec.setting import DataChoice, PeopleSetting

_LOCAL = "Documents, queries, clicks and weights stay on the node: nothing is sent."
_SENT = (
    "Each release sends the difference of a person's weights to the shared ones, clipped at an L2 norm of {clip:g}, "
    "without noise: the server learns it unless sums are aggregated securely. There is no epsilon."
)
_SMALLEST_INDEX = 20  # documents of a person who learns together with others
# kind of people -> (searcher, setting, weights, seed) -> metric -> value
MEASURES: dict[type, Callable[[Searcher, Any, Weights, int], dict[str, float]]] = {
    KnownItems: known_items,
    Topical: topical,
    Spill: spill.measure,
    Together: together.measure,
}


def load(data: DataChoice) -> Texts:
    """The texts, with all documents that a figure may use."""
    return load_texts(data.name)


def check(setting: PeopleSetting, loaded: Texts) -> None:
    """Refuses impossible settings before anything is computed."""
    if setting.people.clicks not in (*USERS, FIRST):
        known = ", ".join((*USERS, FIRST))
        raise SpecError(f"people.clicks = {setting.people.clicks!r} is unknown; there are {known}")
    if setting.people.judged and loaded.judged is None:
        raise SpecError(f"data.name = {setting.data.name!r} has no judged queries; use nfcorpus or docstrings")
    if setting.people.sends and len(loaded.titles) < _SMALLEST_INDEX * setting.people.people:
        raise SpecError(
            f"people.people = {setting.people.people} separate indexes of {len(loaded.titles):,} documents have fewer "
            f"than {_SMALLEST_INDEX} each; use at most {len(loaded.titles) // _SMALLEST_INDEX}"
        )


def facts(setting: PeopleSetting, loaded: Texts) -> dict[str, Any]:
    """Facts about the data, for the manifest."""
    judged = loaded.judged
    return {
        "name": setting.data.name,
        "note": loaded.note,
        "checksum": f"{checksum(loaded)}-{digest(weights_for(setting.data.name))}",
        "queries": 0 if judged is None else len(judged.query_ids),
        "documents": len(loaded.titles),
        "features": len(weights_for(setting.data.name).names),
        "grades": 2 if judged is None else int(judged.judgments[:, 2].max(initial=0)) + 1,
        "shorter_than_k": 0,
    }


@lru_cache(maxsize=2)
def _searcher(name: str, documents: int, folders: Folders) -> Searcher:
    texts = load_texts(name, max(documents, LIMIT))
    texts = by_senders(texts) if folders == "senders" else texts
    return Searcher(texts if documents >= LIMIT else shortened(texts, documents))


def run_setting(setting: PeopleSetting, loaded: Texts, seed: int) -> Iterator[Progress | RunResult]:  # noqa: ARG001
    """One progress message, then the result."""
    began = time.perf_counter()
    weights = weights_for(setting.data.name)
    searcher = _searcher(setting.data.name, setting.people.documents, setting.people.folders)
    numbers = MEASURES[type(setting.people)](searcher, setting.people, weights, seed)
    yield Progress(1, numbers[next(iter(numbers))])
    yield RunResult(
        rounds=np.empty(0, np.int64),
        online=np.empty((3, 0)),
        evaluated=np.ones(1, np.int64),
        offline=np.empty((0, 0)),
        parameters=weights.values,
        interactions=0,
        seconds=time.perf_counter() - began,
        more=np.array(list(numbers.values())),
        names=np.array(list(numbers), dtype=str),
    )


def card_of(setting: PeopleSetting) -> dict[str, Any]:
    """The privacy card, as `privacy.card` has it: a node alone sends nothing; together, clipped differences."""
    together = setting.people.sends
    seen = [
        {"id": "server", "who": "the server", "sees": "clipped differences of weights", "here": True,
         "epsilon": "infinite", "unit": "person", "adjacency": "zero-out"},
    ] if together else []  # fmt: skip
    sentence = _SENT.format(clip=getattr(setting.people, "clip", 0.0)) if together else _LOCAL
    return {
        "kind": "people-together" if together else "people", "nominal_epsilon": None, "nominal": "none stated",
        "adversaries": seen, "shares": None, "visible": [], "amplification": None, "sentences": [sentence],
    }  # fmt: skip
