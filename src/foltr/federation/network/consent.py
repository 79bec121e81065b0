"""What a person is told before a node joins: what leaves, how often, to whom, who cannot read it, and until when.

Everything is computed from the invitation, the node's own policy and its ledger; the coordinator writes none of it but
the name of the federation and its address.
"""

import datetime
from collections.abc import Mapping
from itertools import count as count_from
from typing import NamedTuple

import numpy as np

from foltr.errors import InputError
from foltr.federation.deployment import circle_words
from foltr.federation.network.invitation import Invitation, fingerprint
from foltr.federation.policy import WEEK, Limits
from foltr.privacy.events import Event
from foltr.privacy.ledger import affordable, closed_epsilon
from foltr.privacy.release import release_to_servers
from foltr.secagg.ring import Ring
from foltr.secagg.terms import Terms
from foltr.secagg.two_servers import fewest_of

_MOST_ROUNDS = 1 << 20
_HOUR, _DAY = 3600.0, 86_400.0
_SEALED = 300  # bytes of a contribution beside its vector, about


class Forecast(NamedTuple):
    """What rounds cost this node."""

    one: float  # epsilon of the first round, with what was released before; infinite without noise
    rounds: int | None  # that the budget is enough for; None: there is no budget
    per_week: float
    ends: float | None  # seconds since 1970: when the budget is spent at the earliest; None: never


def forecast(terms: Terms, limits: Limits, spent: Mapping[Event, int], now: float) -> Forecast:
    """`spent`: charges of the ledger so far, of all federations."""
    per_week = min(WEEK / terms.stage_seconds, float(limits.rounds_per_week))
    event = round_event(terms)
    if terms.noise_multiplier == 0:
        return Forecast(float("inf"), None, per_week, None)

    def fits(rounds: int) -> bool:
        counts = dict(spent)
        counts[event] = counts.get(event, 0) + rounds
        return affordable(counts, budget=limits.epsilon, delta=limits.delta, against="malicious")

    one = closed_epsilon({**spent, event: spent.get(event, 0) + 1}, limits.delta, "malicious")
    low, high = 0, 1
    while high < _MOST_ROUNDS and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        trial = (low + high) // 2
        low, high = (trial, high) if fits(trial) else (low, trial)
    return Forecast(one, low, per_week, now + low / per_week * WEEK)


def round_event(terms: Terms) -> Event:
    """The release of one round with two operators; the number of members does not change it."""
    ring = Ring(3, terms.bits, terms.fraction)
    return release_to_servers(np.zeros(terms.length), clip=terms.clip, multiplier=terms.noise_multiplier, ring=ring)[1]


def words(invitation: Invitation, limits: Limits, spent: Mapping[Event, int], now: float) -> list[str]:
    """The lines that `foltr node join` shows before it asks."""
    terms = invitation.terms
    size = terms.length * terms.bits // 8 + _SEALED
    rounds = forecast(terms, limits, spent, now)
    return [
        f"Federation: {invitation.name} ({invitation.federation[:8]}), at {invitation.address}",
        f"What leaves: {terms.length} numbers a round (about {size:,} bytes), the change that your choices would make "
        f"to the shared ranking weights, cut to length {terms.clip:g} and split into two sealed halves. No document, "
        "no query, no click and no path leaves. A round in which you searched nothing sends zeros.",
        f"How often: one message in a round; a round lasts {_span(terms.stage_seconds)}, and this node takes part in "
        f"at most {limits.rounds_per_week} a week. Both operators see that and when this node takes part.",
        "To whom: one half for each operator. Each adds its noise and only the sum of all members is opened."
        if terms.noise_multiplier
        else "To whom: one half for each operator. Only the sum of all members is opened; there is NO noise.",
        *_protection(invitation, limits),
        *_budget_words(limits, rounds),
        "Compare both operators' fingerprints with what they tell you by telephone or in person, not by this "
        "invitation's way. Whoever plays both operators reads your updates.",
        *fingerprint_lines(invitation),
    ]


def _protection(invitation: Invitation, limits: Limits) -> list[str]:
    terms = invitation.terms
    fewest = limits.min_clients
    if terms.noise_multiplier:
        members = next(count for count in count_from(fewest) if fewest_of(count, terms) >= fewest)
        return [
            "Protected against: one operator with any number of members, the network, and everybody who gets the "
            f"ranker. NOT against both operators together. This node sends only where a sum has at least {fewest} "
            f"members, that is in a federation of {members} or more."
        ]
    return [
        "Protected against: one operator, and the network: they see the sum of all members and no single update. NOT "
        "against both operators together, nor against members who work for an operator.",
        *circle_words(fewest),
        f"A circle: sums have all members, at least {fewest}; you confirm each member's fingerprint (`foltr node "
        "members`) before anything is sent.",
    ]


def _budget_words(limits: Limits, rounds: Forecast) -> list[str]:
    if rounds.rounds is None:
        return ["Promise: your update is a share in sums of all members. There is no budget and no end."]
    assert rounds.ends is not None
    return [
        f"Promise: after the first round epsilon {rounds.one:.2g}, never more than {limits.epsilon:g} at delta "
        f"{limits.delta:g} over all rounds and federations; unit: this node; adjacency: its updates replaced by zero.",
        f"The budget is enough for {rounds.rounds:,} rounds. With {rounds.per_week:.3g} a week it ends on "
        f"{day(rounds.ends)}; then this node sends nothing more and searches on with the last ranker."
        if rounds.rounds
        else "The budget is spent: this node would send nothing. `foltr node ledger` says for what.",
    ]


def fingerprint_lines(invitation: Invitation) -> list[str]:
    first, second = invitation.operators
    lines = [f"  operator 1  {fingerprint(first)}", f"  operator 2  {fingerprint(second)}"]
    if first == second:
        lines.append("  one party plays both: no protection between them")
    return lines


def check_fingerprints(invitation: Invitation, given: list[str]) -> None:
    """Refuses to join without both fingerprints, as they were told over another channel."""
    expected = {_digits(fingerprint(operator)) for operator in invitation.operators}
    if {_digits(text) for text in given} != expected:
        raise InputError(
            "--yes needs the fingerprints of both operators, as they told you over another channel: --fingerprint "
            "'xxxx ...' --fingerprint 'yyyy ...'; those that were given are not the invitation's"
        )


def remains(terms: Terms, members: int, spent: float, delta: float, rounds: int) -> str:
    """What stays in the shared ranker of a node that leaves."""
    if not rounds:
        return "This node was in no round: nothing of it is in the shared ranker."
    if terms.noise_multiplier:
        sums = f"{rounds} noisy sum{'' if rounds == 1 else 's'}"
        return (
            f"What stays: this node's part in {sums} of the shared ranker. Of all that this node ever "
            f"released anybody learns at most what epsilon {spent:.3g} (delta {delta:g}) says; that does not shrink."
        )
    return (
        f"What stays: a share in {rounds} sum{'' if rounds == 1 else 's'} of {members} members. It cannot be taken out "
        "of the shared ranker; no epsilon bounds what the sums tell."
    )


def day(seconds: float) -> str:
    try:
        return datetime.datetime.fromtimestamp(seconds, tz=datetime.UTC).date().isoformat()
    except (OverflowError, OSError, ValueError):
        return "no day that a calendar has"


def _span(seconds: float) -> str:
    if seconds >= _DAY:
        return f"{seconds / _DAY:.3g} day{'s' if seconds > _DAY else ''}"
    return f"{seconds / _HOUR:.3g} hours" if seconds >= _HOUR else f"{seconds:.3g} seconds"


def _digits(text: str) -> str:
    return "".join(text.split()).lower()
