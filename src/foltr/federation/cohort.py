"""Who takes part in a round, with how many interactions."""

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


def interactions_of(clients: Array, interactions: int | tuple[int, ...]) -> Array:
    """[n] local interactions: the same for all, or a pattern that repeats over the clients."""
    pattern = np.atleast_1d(np.asarray(interactions, dtype=np.int64))
    return pattern[clients % len(pattern)]
