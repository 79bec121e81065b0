"""Words of synthetic documents in machine code: the kernel of `foltr.lab.silo.tasks`."""

import numpy as np

from foltr._kernels.compile import kernel
from foltr._kernels.rng import uniform_at
from foltr.types import Array


@kernel
def draw_words(cumulative: Array, repeat: float, start: np.uint64, stride: np.uint64, words: Array) -> None:
    """Each next word repeats one of the document with probability `repeat`, else it is drawn by `cumulative`."""
    for place in range(words.size):
        drawn = uniform_at(start, stride, 2 * place + 1)
        if place > 0 and uniform_at(start, stride, 2 * place) < repeat:
            words[place] = words[int(drawn * place)]
            continue
        low, high = 0, cumulative.size - 1
        while low < high:
            half = (low + high) // 2
            if cumulative[half] <= drawn:
                low = half + 1
            else:
                high = half
        words[place] = low
