"""The ledger: counts the releases of every user and refuses those beyond the budget.

`admits` is called BEFORE a release and answers in closed form, with NumPy only:

    Gaussian releases            compose to mu = sqrt(sum of (bound / stddev)^2), whose delta at the budget is exact
    pure releases                epsilons add up (Laplace, FPDGD, randomised response)
    discrete Gaussian releases   as Gaussian ones of a little less noise (proof: docs/explanation-noise-in-the-ring.md);
                                 in a coarse ring concentrated privacy: rho adds up (Canonne, Kamath and Steinke 2020)
    several of these             epsilons of the three kinds add up: an upper bound

`charge` counts a release in place: time and memory of a round are those of its cohort, not of all users. `spent` asks
`accounting`, which composes numerically and is tighter. A ledger is saved as JSON, and read back to the same ledger.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
import numpy as np

from foltr.errors import PrivacyError
from foltr.privacy.calibration import gaussian_delta, gaussian_epsilon
from foltr.privacy.events import (
    Adversary,
    Event,
    as_continuous,
    check_composable,
    concentrated,
    holds,
    multiplier,
    pure_epsilon,
)
from foltr.types import Array

if TYPE_CHECKING:
    from foltr.privacy.accounting import Spent

VERSION = 2
_MOST = 2**31 - 1  # releases of one user, in 32 bits
_Count = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
_ROUNDING = 1 + 1e-9  # noise calibrated for a number of releases admits them in spite of rounding
_COUNTED = 10**300  # integers above this are no doubles
_HUGE = 1e200  # of mu^2 or rho: nothing is hidden
_ORDERS = np.concatenate([1 + 2.0 ** np.arange(-9, 1, 0.25), np.arange(2.25, 64, 0.25), 2.0 ** np.arange(6, 14, 0.5)])


class Ledger(NamedTuple):
    delta: float
    budget: float | None  # epsilon that no user may exceed, against recipients of the ranker
    events: tuple[Event, ...]  # each once
    counts: Array  # [users, events] int32, how often each happened to each user


def begin(users: int, *, delta: float, budget: float | None = None, events: tuple[Event, ...] = ()) -> Ledger:
    """An empty ledger; `events` that are known beforehand have their columns at once."""
    check_figures(delta, budget)
    return Ledger(delta, budget, events, np.zeros((users, len(events)), np.int32))


def check_figures(delta: float, budget: float | None) -> None:
    if not 0 <= delta < 1:
        raise PrivacyError(f"delta = {delta:g}: it must lie between 0 and 1; a usual choice is 1e-5")
    if budget is not None and not 0 <= budget < math.inf:
        raise PrivacyError(f"budget = {budget:g}: use a finite epsilon of 0 or more, or None for no budget")


def admits(ledger: Ledger, event: Event, users: Array, times: int = 1) -> bool:
    """Whether every one of these users can afford the release."""
    users, counted = _counted(event, users, times)
    if ledger.budget is None or not len(users):
        return True
    events = ledger.events if event in ledger.events else (*ledger.events, event)
    counts = np.zeros((len(users), len(events)))
    counts[:, : len(ledger.events)] = ledger.counts[users]
    counts[:, events.index(event)] += counted
    return _affordable(events, counts, ledger.budget * _ROUNDING, ledger.delta)


def charge(ledger: Ledger, event: Event, users: Array, times: int = 1) -> Ledger:
    """Counts a release that these users took part in, in place and without asking for the budget.

    Returns the ledger to go on with: the same arrays, except that a new kind of event gets a new column.
    """
    users, counted = _counted(event, users, times)
    if event not in ledger.events:
        column = np.zeros((len(ledger.counts), 1), np.int32)
        ledger = ledger._replace(events=(*ledger.events, event), counts=np.hstack([ledger.counts, column]))
    which = ledger.events.index(event)
    after = ledger.counts[users, which] + counted
    if after.size and after.max() > _MOST:
        raise PrivacyError(f"{event.mechanism}: more than {_MOST:,} releases of one user cannot be counted")
    ledger.counts[users, which] = after
    return ledger


def _counted(event: Event, users: Array, times: int) -> tuple[Array, Array]:
    """Each user once, with how many releases the user is charged for.

    A user who is listed k times contributes k times to one release, and its bound is k times the event's. In mu^2 and
    in rho that is worth k^2 releases, in pure epsilon k.
    """
    if times != int(times) or not 0 <= times <= _MOST:
        raise PrivacyError(f"{event.mechanism}: {times} times; a release happens 0 to {_MOST:,} times")
    distinct, listed = np.unique(np.asarray(users, np.int64), return_counts=True)
    if distinct.size and distinct[0] < 0:
        raise PrivacyError(f"user {distinct[0]}: users are numbered from 0")
    worth = listed.astype(np.float64) ** (2 if "gaussian" in event.mechanism else 1)
    if worth.size and worth.max() * times > _MOST:
        raise PrivacyError(f"{event.mechanism}: more than {_MOST:,} releases of one user cannot be counted")
    return distinct, worth.astype(np.int64) * int(times)


def record(ledger: Ledger, event: Event, users: Array, times: int = 1) -> Ledger:
    """A new ledger after a release in which these users took part; refuses one beyond the budget."""
    if not admits(ledger, event, users, times):
        raise PrivacyError(
            f"a further release of {event.mechanism} would exceed the budget of epsilon {ledger.budget:g} at delta "
            f"{ledger.delta:g} for at least one user; nothing was released"
        )
    return charge(ledger._replace(counts=ledger.counts.copy()), event, users, times)


def spent(ledger: Ledger, against: Adversary = "recipients") -> "Spent":
    """Epsilon of the user with the most releases, by numerical composition."""
    rows = np.unique(ledger.counts, axis=0) if ledger.counts.size else np.zeros((1, len(ledger.events)), np.int32)
    if rows.shape[1] == 1:  # who took part less often spent less
        rows = rows[-1:]
    return max((_spent(ledger, row, against) for row in rows), key=lambda one: one.epsilon)


def _spent(ledger: Ledger, row: Array, against: Adversary) -> "Spent":
    from foltr.privacy.accounting import epsilon

    times = {event: int(count) for event, count in zip(ledger.events, row, strict=True)}
    return epsilon(times, ledger.delta, against)


def dumps(ledger: Ledger) -> str:
    """As JSON: distinct rows of counts, and which user has which."""
    users, kinds = ledger.counts.shape
    rows, whose = np.zeros((min(users, 1), kinds), np.int32), np.zeros(users, np.int64)  # of an empty one
    if ledger.counts.size:
        rows, whose = np.unique(ledger.counts, axis=0, return_inverse=True)
    content = {
        "version": VERSION,
        "delta": ledger.delta,
        "budget": ledger.budget,
        "events": [msgspec.to_builtins(event) for event in ledger.events],
        "counts": rows.tolist(),
        "user_has": whose.reshape(-1).tolist(),
    }
    try:
        return json.dumps(content, allow_nan=False)
    except ValueError:
        raise PrivacyError("a ledger with a number that is not finite cannot be saved") from None


# --- closed forms ---------------------------------------------------------------------------------------------------


def affordable(counts: Mapping[Event, int], *, budget: float, delta: float, against: Adversary) -> bool:
    """Whether one user with these releases stays within a budget."""
    return _affordable(tuple(counts), _row(counts), budget * _ROUNDING, delta, against)


def closed_epsilon(counts: Mapping[Event, int], delta: float, against: Adversary = "recipients") -> float:
    """Epsilon of one user's releases: exact for Gaussian noise, an upper bound for others and for mixtures."""
    totals = _totals(tuple(counts), _row(counts), against)
    if totals is None:
        return math.inf
    squared_mu, pure, rho = totals[0].tolist()
    if squared_mu and rho:
        delta /= 2
    gaussian = _gaussian_epsilon(squared_mu, delta) if squared_mu else 0.0
    return float(pure + gaussian + (_concentrated_epsilon(rho, delta) if rho else 0.0))


