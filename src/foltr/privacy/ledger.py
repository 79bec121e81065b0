"""The ledger: which releases hold something of whom, and what that has cost so far.

A ledger is plain data; functions return the next one. It admits a round or refuses it BEFORE anything leaves; it is
saved as JSON, and read back to the same ledger. Users who took part equally often are accounted for once.
"""

import json
from typing import Any, NamedTuple

import msgspec
import numpy as np

from foltr.errors import PrivacyError
from foltr.privacy.accounting import Spent, epsilon
from foltr.privacy.events import Adversary, Event
from foltr.types import Array

VERSION = 1


class Ledger(NamedTuple):
    delta: float
    budget: float | None  # epsilon that no user may exceed, against whoever gets the ranker
    events: tuple[Event, ...]  # each once
    counts: Array  # [users, events] how often each happened to each user


def begin(users: int, *, delta: float, budget: float | None = None) -> Ledger:
    return Ledger(delta, budget, (), np.zeros((users, 0), np.int64))


def record(ledger: Ledger, event: Event, users: Array, times: int = 1) -> Ledger:
    """The ledger after a release in which these users took part; refuses one beyond the budget."""
    if not admits(ledger, event, users, times):
        raise PrivacyError(
            f"a further release of {event.mechanism} would exceed the budget of epsilon {ledger.budget:g} at delta "
            f"{ledger.delta:g} for one user at least: nothing was released"
        )
    return _with(ledger, event, users, times)


def admits(ledger: Ledger, event: Event, users: Array, times: int = 1) -> bool:
    """Whether every one of these users can afford it."""
    if ledger.budget is None:
        return True
    after = _with(ledger, event, users, times)
    return max((spent.epsilon for spent in _kinds(after, "recipients", users)), default=0.0) <= ledger.budget


def spent(ledger: Ledger, against: Adversary = "recipients") -> Spent:
    """Of the user who gave most."""
    return max(_kinds(ledger, against, np.arange(len(ledger.counts))), key=lambda one: one.epsilon)


def spent_by(ledger: Ledger, user: int, against: Adversary = "recipients") -> Spent:
    return _of(ledger, ledger.counts[user], against)


def dumps(ledger: Ledger) -> str:
    """As JSON: distinct rows of counts, and which user has which."""
    rows, whose = np.unique(ledger.counts, axis=0, return_inverse=True)
    content = {
        "version": VERSION,
        "delta": ledger.delta,
        "budget": ledger.budget,
        "events": [msgspec.to_builtins(event) for event in ledger.events],
        "counts": rows.tolist(),
        "user_has": whose.reshape(-1).tolist(),
    }
    return json.dumps(content, allow_nan=False)


def loads(text: str) -> Ledger:
    try:
        content: dict[str, Any] = json.loads(text)
        if content["version"] != VERSION:
            raise PrivacyError(f"a ledger of version {content['version']!r}; this program reads version {VERSION}")
        events = tuple(msgspec.convert(event, Event) for event in content["events"])
        rows = np.array(content["counts"], np.int64).reshape(-1, len(events))
        counts = rows[np.array(content["user_has"], np.int64)]
        return Ledger(float(content["delta"]), content["budget"], events, counts)
    except (ValueError, KeyError, IndexError, TypeError, msgspec.ValidationError) as problem:
        raise PrivacyError(f"not a ledger of foltr, or damaged: {problem}") from None


def _with(ledger: Ledger, event: Event, users: Array, times: int) -> Ledger:
    counts, events = ledger.counts, ledger.events
    if event in events:
        counts = counts.copy()
    else:
        events = (*events, event)
        counts = np.hstack([counts, np.zeros((len(counts), 1), np.int64)])
    counts[users, events.index(event)] += times
    return ledger._replace(events=events, counts=counts)


def _kinds(ledger: Ledger, against: Adversary, users: Array) -> list[Spent]:
    """What users have spent who differ in what they gave; of those who gave less of everything, nothing is asked."""
    rows = np.unique(ledger.counts[users], axis=0)
    if rows.shape[1] == 1:
        rows = rows[-1:]
    return [_of(ledger, row, against) for row in rows]


def _of(ledger: Ledger, row: Array, against: Adversary) -> Spent:
    times = {event: int(count) for event, count in zip(ledger.events, row, strict=True)}
    return epsilon(times, ledger.delta, against)
