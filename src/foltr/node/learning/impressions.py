"""Impressions: settled lists as the log takes them, and the check that they can be read back."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from foltr.errors import InputError
from foltr.types import Array

LATEST = 1e11  # seconds since 1970
_MOST_CANDIDATES, _MOST_FEATURES = 10_000, 1_000


class Impression(NamedTuple):
    """A settled list. Rows of scores and features: the displayed documents in order, then the other candidates.

    A search that found nothing is a list without documents: the history has it, nothing is learned from it.
    """

    query: str | None  # None: erased
    time: float  # seconds since 1970
    documents: Sequence[str | None]  # [k] keys as displayed; None: erased
    propensities: Array  # [k] chance of the document at its position
    scores: Array  # [n]
    features: Array  # [n, d] scaled
    feature_names: tuple[str, ...]  # [d] names with their scaling: what makes columns comparable
    model_version: int
    teams: Array | None = None  # [k] of an interleaved list: 0 old version, 1 new version, 2 both


def check(impression: Impression) -> None:
    """Refuses a list that could not be read back."""
    n, k, d = len(impression.scores), len(impression.documents), len(impression.feature_names)
    named = [one for one in impression.documents if one is not None]
    if np.shape(impression.features) != (n, d) or np.shape(impression.scores) != (n,):
        raise InputError(f"a list of {n} scores and {d} features must have features [{n}, {d}]")
    if not 0 <= k <= n <= _MOST_CANDIDATES or (n and not k) or d > _MOST_FEATURES or len(set(named)) < len(named):
        raise InputError(
            f"a list has at most {_MOST_CANDIDATES:,} candidates, different documents among the displayed ones "
            f"and at most {_MOST_FEATURES:,} features"
        )
    if np.shape(impression.propensities) != (k,) or (impression.teams is not None and len(impression.teams) != k):
        raise InputError(f"{k} displayed documents need {k} propensities, and teams where the list was interleaved")
    numbers = (impression.features, impression.scores, impression.propensities, impression.time)
    with np.errstate(over="ignore"):
        finite = all(np.isfinite(np.asarray(one, dtype=np.float32)).all() for one in numbers)
    if not finite or not 0 <= impression.time < LATEST:
        raise InputError("a list has features, scores or times that are no finite numbers; it is not logged")
