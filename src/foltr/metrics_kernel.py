"""Quality of many rankers at once in machine code: a lane for each ranker."""

from typing import NamedTuple

import numpy as np

from foltr.intrinsics.keys import PLACES, fill_keys, highest_in_lanes
from foltr.intrinsics.lanes import LANES
from foltr.intrinsics.room import room
from foltr.kernel import inlined, kernel
from foltr.types import Array


class Room(NamedTuple):
    """Room to rank one query's documents in, for LANES rankers at once."""

    keys: Array  # [longest list + 3, LANES]
    best: Array  # [LANES]
    dcg: Array  # [LANES]
    reciprocal: Array  # [LANES]


def room_for(longest: int) -> Room:
    return Room(room(longest + 3, LANES), room(LANES), room(LANES), room(LANES))


@kernel
def fill_ideal(labels: Array, offsets: Array, gains: Array, counts: Array, best: Array) -> None:
    grades = counts.size
    for q in range(offsets.size - 1):
        for g in range(grades):
            counts[g] = 0
        for i in range(offsets[q], offsets[q + 1]):
            counts[labels[i]] += 1
        rank = 0
        for g in range(grades - 1, 0, -1):
            for _ in range(counts[g]):
                if rank < gains.shape[1]:
                    best[q] += gains[g, rank]
                    rank += 1


@kernel
def add_quality(
    scores: Array, labels: Array, offsets: Array, ideal: Array, gains: Array, room: Room, totals: Array
) -> None:
    """totals [2, rankers] += nDCG and MRR of each query; scores start at the first query's first document."""
    for q in range(ideal.size):
        if ideal[q] > 0.0:
            first, count = offsets[q] - offsets[0], offsets[q + 1] - offsets[q]
            grades = labels[offsets[q] : offsets[q + 1]]
            for ranker in range(0, scores.shape[1], LANES):
                fill_keys(scores, first, count, ranker, room.keys)
                lanes = min(LANES, scores.shape[1] - ranker)
                _add_lists(grades, lanes, ideal[q], gains, room, totals[:, ranker:])


@kernel
def _add_lists(grades: Array, lanes: int, ideal: float, gains: Array, room: Room, totals: Array) -> None:
    """Takes the highest key of every lane away, rank by rank."""
    rows = (grades.size + 3) // 4 * 4
    for row in range(grades.size, rows):
        for lane in range(LANES):
            room.keys[row, lane] = -np.inf
    for lane in range(LANES):
        room.dcg[lane], room.reciprocal[lane] = 0.0, 0.0
    for rank in range(min(gains.shape[1], grades.size)):
        highest_in_lanes(room.keys, rows, room.best)
        for lane in range(LANES):
            document = document_of(room.best[lane])
            room.keys[document, lane] = -np.inf
            grade = grades[document]
            room.dcg[lane] += gains[grade, rank]
            room.reciprocal[lane] = max(room.reciprocal[lane], (grade > 0) / (rank + 1.0))
    for lane in range(lanes):
        totals[0, lane] += room.dcg[lane] / ideal
        totals[1, lane] += room.reciprocal[lane]


@inlined
def document_of(key: float) -> int:
    """The place that a key holds."""
    bits = np.float64(key).view(np.int64)
    return int(bits & PLACES if bits < 0 else PLACES - (bits & PLACES))
