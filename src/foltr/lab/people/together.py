"""People with separate indexes who learn together, against the same people local-only.

Every person has some folders of the corpus as an index of their own, with its own word statistics. A release comes
after every few searches with a click: each person refits from the shared weights on all choices that teach, the
difference is clipped, the mean difference times a server step moves the shared weights (`federation.round.run_rounds`).
Between releases people search with the shared weights. Local-only people refit every ten choices that teach, from the
start weights.
"""

from typing import Any, NamedTuple

import numpy as np

from foltr.client import Rank, local_update
from foltr.federation.engine import EngineCollector
from foltr.federation.round import Release, run_rounds
from foltr.federation.schedule import Members, synchronous
from foltr.federation.server import add_scaled, init_state, mean_delta
from foltr.lab.people.comparison import SEARCHES_A_CLICK, situation_of
from foltr.lab.people.corpora import Texts, subset
from foltr.lab.people.experiment import Course, Situation, quality_of, trace, with_history, without_clicks
from foltr.lab.people.learners import NoLearning
from foltr.lab.people.people import person
from foltr.lab.people.searching import Searcher
from foltr.lab.people.settings import Together
from foltr.lab.people.weights import Weights
from foltr.learners.softmax import SoftmaxMap
from foltr.metrics import order
from foltr.privacy.mechanisms import NoPrivacy
from foltr.rankers import Linear
from foltr.rng import stream
from foltr.types import Array, Interaction, Model, OnlineMetrics, Updates

_NEVER = 1 << 30  # clicks between refits: one fit at the end of the log


def measure(searcher: Searcher, setting: Together, weights: Weights, seed: int) -> dict[str, float]:
    """MRR@10 of all rows, over the people; each indexes a part of the searcher's texts."""
    texts = searcher.texts
    situations = [
        person_with_index(subset(texts, chosen), setting, weights, seed, number)
        for number, chosen in enumerate(separate_indexes(texts, setting.people, seed))
    ]
    last, learner = setting.searches_with_click, SoftmaxMap(history=tuple(weights.places.tolist()))
    rows = _rows_without_clicks(situations, weights, last)
    for row, one in {"counting": NoLearning(), "local-only": learner}.items():
        rows[row] = [trace(situation, weights, one).offline.get(last, np.nan) for situation in situations]
    rows |= _rows_together(situations, setting, weights, learner)
    return {f"MRR@10, {row}, {last} clicks": float(np.nanmean(values)) for row, values in rows.items()}


def separate_indexes(texts: Texts, people: int, seed: int) -> list[Array]:
    """The documents of each person: whole folders, in about equal numbers."""
    sizes = np.bincount(texts.folders)
    owner, held = np.empty(len(sizes), np.int64), np.zeros(people)
    for folder in stream(seed, purpose="partition").permutation(len(sizes)).tolist():
        owner[folder] = int(np.argmin(held))
        held[owner[folder]] += sizes[folder]
    return [np.flatnonzero(owner[texts.folders] == number) for number in range(people)]


def person_with_index(texts: Texts, setting: Together, weights: Weights, seed: int, number: int) -> Situation:
    """A person with an index of these texts only; test searches at the end."""
    searches = SEARCHES_A_CLICK * setting.searches_with_click + 40
    someone = person(
        texts, seed=seed, number=number, searches=searches, preferences=setting.preferences,
        favourites=setting.favourites, words=setting.words,
    )  # fmt: skip
    return situation_of(Searcher(texts), someone, weights, setting.clicks, {setting.searches_with_click: setting.tests})


def _rows_without_clicks(situations: list[Situation], weights: Weights, last: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for situation in situations:
        for row, by_checkpoint in without_clicks(situation, weights).items():
            found.setdefault(row, []).append(by_checkpoint[last])
    return found


def _rows_together(
    situations: list[Situation], setting: Together, weights: Weights, learner: SoftmaxMap
) -> dict[str, list[float]]:
    """The shared weights after the last release, and with a personal part on top: one more local refit."""
    engine = PeopleEngine([Course(situation, weights) for situation in situations], setting, learner)
    rounds = run_rounds(
        init_state(weights.values), synchronous(setting.people, 1, setting.releases),
        EngineCollector(engine, mean_delta), server_optimizer=add_scaled(setting.server_step),
    )  # fmt: skip
    *_, last = rounds
    shared = last.parameters
    personal = [shared + _refit(shared, course.lessons, learner, n) for n, course in enumerate(engine.courses)]
    return {
        "together": [held_out_quality(course, setting, shared) for course in engine.courses],
        "together, personal part": [
            held_out_quality(course, setting, own) for course, own in zip(engine.courses, personal, strict=True)
        ],
    }


class PeopleEngine(NamedTuple):
    """Clients of `run_rounds`: people who search with the shared weights and send a clipped difference."""

    courses: list[Course]
    setting: Together
    learner: SoftmaxMap

    def prepare(self, members: Members) -> Members:
        return members

    def local_updates(
        self, models: Array, cohort: Members, round: int, release: Release | None  # noqa: ARG002
    ) -> tuple[Updates, OnlineMetrics]:  # fmt: skip
        values = np.stack([self.learn(client, round, models) for client in cohort.clients.tolist()])
        none = np.empty(0)
        versions = np.full(len(values), round - 1)
        return Updates(values, np.ones(len(values)), cohort.clients, versions), OnlineMetrics(none, none)

    def learn(self, client: int, round: int, parameters: Array) -> Array:
        """[P] what a person sends in a round: first searches with the shared weights, then a fit to all that taught."""
        course = self.courses[client]
        search_until(course, round * self.setting.searches_with_click // self.setting.releases, parameters)
        clipped = _sending(self.learner, self.setting.prior, self.setting.clip)
        return _refit(parameters, course.lessons, clipped, client)


def search_until(course: Course, goal: int, parameters: Array) -> None:
    """Searches with fixed weights until so many of them had a click."""
    while len(course.log) < goal and course.step < course.situation.searches:
        course.search(course.step, _ranked_by(parameters))


def _ranked_by(parameters: Array) -> Rank:
    def rank(features: Array, k: int, draws: Any) -> tuple[Array, Array]:  # noqa: ARG001
        scores = Linear().score(parameters, features)
        return order(scores)[:k], scores

    return rank


def _sending(learner: SoftmaxMap, prior: float, clip: float) -> SoftmaxMap:
    """The learner that makes updates: one fit of the whole log, clipped."""
    return SoftmaxMap(history=learner.history, prior=prior, clip=clip, refit_every=_NEVER)


def _refit(parameters: Array, log: list[Interaction], learner: SoftmaxMap, client: int) -> Array:
    """The difference that the whole log makes."""
    model = Model(parameters, 0, Linear())
    update = local_update(model, log, learner=learner, mechanism=NoPrivacy(), noise=_no_noise, client=client)
    return update.values


def _no_noise(purpose: str) -> Any:
    return stream(0, purpose=purpose)


def held_out_quality(course: Course, setting: Together, parameters: Array) -> float:
    """Mean MRR@10 of a person's test searches with these weights, and with what the person has opened so far."""
    situation = course.situation
    tests = situation.tests[setting.searches_with_click]
    features = [with_history(test, course.history, course.weights) for test in tests]
    return float(
        np.mean([quality_of(situation.quality, t, f @ parameters) for t, f in zip(tests, features, strict=True)])
    )
