"""Every aggregator again, in plain Python, as its paper says it; slow and obvious. Updates are deltas."""

import math
import statistics


def distance(one, other):
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(one, other, strict=True)))


def columns(updates):
    return list(zip(*updates, strict=True))


def fedavg(updates, *, weights, **_):
    total = sum(weights)
    return [sum(w * x for w, x in zip(weights, column, strict=True)) / total for column in columns(updates)]


def scores(updates, neighbours):
    return [
        sum(sorted(distance(one, other) for j, other in enumerate(updates) if j != i)[:neighbours])
        for i, one in enumerate(updates)
    ]


def krum(updates, *, num_byzantine, **_):
    values = scores(updates, len(updates) - num_byzantine - 2)
    return updates[values.index(min(values))]


def multi_krum(updates, *, num_byzantine, **_):
    values = scores(updates, len(updates) - num_byzantine - 2)
    best = sorted(range(len(updates)), key=lambda i: values[i])[: len(updates) - num_byzantine]
    return [statistics.fmean(column) for column in columns([updates[i] for i in best])]


def trimmed_mean(updates, *, num_byzantine, **_):
    return [
        statistics.fmean(sorted(column)[num_byzantine : len(column) - num_byzantine]) for column in columns(updates)
    ]


def median(updates, **_):
    return [statistics.median(column) for column in columns(updates)]


def bulyan(updates, *, num_byzantine, **_):
    remaining, chosen = list(updates), []
    while len(chosen) < len(updates) - 2 * num_byzantine:
        values = scores(remaining, max(1, len(remaining) - num_byzantine - 2))
        chosen.append(remaining.pop(values.index(min(values))))
    mean = []
    for column in columns(chosen):
        centre = statistics.median(column)
        near = sorted(sorted(column), key=lambda x: abs(x - centre))[: len(updates) - 4 * num_byzantine]
        mean.append(statistics.fmean(near))
    return mean


def geometric_median(updates, *, weights, **_):
    """Weiszfeld from the mean, for long."""
    point = fedavg(updates, weights=weights)
    for _ in range(300):
        pulls = [w / max(distance(x, point), 1e-12) for w, x in zip(weights, updates, strict=True)]
        point = fedavg(updates, weights=pulls)
    return point


def norm_bounding(updates, *, weights, **_):
    norms = [math.hypot(*update) for update in updates]
    bound = statistics.median(norms)
    result = [0.0] * len(updates[0])
    for update, weight, norm in zip(updates, weights, norms, strict=True):
        factor = min(1.0, bound / norm) if norm > 0 else 1.0
        for p, value in enumerate(update):
            result[p] += weight / sum(weights) * factor * value
    return result


ORACLES = {
    "fedavg": fedavg,
    "krum": krum,
    "multi_krum": multi_krum,
    "trimmed_mean": trimmed_mean,
    "median": median,
    "bulyan": bulyan,
    "geometric_median": geometric_median,
    "norm_bounding": norm_bounding,
}
