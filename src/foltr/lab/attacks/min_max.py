"""Min-max: as far from the mean as possible without being farther from anybody than honest clients are from each other.

Source: Shejwalkar and Houmansadr 2021, attack AGR-agnostic min-max. All attackers send mean + gamma * p with the
largest gamma for which no known update is farther away than the two known updates that are farthest apart. `min_max`
goes along p = -sd per coordinate, `min_max_unit` against the mean step, p = -(mean - start) / ||mean - start||.

A single attacker that knows only its own update sends it unchanged: the largest distance that it knows of is 0.

Differs from the paper: gamma is solved for, one quadratic a known update, instead of searched by halving. Known
updates are all n, or the attackers' own, each as it would honestly have been.
"""

from foltr._kernels.attacks import largest_root
from foltr.federation.krum import distances
from foltr.lab.attacks.known import Knowledge, known_to, mean_and_sd, with_rows
from foltr.rng import Stream
from foltr.types import Array


def min_max(
    honest: Array,
    start: Array,  # noqa: ARG001
    *,
    attackers: int,
    rule: str,  # noqa: ARG001
    knowledge: Knowledge,
    draws: Stream,  # noqa: ARG001
) -> Array:
    """Along the inverse standard deviation."""
    if attackers == 0:
        return honest.copy()
    known = known_to(honest, attackers, knowledge)
    mean, sd = mean_and_sd(known)
    return with_rows(honest, attackers, mean - farthest(known, mean, -sd) * sd)


def min_max_unit(
    honest: Array,
    start: Array,
    *,
    attackers: int,
    rule: str,  # noqa: ARG001
    knowledge: Knowledge,
    draws: Stream,  # noqa: ARG001
) -> Array:
    """Against the mean step."""
    if attackers == 0:
        return honest.copy()
    known = known_to(honest, attackers, knowledge)
    mean, _ = mean_and_sd(known)
    back = start - mean
    return with_rows(honest, attackers, mean + farthest(known, mean, back) * back)


def farthest(known: Array, mean: Array, direction: Array) -> float:
    """The largest gamma for which mean + gamma * direction is within the known updates' diameter of all of them.

    ||mean + gamma direction - update||^2 = diameter^2 is a quadratic in gamma; its larger root is not negative,
    because the mean itself is within the diameter.
    """
    return float(largest_root(known, mean, direction, distances(known, known[0])))