def worst_of_each_kind(events: Iterable[Event]) -> tuple[Event, ...]:
    """Of the events that compose by mu, by pure epsilon and by rho, the one that is worth the most."""
    events = tuple(dict.fromkeys(events))
    worth = [_worth(event) for event in events]
    largest = [max(range(len(events)), key=lambda k: worth[k][kind]) for kind in range(3) if events]
    return tuple(dict.fromkeys(events[k] for kind, k in enumerate(largest) if worth[k][kind] > 0))


def _row(counts: Mapping[Event, int]) -> Array:
    return np.array([[float(min(times, _COUNTED)) for times in counts.values()]]).reshape(1, len(counts))


def _affordable(
    events: tuple[Event, ...], counts: Array, budget: float, delta: float, against: Adversary = "recipients"
) -> bool:
    """Whether users with these counts [users, events] stay within the budget."""
    totals = _totals(events, counts, against)
    if totals is None:
        return False
    largest = totals.max(axis=0)
    if _within(*largest.tolist(), budget=budget, delta=delta):  # nobody has more: one closed form for all users
        return True
    if (largest > 0).sum() <= 1:
        return False
    return all(_within(*row, budget=budget, delta=delta) for row in np.unique(totals, axis=0)[::-1].tolist())


def _totals(events: tuple[Event, ...], counts: Array, against: Adversary) -> Array | None:
    """[users, 3]: mu^2, pure epsilon, rho; None where a release hides nothing from this adversary."""
    happened = [k for k in range(len(events)) if counts[:, k].any()]
    chosen = [events[k] for k in happened]
    check_composable(chosen)
    if not all(holds(event) and against in event.against for event in chosen):
        return None
    worth = np.array([_worth(event) for event in chosen]).reshape(-1, 3)
    with np.errstate(over="ignore"):
        totals = np.stack([(counts[:, happened] * np.minimum(kind, _HUGE)).sum(axis=1) for kind in worth.T], axis=1)
    return np.where(totals < _HUGE, totals, math.inf)


