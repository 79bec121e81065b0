"""Cross-silo training of a linear ranker: visits of stochastic gradient descent, their schedule, and S3's regimes.

Source: S3 sections III-B and VI-A. One SGD step takes the pairs of one query. Pointwise: least squares on the grades.
Pairwise: logistic loss of every pair of documents whose grades differ. Listwise (ListNet): cross-entropy between the
softmax of the grades and that of the scores.

    local        local-only training of each party on its own labelled pairs
    local_plus   local-only training on its own labelled and the guessed cross-party pairs
    global       one ranker, round robin over the parties, on their own labelled pairs
    cs_f_ltr     one ranker, round robin over the parties, on own and guessed pairs
    pooled       one ranker, all documents and grades centralised: not allowed across silos, and no upper bound

Round-robin distributed SGD as rounds of one client each: `schedule` gives each party in turn `Sgd.visit` of its
queries; an epoch ends when every party has used all its queries once. `visit` is what one party computes: parameters
in, update out. The learning rate falls with the root of the epoch.

Differs from the paper: it calls its ranker a linear classification without saying of what; this is regression.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np

from foltr.errors import SpecError
from foltr.federation.engine import EngineCollector
from foltr.federation.round import Release, run_rounds
from foltr.federation.schedule import Members, Schedule
from foltr.federation.server import add, init_state, mean_delta
from foltr.rng import stream
from foltr.text.features import Labelled, dataset, join
from foltr.types import Array, Dataset, OnlineMetrics, Updates

Count = Annotated[int, msgspec.Meta(ge=1)]


class Sgd(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    loss: Literal["pointwise", "pairwise", "listwise"] = "pointwise"
    learning_rate: Annotated[float, msgspec.Meta(gt=0)] | None = None  # None: the one of LEARNING_RATES
    epochs: Count = 20
    visit: Count = 10  # queries of one visit


class TrainingPairs(NamedTuple):
    """The labelled and guessed pairs of all parties."""

    own: Sequence[Labelled]  # [parties] own queries, own documents, judged
    cross: Sequence[Labelled]  # [parties] own queries, documents of others, guessed
    pooled: Labelled  # all queries, all documents, judged


class Visit(NamedTuple):
    """One round: one party and the queries that it trains on."""

    epoch: int
    party: int
    queries: Array  # [n] places in the party's data


def pointwise(scores: Array, grades: Array) -> Array:
    """Gradient of the mean of (score - grade)^2 / 2."""
    return (scores - grades) / len(scores)


def pairwise(scores: Array, grades: Array) -> Array:
    """Gradient of the mean of log(1 + exp(-difference)) over all pairs whose grades differ."""
    preferred = grades[:, None] > grades[None, :]  # [n, n]
    # sigma(-x) as exp(-log(1 + exp(x))), which does not overflow
    weights = np.where(preferred, np.exp(-np.logaddexp(0.0, scores[:, None] - scores[None, :])), 0.0)
    return (weights.sum(axis=0) - weights.sum(axis=1)) / max(int(preferred.sum()), 1)


def listwise(scores: Array, grades: Array) -> Array:
    """Gradient of the cross-entropy between softmax(grades) and softmax(scores)."""
    return _softmax(scores) - _softmax(grades.astype(np.float64))


def _softmax(values: Array) -> Array:
    odds = np.exp(values - values.max())
    return odds / odds.sum()


LOSSES: dict[str, Callable[[Array, Array], Array]] = {
    "pointwise": pointwise,
    "pairwise": pairwise,
    "listwise": listwise,
}
LEARNING_RATES = {"pointwise": 0.1, "pairwise": 1.0, "listwise": 1.0}


def learning_rate(sgd: Sgd, epoch: int) -> float:
    return (sgd.learning_rate or LEARNING_RATES[sgd.loss]) / math.sqrt(1 + epoch)


def schedule(queries: Mapping[int, int], sgd: Sgd, *, seed: int) -> Iterator[Visit]:
    """The rounds of round-robin SGD; queries[party] is the number of its queries, in random order in every epoch."""
    longest = max(queries.values())
    for epoch in range(sgd.epochs):
        orders = {
            party: stream(seed, round=epoch, client=party, purpose="queries").permutation(count)
            for party, count in queries.items()
        }
        for start in range(0, longest, sgd.visit):
            for party, order in orders.items():
                if start < len(order):
                    yield Visit(epoch, party, order[start : start + sgd.visit])


def visit(parameters: Array, data: Dataset, queries: Array, *, loss: str, learning_rate: float) -> Array:
    """[d + 1] the update that one party computes: one SGD step a query, from the parameters that it was sent.

    The last parameter is the intercept, which does not affect rankings.
    """
    local = np.array(parameters, dtype=np.float64)
    for query in queries.tolist():
        rows = slice(data.offsets[query], data.offsets[query + 1])
        gradient = LOSSES[loss](data.features[rows] @ local[:-1] + local[-1], data.labels[rows])
        local[:-1] -= learning_rate * (gradient @ data.features[rows])
        local[-1] -= learning_rate * gradient.sum()
    return local - parameters


class VisitEngine(NamedTuple):
    """An engine (see `federation.engine.Engine`) whose rounds are visits of one party each."""

    parties: Mapping[int, Dataset]
    visits: Sequence[Visit]  # round r is visits[r - 1]
    sgd: Sgd

    def prepare(self, members: Members) -> Members:
        return members

    def local_updates(
        self, models: Array, cohort: Members, round: int, release: Release | None  # noqa: ARG002
    ) -> tuple[Updates, OnlineMetrics]:  # fmt: skip
        epoch, party, queries = self.visits[round - 1]
        rate = learning_rate(self.sgd, epoch)
        delta = visit(models, self.parties[party], queries, loss=self.sgd.loss, learning_rate=rate)
        nothing = np.empty(0)  # nobody clicks
        updates = Updates(delta[None], cohort.interactions, cohort.clients, np.array([round - 1]))
        return updates, OnlineMetrics(nothing, nothing)


def train(parties: Mapping[int, Dataset], sgd: Sgd, *, seed: int) -> Array:
    """[d] one ranker from the data of numbered parties in turn; from a single one it is plain SGD."""
    widths = {data.features.shape[1] for data in parties.values()}
    if len(widths) != 1:
        raise SpecError(f"parties have {sorted(widths)} features; one ranker needs the same of all")
    visits = list(schedule({party: len(data.queries) for party, data in parties.items()}, sgd, seed=seed))

    def members(round: int) -> Members:
        one = visits[round - 1]
        return Members(np.array([one.party]), np.array([len(one.queries)]))

    rounds = run_rounds(
        init_state(np.zeros(widths.pop() + 1)), Schedule(range(1, len(visits) + 1), members, fixed=False),
        EngineCollector(VisitEngine(parties, visits, sgd), mean_delta), server_optimizer=add,
    )  # fmt: skip
    *_, last = rounds
    return last.parameters[:-1]


def train_separately(data: Sequence[Labelled], sgd: Sgd, *, seed: int) -> Array:
    """[parties, d] a ranker of each party's own."""
    return np.stack([train({party: dataset(one)}, sgd, seed=seed) for party, one in enumerate(data)])


