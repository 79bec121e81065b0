"""A linear ranker by stochastic gradient descent, alone or from party to party, and what S3 compares.

Source: S3 sections III-B and VI-A. One step takes one query's pairs. Pointwise: least squares on the grades. As options
pairwise (logistic loss of every pair of documents whose grades differ) and listwise (ListNet: cross-entropy between
the softmax of the grades and that of the scores).

    local        each party alone, on its own labelled pairs
    local_plus   each party alone, on its own and the guessed cross-party pairs
    global       one ranker walks from party to party, over their own labelled pairs
    cs_f_ltr     one ranker walks from party to party, over own and guessed pairs
    pooled       one ranker, all documents and grades in one place: what nobody may do, as an upper bound

Round-robin distributed SGD: the ranker stays for `visit` queries with a party and goes on to the next; an epoch ends
when every party has shown all its queries once. The rate falls with the root of the epoch.

Differs from the paper: it calls its ranker a linear classification without saying of what; this is regression.
"""

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np

from foltr._kernels.pairwise import add_pairwise_slopes
from foltr.errors import SpecError
from foltr.rng import stream
from foltr.text.features import Labelled, dataset, join
from foltr.types import Array, Dataset

Count = Annotated[int, msgspec.Meta(ge=1)]


class Sgd(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    loss: Literal["pointwise", "pairwise", "listwise"] = "pointwise"
    rate: Annotated[float, msgspec.Meta(gt=0)] | None = None  # None: the one of RATES
    epochs: Count = 20
    visit: Count = 10  # queries that the ranker learns from before it goes on to the next party


class Work(NamedTuple):
    """What there is to learn from."""

    own: Sequence[Labelled]  # [parties] own queries, own documents, judged
    cross: Sequence[Labelled]  # [parties] own queries, documents of others, guessed
    pooled: Labelled  # all queries, all documents, judged


def pointwise(scores: Array, grades: Array) -> Array:
    """Slope of the mean of (score - grade)^2 / 2."""
    return (scores - grades) / len(scores)


def pairwise(scores: Array, grades: Array) -> Array:
    """Slope of the mean of log(1 + exp(-gap)) over all pairs whose grades differ."""
    slopes = np.zeros(len(scores))
    add_pairwise_slopes(scores, grades, slopes)
    return slopes


def listwise(scores: Array, grades: Array) -> Array:
    """Slope of the cross-entropy between softmax(grades) and softmax(scores)."""
    return _softmax(scores) - _softmax(grades.astype(np.float64))


def _softmax(values: Array) -> Array:
    odds = np.exp(values - values.max())
    return odds / odds.sum()


LOSSES: dict[str, Callable[[Array, Array], Array]] = {
    "pointwise": pointwise,
    "pairwise": pairwise,
    "listwise": listwise,
}
RATES = {"pointwise": 0.1, "pairwise": 1.0, "listwise": 1.0}


def walk(parties: Sequence[tuple[int, Dataset]], sgd: Sgd, *, seed: int) -> Array:
    """[d] one ranker that learns from numbered parties in turn; from a single one it is plain SGD."""
    widths = {data.features.shape[1] for _, data in parties}
    if len(widths) != 1:
        raise SpecError(f"parties have {sorted(widths)} features; one ranker needs the same of all")
    parameters = np.zeros(widths.pop() + 1)  # the last one is the intercept, which ranks nothing
    rate = sgd.rate or RATES[sgd.loss]
    for epoch in range(sgd.epochs):
        for data, query in _epoch(parties, sgd.visit, epoch=epoch, seed=seed):
            _step(parameters, data, query, LOSSES[sgd.loss], rate / math.sqrt(1 + epoch))
    return parameters[:-1]


def _epoch(parties: Sequence[tuple[int, Dataset]], visit: int, *, epoch: int, seed: int) -> list[tuple[Dataset, int]]:
    """Every query of every party once: some of the first, some of the second, ..., again some of the first, ..."""
    orders = [
        stream(seed, round=epoch, client=number, purpose="queries").permutation(len(data.queries)).tolist()
        for number, data in parties
    ]
    longest = max(len(order) for order in orders)
    return [
        (data, query)
        for start in range(0, longest, visit)
        for (_, data), order in zip(parties, orders, strict=True)
        for query in order[start : start + visit]
    ]


def _step(parameters: Array, data: Dataset, query: int, loss: Callable[[Array, Array], Array], rate: float) -> None:
    rows = slice(data.offsets[query], data.offsets[query + 1])
    slopes = loss(data.features[rows] @ parameters[:-1] + parameters[-1], data.labels[rows])
    parameters[:-1] -= rate * (slopes @ data.features[rows])
    parameters[-1] -= rate * slopes.sum()


def alone(data: Sequence[Labelled], sgd: Sgd, *, seed: int) -> Array:
    """[parties, d] a ranker of each party's own."""
    return np.stack([walk([(number, dataset(one))], sgd, seed=seed) for number, one in enumerate(data)])


def together(data: Sequence[Labelled], sgd: Sgd, *, seed: int) -> Array:
    """[parties, d] the one ranker that has been everywhere, once for every party."""
    shared = walk([(number, dataset(one)) for number, one in enumerate(data)], sgd, seed=seed)
    return np.tile(shared, (len(data), 1))


def local(work: Work, sgd: Sgd, *, seed: int) -> Array:
    return alone(work.own, sgd, seed=seed)


def local_plus(work: Work, sgd: Sgd, *, seed: int) -> Array:
    return alone(augmented(work), sgd, seed=seed)


def global_(work: Work, sgd: Sgd, *, seed: int) -> Array:
    return together(work.own, sgd, seed=seed)


def cs_f_ltr(work: Work, sgd: Sgd, *, seed: int) -> Array:
    return together(augmented(work), sgd, seed=seed)


def pooled(work: Work, sgd: Sgd, *, seed: int) -> Array:
    return np.tile(walk([(0, dataset(work.pooled))], sgd, seed=seed), (len(work.own), 1))


def augmented(work: Work) -> list[Labelled]:
    """[parties] own and cross-party pairs together."""
    return [join(own, cross) for own, cross in zip(work.own, work.cross, strict=True)]


REGIMES = {"local": local, "local_plus": local_plus, "global": global_, "cs_f_ltr": cs_f_ltr, "pooled": pooled}