def _worth(event: Event) -> tuple[float, float, float]:
    """Contribution of one release to mu^2, to the pure epsilon and to rho; infinite where doubles cannot say it."""
    try:
        if event.mechanism == "gaussian":
            ratio = multiplier(event)
            return 1 / ratio / ratio, 0.0, 0.0
        if event.mechanism == "discrete-gaussian":
            squared_mu, rest = as_continuous(event)
            return (squared_mu, rest, 0.0) if math.isfinite(squared_mu) else (0.0, 0.0, concentrated(event))
        return 0.0, pure_epsilon(event), 0.0
    except (OverflowError, ZeroDivisionError):
        return 0.0, math.inf, 0.0


def _within(squared_mu: float, pure: float, rho: float, *, budget: float, delta: float) -> bool:
    """The sum of the three kinds' epsilons against the budget; where two need a delta, each gets half of it."""
    if squared_mu and rho:
        delta /= 2
    left = budget - pure - (_concentrated_epsilon(rho, delta) if rho else 0.0)
    return left >= 0 and (squared_mu == 0 or _gaussian_within(squared_mu, left, delta))


def _gaussian_within(squared_mu: float, epsilon: float, delta: float) -> bool:
    """Without a delta Gaussian noise has no epsilon; beyond `_HUGE` releases differ for sure."""
    return delta > 0 and squared_mu < _HUGE and gaussian_delta(math.sqrt(squared_mu), epsilon) <= delta


def _gaussian_epsilon(squared_mu: float, delta: float) -> float:
    return gaussian_epsilon(math.sqrt(squared_mu), delta) if delta > 0 and squared_mu < _HUGE else math.inf


def _concentrated_epsilon(rho: float, delta: float) -> float:
    """Of rho-concentrated privacy at a delta: the best order of those tried."""
    if delta == 0 or not rho < _HUGE:
        return math.inf
    each = _ORDERS * rho + np.log1p(-1 / _ORDERS) - (math.log(delta) + np.log(_ORDERS)) / (_ORDERS - 1)
    return max(float(each.min()), 0.0)
