"""The evaluation by poisoning: a client that spoils the ranker leaves; does the ranker recover, and what is left of it?

Source: S2 sections 6.1.4 and 6.3. 10H-0M: all honest. 9H-1M: the leaver sends -z times its model. 9H-0M: trained
without the leaver. U(9H-1M): calibrated replay of the history of 9H-1M.

Differs from the paper: quality alone does not say that a client is forgotten, so the same replay is also made of the
history of 10H-0M; the residual is the distance of the two. All runs share their seeds.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from foltr.federation.round import Engine, Task, Transform
from foltr.unlearning.cost import Cost, Walk, walk
from foltr.unlearning.history import History, gather
from foltr.unlearning.replay import replay
from foltr.unlearning.request import check, check_attack
from foltr.unlearning.residual import residual, turn
from foltr.unlearning.rounds import Round, federate, negate


class Episode(NamedTuple):
    honest: Walk  # 10H-0M
    attacked: Walk  # 9H-1M
    retrained: Walk  # 9H-0M
    unlearned: Walk  # U(9H-1M)
    twin: Walk  # U(10H-0M)
    residual: float  # distance of the last two, relative to the norm of the last
    turn: float  # distance of their directions, the part of it that can change a ranking
    saved: tuple[float, float]  # local steps and messages of retraining / of unlearning


def episode(
    task: Task, engine: Engine, *, leavers: Sequence[int], z: float = 2.0, keep_every: int = 10, local_steps: int = 3,
    every: int | None = None,
) -> Episode:  # fmt: skip
    """All models of the evaluation; `every`: how many rounds lie between the models that are kept for curves."""
    check(task, leavers=leavers, keep_every=keep_every, local_steps=local_steps)
    check_attack(task, leavers=leavers, z=z)
    honest, honest_history = _lived(task, engine, None, keep_every, every)
    attacked, history = _lived(task, engine, negate(leavers, z), keep_every, every)
    retrained = walk(federate(task, engine, without=leavers), every=every)
    often = None if every is None else max(1, every // keep_every)
    unlearned, twin = (
        walk(
            replay(task, engine, kept, leavers=leavers, local_steps=local_steps), every=often, kept=kept.updates.nbytes
        )
        for kept in (history, honest_history)
    )
    last = unlearned.parameters[-1], twin.parameters[-1]
    saved = _saved(retrained.cost, unlearned.cost)
    return Episode(honest, attacked, retrained, unlearned, twin, residual(*last), turn(*last), saved)


def _lived(
    task: Task, engine: Engine, transform: Transform | None, keep_every: int, every: int | None
) -> tuple[Walk, History]:
    kept: list[Round] = []

    def rounds() -> Iterator[Round]:
        for done in federate(task, engine, keep_every=keep_every, transform=transform):
            if done.updates is not None:
                kept.append(done._replace(updates=done.updates.astype(np.float32)))  # as it will be kept
            yield done

    return walk(rounds(), every=every), gather(kept)


def _saved(retrained: Cost, unlearned: Cost) -> tuple[float, float]:
    return retrained.local_steps / unlearned.local_steps, retrained.messages / unlearned.messages
