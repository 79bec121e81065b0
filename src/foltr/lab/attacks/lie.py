"""LIE (a little is enough): a shift of z standard deviations, within the spread of the honest updates.

Source: S2 section 5.2.3, after Baruch, Baruch and Goldberg 2019. All attackers send mu - z sd of the updates they
know, with the largest z for which Phi(z) < (n - m - s) / (n - m), where s = floor(n / 2 + 1) - m.

A single attacker that knows only its own update has sd = 0 and so sends that update unchanged. With few attackers z
is not positive (n = 10: -.14 for m = 1, 0 for m = 2), and the formula is followed there too: the shift is upwards,
or zero.

Differs from the paper: the bound itself is taken for z, which has no largest value below it. Full knowledge (the
moments of all honest updates) is an addition; the paper and the thesis use the attackers' own.
"""

from functools import cache
from statistics import NormalDist
from typing import ClassVar

import msgspec

from foltr._kernels.attacks import mean_and_stddev
from foltr.lab.attacks.attack import AttackView, Knowledge, NumAttackers, known_deltas, own_deltas, same_for_all
from foltr.types import Array


class Lie(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="lie"):
    """Every attacker sends mean - z * stddev."""

    needs: ClassVar[frozenset[str]] = frozenset({"updates"})
    num_attackers: NumAttackers = 0  # the first clients
    knowledge: Knowledge = "partial"

    def craft(self, view: AttackView) -> Array:
        if view.num_attackers == 0:
            return own_deltas(view)
        mean, stddev = mean_and_stddev(known_deltas(view))
        return same_for_all(view, mean - largest_z(len(view.deltas), view.num_attackers) * stddev)


@cache
def largest_z(clients: int, attackers: int) -> float:
    """The largest z for which enough honest clients deviate more; needs attackers < clients / 2."""
    supporters = clients // 2 + 1 - attackers
    return NormalDist().inv_cdf((clients - attackers - supporters) / (clients - attackers))
