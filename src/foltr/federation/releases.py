"""What a federation will release about whom, known before its first round: nothing here depends on data.

A round is held back when one of its clients could not afford it: people then go on searching with the ranker they
have, and nothing of them leaves.
"""

from typing import NamedTuple

import numpy as np

from foltr.federation.schedule import in_turn, most_often, pick
from foltr.privacy.accounting import affordable
from foltr.privacy.events import Event
from foltr.privacy.mechanisms import Gaussian, UserLevelDP, event_of
from foltr.types import Array


class Releases(NamedTuple):
    event: Event  # of every round that is let out
    admitted: Array  # [rounds] bool
    counts: Array  # [clients] how often each takes part


def taking_part(clients: int, cohort: int | None, *, turns: bool, seed: int, round: int) -> Array:
    """Clients of a round."""
    if turns and cohort is not None:
        return in_turn(clients, cohort, seed=seed, round=round)
    return pick(clients, cohort, seed=seed, round=round)


def planned(
    privacy: UserLevelDP, *, clients: int, cohort: int | None, turns: bool, rounds: int, parameters: int, seed: int
) -> Releases:
    """The noise is sized for the releases that a user may take part in; the ledger says how many those are."""
    wanted = privacy.releases or most_often(clients, cohort, turns=turns, rounds=rounds)
    event = event_of(privacy, taking_part=cohort or clients, releases=wanted, parameters=parameters)
    most = _affordable(privacy, event, min(wanted, rounds))
    if cohort is None:
        admitted = np.arange(rounds) < most
        return Releases(event, admitted, np.full(clients, admitted.sum()))
    admitted, counts = np.zeros(rounds, dtype=bool), np.zeros(clients, np.int64)
    for round in range(1, rounds + 1):
        chosen = taking_part(clients, cohort, turns=turns, seed=seed, round=round)
        admitted[round - 1] = counts[chosen].max() < most
        counts[chosen] += admitted[round - 1]
    return Releases(event, admitted, counts)


def _affordable(privacy: UserLevelDP, event: Event, wanted: int) -> int:
    """Pure epsilons add up, and were sized so; Gaussian ones are asked of the accountant."""
    if not isinstance(privacy, Gaussian):
        return wanted
    return affordable(event, budget=privacy.epsilon, delta=privacy.delta, at_most=wanted)
