"""How long a federation of two operators lasts: budgets do not renew, so a federation with a budget ends on a date.

`plan_lifetime` is for whoever begins a federation. Between one round a day and one round in all, it takes the most
rounds that leave each release usable (`privacy.promise`) and that the budget pays for over the days asked for, and
returns how far apart they begin, how long each is open, and the noise that spends the budget exactly:

    noise on the mean of the fewest in a sum, over the clip = sqrt(2 P) z / fewest        at most 1/2

z is the multiplier of each operator's noise. Epsilon grows with sqrt(rounds) / z, so fewer rounds of less noise tell as
much as many of more; rounds that are usable one by one are preferred to rounds that are not.

`remaining_lifetime` is for a node: the terms fix the noise, the ledger has what was released before, in all federations
together. Both ask the ledger's own closed forms, so that no node refuses a round that was planned.

A round completes where enough members send within its window. `completed` is the binomial probability of that, from the
share of members whose upload arrives in a window: simulated people with sessions around 20:00 and days off, 100 nodes
and 58 rounds. With members that come and go independently it gives .76 of rounds where the simulation gave .72 (six
hours, one hour a day, quorum .5), and .06 where it gave .05 (a day, quorum .9). A round that does not complete is
charged to those who sent.
"""

import math
from collections.abc import Mapping
from datetime import date, timedelta
from typing import NamedTuple

import msgspec
import numpy as np

from foltr.errors import SpecError
from foltr.privacy.events import SERVERS, Event
from foltr.privacy.ledger import affordable, closed_epsilon
from foltr.privacy.promise import USABLE
from foltr.privacy.release import release_to_servers
from foltr.secagg.guarantee import FEWEST
from foltr.secagg.ring import Ring
from foltr.secagg.terms import Terms
from foltr.secagg.two_servers import fewest_of

DAY = 86_400  # seconds
YEAR = 365  # days
LONGEST_WINDOW = 7  # days
LEAST_NOISE = 1.0  # multiplier that a node's policy asks for unless its person loosens it
_MOST_ROUNDS = 1_000_000
_FINER = 1e-4  # relative accuracy of a multiplier
_ROUNDING = 1e-9

# share of the members whose upload arrives in a window of so many hours, by how their machines are used
ARRIVING = {
    "laptops used an hour a day": {6: 0.53, 24: 0.84, 72: 0.995},
    "laptops used four hours a day": {6: 0.76, 24: 0.96, 72: 0.995},
    "office computers": {6: 0.91, 24: 0.97, 72: 0.99},
    "machines that are always on": {6: 0.995, 24: 0.995, 72: 0.995},
}


class Lifetime(NamedTuple):
    """A federation from its first round to the last one that a budget pays for."""

    members: int
    fewest: int  # in a sum
    rounds: int
    window: float  # days that a round is open
    interval: float  # days from the beginning of a round to that of the next
    noise_multiplier: float
    noise: float  # norm of the noise on the mean of the fewest in a sum, over the clip
    epsilon: float  # of all rounds, and of what was released before
    budget: float
    delta: float
    begins: date
    ends: date


def plan_lifetime(
    terms: Terms, *, members: int, budget: float, delta: float, begins: date, days: int = YEAR,
    most_noise: float = USABLE, least_multiplier: float = LEAST_NOISE,
) -> Lifetime:  # fmt: skip
    """Window, rounds and noise with which the budget lasts so many days. Of the terms, `noise_multiplier` and
    `stage_seconds` are not read: they are what is planned. `most_noise`: of a round, on the mean of the fewest in a
    sum, over the clip; a larger one gives small federations more rounds, each of which tells little."""
    if days < 1 or members < FEWEST:
        raise SpecError(f"{members} members for {days} days; use at least {FEWEST} members and one day")
    fewest = fewest_of(members, terms)
    paid = _rounds_paid(terms, members, budget, delta, most_noise / _relative_noise(terms, 1.0, fewest), {})
    if paid < 1:
        raise SpecError(
            f"{members:,} members: within epsilon {budget:g} at delta {delta:g} the noise of one round drowns "
            f"{terms.length} parameters of sums of {fewest:,}; use more members, fewer parameters or a larger budget"
        )
    interval = max(1, math.ceil(days / paid))
    rounds = math.ceil(days / interval)
    multiplier = max(noise_for(terms, members, budget, delta, rounds), least_multiplier)
    schedule = _Schedule(begins, rounds, min(interval, LONGEST_WINDOW), interval)
    return _lifetime(_with_noise(terms, multiplier), members, schedule, budget=budget, delta=delta, before={})


def remaining_lifetime(
    terms: Terms, *, members: int, budget: float, delta: float, begins: date, interval: float | None = None,
    before: Mapping[Event, int] | None = None,
) -> Lifetime | None:  # fmt: skip
    """Rounds of these terms that a node can still pay for, one every `interval` days; None without noise, which no
    budget pays for. `interval`: None where rounds follow each other, so that the date is the earliest possible one.
    `before`: releases that the node's ledger holds."""
    if not terms.noise_multiplier:
        return None
    window = terms.stage_seconds / DAY
    before = dict(before or {})
    rounds = _rounds_paid(terms, members, budget, delta, terms.noise_multiplier, before)
    schedule = _Schedule(begins, rounds, window, max(window, interval or 0.0))
    return _lifetime(terms, members, schedule, budget=budget, delta=delta, before=before)


def completed(members: int, fewest: int, window: float) -> dict[str, float]:
    """Share of the rounds that complete, by how the members' machines are used; `window` in days."""
    return {
        machines: _at_least(
            fewest, members, by_hours[max((hours for hours in by_hours if hours <= 24 * window), default=6)]
        )
        for machines, by_hours in ARRIVING.items()
    }


