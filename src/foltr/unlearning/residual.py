"""How much of a leaver is left in a model that should have forgotten it.

Two models are unlearned with the same seeds; their histories differ only in what the leaver did (attack or not). If all
trace of the leaver were gone they would be equal.

Differs from the paper: it measures ranking quality only, in which a trace need not show: a linear ranker ranks by the
direction of its parameters, while the leaver mostly changed how long they are.
"""

import numpy as np

from foltr.types import Array


def residual(unlearned: Array, twin: Array) -> float:
    """Distance of a model [P] from the one whose leaver was honest, relative to the norm of the honest one."""
    gap = float(np.linalg.norm(unlearned - twin))
    return gap / float(np.linalg.norm(twin)) if gap > 0 else 0.0


def turn(unlearned: Array, twin: Array) -> float:
    """The part of it that can change a ranking: distance of the two directions, 0 .. 2."""
    return residual(_direction(unlearned), _direction(twin))


def _direction(model: Array) -> Array:
    norm = np.linalg.norm(model)
    return model / norm if norm > 0 else model
