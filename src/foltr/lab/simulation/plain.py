"""The slow engine: one person after the other in plain Python. Oracle and debugger of the compiled one.

It reads the same random numbers, so from one seed it shows the same lists and sees the same clicks.
"""

from typing import NamedTuple

import numpy as np

from foltr._kernels.pdgd import DRAWS
from foltr.clicks import ClickModel, clicks_on
from foltr.federation.round import Task
from foltr.learners import foltr_es as evolution
from foltr.learners import pdgd
from foltr.learners.foltr_es import FoltrEs
from foltr.learners.pdgd import Pdgd
from foltr.metrics import order
from foltr.privacy.mechanisms import RandomizedResponse, clip_radius
from foltr.rankers import plackett_luce
from foltr.rng import Stream, stream
from foltr.types import DRAWN, Array, Interaction, OnlineMetrics


class Loop(NamedTuple):
    """An engine; see `federation.rounds.Engine`."""

    task: Task

    def prepare(self, clients: Array, steps: Array) -> tuple[Array, Array]:
        return clients, steps

    def train(
        self,
        parameters: Array,
        prepared: tuple[Array, Array],
        *,
        round: int,
        first_step: int = 0,
        summed: bool = False,
    ) -> tuple[Array, OnlineMetrics]:
        learner, task, (clients, steps) = self.task.learner, self.task, prepared
        assert isinstance(learner, Pdgd)
        radius = clip_radius(task.privacy)
        starts = np.broadcast_to(parameters, (len(clients), np.shape(parameters)[-1]))
        out, seen = starts.copy(), []
        for row, start, client, interactions in zip(out, starts, clients, steps, strict=True):
            for step in range(first_step, first_step + interactions):
                model = start if summed else row.copy()
                session, grades = self._search(model, int(client), round, step)
                seen.append(_lived(session, grades))
                drift = row - start
                row += learner.learning_rate * pdgd.gradient(session, task.ranker, model, learner.negatives)
                row -= learner.learning_rate * learner.prox_mu * drift
                if radius and np.linalg.norm(row) > radius:
                    row *= radius / np.linalg.norm(row)
        return out, _online(seen)

    def _search(self, model: Array, client: int, round: int, step: int) -> tuple[Interaction, Array]:
        """One person's search with a Plackett-Luce list; also the grades of all candidates."""
        seed, users = self.task.seed, _users_of(self.task, client, round, step)
        queries, ranking, clicks = (
            stream(seed, round=round, client=client, purpose=use) for use in ("queries", "ranking", "clicks")
        )
        features, grades = _candidates(self.task, client, queries.skip(step))
        scores = self.task.ranker.score(model, features)
        shown = plackett_luce.sample(scores, len(users.click), ranking.skip(step * DRAWS))
        clicked = _clicks(grades[shown], users, clicks.skip(2 * step * len(users.click)))
        return Interaction(features, shown, clicked, scores, round), grades

    def measure(
        self, parameters: Array, prepared: tuple[Array, Array], *, round: int
    ) -> tuple[Array, Array, OnlineMetrics]:
        learner, (clients, steps) = self.task.learner, prepared
        assert isinstance(learner, FoltrEs)
        values, seen = np.zeros((len(clients), 2)), []
        for row, client, interactions in zip(values, clients, steps, strict=True):
            public = evolution.perturbation_stream(self.task.seed, round, int(client))
            change = learner.sigma * public.normal(len(parameters))
            half = (interactions + 1) // 2 if learner.antithetic else interactions
            for step in range(interactions):
                side = int(step >= half)
                session, grades, value = self._try(parameters + (-1) ** side * change, int(client), round, step, public)
                seen.append(_lived(session, grades))
                row[side] += value / (interactions - half if side else half)
        public_noise = evolution.perturbations(clients, size=len(parameters), seed=self.task.seed, round=round)
        return values, public_noise, _online(seen)

    def _try(
        self, model: Array, client: int, round: int, step: int, public: Stream
    ) -> tuple[Interaction, Array, float]:
        """One person's search with the list of a perturbed ranker, and the objective as it would be reported."""
        task, users = self.task, _users_of(self.task, client, round, step)
        assert isinstance(task.learner, FoltrEs)
        length = len(users.click)
        queries, clicks, privatise = (
            stream(task.seed, round=round, client=client, purpose=use).skip(step * numbers)
            for use, numbers in (("queries", 1), ("clicks", 2 * length), ("privatise", 2))
        )
        if task.learner.streams == "shared_rng":
            queries = public.skip(step * (1 + 2 * length))
            clicks = queries.skip(1)
        features, grades = _candidates(task, client, queries)
        scores = task.ranker.score(model, features)
        shown = order(scores)[:length]
        clicked = _clicks(grades[shown], users, clicks)
        possible = evolution.outcomes(task.learner.objective, length)
        p = task.privacy.p if isinstance(task.privacy, RandomizedResponse) else 1.0
        truth = evolution.outcome_of(clicked, task.learner.objective)
        told = evolution.randomised(truth, len(possible), p, *privatise.uniform(2))
        return Interaction(features, shown, clicked, scores, round), grades, float(possible[told])


def engine(task: Task) -> Loop:
    return Loop(task)


def _users_of(task: Task, client: int, round: int, step: int) -> ClickModel:
    user = client % len(task.behaviours) if task.pools is None else int(task.pools.users[client])
    if user == DRAWN:
        draws = stream(task.seed, round=round, client=client, purpose="users").skip(step)
        user = int(draws.integers(len(task.behaviours), 1)[0])
    return task.behaviours[user]


def _candidates(task: Task, client: int, draws: Stream) -> tuple[Array, Array]:
    """Features and grades of the documents of one of the client's queries."""
    train, held = task.train, task.pools
    pool = np.arange(len(train.offsets) - 1) if held is None else held.pools[held.start[client] : held.stop[client]]
    query = int(pool[draws.integers(len(pool), 1)[0]])
    rows = slice(train.offsets[query], train.offsets[query + 1])
    return train.features[rows], train.labels[rows]


def _clicks(grades: Array, users: ClickModel, draws: Stream) -> Array:
    return clicks_on(grades, users, draws.uniform(2 * len(grades)))


def _lived(session: Interaction, grades: Array) -> tuple[float, float]:
    """nDCG@10 of the shown list, and 1 / rank of the first click."""
    best = dcg(np.sort(grades)[::-1])
    clicked = np.flatnonzero(session.clicks[:10])
    return dcg(grades[session.ranking]) / best if best > 0 else 0.0, 1 / (clicked[0] + 1) if clicked.size else 0.0


def dcg(grades: Array) -> float:
    """Of the first ten of a list, given by its grades."""
    first = np.asarray(grades[:10], dtype=float)
    return float(((2**first - 1) / np.log2(np.arange(2, len(first) + 2))).sum())


def _online(seen: list[tuple[float, float]]) -> OnlineMetrics:
    ndcgs, reciprocals = np.array(seen).reshape(-1, 2).T
    return OnlineMetrics(ndcgs, reciprocals)
