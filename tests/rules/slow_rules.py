"""Every rule again, in plain Python, as its paper says it; slow and obvious."""

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


def krum(updates, *, bad, **_):
    values = scores(updates, len(updates) - bad - 2)
    return updates[values.index(min(values))]


def multi_krum(updates, *, bad, **_):
    values = scores(updates, len(updates) - bad - 2)
    best = sorted(range(len(updates)), key=lambda i: values[i])[: len(updates) - bad]
    return [statistics.fmean(column) for column in columns([updates[i] for i in best])]


def trimmed_mean(updates, *, bad, **_):
    return [statistics.fmean(sorted(column)[bad : len(column) - bad]) for column in columns(updates)]


def median(updates, **_):
    return [statistics.median(column) for column in columns(updates)]


def bulyan(updates, *, bad, **_):
    remaining, chosen = list(updates), []
    while len(chosen) < len(updates) - 2 * bad:
        values = scores(remaining, max(1, len(remaining) - bad - 2))
        chosen.append(remaining.pop(values.index(min(values))))
    centre = []
    for column in columns(chosen):
        middle = statistics.median(column)
        near = sorted(sorted(column), key=lambda x: abs(x - middle))[: len(updates) - 4 * bad]
        centre.append(statistics.fmean(near))
    return centre


def geometric_median(updates, *, weights, **_):
    """Weiszfeld from the mean, for long."""
    point = fedavg(updates, weights=weights)
    for _ in range(300):
        pulls = [w / max(distance(x, point), 1e-12) for w, x in zip(weights, updates, strict=True)]
        point = fedavg(updates, weights=pulls)
    return point


def norm_bounding(updates, *, weights, start, **_):
    norms = [distance(update, start) for update in updates]
    bound = statistics.median(norms)
    result = list(start)
    for update, weight, norm in zip(updates, weights, norms, strict=True):
        factor = min(1.0, bound / norm) if norm > 0 else 1.0
        for p, value in enumerate(update):
            result[p] += weight / sum(weights) * factor * (value - start[p])
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
