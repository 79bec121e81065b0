"""Schedules: who takes part in which round, with how many interactions; public functions of registry, seed and round.

A `Schedule` describes participation: everybody in every round, random cohorts, cohorts by
round robin, everybody but those who are forgotten, or the stored rounds of a replay.
"""

from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from foltr.rng import stream
from foltr.types import Array


class Members(NamedTuple):
    """The clients of one round."""

    clients: Array  # [n] rising
    interactions: Array  # [n]
    base_versions: Array | None = None  # [n] that each starts from; None: the newest
    oldest_version: int = 0  # that this round or a later one starts from


class Schedule(NamedTuple):
    rounds: Iterable[int]
    members: Callable[[int], Members]
    fixed: bool  # the same members in every round, so that an engine prepares for them once


def synchronous(
    clients: int, interactions: int | tuple[int, ...], rounds: int, *, cohort: int | None = None,
    round_robin: bool = False, seed: int = 0, without: Collection[int] = (),
) -> Schedule:  # fmt: skip
    """Rounds of everybody, or of cohorts; clients in `without` never take part."""
    absent = np.array(sorted(without), dtype=np.int64)

    def members(round: int) -> Members:
        chosen = participants(clients, cohort, round_robin=round_robin, seed=seed, round=round)
        chosen = chosen[~np.isin(chosen, absent)] if absent.size else chosen
        return Members(chosen, interactions_of(chosen, interactions))

    return Schedule(range(1, rounds + 1), members, cohort is None or cohort >= clients)


def participants(clients: int, cohort: int | None, *, round_robin: bool, seed: int, round: int) -> Array:
    """Clients of a round in rising order."""
    if round_robin and cohort is not None:
        return round_robin_cohort(clients, cohort, seed=seed, round=round)
    return random_cohort(clients, cohort, seed=seed, round=round)


def random_cohort(clients: int, size: int | None, *, seed: int, round: int) -> Array:
    """All clients, or `size` of them at random without a list of everybody."""
    if size is None or size >= clients:
        return np.arange(clients)
    draws = stream(seed, round=round, purpose="cohort")
    chosen = np.empty(0, dtype=np.int64)
    while len(chosen) < size:
        fresh = draws.integers(clients, 2 * (size - len(chosen)) + 16)
        draws = draws.skip(len(fresh))
        together = np.concatenate([chosen, fresh])
        first_seen = np.sort(np.unique(together, return_index=True)[1])
        chosen = together[first_seen]
    return np.sort(chosen[:size])


def round_robin_cohort(clients: int, size: int, *, seed: int, round: int) -> Array:
    """Cohorts by round robin: nobody takes part again before everybody has.

    Those who are left over when the clients do not divide evenly pause until the next cycle.
    """
    cohorts = clients // size
    cycle, place = divmod(round - 1, cohorts)
    return np.sort(_shuffled(clients, seed, cycle)[place * size : (place + 1) * size])


@lru_cache(maxsize=2)
def _shuffled(clients: int, seed: int, cycle: int) -> Array:
    return stream(seed, round=cycle, purpose="cohort").permutation(clients)


def max_participation(clients: int, size: int | None, *, round_robin: bool, rounds: int) -> int:
    """In how many rounds one client may take part."""
    return -(-rounds // (clients // size)) if round_robin and size else rounds


def interactions_of(clients: Array, interactions: int | tuple[int, ...]) -> Array:
    """[n] local interactions: the same for all, or a pattern that repeats over the clients."""
    pattern = np.atleast_1d(np.asarray(interactions, dtype=np.int64))
    return pattern[clients % len(pattern)]
