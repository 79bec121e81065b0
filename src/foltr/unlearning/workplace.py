"""What the kernels that record and learn from logs work on: the collection, the rates, and room."""

from typing import NamedTuple

import numpy as np

from foltr._kernels.workspace import Workspace, scratch
from foltr.errors import SpecError
from foltr.federation.round import Task
from foltr.learners.pdgd import Pdgd
from foltr.rankers import Mlp

LONGEST = np.iinfo(np.int16).max  # documents of a query that a log can number


class Learning(NamedTuple):
    """What kernels know of a ranker and of PDGD."""

    hidden: int  # units, 0 for a linear ranker
    relu: bool
    rate: float
    all_shown: bool  # every shown document without a click loses


def learning_of(task: Task) -> Learning:
    learner, ranker = task.learner, task.ranker
    if not isinstance(learner, Pdgd):
        raise SpecError("logs are recorded and learnt from by PDGD; use learner kind = 'pdgd'")
    if learner.prox_mu:
        raise SpecError(f"pull = {learner.prox_mu:g}: logs are recorded and learnt from by plain steps; use pull = 0")
    hidden, relu = (ranker.hidden, ranker.activation == "relu") if isinstance(ranker, Mlp) else (0, False)
    return Learning(hidden, relu, learner.learning_rate, learner.negatives == "all-shown")


def longest_list(task: Task) -> int:
    longest = int(np.diff(task.train.offsets).max())
    if longest > LONGEST:
        raise SpecError(f"a log numbers at most {LONGEST} documents a query; the longest list has {longest}")
    return longest


def room_for(task: Task, shown: int) -> Workspace:
    size = task.ranker.size(task.train.features.shape[1])
    return scratch(longest_list(task), shown, learning_of(task).hidden, size)
