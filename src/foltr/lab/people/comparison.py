"""All learners on the people of one run, and the metrics that a figure shows.

Metrics are named "MRR@10, ROW, N clicks" (topical: "nDCG@10, ..."), "online, ROW" for the lists that people saw on the
way, and "largest weight, ROW" at the end, which shows a learner that diverges. A value is the mean over the people of
the run; BM25 and BM25F see no clicks and differ between checkpoints only by the test searches.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal

import numpy as np

from foltr.clicks import ClickModel, Users, click_model
from foltr.lab.people.experiment import (
    EVERY_OPENING,
    SHOWN,
    Situation,
    graded_gain,
    learners,
    reciprocal_rank,
    trace,
    without_clicks,
)
from foltr.lab.people.people import Person, person, searches_of, test_searches
from foltr.lab.people.remembering import Memory
from foltr.lab.people.searching import Prepared, Searcher, with_features
from foltr.lab.people.settings import KnownItems, Topical, checkpoints
from foltr.lab.people.weights import Weights
from foltr.rng import stream
from foltr.text.matching import columns

SEARCHES_A_CLICK = 2  # a person who finds nothing in the first ten does not click: so many searches are prepared
FIRST = "first"  # people who click the first document of every list, whatever it is
_GRADES = (2, 3, 5)  # for which there are click tables


def known_items(searcher: Searcher, setting: KnownItems, weights: Weights, seed: int) -> dict[str, float]:
    """MRR@10 of all rows, over the people of a run."""
    people = [
        person(
            searcher.texts, seed=seed, number=number, searches=SEARCHES_A_CLICK * setting.longest + 40,
            preferences=setting.preferences, favourites=setting.favourites, words=setting.words,
            moves_at=setting.longest // 2 if setting.moving else None,
        )
        for number in range(setting.people)
    ]  # fmt: skip
    situations = [
        situation_of(
            searcher, someone, weights, setting.clicks, dict.fromkeys(checkpoints(setting.longest), setting.tests)
        )
        for someone in people
    ]
    return compared("MRR@10", situations, weights, rows=setting.rows)


def situation_of(
    searcher: Searcher, someone: Person, weights: Weights, clicks: str, tests: dict[int, int]
) -> Situation:
    """The known-item searches of a person; `tests`: number of test searches at each checkpoint."""
    places, texts, prefix = columns(weights.names), searcher.texts, someone.words == "beginnings"
    tested = {
        after: [
            with_features(searcher.known_item(query, prefix=prefix), places)
            for query in test_searches(texts, someone, searcher.idf, after=after, count=count)
        ]
        for after, count in tests.items()
    }
    asked = searches_of(texts, someone, searcher.idf)

    @cache
    def search(step: int) -> Prepared:
        return with_features(searcher.known_item(asked[step], prefix=prefix), places)

    model = clicks_by(clicks, grades=2)
    return Situation(search, len(asked), tested, texts.folders, model, reciprocal_rank, someone.seed, someone.number)


def topical(searcher: Searcher, setting: Topical, weights: Weights, seed: int) -> dict[str, float]:
    """nDCG@10 of all rows on queries that were not searched."""
    judged = searcher.texts.judged
    assert judged is not None
    top = int(judged.judgments[:, 2].max())
    model = clicks_by(setting.clicks, grades=next(count for count in _GRADES if count > top))
    situations = [_topical_situation(searcher, setting, weights, model, seed, n) for n in range(setting.people)]
    return compared("nDCG@10", situations, weights, rows=setting.rows)


def clicks_by(name: str, *, grades: int) -> ClickModel:
    """The click model of this name."""
    if name == FIRST:
        return ClickModel(np.eye(SHOWN)[:, :1] * np.ones(grades), np.ones(grades))
    return click_model(Users(name), grades=grades)


def _topical_situation(
    searcher: Searcher, setting: Topical, weights: Weights, model: ClickModel, seed: int, number: int
) -> Situation:
    """Half of the queries are searched, again and again; some of the others are tested."""
    places = columns(weights.names)
    order = searcher.judged_queries[
        stream(seed, client=number, purpose="partition").permutation(len(searcher.judged_queries))
    ]
    searched, tested = order[: len(order) // 2], order[len(order) // 2 :][: setting.tests]
    count = SEARCHES_A_CLICK * setting.longest + 40
    asked = searched[stream(seed, client=number, purpose="queries").integers(len(searched), count)].tolist()
    tests = [with_features(searcher.judged(query), places) for query in tested.tolist()]

    @cache
    def search(step: int) -> Prepared:
        return with_features(searcher.judged(asked[step]), places)

    at = dict.fromkeys(checkpoints(setting.longest), tests)
    return Situation(search, count, at, searcher.texts.folders, model, graded_gain, seed, number)


def compared(
    measure: str, situations: Sequence[Situation], weights: Weights, *, rows: Literal["all", "node"] = "all"
) -> dict[str, float]:
    """Metric -> mean over the people."""
    found: dict[str, list[float]] = {}
    for situation in situations:
        for name, value in _metrics(measure, situation, weights, rows):
            found.setdefault(name, []).append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}


def _metrics(
    measure: str, situation: Situation, weights: Weights, rows: Literal["all", "node"]
) -> Iterator[tuple[str, float]]:
    for row, by_checkpoint in without_clicks(situation, weights).items():
        yield from ((f"{measure}, {row}, {clicks} clicks", value) for clicks, value in by_checkpoint.items())
    chosen = learners(weights)
    if rows == "node":
        chosen = {row: chosen[row] for row in ("counting", "MAP", "MAP, every opening")} | {
            "MAP, memory": chosen["MAP"]
        }
    for row, learner in chosen.items():
        memory = Memory() if row == "MAP, memory" else None
        run = trace(situation, weights, learner, memory=memory, every_opening=row in EVERY_OPENING)
        yield from ((f"{measure}, {row}, {clicks} clicks", value) for clicks, value in run.offline.items())
        yield f"online, {row}", run.online
        yield f"largest weight, {row}", float(np.abs(run.parameters).max())
