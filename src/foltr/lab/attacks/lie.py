"""A little is enough: a step of z standard deviations, small enough to hide among the honest updates.

Source: S2 section 5.2.3, after Baruch, Baruch and Goldberg 2019. All attackers send mu - z sd of the updates they
know, with the largest z for which Phi(z) < (n - m - s) / (n - m), where s = floor(n / 2 + 1) - m.

A single attacker that knows only its own update has sd = 0 and so sends that update unchanged. With few attackers z
is not positive (n = 10: -.14 for m = 1, 0 for m = 2), and the formula is followed there too: the step goes upwards,
or nowhere.

Differs from the paper: the bound itself is taken for z, which has no largest value below it. Full knowledge (the
moments of all honest updates) is an addition; the paper and the thesis use the attackers' own.
"""

from functools import cache
from statistics import NormalDist

from foltr.lab.attacks.known import Knowledge, known_to, mean_and_sd, with_rows
from foltr.rng import Stream
from foltr.types import Array


def lie(
    honest: Array,
    start: Array,  # noqa: ARG001
    *,
    attackers: int,
    rule: str,  # noqa: ARG001
    knowledge: Knowledge,
    draws: Stream,  # noqa: ARG001
) -> Array:
    """Every attacker sends mean - z * sd."""
    if attackers == 0:
        return honest.copy()
    mean, sd = mean_and_sd(known_to(honest, attackers, knowledge))
    return with_rows(honest, attackers, mean - largest_z(len(honest), attackers) * sd)


@cache
def largest_z(clients: int, attackers: int) -> float:
    """How many standard deviations still leave enough honest clients farther out; needs attackers < clients / 2."""
    supporters = clients // 2 + 1 - attackers
    return NormalDist().inv_cdf((clients - attackers - supporters) / (clients - attackers))
