"""Who takes part in a round, with how many interactions."""

from functools import lru_cache

import numpy as np

from foltr.rng import stream
from foltr.types import Array


def pick(clients: int, size: int | None, *, seed: int, round: int) -> Array:
    """Clients of a round in rising order: all, or `size` of them at random without a list of everybody."""
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


def in_turn(clients: int, size: int, *, seed: int, round: int) -> Array:
    """Clients of a round in rising order when they take turns: nobody again before everybody's turn.

    Those who are left over when a turn does not come out even have a rest.
    """
    cohorts = clients // size
    turn, place = divmod(round - 1, cohorts)
    return np.sort(_shuffled(clients, seed, turn)[place * size : (place + 1) * size])


@lru_cache(maxsize=2)
def _shuffled(clients: int, seed: int, turn: int) -> Array:
    return stream(seed, round=turn, purpose="cohort").permutation(clients)


def most_often(clients: int, size: int | None, *, turns: bool, rounds: int) -> int:
    """In how many rounds one client may take part."""
    return -(-rounds // (clients // size)) if turns and size else rounds


def interactions_of(clients: Array, interactions: int | tuple[int, ...]) -> Array:
    """[n] local interactions: the same for all, or a pattern that repeats over the clients."""
    pattern = np.atleast_1d(np.asarray(interactions, dtype=np.int64))
    return pattern[clients % len(pattern)]
