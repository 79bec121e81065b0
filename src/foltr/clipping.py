"""Clipping: scaling vectors back to a norm. All code that clips calls this; kernels compute the same values."""

from typing import Literal

import numpy as np

from foltr.types import Array

Norm = Literal["l1", "l2"]


def clipped_to(values: Array, *, clip: float, norm: Norm = "l2") -> tuple[Array, Array]:
    """Vectors [P] or [n, P] scaled back to a norm of at most `clip`, and their norms before.

    A vector that is not finite becomes zero: a client whose training diverged sends a zero update, but its noise is
    still needed.
    """
    finite = np.isfinite(values).all(axis=-1, keepdims=True)
    values = values if finite.all() else np.where(finite, values, 0.0)
    lengths = norms(values, norm)
    return values * factors(lengths, clip)[..., None], lengths


def norms(values: Array, norm: Norm = "l2") -> Array:
    """Norms of vectors, [] or [n]."""
    return np.abs(values).sum(axis=-1) if norm == "l1" else np.sqrt(np.square(values).sum(axis=-1))


def factors(lengths: Array, clip: float) -> Array:
    """Factors that scale vectors of these lengths back; 1 where they are short enough."""
    return np.minimum(1.0, clip / np.maximum(lengths, clip))
