"""What several tests of the numeric core share: lists by the compiled sampler, exact probabilities, frequencies."""

import itertools
import math
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal, localcontext

import numpy as np
from scipy.stats import chisquare, norm

from foltr._kernels.lists import draw_list
from foltr._kernels.workspace import ahead, workspace_for
from foltr.federation.schedule import Members
from foltr.rng import stream
from foltr.types import Dataset

NOTHING_AHEAD = ahead(np.zeros((1, 1), np.float32), 0, 0)


def workspace_with(scores, k, *, hidden=0, size=1):
    """A workspace with these scores in it."""
    workspace = workspace_for(len(scores), k, hidden, size)
    workspace.scores[:] = scores
    return workspace


def draw(workspace, k, draws):
    """The list that the compiled sampler draws for the scores in a workspace, which then holds the rest."""
    count = len(workspace.scores)
    length = min(k, count)
    at = np.uint64(draws.start), np.uint64(draws.stride)
    draw_list(count, length, at, draws.position, workspace, NOTHING_AHEAD)
    return workspace.ranking[:length]


def trained(engine, parameters, clients, steps, **more):
    """Parameters [n, P] after the steps of these clients, and their online metrics."""
    return engine.train(parameters, engine.prepare(Members(clients, steps)), **more)


def local_updates(engine, models, members, round, release):
    """The updates of a cohort, and its online metrics."""
    return engine.local_updates(models, engine.prepare(members), round, release)


def updates_of(engine, start, clients, interactions, *, round=1, release=None):
    """What these clients send after so many interactions each, from one model or one each, and their online metrics."""
    members = Members(np.asarray(clients, np.int64), np.asarray(interactions, np.int64))
    return local_updates(engine, start, members, round, release)


def read_only(array):
    """A view that cannot be written, as the engines hand their data to kernels."""
    view = array.view()
    view.flags.writeable = False
    return view


def fit(outcomes: Iterable, probabilities: dict) -> float:
    """p-value of a chi-square test of these outcomes; outcomes expected less than 8 times are taken together."""
    counts = Counter(outcomes)
    assert set(counts) <= {outcome for outcome, p in probabilities.items() if p > 0}, "what cannot be has happened"
    total = sum(counts.values())
    common = [outcome for outcome, p in probabilities.items() if p * total >= 8]
    seen = [counts[outcome] for outcome in common]
    expected = [probabilities[outcome] * total for outcome in common]
    rest = total - sum(expected)
    if rest > 1e-9 * total:
        seen.append(total - sum(seen))
        expected.append(rest)
    return float(chisquare(seen, expected).pvalue)


def far(odds: float, looks: int = 1) -> float:
    """How many standard errors away something must be to alarm once in 1 / odds, when one looks so many times."""
    return float(norm.isf(odds / looks / 2))


def standard_errors(sample, expected):
    """[coordinates] of the mean of a sample [n, coordinates] from what is expected, in standard errors."""
    return np.abs(sample.mean(axis=0) - expected) / (sample.std(axis=0, ddof=1) / math.sqrt(len(sample)))


def rankings(documents: int, shown: int):
    return itertools.permutations(range(documents), min(shown, documents))


def list_probability(scores, ranking) -> float:
    """P(list) as a product: each document's share of the exp-mass that is left."""
    mass = {document: math.exp(score) for document, score in enumerate(scores)}
    probability = 1.0
    for document in ranking:
        probability *= mass[document] / sum(mass.values())
        del mass[document]
    return probability


def pattern_probability(pattern, grades, click, stop) -> float:
    """P(clicks) of a user who reads from the top: click[rank][grade], stop[grade] after a click."""
    clicked = [rank for rank, hit in enumerate(pattern) if hit]
    last = clicked[-1] if clicked else -1
    probability = 1.0
    for rank in range(last):
        chance = click[rank][grades[rank]]
        probability *= chance * (1 - stop[grades[rank]]) if pattern[rank] else 1 - chance
    unread = math.prod(1 - click[rank][grades[rank]] for rank in range(last + 1, len(grades)))
    if last < 0:
        return unread
    ends = stop[grades[last]]  # the user stops at the last click, or reads on and clicks nothing
    return probability * click[last][grades[last]] * (ends + (1 - ends) * unread)


def patterns(length: int):
    return itertools.product((False, True), repeat=length)


def exact_pair_weight(scores, ranking, positive: int, negative: int) -> float:
    """P(R*) / (P(R) + P(R*)) * sigma'(difference) with 60 digits, where R* is R with the two ranks swapped."""
    with localcontext() as context:
        context.prec = 60
        swapped = list(ranking)
        swapped[positive], swapped[negative] = swapped[negative], swapped[positive]
        shown, other = (_decimal_probability(scores, order) for order in (ranking, swapped))
        better, worse = (Decimal(float(scores[ranking[rank]])).exp() for rank in (positive, negative))
        return float(other / (shown + other) * better * worse / (better + worse) ** 2)


def _decimal_probability(scores, ranking) -> Decimal:
    left = {document: Decimal(float(score)).exp() for document, score in enumerate(scores)}
    probability = Decimal(1)
    for document in ranking:
        whole = sum(left.values())
        probability *= left.pop(int(document)) / whole
    return probability


def ragged(counts, *, width: int, grades: int, seed: int = 5, scale: float = 1.0) -> Dataset:
    """A made-up collection whose lists have these lengths."""
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    documents = int(offsets[-1])
    features = stream(seed, purpose="data").uniform(documents * width).reshape(documents, width) * scale
    labels = stream(seed, round=1, purpose="data").integers(grades, documents)
    return Dataset(features.astype(np.float32), labels.astype(np.int8), offsets, np.arange(len(counts)))
