"""Fang's attack: push the global model against its own direction, by an update crafted for the aggregator in use.

Source: S2 section 5.2.3, after Fang, Cao, Jia and Gong 2020. With mu the mean of the known updates, theta the start
of the round and s = -sign(mu - theta):

Krum and Multi-Krum: all attackers send theta + lambda * s. lambda starts at the paper's upper bound and is halved
until the aggregator still selects an attacker, or until it is below 1e-5; then that is sent. Multi-Krum selects an
attacker when one is among its n - m best. Full knowledge: Krum is simulated with m crafted updates and the n - m
updates of the others. Partial: with the attackers' m own honest updates in place of the others', first with one
crafted update among them, then two, up to m, until a lambda is found. A single attacker with partial knowledge ties
with its own update for every lambda, so it sends the bound: minus the length of its honest update.

Every other aggregator: coordinates are drawn uniformly from beyond the honest maximum (s = 1) or minimum (s = -1), up
to twice its value away from zero or half its value towards it (b = 2). Full knowledge: extremes of the others' updates.
Partial: mu + 3 sd to mu + 4 sd, or mu - 4 sd to mu - 3 sd, of the own ones; a single attacker has sd = 0 and sends
its update unchanged, except where s = 0.

Where s = 0 (nobody moved the coordinate), the start's coordinate is sent. Updates are deltas here, so theta is the
origin and s = 0 holds exactly; only the extremes are those of models.

Differs from the paper: the crafted updates for Krum are all the same, as in the thesis, not scattered within epsilon
of each other. Distances are not squared, since the thesis's Krum has them so, and the upper bound is derived in the
same way for them: (lowest sum of an honest update's n - m - 2 distances / (n - 2m - 1) + largest distance of an honest
update to theta) / ||s||; where n - 2m - 1 = 0 every lambda is selected, and 1 is used. In both simulations Krum's
m is the number of crafted updates, and a score sums at least one distance.
"""

from typing import ClassVar

import msgspec
import numpy as np

from foltr._kernels.attacks import draw_beyond, mean_and_stddev, search_lambda
from foltr.federation.krum import pairwise_distances
from foltr.lab.attacks.attack import AttackView, Knowledge, NumAttackers, known_deltas, own_deltas, same_for_all
from foltr.types import Array


class Fang(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="fang"):
    """Fang's attack on the aggregator in use."""

    needs: ClassVar[frozenset[str]] = frozenset({"updates"})
    num_attackers: NumAttackers = 0  # the first clients
    knowledge: Knowledge = "partial"

    def craft(self, view: AttackView) -> Array:
        attackers = view.num_attackers
        if attackers == 0:
            return own_deltas(view)
        known, full = known_deltas(view), view.knowledge == "full"
        mean, stddev = mean_and_stddev(known)
        others = known[attackers:] if full else known
        if view.aggregator in ("krum", "multi_krum"):
            against, any_place = -np.sign(mean), view.aggregator == "multi_krum"
            fewest = attackers if full else 1
            step = krum_lambda(others, against, fewest=fewest, attackers=attackers, any_place=any_place)
            return same_for_all(view, step * against)
        rows = view.draws.uniform(attackers * len(view.model)).reshape(attackers, -1)
        draw_beyond(rows, others, view.model, mean, stddev, full)
        return rows


def krum_lambda(others: Array, against: Array, *, fewest: int, attackers: int, any_place: bool) -> float:
    """lambda, found by simulating Krum on the honest deltas `others` and `fewest` to `attackers` crafted ones."""
    distances, workspace = pairwise_distances(others), np.empty((4, len(others)))
    return float(search_lambda(others, against, distances, fewest, attackers, any_place, workspace))
