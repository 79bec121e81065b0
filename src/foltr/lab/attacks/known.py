"""What every attack starts from and ends with: the honest updates that attackers know, and the rows they send.

Attackers are the first clients. Their rows hold what they would have sent if they were honest.
"""

from typing import Literal, Protocol, TypeAlias

import numpy as np

from foltr._kernels.attacks import fill_moments
from foltr.rng import Stream
from foltr.types import Array

Knowledge: TypeAlias = Literal["full", "partial"]


class Attack(Protocol):
    """Updates [n, P] in which the rows of the attackers are replaced."""

    def __call__(
        self, honest: Array, start: Array, *, attackers: int, rule: str, knowledge: Knowledge, draws: Stream
    ) -> Array: ...


def known_to(honest: Array, attackers: int, knowledge: Knowledge) -> Array:
    """Full: everybody's honest update. Partial: the attackers' own."""
    return np.ascontiguousarray(honest if knowledge == "full" else honest[:attackers], dtype=np.float64)


def with_rows(honest: Array, attackers: int, rows: Array) -> Array:
    """A copy of the updates in which the attackers send `rows`, one for all [P] or one each [attackers, P]."""
    sent = np.array(honest, dtype=np.float64)
    sent[:attackers] = rows
    return sent


def mean_and_sd(rows: Array) -> tuple[Array, Array]:
    """Per coordinate. The standard deviation is that of these rows (divided by n), so it is 0 for a single one."""
    mean, sd = np.empty(rows.shape[1]), np.empty(rows.shape[1])
    fill_moments(rows, mean, sd)
    return mean, sd
