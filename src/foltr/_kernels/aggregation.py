"""Robust aggregation in machine code. Rows are the clients' deltas [n, P]; workspaces are the caller's."""

import math

import numpy as np

from foltr._kernels.compile import kernel, ordered_kernel
from foltr._kernels.sorting import median, sort, weighted_median
from foltr.types import Array

_SMOOTHING = 1e-6  # of the typical distance; nearer clients pull no harder than from there
_TOLERANCE = 1e-8
_STEPS = 1000


@kernel
def distance(one: Array, other: Array) -> float:
    total = 0.0
    for p in range(one.size):
        total += (one[p] - other[p]) ** 2
    return math.sqrt(total)


@kernel
def all_finite(rows: Array) -> bool:
    for i in range(rows.shape[0]):
        for p in range(rows.shape[1]):
            if not math.isfinite(rows[i, p]):
                return False
    return True


@ordered_kernel
def weighted_mean(rows: Array, weights: Array, mean: Array) -> bool:
    """Fills mean [P] with the weighted mean of the rows; False where it is not finite or nothing has weight."""
    together = 0.0
    for i in range(weights.size):
        together += weights[i]
    if not together > 0.0:
        return False
    for p in range(mean.size):
        mean[p] = 0.0
    for i in range(weights.size):
        for p in range(mean.size):
            mean[p] += weights[i] * rows[i, p]
    finite = True
    for p in range(mean.size):
        mean[p] /= together
        finite = finite and math.isfinite(mean[p])
    return finite


@kernel
def trimmed_mean(rows: Array, trim: int, column: Array, mean: Array) -> None:
    """Fills mean [P]: per coordinate, without the `trim` lowest and highest values."""
    count = column.size
    for p in range(mean.size):
        for i in range(count):
            column[i] = rows[i, p]
        sort(column, count)
        total = 0.0
        for i in range(trim, count - trim):
            total += column[i]
        mean[p] = total / (count - 2 * trim)


@kernel
def bounded_mean(rows: Array, weights: Array, workspace: Array, mean: Array) -> None:
    """Adds to mean [P] the weighted mean of rows, none longer than their median norm. workspace [2, n]."""
    count, norms, ordered, total = weights.size, workspace[0], workspace[1], 0.0
    for i in range(count):
        square = 0.0
        for p in range(mean.size):
            square += rows[i, p] ** 2
        norms[i] = math.sqrt(square)
        ordered[i] = norms[i]
        total += weights[i]
    bound = median(ordered, count)
    for i in range(count):
        row = rows[i]
        share = weights[i] / total
        if norms[i] > bound:
            share *= bound / norms[i]
        if share > 0.0:
            for p in range(mean.size):
                mean[p] += share * row[p]


@kernel
def mean_of_rows(rows: Array, selected: Array, mean: Array) -> None:
    """Adds to mean [P] the plain mean of the selected rows."""
    for k in range(selected.size):
        row = rows[selected[k]]
        for p in range(mean.size):
            mean[p] += row[p] / selected.size


@kernel
def pairwise_distances(rows: Array, distances: Array) -> None:
    for i in range(rows.shape[0]):
        distances[i, i] = 0.0
        for j in range(i):
            distances[i, j] = distance(rows[i], rows[j])
            distances[j, i] = distances[i, j]


@kernel
def sum_nearest(distances: Array, neighbours: int, workspace: Array, scores: Array) -> None:
    """Fills scores [n]: the sum of everybody's smallest distances to others. workspace [n]."""
    others = workspace.size - 1
    for i in range(workspace.size):
        for j in range(others):
            workspace[j] = distances[i, j if j < i else j + 1]
        sort(workspace, others)
        scores[i] = 0.0
        for j in range(neighbours):
            scores[i] += workspace[j]