def train_jointly(data: Sequence[Labelled], sgd: Sgd, *, seed: int) -> Array:
    """[parties, d] one ranker of all parties, repeated for every party."""
    shared = train({party: dataset(one) for party, one in enumerate(data)}, sgd, seed=seed)
    return np.tile(shared, (len(data), 1))


def local(pairs: TrainingPairs, sgd: Sgd, *, seed: int) -> Array:
    return train_separately(pairs.own, sgd, seed=seed)


def local_plus(pairs: TrainingPairs, sgd: Sgd, *, seed: int) -> Array:
    return train_separately(augmented(pairs), sgd, seed=seed)


def global_(pairs: TrainingPairs, sgd: Sgd, *, seed: int) -> Array:
    return train_jointly(pairs.own, sgd, seed=seed)


def cs_f_ltr(pairs: TrainingPairs, sgd: Sgd, *, seed: int) -> Array:
    return train_jointly(augmented(pairs), sgd, seed=seed)


def pooled(pairs: TrainingPairs, sgd: Sgd, *, seed: int) -> Array:
    return np.tile(train({0: dataset(pairs.pooled)}, sgd, seed=seed), (len(pairs.own), 1))


def augmented(pairs: TrainingPairs) -> list[Labelled]:
    """[parties] own and cross-party pairs together."""
    return [join(own, cross) for own, cross in zip(pairs.own, pairs.cross, strict=True)]


REGIMES = {"local": local, "local_plus": local_plus, "global": global_, "cs_f_ltr": cs_f_ltr, "pooled": pooled}
