"""Which engine runs a task: the compiled one, or the plain one where a kind has no kernel."""

from typing import Any

from foltr.lab.simulation import compiled, plain
from foltr.lab.simulation.task import Task
from foltr.learners.foltr_es import FoltrEs
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import MECHANISMS
from foltr.rankers import Linear, Mlp

COMPILED_RANKERS: tuple[type, ...] = (Linear, Mlp)
COMPILED_LEARNERS: tuple[type, ...] = (Pdgd, FoltrEs)
COMPILED_MECHANISMS: tuple[type, ...] = tuple(MECHANISMS.values())


def engine_for(task: Task, threads: int = 1) -> Any:
    """Compiled where learner, ranker, mechanism and click models all have kernels; a plug-in runs in plain Python."""
    return compiled.engine(task, threads) if has_kernels(task) else plain.engine(task)


def has_kernels(task: Task) -> bool:
    """Whether the mechanism has kernels; a plug-in has none."""
    return (
        all(model.function is None for model in task.click_models)
        and type(task.ranker) in COMPILED_RANKERS
        and type(task.learner) in COMPILED_LEARNERS
        and type(task.privacy) in COMPILED_MECHANISMS
    )
