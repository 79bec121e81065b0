"""The planned releases of a federation. They do not depend on data, so they are known before the first round.

A round is refused when it would exceed the budget of one of its clients: clients then go on searching with their
current ranker and send nothing.
"""

from typing import Any, NamedTuple

import numpy as np

from foltr.federation.round import Protection, admit
from foltr.federation.schedule import Schedule, max_participation
from foltr.privacy import ledger as ledgers
from foltr.privacy.events import Event
from foltr.privacy.mechanisms import ReleaseContext
from foltr.types import Array

DELTA = 1e-5  # of ledgers whose mechanism states none


class Releases(NamedTuple):
    event: Event  # of every round that is admitted
    admitted: Array  # [rounds] bool
    counts: Array  # [clients] how often each takes part


def protection_of(
    mechanism: Any, *, clients: int, cohort: int | None, round_robin: bool, rounds: int, parameters: int,
    outcomes: int = 0, groups: int = 1,
) -> Protection:  # fmt: skip
    """The mechanism with its event and an empty ledger; noise is calibrated to the releases of one user.

    With `groups` every round has as many releases, each of other clients, and noise for the smallest group: a client is
    charged for the sum of its own group only.
    """
    participation = max_participation(clients, cohort, round_robin=round_robin, rounds=rounds)
    releases = getattr(mechanism, "releases", None) or participation
    context = ReleaseContext((cohort or clients) // groups, releases, parameters, outcomes, clients)
    event = mechanism.event(context)
    if event is None:
        return Protection(mechanism, context=context)
    budget = getattr(mechanism, "epsilon", None) if hasattr(mechanism, "releases") else None
    ledger = ledgers.begin(clients, delta=getattr(mechanism, "delta", DELTA), budget=budget, events=(event,))
    return Protection(mechanism, event, ledger, context)


def planned(protection: Protection, schedule: Schedule, clients: int) -> Releases:
    """The ledger's admissions over a whole schedule, without training."""
    assert protection.event is not None
    ledger = None if protection.ledger is None else ledgers.begin(
        clients, delta=protection.ledger.delta, budget=protection.ledger.budget, events=(protection.event,)
    )  # fmt: skip
    rehearsal, admitted, counts = protection._replace(ledger=ledger), [], np.zeros(clients, np.int64)
    fixed = schedule.members(1).clients if schedule.fixed else None
    for round in schedule.rounds:
        chosen = schedule.members(round).clients if fixed is None else fixed
        admitted.append(admit(rehearsal, chosen))
        counts[chosen] += admitted[-1]
    return Releases(protection.event, np.array(admitted), counts)
