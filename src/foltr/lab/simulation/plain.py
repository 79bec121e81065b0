"""The plain engine: the map of `client.local_update` over simulated people. Oracle of the compiled engine.

It reads the same random numbers, so from one seed it displays the same lists and draws the same clicks.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from foltr.clicks import ClickModel, clicks_on
from foltr.client import Rank, Searches, local_update
from foltr.federation.round import Release
from foltr.federation.schedule import Members
from foltr.lab.simulation.task import Task
from foltr.learners import foltr_es, pdgd
from foltr.privacy.mechanisms import NoPrivacy
from foltr.rankers.plackett_luce import DRAWS
from foltr.rng import Stream, stream
from foltr.types import DRAWN, Array, Interaction, Model, OnlineMetrics, Updates


class Person(NamedTuple):
    """Where a simulated client's random numbers are read."""

    client: int
    round: int
    first_step: int = 0


class Plain(NamedTuple):
    """An engine; see `federation.engine.Engine`."""

    task: Task

    def prepare(self, members: Members) -> Members:
        return members

    def local_updates(
        self, models: Array, cohort: Members, round: int, release: Release | None
    ) -> tuple[Updates, OnlineMetrics]:
        task, values = self.task, []
        seen: list[tuple[float, float]] = []
        mechanism = task.privacy if release or task.privacy.acts_on == "outcome" else NoPrivacy()
        starts = np.broadcast_to(models, (len(cohort.clients), np.shape(models)[-1]))
        who = zip(starts, cohort.clients.tolist(), cohort.interactions.tolist(), strict=True)
        for start, client, interactions in who:
            model = Model(start, round - 1, task.ranker, task.k, task.seed, release and release.state)
            update = local_update(
                model, self._people(Person(client, round), interactions, seen), learner=task.learner,
                mechanism=mechanism, noise=partial(_stream, task.seed, round, client), client=client,
                event=release and release.event,
            )  # fmt: skip
            values.append(update.values)
        versions = np.full(len(cohort.clients), round - 1)
        return Updates(np.stack(values), cohort.interactions, cohort.clients, versions), online_metrics(seen)

    def train(
        self, parameters: Array, cohort: Members, *, round: int, first_step: int = 0, summed: bool = False
    ) -> tuple[Array, OnlineMetrics]:
        """Parameters [n, P] after local PDGD steps without noise, for centralised training and a warm-up.

        `summed`: every gradient is taken at the start and added up, instead of one step an interaction.
        """
        task = self.task
        seen: list[tuple[float, float]] = []
        out = np.tile(parameters, (len(cohort.clients), 1))
        for row, client, interactions in zip(out, cohort.clients.tolist(), cohort.interactions.tolist(), strict=True):
            people = self._people(Person(client, round, first_step), interactions, seen)
            for step in range(interactions):
                state = pdgd.PdgdState(parameters, parameters if summed else row.copy())
                interaction = people.search(step, partial(_rank, task, state))
                after = task.learner.client_step(
                    state, interaction, ranker=task.ranker, mechanism=task.privacy, noise=None
                )
                row += after.parameters - state.parameters
        return out, online_metrics(seen)

    def _people(self, person: Person, interactions: int, seen: list[tuple[float, float]]) -> Searches:
        return Searches(interactions, lambda step, rank: self._search(person, person.first_step + step, rank, seen))

    def _search(self, person: Person, step: int, rank: Rank, seen: list[tuple[float, float]]) -> Interaction:
        """One person's search with the list that `rank` makes; its online metrics are appended to `seen`."""
        task, at = self.task, partial(_stream, self.task.seed, person.round, person.client)
        k = task.k
        queries, clicks = at("queries").skip(step), at("clicks").skip(2 * step * k)
        if getattr(task.learner, "streams", "independent") == "shared_rng":
            public = foltr_es.perturbation_stream(task.seed, person.round, person.client)
            queries = public.skip(step * (1 + 2 * k))
            clicks = queries.skip(1)
        features, grades = _candidates(task, person.client, queries)
        ranking, scores = rank(features, k, at("ranking").skip(step * DRAWS))
        users = _users_of(task, person, step)
        clicked = clicks_on(grades[ranking], users, clicks.uniform(2 * len(ranking)))
        interaction = Interaction(features, ranking, clicked, scores, person.round - 1)
        seen.append(_quality(interaction, grades))
        return interaction


def engine(task: Task) -> Plain:
    return Plain(task)


def _rank(task: Task, state: pdgd.PdgdState, features: Array, k: int, draws: Any) -> tuple[Array, Array]:
    return task.learner.rank(state, features, k, draws, ranker=task.ranker)


def _stream(seed: int, round: int, client: int, purpose: str) -> Stream:
    return stream(seed, round=round, client=client, purpose=purpose)


def _users_of(task: Task, person: Person, step: int) -> ClickModel:
    models = task.click_models
    user = person.client % len(models) if task.pools is None else int(task.pools.users[person.client])
    if user == DRAWN:
        draws = stream(task.seed, round=person.round, client=person.client, purpose="users").skip(step)
        user = int(draws.integers(len(models), 1)[0])
    return models[user]


def _candidates(task: Task, client: int, draws: Stream) -> tuple[Array, Array]:
    """Features and grades of the documents of one of the client's queries."""
    train, held = task.train, task.pools
    pool = np.arange(len(train.offsets) - 1) if held is None else held.pools[held.start[client] : held.stop[client]]
    query = int(pool[draws.integers(len(pool), 1)[0]])
    rows = slice(train.offsets[query], train.offsets[query + 1])
    return train.features[rows], train.labels[rows]


def _quality(interaction: Interaction, grades: Array) -> tuple[float, float]:
    """nDCG@10 of the displayed list, and 1 / rank of the first click."""
    best = dcg(np.sort(grades)[::-1])
    clicked = np.flatnonzero(interaction.clicks[:10])
    return dcg(grades[interaction.ranking]) / best if best > 0 else 0.0, 1 / (clicked[0] + 1) if clicked.size else 0.0


def dcg(grades: Array) -> float:
    """Of the first ten of a list, given by its grades."""
    first = np.asarray(grades[:10], dtype=float)
    return float(((2**first - 1) / np.log2(np.arange(2, len(first) + 2))).sum())


def online_metrics(seen: list[tuple[float, float]]) -> OnlineMetrics:
    ndcgs, reciprocals = np.array(seen).reshape(-1, 2).T
    return OnlineMetrics(ndcgs, reciprocals)