def lifetime_words(lifetime: Lifetime) -> list[str]:
    """A lifetime for the people who decide about it; every epsilon has its delta, unit, adjacency and adversary."""
    some = lifetime
    if some.rounds < 1:
        return [
            f"The budget of epsilon {some.budget:g} at delta {some.delta:g} pays for no further round with noise "
            f"{some.noise_multiplier:.3g} times the clip. A budget does not renew; what was released stays released."
        ]
    every = "a day" if some.interval == 1 else f"every {_days(some.interval)}"
    often = "one round" if some.rounds == 1 else f"{some.rounds:,} rounds, one {every}"
    each = "" if some.rounds == 1 else " each"
    drowned = ": more than half of it, so that a round alone tells little." if some.noise > USABLE + _FINER else "."
    return [
        f"Epsilon {some.budget:g} at delta {some.delta:g} pays for {often}, open for {_days(some.window)}{each}, with "
        f"noise {some.noise_multiplier:.3g} times the clip by each operator: epsilon {some.epsilon:.3g} for a node "
        f"that takes part in all of them, against one operator with any number of members; unit: one node; adjacency: "
        f"its updates replaced by zero.",
        f"From {_written(some.begins)} the budget lasts until {_written(some.ends)}. Then this federation ends: a "
        f"budget does not renew, and what was released stays released. A node that stays away from a round keeps what "
        f"the round would have cost.",
        f"A round needs {some.fewest:,} of {some.members:,} members. {_completing(some)} A round that does not "
        f"complete is paid for by those who sent.",
        f"The noise on the mean of a sum of {some.fewest:,} has {some.noise:.2g} times the norm of the clip{drowned}",
    ]


# --- what a budget pays for -----------------------------------------------------------------------------------------


class _Schedule(NamedTuple):
    begins: date
    rounds: int
    window: float  # days
    interval: float  # days


def _lifetime(
    terms: Terms, members: int, schedule: _Schedule, *, budget: float, delta: float, before: Mapping[Event, int]
) -> Lifetime:
    begins, rounds, window, interval = schedule
    fewest, counts = fewest_of(members, terms), _after(before, round_event(terms, members), rounds)
    return Lifetime(
        members, fewest, rounds, window, interval, terms.noise_multiplier,
        _relative_noise(terms, terms.noise_multiplier, fewest), closed_epsilon(counts, delta, "malicious"), budget,
        delta, begins, begins + timedelta(days=math.floor(rounds * interval + _ROUNDING)),
    )  # fmt: skip


def _rounds_paid(
    terms: Terms, members: int, budget: float, delta: float, multiplier: float, before: Mapping[Event, int]
) -> int:
    """The most rounds of this noise that a ledger admits."""
    event = round_event(_with_noise(terms, multiplier), members)

    def paid(rounds: int) -> bool:
        return affordable(_after(before, event, rounds), budget=budget, delta=delta, against="malicious")

    low, high = 0, 1
    while high <= _MOST_ROUNDS and paid(high):
        low, high = high, 2 * high
    while high - low > 1:
        trial = (low + high) // 2
        low, high = (trial, high) if paid(trial) else (low, trial)
    return low


def noise_for(terms: Terms, members: int, budget: float, delta: float, rounds: int) -> float:
    """The smallest multiplier with which the ledger admits so many rounds."""

    def paid(multiplier: float) -> bool:
        return _rounds_paid(terms, members, budget, delta, multiplier, {}) >= rounds

    low, high = 0.0, 1.0
    while not paid(high):
        low, high = high, 2 * high
    while high - low > _FINER * high:
        trial = (low + high) / 2
        low, high = (low, trial) if paid(trial) else (trial, high)
    return high


def _after(before: Mapping[Event, int], event: Event, rounds: int) -> dict[Event, int]:
    return {**before, event: before.get(event, 0) + rounds}


def round_event(terms: Terms, members: int) -> Event:
    """The release of one round."""
    return release_to_servers(
        np.zeros(terms.length), clip=terms.clip, multiplier=terms.noise_multiplier,
        ring=Ring(members, terms.bits, terms.fraction),
    )[1]  # fmt: skip


def _with_noise(terms: Terms, multiplier: float) -> Terms:
    return msgspec.structs.replace(terms, noise_multiplier=multiplier)


def _relative_noise(terms: Terms, multiplier: float, fewest: int) -> float:
    """Norm of both operators' noise on the mean of the fewest in a sum, over the clip."""
    return multiplier * math.sqrt(SERVERS * terms.length) / fewest


def _at_least(fewest: int, members: int, share: float) -> float:
    """Binomial probability that so many of the members arrive."""
    logs = [
        math.lgamma(members + 1) - math.lgamma(k + 1) - math.lgamma(members - k + 1)
        + k * math.log(share) + (members - k) * math.log1p(-share)
        for k in range(fewest, members + 1)
    ]  # fmt: skip
    return min(1.0, math.fsum(map(math.exp, logs)))


def _completing(some: Lifetime) -> str:
    shares = completed(some.members, some.fewest, some.window)
    rounds = {machines: round(share * some.rounds) for machines, share in shares.items()}
    if min(rounds.values()) == some.rounds:
        whose = f"also if the members have {next(iter(rounds))}"
        return f"All rounds are expected to complete, {whose} (simulated people)."
    listed = ", ".join(f"{count:,} with {machines}" for machines, count in rounds.items())
    return f"Expected to complete, of {some.rounds:,} rounds: {listed} (simulated people)."


def _days(days: float) -> str:
    if days < 1:
        return f"{24 * days:.3g} hours"
    return "a day" if days == 1 else f"{days:.3g} days"


def _written(day: date) -> str:
    return f"{day.day} {day:%B %Y}"
