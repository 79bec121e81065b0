"""Guessing clicks: the server knows the ranker it sent, the documents that were displayed, and what came back.

Source: S4 section 4. A document is guessed to be clicked if, from the ranker before to the one after,

    higher score         its score rises
    higher probability   its share of the list's softmax rises
    higher distance      its lead over at least half as many of the displayed documents as there are rises
    least squares        its coefficient is positive: change of the parameters = sum of coefficient * features
    least absolute       the same with the least sum of absolute deviations, positive beyond what rounding may do

A linear ranker's step is such a sum, clicked documents with positive weights, so a message without noise reveals
its clicks. Gamma shares are nearly all zero, and least absolute deviations are robust to a few large ones.
With more documents than parameters many coefficients fit; the smallest (in L2) are taken for both regressions.

Differs from the paper: scores of the same document are compared. The author's program sorts the list anew and compares
what stands at the same rank; PUBLISHED holds these three, which give the paper's figures. S4's text counts more than 5
for the distance, its program at least 5 of the 9 others, which is what is done here. Least absolute deviations are not
in the paper.

With `audit.sum` = n the server sees sums of n messages only, as secure aggregation leaves them. It then guesses for
each of the n clients from the same sum and the documents that this client was shown. "absent": the same guess from the
sum without the client's own message. That baseline comes from what the others' clicks have in
common; only the excess over it is a leak about the client.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np
from scipy.optimize import linprog
from scipy.special import softmax

from foltr.clicks import Users
from foltr.errors import SpecError
from foltr.lab.audit import Audit
from foltr.lab.audit.messages import Messages, contributors_of, full_lists, send
from foltr.lab.data.catalog import Fold
from foltr.lab.spec.setting import Setting
from foltr.types import Array

# (features [k, d] of the displayed documents, parameters before [d], parameters after [d]) -> guessed [k] bool
Guess = Callable[[Array, Array, Array], Array]


def higher_score(features: Array, before: Array, after: Array) -> Array:
    return _score_rises(features @ before, features @ after)


def higher_probability(features: Array, before: Array, after: Array) -> Array:
    return _probability_rises(features @ before, features @ after)


def higher_distance(features: Array, before: Array, after: Array) -> Array:
    return _distance_rises(features @ before, features @ after)


def _score_rises(old: Array, new: Array) -> Array:
    return new > old


def _probability_rises(old: Array, new: Array) -> Array:
    rises: Array = softmax(new) > softmax(old)
    return rises


def _distance_rises(old: Array, new: Array) -> Array:
    rise = new - old
    overtaken = (rise[:, None] > rise).sum(axis=1)  # lead over another grows <=> rises more than that one
    return overtaken >= len(rise) / 2


def least_squares(features: Array, before: Array, after: Array) -> Array:
    return squares_fit(features, after - before) > 0


def least_absolute(features: Array, before: Array, after: Array) -> Array:
    coefficients = absolute_fit(features, after - before)
    return coefficients > _ROUNDING * np.abs(coefficients).max()


_ROUNDING = 1e-6  # of the largest coefficient: documents far below the others in score have next to no weight


def squares_fit(features: Array, change: Array) -> Array:
    """[k] coefficients of the documents, those of least norm where many fit."""
    return np.linalg.lstsq(features.T, change, rcond=None)[0]


def absolute_fit(features: Array, change: Array) -> Array:
    """[k] coefficients that minimise sum |change - coefficients @ features|.

    Solved by its dual, which has a row for each document only: max change @ e with features @ e = 0, |e| <= 1. The
    prices of those rows are the coefficients.
    """
    documents, parameters = features.shape
    size = np.abs(change).max()
    if documents >= parameters or size == 0:
        return squares_fit(features, change)
    # the solver's tolerances are absolute
    solved = linprog(-change / size, A_eq=features, b_eq=np.zeros(documents), bounds=(-1, 1), method="highs")
    if solved.status != 0:
        return squares_fit(features, change)
    return -solved.eqlin.marginals * size


GUESSES: dict[str, Guess] = {
    "higher score": higher_score,
    "higher probability": higher_probability,
    "higher distance": higher_distance,
    "least squares": least_squares,
    "least absolute": least_absolute,
}


def _sorted_anew(rises: Callable[[Array, Array], Array]) -> Guess:
    """S4's variant: compares the documents at the same rank before and after, for one search."""
    return lambda features, before, after: rises(features @ before, np.sort(features @ after)[::-1])


PUBLISHED: dict[str, Guess] = {
    "higher score, sorted anew": _sorted_anew(_score_rises),
    "higher probability, sorted anew": _sorted_anew(_probability_rises),
    "higher distance, sorted anew": _sorted_anew(_distance_rises),
}