@kernel
def select_repeatedly(distances: Array, order: Array, num_byzantine: int, remains: Array, selected: Array) -> None:
    """Fills selected: Krum's choice among the clients that remain, again and again.

    order [n, n]: everybody's others by distance; remains [n] bool: workspace.
    """
    clients = remains.size
    for i in range(clients):
        remains[i] = True
    for pick in range(selected.size):
        neighbours = min(max(1, clients - pick - num_byzantine - 2), clients - pick - 1)
        best, lowest = -1, np.inf
        for i in range(clients):
            if not remains[i]:
                continue
            score, seen, k = 0.0, 0, 0
            while seen < neighbours:
                j = order[i, k]
                k += 1
                if remains[j] and j != i:
                    score += distances[i, j]
                    seen += 1
            if best < 0 or score < lowest:
                best, lowest = i, score
        selected[pick] = best
        remains[best] = False


@kernel
def mean_near_median(rows: Array, selected: Array, nearest: int, column: Array, mean: Array) -> None:
    """Fills mean [P]: per coordinate, of the `nearest` values around the median of the selected rows."""
    count = selected.size
    for p in range(mean.size):
        for k in range(count):
            column[k] = rows[selected[k], p]
        centre = median(column, count)
        low, high = 0, count
        while high - low > nearest:  # the values nearest to the median lie side by side
            if centre - column[low] > column[high - 1] - centre:
                low += 1
            else:
                high -= 1
        total = 0.0
        for k in range(low, high):
            total += column[k]
        mean[p] = total / nearest


@kernel
def weiszfeld(rows: Array, weights: Array, workspace: Array, following: Array, point: Array) -> None:
    """Fills point [P] with the geometric median. workspace [3, n], following [P]."""
    count, distances, attraction = weights.size, workspace[0], workspace[2]
    typical = _start_at_median(rows, weights, workspace, point)
    # half of the weight is here, which is the end; or nothing can be compared; or nobody has weight
    if typical == 0.0 or typical == np.inf or weights.sum() == 0.0:
        return
    moved = np.inf
    for _ in range(_STEPS):
        if moved <= _TOLERANCE * typical:
            break
        nearest, total = np.inf, 0.0
        for i in range(count):
            distances[i] = max(distance(rows[i], point), _SMOOTHING * typical)
            nearest = min(nearest, distances[i])
        for i in range(count):
            attraction[i] = weights[i] * (nearest / distances[i])
            total += attraction[i]
        for p in range(point.size):
            following[p] = 0.0
        for i in range(count):
            share, row = attraction[i] / total, rows[i]
            for p in range(point.size):
                following[p] += share * row[p]
        moved = distance(following, point)
        for p in range(point.size):
            point[p] = following[p]
    _end_on_client(rows, weights, distances, following, point)


@kernel
def _start_at_median(rows: Array, weights: Array, workspace: Array, point: Array) -> float:
    """Fills point with the weighted coordinate-wise median; returns the weighted median of the distances to it."""
    count, column, attraction = weights.size, workspace[1], workspace[2]
    for p in range(point.size):
        for i in range(count):
            column[i], attraction[i] = rows[i, p], weights[i]
        point[p] = weighted_median(column, attraction, count)
    for i in range(count):
        column[i], attraction[i] = distance(rows[i], point), weights[i]
    return weighted_median(column, attraction, count)


@kernel
def _end_on_client(rows: Array, weights: Array, distances: Array, force: Array, point: Array) -> None:
    """Moves onto the nearest client if that is the minimum (Kuhn 1973), towards which Weiszfeld's steps only creep.

    It is where all others together pull less than the client's own weight.
    """
    nearest = 0
    for i in range(weights.size):
        if distances[i] < distances[nearest]:
            nearest = i
    for p in range(point.size):
        force[p] = 0.0
    own_weight = 0.0
    for i in range(weights.size):
        row, away = rows[i], distance(rows[i], rows[nearest])
        if away == 0.0:
            own_weight += weights[i]
        elif away < np.inf:
            for p in range(point.size):
                force[p] += weights[i] * (row[p] - rows[nearest, p]) / away
        else:
            own_weight -= weights[i]  # too far for a direction: the worst one
    pulled = 0.0
    for p in range(point.size):
        pulled += force[p] ** 2
    if math.sqrt(pulled) <= own_weight:
        for p in range(point.size):
            point[p] = rows[nearest, p]
