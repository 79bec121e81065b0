"""Made-up collections with the shape and the difficulty of real ones, for demos, tests and benchmarks.

A document has a hidden relevance r and some nuisance factors, all standard normal. A feature is c * r +
sqrt(1 - c^2) * (a mix of the nuisance factors + noise of its own), cut off below so that many documents
have 0, then scaled from 0 to 1 within its query. The grade comes from r, blurred, plus the mood of the
query: in a good mood many documents are relevant, in a bad one none. The hidden truth, which feature mixes
what, belongs to the shape and not to the seed: collections of different seeds teach the same ranker.

Calibration. Lengths, grade shares, zeros and factors are counted on the real data: all queries of MQ2007
(85 % of its documents, so lengths are divided by .85) and 204 queries of MSLR (lengths scaled to the
published 120 a query). `factors` are the leading eigenvalues of the correlation of features within queries.
`empty`, `mood`, `rigour`, `blur` and `signal`, and a little of the share of grade 2 in MQ2007, were then
turned by hand until these agreed (nDCG@10 over queries with a relevant document; the linear ranker
minimises listwise cross-entropy on the training part):

                          MQ2007   synthetic      MSLR   synthetic
    random ranking          .323        .314      .183        .186
    best single feature     .508        .509      .300        .288
    linear ranker           .526        .521      .43         .433
    queries without any     .153        .155      .020        .016
    zeros among features    .44         .43       .46         .45
    mean |correlation|      .19         .19       .22         .18

MQ2007 means over five folds; MSLR six random splits of the sample (150 to train on, 54 to test), the
synthetic one 2,000 to train on and 2,000 to test.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from foltr._kernels.synthetic import Spread, Truth, first_numbers, make_documents
from foltr.errors import SpecError
from foltr.lab.data.letor import Block, gather
from foltr.lab.data.normalize import query_minmax
from foltr.rng import stream
from foltr.types import Array, Dataset

VERSION = 1  # raise it when the same seed makes other numbers
_TRUTH_SEED = 2007
_LENGTH_AT = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
_ROWS = 1 << 13  # of a block, about


class Shape(NamedTuple):
    features: int
    queries: int  # of a whole fold
    documents: int  # about
    lengths: tuple[int, ...]  # documents of a query at the shares _LENGTH_AT
    grade_shares: tuple[float, ...]  # of the documents, from grade 0 upwards
    empty: float  # share of queries of which no document is relevant, whatever it says
    mood: float  # sd between queries of how relevant their documents are
    rigour: float  # sd between queries of what it takes to be more than just relevant
    blur: float  # share of the grade's variance that no feature knows
    signal: tuple[float, float]  # c of the best feature, and of the typical one
    noise: float  # share of a feature's own variance
    zeros: tuple[float, ...]  # share of zeros, from the fullest feature to the emptiest
    factors: tuple[float, ...]  # strength of the nuisance factors
    truth: int


def _truth(shape: Shape) -> Truth:
    """Hidden model that generates the features of this shape; equal for every seed."""
    d, k = shape.features, len(shape.factors)
    draws = stream(_TRUTH_SEED, round=shape.truth, purpose="data")
    nuisance = draws.normal(d * k).reshape(d, k) * np.sqrt(shape.factors)
    nuisance /= np.linalg.norm(nuisance, axis=1, keepdims=True)
    order = draws.skip(d * k).permutation(d)
    best, typical = shape.signal
    power = np.log(typical / best) / np.log(0.5)  # so that the feature in the middle is the typical one
    signal = (best * (1 - np.arange(d) / d) ** power)[order]  # [d]
    rest = np.sqrt(1 - np.square(signal))
    mixing = np.column_stack([signal, (rest * np.sqrt(1 - shape.noise))[:, None] * nuisance])
    place = draws.skip(d * k + d).permutation(d) / (d - 1)  # [d] of each feature in the order of emptiness
    share = np.interp(place, np.linspace(0, 1, len(shape.zeros)), shape.zeros)
    cut = ndtri(np.clip(share, 1e-9, 1 - 1e-9))  # finite, but beyond what is ever drawn
    above = np.cumsum(shape.grade_shares[::-1])[::-1][1:] / (1 - shape.empty)
    spread = np.full(len(above), np.sqrt(1 + shape.mood**2 + shape.rigour**2))
    spread[0] = np.sqrt(1 + shape.mood**2)  # rigour only moves the grades above 1
    grades = -ndtri(above) * spread
    return Truth(mixing, rest * np.sqrt(shape.noise), cut, grades)


def _lengths(shape: Shape, seed: int, first: int, last: int) -> Array:
    share = np.empty(last - first)
    first_numbers(seed, first, share)
    return np.rint(np.interp(share, _LENGTH_AT, shape.lengths)).astype(np.int64)


def blocks(name: str, *, first: int, last: int, seed: int) -> Iterator[Block]:
    """Queries first .. last - 1 of the endless collection that a seed stands for."""
    if name not in SHAPES:
        raise SpecError(f"no synthetic collection {name!r}; there are {', '.join(SHAPES)}")
    shape, truth = SHAPES[name], _truth(SHAPES[name])
    spread, factors = Spread(shape.empty, shape.mood, shape.rigour, shape.blur), np.empty(len(shape.factors) + 2)
    step = max(1, _ROWS // max(shape.lengths[5], 1))
    for begin in range(first, last, step):
        lengths = _lengths(shape, seed, begin, min(begin + step, last))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        features = np.empty((offsets[-1], shape.features), np.float32)
        labels = np.empty(offsets[-1], np.int8)
        make_documents(seed, begin, lengths, spread, truth, factors, features, labels)
        query_minmax(features, offsets)
        yield Block(features, labels, offsets[:-1], np.arange(begin, begin + len(lengths)) + 1)


def generate(shape: str, *, queries: int, seed: int) -> Dataset:
    """A collection of this shape in memory."""
    if queries < 1:
        raise SpecError(f"queries={queries} makes no collection; use at least 1")
    return gather(blocks(shape, first=0, last=queries, seed=seed))


SHAPES = {
    "synthetic-mq2007": Shape(
        features=46, queries=1_692, documents=69_600, truth=1,
        lengths=(7, 33, 35, 36, 39, 40, 42, 45, 47, 72, 150),
        grade_shares=(0.742, 0.193, 0.065), empty=0.07, mood=0.95, rigour=1.8, blur=0.835,
        signal=(0.9, 0.12), noise=0.2, factors=(0.228, 0.158, 0.117, 0.107, 0.078, 0.058, 0.043),
        zeros=(0.0, 0.01, 0.02, 0.02, 0.13, 0.55, 0.59, 0.65, 0.78, 1.0, 1.0),
    ),
    "synthetic-mslr": Shape(
        features=136, queries=10_000, documents=1_180_000, truth=2,
        lengths=(16, 25, 44, 55, 84, 104, 148, 184, 242, 338, 370),
        grade_shares=(0.567, 0.286, 0.128, 0.014, 0.005), empty=0.02, mood=0.43, rigour=0.1, blur=0.81,
        signal=(0.5, 0.22), noise=0.2, factors=(0.249, 0.12, 0.109, 0.089, 0.054, 0.048, 0.035),
        zeros=(0.0, 0.09, 0.11, 0.18, 0.3, 0.32, 0.64, 0.65, 0.85, 0.86, 1.0),
    ),
}  # fmt: skip