RANDOM_GUESSES = (3, 4)  # S4 Table 4: about as many documents as its attacks guess


class GuessQuality(NamedTuple):
    """Quality of guesses. Means over messages with a click; precision over those of them with a guess."""

    precision: float
    recall: float
    accuracy: float
    guessed: float  # share of the displayed documents; also the recall of guessing as many at random
    clicked: float  # share of the displayed documents; also the precision of any guessing at random
    messages: int  # with a click


def score(clicks: Array, guessed: Array) -> GuessQuality:
    """Scores of guesses against clicks, both [messages, k] bool; lists without a click are left out, as in S4."""
    some = clicks.any(axis=1)
    clicks, guessed = clicks[some], guessed[some]
    if not len(clicks):
        return GuessQuality(np.nan, np.nan, np.nan, np.nan, np.nan, 0)
    hits, guesses = (clicks & guessed).sum(axis=1), guessed.sum(axis=1)
    precise = (hits / np.maximum(guesses, 1))[guesses > 0]
    return GuessQuality(
        precision=float(precise.mean()) if precise.size else 0.0,
        recall=float((hits / clicks.sum(axis=1)).mean()),
        accuracy=float((clicks == guessed).mean()),
        guessed=float(guessed.mean()),
        clicked=float(clicks.mean()),
        messages=len(clicks),
    )


def guess_each(name: str, features: Array, before: Array, after: Array) -> Array:
    """One way to guess for many messages: features [messages, k, d], after [messages, d] -> [messages, k] bool."""
    guess = (GUESSES | PUBLISHED)[name]
    return np.array([guess(listed, before, sent) for listed, sent in zip(features, after, strict=True)], dtype=bool)


# --- a run in which clicks are guessed ------------------------------------------------------------------------------


def check_audit(setting: Setting, fold: Fold) -> None:
    """Refuses impossible settings before anything runs."""
    if not full_lists(fold.validation, setting.users.k).size:
        raise SpecError(
            f"audit: no validation query of {fold.name} fold {fold.fold} has {setting.users.k} documents; "
            f"use a smaller users.k"
        )
    if setting.audit.sum > contributors_of(setting):
        raise SpecError(
            f"audit.sum = {setting.audit.sum}: at most {contributors_of(setting)} clients take part in a round"
        )


def training(setting: Setting) -> Setting:
    """A copy of the setting with the users who train the ranker, and no audit."""
    trainers = Users(setting.audit.trained_by, k=setting.users.k)
    return msgspec.structs.replace(setting, users=trainers, audit=Audit())


def guessing(setting: Setting, fold: Fold, parameters: Array, seed: int) -> dict[str, float]:
    """The numbers of all attacks on messages from a trained ranker."""
    audit = setting.audit
    sent = send(setting, fold, parameters, messages=audit.messages, queries=audit.queries, seed=seed)
    numbers = random_numbers(sent.clicks)
    for name in [*GUESSES, *(PUBLISHED if audit.queries == audit.sum == 1 else [])]:
        numbers |= _numbers(name, guessed(name, sent, audit.sum))
        if audit.sum > 1:
            numbers |= _numbers(f"{name}, absent", guessed(name, sent, audit.sum, absent=True))
    return numbers


def guessed(name: str, messages: Messages, together: int, *, absent: bool = False) -> GuessQuality:
    """One attack on sums of so many messages."""
    changes = messages.sent - messages.before
    sums = changes.reshape(-1, together, changes.shape[1]).sum(axis=1)
    seen = np.repeat(sums, together, axis=0) - (changes if absent else 0.0)
    return score(messages.clicks, guess_each(name, messages.features, messages.before, messages.before + seen))


def _numbers(name: str, found: GuessQuality) -> dict[str, float]:
    return {
        f"precision, {name}": found.precision, f"recall, {name}": found.recall, f"accuracy, {name}": found.accuracy,
        f"guessed, {name}": found.guessed,
    }  # fmt: skip


def random_numbers(clicks: Array) -> dict[str, float]:
    """Expected numbers of guesses at random: the precision is the same for every number of guesses."""
    nothing = score(clicks, np.zeros_like(clicks))
    numbers = {"precision, random": nothing.clicked, "messages with a click": nothing.messages}
    for guesses in RANDOM_GUESSES:
        share = guesses / clicks.shape[1]
        numbers[f"recall, random {guesses}"] = share
        numbers[f"accuracy, random {guesses}"] = share * nothing.clicked + (1 - share) * (1 - nothing.clicked)
    return numbers
