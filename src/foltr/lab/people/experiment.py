"""Learners compared on the same simulated people: quality of new searches after so many searches with a click.

Every learner meets the same searches in the same order and has its own lists, clicks and counts of openings. It runs
through `client.local_update`, as on a node: a list is shown, the person reads it from the top and clicks by the click
model, what was clicked counts as opened. Learners of a node get the choices that teach (`node.learning.teaching`; of a
list the lowest click), those of the papers every click. At a checkpoint the learner ranks test searches with its
weights and counts of that moment; for one person and checkpoint these are the same for all learners, so that
differences are paired.

Known items: MRR@10, the target counts if it is among the candidates. Topical queries: nDCG@10 (exponential gain) over
the judged documents of the query; half of the queries, drawn by the seed, are searched, the others tested.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from foltr.clicks import ClickModel, clicks_on
from foltr.client import Rank, Searches, local_update
from foltr.lab.people import history as histories
from foltr.lab.people.history import SEARCHES_A_DAY, Counts, no_history
from foltr.lab.people.learners import WEAK_PRIOR, Compared, NoLearning, TemperedPdgd
from foltr.lab.people.remembering import Memory
from foltr.lab.people.searching import Prepared
from foltr.lab.people.weights import HISTORY, Weights
from foltr.learners.softmax import SoftmaxMap
from foltr.metrics import CUT, order
from foltr.node.learning.memory import typed_text
from foltr.node.learning.teaching import TaughtTexts, with_last_choice
from foltr.privacy.mechanisms import NoPrivacy
from foltr.rankers import Linear
from foltr.rng import stream
from foltr.text.matching import bounded_history
from foltr.types import Array, Interaction, Model

SHOWN = 10

Quality: TypeAlias = Callable[[Array, float], float]  # (grades as ranked, ideal DCG@10) -> MRR@10 or nDCG@10


class Situation(NamedTuple):
    """Searches and settings that all learners of one person share."""

    search: Callable[[int], Prepared]  # the person's search of a number
    searches: int
    tests: dict[int, list[Prepared]]  # checkpoint -> test searches
    folder_of: Array  # [documents]
    click_model: ClickModel
    quality: Quality
    seed: int
    person: int


class Trace(NamedTuple):
    """One learner with one person."""

    offline: dict[int, float]  # checkpoint -> mean quality of the test searches
    online: float  # mean quality of the displayed lists
    parameters: Array  # [P] at the end
    log: list[Interaction]  # searches with a click


def reciprocal_rank(ranked: Array, ideal: float) -> float:  # noqa: ARG001
    """1 / rank of the first relevant document within the first ten; 0 beyond."""
    relevant = np.flatnonzero(ranked[:CUT])
    return 1.0 / (int(relevant[0]) + 1) if len(relevant) else 0.0


def graded_gain(ranked: Array, ideal: float) -> float:
    """nDCG@10 with the ideal over all judged documents, candidates or not."""
    gains = 2.0 ** ranked[:CUT] - 1
    return float(gains @ (1 / np.log2(np.arange(2, len(gains) + 2)))) / ideal if ideal else 0.0


def quality_of(measure: Quality, search: Prepared, scores: Array) -> float:
    """The quality of the candidates in the order of their scores."""
    return measure(search.grades[order(scores)], search.ideal)


def learners(weights: Weights) -> dict[str, Any]:
    """Row -> learner, of all rows that see clicks."""
    history = tuple(weights.names.index(name) for name in HISTORY)
    bm25 = weights.names.index("bm25")
    return {
        "counting": NoLearning(),
        "MAP": SoftmaxMap(history=history),
        "MAP, every opening": SoftmaxMap(history=history),
        "MAP, weak prior": SoftmaxMap(prior=WEAK_PRIOR, history_prior=WEAK_PRIOR, history=history),
        "PDGD, rate 1, temperature .25": TemperedPdgd(1.0, 0.25),
        "PDGD, rate .1, temperature 1": TemperedPdgd(0.1, 1.0),
        "unsafe: skip-above pairs": Compared("skip-above", bm25),
        "unsafe: inverse propensity": Compared("inverse-propensity", bm25),
        "unsafe: negatives from BM25": Compared("top-of-bm25", bm25),
    }


# rows whose learner gets every click of every list: the papers' learners, and the price of doing so with MAP
EVERY_OPENING = frozenset({
    "MAP, every opening", "PDGD, rate 1, temperature .25", "PDGD, rate .1, temperature 1", "unsafe: skip-above pairs",
    "unsafe: inverse propensity", "unsafe: negatives from BM25",
})  # fmt: skip
WITHOUT_CLICKS = ("BM25", "BM25, node's words", "BM25F, tuned", "start weights")


def without_clicks(situation: Situation, weights: Weights) -> dict[str, dict[int, float]]:
    """Row -> checkpoint -> quality, of rankers that see no click."""
    lexical = np.where(np.isin(weights.names, HISTORY), 0.0, weights.values)

    def mean(tests: Sequence[Prepared], scores: Callable[[Prepared], Array]) -> float:
        return float(np.mean([quality_of(situation.quality, test, scores(test)) for test in tests]))

    rankers: dict[str, Callable[[Prepared], Array]] = {
        "BM25, node's words": lambda test: test.bm25,
        "BM25F, tuned": lambda test: test.bm25f,
        "start weights": lambda test: test.features @ lexical,
    }
    plain = {
        checkpoint: float(np.mean([situation.quality(test.plain, test.ideal) for test in tests]))
        for checkpoint, tests in situation.tests.items()
    }
    return {"BM25": plain} | {
        row: {checkpoint: mean(tests, scores) for checkpoint, tests in situation.tests.items()}
        for row, scores in rankers.items()
    }


def trace(
    situation: Situation, weights: Weights, learner: Any, *, memory: Memory | None = None, every_opening: bool = False
) -> Trace:
    """Runs a learner through the searches of a person until the last checkpoint; with `memory` it places documents.

    It learns from the choices that teach, or from every opening.
    """
    course = Course(situation, weights, memory, every_opening=every_opening)
    model = Model(weights.values, 0, Linear(), k=SHOWN, seed=situation.seed)
    update = local_update(
        model, Searches(situation.searches + 1, course.search), learner=learner, mechanism=NoPrivacy(),
        noise=lambda purpose: stream(situation.seed, client=situation.person, purpose=purpose),
        client=situation.person,
    )  # fmt: skip
    online = float(np.mean(course.online)) if course.online else 0.0
    return Trace(course.offline, online, weights.values + update.values, course.log)


class Course:
    """The searches of one person with one learner: what happened so far."""

    def __init__(
        self, situation: Situation, weights: Weights, memory: Memory | None = None, *, every_opening: bool = False
    ) -> None:
        self.situation, self.weights, self.memory = situation, weights, memory
        self.every_opening, self.taught = every_opening, TaughtTexts()
        self.history = no_history(situation.folder_of)
        self.offline: dict[int, float] = {}
        self.online: list[float] = []
        self.log: list[Interaction] = []  # searches with a click
        self.lessons: list[Interaction] = []  # what of them teaches
        self.last = max(situation.tests)
        self.step = 0

    def search(self, step: int, rank: Rank) -> Interaction:
        """One search; at a checkpoint the tests before it."""
        situation = self.situation
        self.step = step + 1
        checkpoint = len(self.log)
        if checkpoint in situation.tests and checkpoint not in self.offline:
            tested = [self._tested(test, rank, step) for test in situation.tests[checkpoint]]
            self.offline[checkpoint] = float(np.mean(tested))
        if checkpoint >= self.last or step >= situation.searches:
            return _nothing(len(self.weights.names))
        if step % SEARCHES_A_DAY == SEARCHES_A_DAY - 1:
            histories.next_day(self.history)
        return self._shown(step, situation.search(step), rank)

    def _shown(self, step: int, search: Prepared, rank: Rank) -> Interaction:
        situation = self.situation
        features = with_history(search, self.history, self.weights)
        draws = stream(situation.seed, round=step, client=situation.person, purpose="ranking")
        ranking, scores = rank(features, SHOWN, draws)
        if self.memory is not None:
            ranking = self._placed(search, features, scores, step)[:SHOWN]
        uniforms = stream(situation.seed, round=step, client=situation.person, purpose="clicks").uniform(2 * SHOWN)
        clicks = clicks_on(search.grades[ranking], situation.click_model, uniforms)
        self.online.append(situation.quality(search.grades[ranking], search.ideal))
        interaction = Interaction(features, ranking, clicks, scores, len(self.log))
        if clicks.any():
            self.log.append(interaction)
            for document in search.documents[ranking[clicks]].tolist():
                histories.opened(self.history, document, search.text, body_word=search.body_word)
            if self.memory is not None:
                self.memory.choose(search, search.documents[ranking[clicks]].tolist(), step)
        return self._taught(search, interaction)

    def _taught(self, search: Prepared, interaction: Interaction) -> Interaction:
        """What the learner gets: the interaction, its last choice, or a list without a click."""
        openings = np.flatnonzero(interaction.clicks).tolist()  # people read from the top: the lowest is the last
        if not openings:
            return interaction
        if not self.every_opening:
            document = int(search.documents[interaction.ranking[openings[-1]]])
            if not self.taught.teaches(typed_text(search.text), document):
                return interaction._replace(clicks=np.zeros_like(interaction.clicks))
            interaction = with_last_choice(interaction, openings)
        self.lessons.append(interaction)
        return interaction

    def _tested(self, test: Prepared, rank: Rank, step: int) -> float:
        features = with_history(test, self.history, self.weights)
        scores = rank(features, SHOWN, stream(0, purpose="ranking"))[1]
        if self.memory is None:
            return quality_of(self.situation.quality, test, scores)
        return self.situation.quality(test.grades[self._placed(test, features, scores, step)], test.ideal)

    def _placed(self, search: Prepared, features: Array, scores: Array, step: int) -> Array:
        """[n] all candidates in the order of their scores, those that memory knows first."""
        assert self.memory is not None
        exact = features[:, self.weights.names.index("name_exact")] > 0
        return self.memory.placed(search, order(scores), exact, step)


def _nothing(width: int) -> Interaction:
    """A search that teaches nothing."""
    empty = np.empty(0, dtype=np.int64)
    return Interaction(np.zeros((1, width)), empty, empty.astype(bool), np.zeros(1), 0)


def with_history(search: Prepared, history: Counts, weights: Weights) -> Array:
    """[n, d] the features of a search with the counts of this moment."""
    features = search.features.copy()
    counted = histories.columns(history, search.documents, body_word=search.body_word)
    features[:, weights.places] = np.stack(bounded_history(*counted, search.named), axis=1)
    return features
