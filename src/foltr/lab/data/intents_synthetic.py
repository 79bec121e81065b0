"""A synthetic collection with four intents that want different documents, for demos and tests.

A document has 46 standard normal features: 10 that every intent likes, 6 that one intent likes and the three
others dislike a little (four such groups), and 12 that no intent uses. The utility of a document for an
intent is their weighted sum plus noise plus a random offset of intent and query; the document is relevant above a
threshold. Features are then scaled from 0 to 1 within the query. The weights are constants:
collections of different seeds have the same four optimal rankers.

Shares of relevant documents are near those of the ClueWeb09 features by Webis (.148 .104 .092 .033), with far fewer
documents a query. The preferences conflict: the mean of the four weight vectors keeps only what all intents like.
nDCG@10 over queries with a relevant document, 2,000 queries, mean of the four intents: random ranking .18, the weights
of another intent .22, the mean of the weights .38, its own weights .56. (For the union of the intents: random .34, the
mean of the weights .61.)
"""

import numpy as np
from scipy.special import ndtri

from foltr.errors import SpecError
from foltr.lab.data.normalize import query_minmax
from foltr.rng import stream
from foltr.types import Array, Dataset

QUERIES = 200
INTENTS = 4
_COMMON, _OWN, _IDLE = 10, 6, 12  # features liked by all, by each intent, by nobody
_FEATURES = _COMMON + INTENTS * _OWN + _IDLE
_SHORTEST, _LONGEST = 30, 50  # documents of a query
_RELEVANT = (0.15, 0.10, 0.09, 0.05)  # share of the documents, intent by intent
_MOOD = 0.5  # sd over queries of the offset of an intent
_KNOWN = 0.35  # share of the utility's variance that the features explain


def tastes() -> Array:
    """[intents, d] weights of each intent, of norm 1."""
    weights = np.zeros((INTENTS, _FEATURES))
    weights[:, :_COMMON] = 0.4
    for intent in range(INTENTS):
        own = slice(_COMMON + _OWN * intent, _COMMON + _OWN * (intent + 1))
        weights[:, own] = -0.2
        weights[intent, own] = 0.6
    return weights / np.linalg.norm(weights, axis=1, keepdims=True)


def generate_intents(*, queries: int = QUERIES, seed: int = 1) -> tuple[Dataset, Array]:
    """Features with the union as labels, and what each intent finds relevant: [documents, intents]."""
    if queries < 1:
        raise SpecError(f"queries={queries} makes no collection; use at least 1")
    generated = [_query(seed, query) for query in range(queries)]
    offsets = np.concatenate([[0], np.cumsum([len(features) for features, _ in generated])]).astype(np.int64)
    features = np.concatenate([features for features, _ in generated]).astype(np.float32)
    query_minmax(features, offsets)
    intents = np.concatenate([relevant for _, relevant in generated]).astype(np.int8)
    return Dataset(features, intents.max(axis=1), offsets, np.arange(1, queries + 1)), intents


def _query(seed: int, query: int) -> tuple[Array, Array]:
    """Raw features and relevance of one query; independent of the other queries."""
    draws = stream(seed, client=query, purpose="data")
    documents = _SHORTEST + int(draws.integers(_LONGEST - _SHORTEST + 1, 1)[0])
    moods = draws.skip(2).normal(INTENTS) * _MOOD
    numbers = draws.skip(2 + INTENTS).normal(documents * (_FEATURES + INTENTS)).reshape(documents, -1)
    features, blur = numbers[:, :_FEATURES], numbers[:, _FEATURES:]
    opinions = np.sqrt(_KNOWN) * features @ tastes().T + np.sqrt(1 - _KNOWN) * blur + moods
    demands = -ndtri(_RELEVANT) * np.sqrt(1 + _MOOD**2)
    return features, opinions > demands
