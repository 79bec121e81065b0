"""The planned releases of a federation. They do not depend on data, so they are known before the first round.

A round is refused when it would exceed the budget of one of its clients: clients then go on searching with their
current ranker and send nothing.
"""

from typing import Any, NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.federation.round import Protection, admit
from foltr.federation.schedule import Schedule
from foltr.privacy import ledger as ledgers
from foltr.privacy.events import SERVERS, Event
from foltr.privacy.mechanisms import ReleaseContext, SecAggMode
from foltr.types import Array

DELTA = 1e-5  # of ledgers whose mechanism states none


class Releases(NamedTuple):
    event: Event  # of every round that is admitted
    admitted: Array  # [rounds] bool
    counts: Array  # [clients] how often each takes part


def protection_of(
    mechanism: Any, *, clients: int, cohort: int | None, max_rounds: int, parameters: int, outcomes: int = 0,
    groups: int = 1, secagg_mode: SecAggMode = "one-server",
) -> Protection:  # fmt: skip
    """The mechanism with its event and an empty ledger; noise is calibrated to the releases of one user.

    `max_rounds`: that one client may take part in (`schedule.max_participation`); a mechanism may allow fewer.
    With `groups` every round has as many releases, each of other clients, and noise for the smallest group: a client is
    charged for the sum of its own group only.
    """
    releases = getattr(mechanism, "releases", None) or max_rounds
    context = ReleaseContext((cohort or clients) // groups, releases, parameters, outcomes, clients, secagg_mode)
    event = release_event(mechanism, context)
    if event is None:
        return Protection(mechanism, context=context)
    budget = getattr(mechanism, "epsilon", None) if hasattr(mechanism, "releases") else None
    ledger = ledgers.begin(clients, delta=getattr(mechanism, "delta", DELTA), budget=budget, events=(event,))
    return Protection(mechanism, event, ledger, context)


def release_event(mechanism: Any, context: ReleaseContext) -> Event | None:
    """The event that the mechanism states; refused where the mechanism does not work in the context's mode.

    With two servers the noise is Gaussian, and nobody but the servers adds any: a mechanism has to declare that it
    leaves the noise to them, and its event has to say the same.
    """
    check_secagg_mode(mechanism, context.secagg_mode)
    event: Event | None = mechanism.event(context)
    if context.secagg_mode == "two-servers":
        why = "two servers add Gaussian noise, each enough, and that of one counts"
        fits = event is not None and _is_of_servers(event)
    else:
        why, fits = "clients add the noise", event is None or event.noise_by == "clients"
    if not fits:
        raise SpecError(
            f'privacy.kind = "{_name(mechanism)}" states an event that does not fit secagg.mode = '
            f'"{context.secagg_mode}", where {why}; see foltr.privacy.events.noise_by_servers'
        )
    return event


def _is_of_servers(event: Event) -> bool:
    stated = (event.mechanism, event.noise_by, event.noise_contributors, event.present)
    return stated == ("gaussian", "servers", SERVERS, 1)


def check_secagg_mode(mechanism: Any, mode: SecAggMode) -> None:
    """Refuses a mode that the mechanism does not declare."""
    modes = secagg_modes(mechanism)
    if mode not in modes:
        known = " or ".join(f'"{one}"' for one in modes)
        raise SpecError(
            f'secagg.mode = "{mode}": privacy.kind = "{_name(mechanism)}" works with {known} only; '
            f'use that mode, or privacy.kind = "gaussian", which works with both'
        )


def secagg_modes(mechanism: Any) -> tuple[SecAggMode, ...]:
    """The declared modes; a mechanism that declares none knows of one server only."""
    return getattr(mechanism, "secagg_modes", ("one-server",))


def _name(mechanism: Any) -> str:
    """As a spec names it; the class of one that stands in no spec."""
    return str(getattr(getattr(mechanism, "__struct_config__", None), "tag", type(mechanism).__name__))


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
