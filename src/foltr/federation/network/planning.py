"""Terms of a new federation, and what they promise in words before anything is created.

open      noise by both operators; window, distance of rounds and noise are planned so that the budget lasts
circle    5 to 20 people without noise: all members or no sum
"""

from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from foltr.errors import InputError
from foltr.federation.deployment import several_rounds
from foltr.federation.lifetime import DAY, LEAST_NOISE, lifetime_words, noise_for, plan_lifetime, remaining_lifetime
from foltr.federation.network.invitation import FederationKind
from foltr.secagg.terms import Terms, new_federation

_CIRCLE_HOURS = 24.0


class Requirements(NamedTuple):
    """What a coordinator asks for; of a circle only the window counts."""

    kind: FederationKind
    members: int  # expected
    epsilon: float
    delta: float
    days: float  # that the budget has to last
    quorum: float
    window_hours: float | None  # None: planned


class Plan(NamedTuple):
    terms: Terms
    interval_days: float  # between the beginnings of two rounds
    words: list[str]


def plan(required: Requirements, *, length: int, clip: float, now: float) -> Plan:
    """Refuses an open federation whose noise would drown every round."""
    terms = Terms(new_federation(), length, bits=64, fraction=32, clip=clip, dropouts=0.0)
    if required.kind == "circle":
        terms = msgspec.structs.replace(terms, stage_seconds=(required.window_hours or _CIRCLE_HOURS) * 3600)
        words = several_rounds(terms, members=required.members, rounds=1, delta=required.delta)
        return Plan(terms, 0.0, [_sent(terms), _CIRCLE, *words])
    if not required.epsilon > 0 or not 0 < required.delta < 1 or not required.days > 0:
        raise InputError("use a positive epsilon, a delta between 0 and 1 and a positive number of days")
    terms, begins = msgspec.structs.replace(terms, quorum=required.quorum), datetime.fromtimestamp(now, UTC).date()
    members, epsilon, delta = required.members, required.epsilon, required.delta
    if required.window_hours is None:
        lifetime = plan_lifetime(
            terms, members=members, budget=epsilon, delta=delta, begins=begins, days=max(1, int(required.days))
        )
        noise, seconds, interval = lifetime.noise_multiplier, lifetime.window * DAY, lifetime.interval
        terms = msgspec.structs.replace(terms, noise_multiplier=noise, stage_seconds=seconds)
        return Plan(terms, interval, [_sent(terms), *lifetime_words(lifetime)])
    rounds = max(1, int(required.days * 24 / required.window_hours))
    noise = max(LEAST_NOISE, noise_for(terms, members, epsilon, delta, rounds))
    terms = msgspec.structs.replace(terms, noise_multiplier=noise, stage_seconds=required.window_hours * 3600)
    remaining = remaining_lifetime(terms, members=members, budget=epsilon, delta=delta, begins=begins)
    assert remaining is not None
    return Plan(terms, 0.0, [_sent(terms), *lifetime_words(remaining)])


def _sent(terms: Terms) -> str:
    return (
        f"Each node sends one sealed vector of {terms.length} numbers a round. Neither operator alone can read a "
        f"vector; both together can."
    )


_CIRCLE = "A circle has no noise and no epsilon. A sum needs all members, who confirm each other's fingerprints."
