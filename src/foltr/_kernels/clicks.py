"""Clicks on a shown list: a readable function and its twin in machine code, from the same uniform numbers.

Rank r of an interaction uses two numbers: the first decides the click, the second whether the user stops after it.
"""

import numpy as np

from foltr._kernels.compile import kernel
from foltr._kernels.rng import uniform_at
from foltr.types import Array


@kernel
def click_list(
    labels: Array, first: int, ranking: Array, shown: int, click: Array, stop: Array,
    start: np.uint64, stride: np.uint64, position: int, clicks: Array,
) -> None:  # fmt: skip
    """Clicks on the documents first + ranking[0 .. shown]."""
    looking = True
    for rank in range(shown):  # without a branch on chance, which no processor can foresee
        grade = labels[first + ranking[rank]]
        clicked = looking & (uniform_at(start, stride, position + 2 * rank) < click[rank, grade])
        clicks[rank] = clicked
        looking &= not (clicked & (uniform_at(start, stride, position + 2 * rank + 1) < stop[grade]))
