"""Min-max: the update farthest from the mean whose distance to every known update stays within their diameter.

Source: Shejwalkar and Houmansadr 2021, attack AGR-agnostic min-max. All attackers send mean + gamma * p with the
largest gamma for which no known update is farther away than the two known updates that are farthest apart. `min_max`
has p = -sd per coordinate, `min_max_unit` the direction against the mean delta, p = -mean / ||mean||.

A single attacker that knows only its own update sends it unchanged: the largest distance that it knows of is 0.

Differs from the paper: gamma is solved for, one quadratic a known update, instead of searched by halving. Known
updates are all n, or the attackers' own, as trained honestly.
"""

from collections.abc import Callable
from typing import ClassVar

import msgspec

from foltr._kernels import attacks
from foltr.federation.krum import pairwise_distances
from foltr.lab.attacks.attack import AttackView, Knowledge, NumAttackers, known_deltas, own_deltas, same_for_all
from foltr.types import Array


class MinMax(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="min_max"):
    """Along the inverse standard deviation."""

    needs: ClassVar[frozenset[str]] = frozenset({"updates"})
    num_attackers: NumAttackers = 0  # the first clients
    knowledge: Knowledge = "partial"

    def craft(self, view: AttackView) -> Array:
        return _craft(view, lambda _mean, stddev: stddev)


class MinMaxUnit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="min_max_unit"):
    """Against the mean delta."""

    needs: ClassVar[frozenset[str]] = frozenset({"updates"})
    num_attackers: NumAttackers = 0  # the first clients
    knowledge: Knowledge = "partial"

    def craft(self, view: AttackView) -> Array:
        return _craft(view, lambda mean, _stddev: mean)


def _craft(view: AttackView, direction: Callable[[Array, Array], Array]) -> Array:
    """[num_attackers, P] the mean moved as far as possible against direction(mean, stddev)."""
    if view.num_attackers == 0:
        return own_deltas(view)
    known = known_deltas(view)
    mean, stddev = attacks.mean_and_stddev(known)
    against = direction(mean, stddev)
    return same_for_all(view, mean - largest_gamma(known, mean, -against) * against)


def largest_gamma(known: Array, mean: Array, direction: Array) -> float:
    """The largest gamma for which mean + gamma * direction is within the known deltas' diameter of all of them."""
    return float(attacks.largest_gamma(known, mean, direction, pairwise_distances(known)))
