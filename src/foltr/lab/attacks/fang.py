"""Fang's attack: push the global model against its own direction, by an update made for the rule in use.

Source: S2 section 5.2.3, after Fang, Cao, Jia and Gong 2020. With mu the mean of the known updates, theta the start
of the round and s = -sign(mu - theta):

Krum and Multi-Krum: all attackers send theta + lambda * s. lambda starts at the paper's upper bound and is halved
until the rule still picks an attacker, or until it is below 1e-5; then that is sent. Multi-Krum picks an attacker
when one is among its n - m best. Full knowledge: the rule is played through with m crafted updates and the n - m
updates of the others. Partial: with the attackers' m own honest updates in place of the others', first with one
crafted update among them, then two, up to m, until a lambda is found. A single attacker with partial knowledge ties
with its own update for every lambda, so it sends the bound: as far back as it had honestly gone.

Every other rule: coordinates are drawn evenly from beyond the honest maximum (s = 1) or minimum (s = -1), up to
twice its value away from zero or half its value towards it (b = 2). Full knowledge: extremes of the others' updates.
Partial: mu + 3 sd to mu + 4 sd, or mu - 4 sd to mu - 3 sd, of the own ones; a single attacker has sd = 0 and sends
its update unchanged, except where s = 0.

Where s = 0 (nobody moved the coordinate), the start's coordinate is sent.

Differs from the paper: the crafted updates for Krum are all the same, as in the thesis, not scattered within epsilon
of each other. Distances are not squared, since the thesis's Krum has them so, and the upper bound is derived in the
same way for them: (least sum of an honest update's n - m - 2 distances / (n - 2m - 1) + largest distance of an honest
update to theta) / ||s||; where n - 2m - 1 = 0 any lambda wins, and 1 stands for it. In the partial game, as in the
full one, the number of crafted updates is what Krum takes for m, and it looks at one neighbour at least.
"""

import numpy as np

from foltr._kernels.fang import draw_beyond, search_step
from foltr.federation.krum import distances
from foltr.lab.attacks.known import Knowledge, known_to, mean_and_sd, with_rows
from foltr.rng import Stream
from foltr.types import Array


def fang(honest: Array, start: Array, *, attackers: int, rule: str, knowledge: Knowledge, draws: Stream) -> Array:
    """The attack that belongs to the rule."""
    if attackers == 0:
        return honest.copy()
    known = known_to(honest, attackers, knowledge)
    mean, sd = mean_and_sd(known)
    others = np.ascontiguousarray(honest[attackers:], dtype=np.float64) if knowledge == "full" else known
    if rule in ("krum", "multi_krum"):
        against = np.sign(start - mean)
        fewest = attackers if knowledge == "full" else 1
        step = krum_step(others, start, against, fewest=fewest, attackers=attackers, any_place=rule == "multi_krum")
        return with_rows(honest, attackers, start + step * against)
    rows = draws.uniform(attackers * len(start)).reshape(attackers, -1)
    draw_beyond(rows, others, start, mean, sd, knowledge == "full")
    return with_rows(honest, attackers, rows)


def krum_step(others: Array, start: Array, against: Array, *, fewest: int, attackers: int, any_place: bool) -> float:
    """lambda, found in a game with the honest updates `others` and with `fewest` crafted ones, or more up to all."""
    gaps, room = distances(others, start), np.empty((4, len(others)))
    return float(search_step(others, start, against, gaps, fewest, attackers, any_place, room))
