"""What the kernels that record and learn from logs take: ranker, step and workspace of a task."""

import numpy as np

from foltr._kernels.pdgd import PdgdStep
from foltr._kernels.rankers import RankerRecord, hidden_units, ranker_record
from foltr._kernels.workspace import Workspace, workspace_for
from foltr.errors import SpecError
from foltr.federation.round import Task
from foltr.learners.pdgd import Pdgd

LONGEST = np.iinfo(np.int16).max  # documents of a query that a log can number


def step_of(task: Task) -> PdgdStep:
    learner = task.learner
    if not isinstance(learner, Pdgd):
        raise SpecError("logs are recorded and learnt from by PDGD; use learner kind = 'pdgd'")
    if learner.prox_mu:
        raise SpecError(
            f"prox_mu = {learner.prox_mu:g}: logs are recorded and learnt from by plain steps; use prox_mu = 0"
        )
    return PdgdStep(learner.learning_rate, learner.negatives == "all-shown")


def ranker_of(task: Task) -> RankerRecord:
    return ranker_record(task.ranker, task.train.features.shape[1])


def longest_list(task: Task) -> int:
    longest = int(np.diff(task.train.offsets).max())
    if longest > LONGEST:
        raise SpecError(f"a log numbers at most {LONGEST} documents a query; the longest list has {longest}")
    return longest


def log_workspace(task: Task, k: int) -> Workspace:
    size = task.ranker.size(task.train.features.shape[1])
    return workspace_for(longest_list(task), k, hidden_units(ranker_of(task)), size)
