"""Which settings differ from their baseline beyond chance.

Two-tailed paired t-test over (fold, seed) pairs with Bonferroni's correction: every p is multiplied by the number of
comparisons made for the metric. Runs of one fold share their queries, so the pairs are not fully independent and p is
somewhat too low, here as in the papers.

Differs from the papers: nothing in the test; identical samples count as p = 1, a single pair as no test.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr

from foltr.lab.records import Rows, Run, summary, whole
from foltr.lab.reporting.layout import baseline_groups
from foltr.types import Array

SIGNIFICANT = 0.05


class PairedTest(NamedTuple):
    """One setting against its baseline; a positive difference favours the setting."""

    setting: int
    baseline: int
    pairs: int
    mean: float
    baseline_mean: float
    difference: float
    t: float
    p: float  # two-tailed; nan where fewer than two pairs exist
    corrected_p: float  # Bonferroni


def paired_t_tests(
    rows: Rows,
    metric: str,
    baseline_setting: int,
    *,
    settings: list[int] | None = None,
    comparisons: int | None = None,
) -> list[PairedTest]:
    """Each setting (default: every other one) against the baseline, over the (fold, seed) pairs both have.

    `comparisons` corrects for more tests than these, where several baselines share a table.
    """
    values = _values_by_run(rows, metric)
    return _tests(values, baseline_setting, settings=settings, comparisons=comparisons)


def _tests(
    values: "dict[int, Pairs]", baseline_setting: int, *, settings: list[int] | None, comparisons: int | None
) -> list[PairedTest]:
    others = sorted(values.keys() - {baseline_setting}) if settings is None else settings
    count = max(comparisons or len(others), 1)
    baseline = values.get(baseline_setting, {})
    return [_test(setting, values.get(setting, {}), baseline_setting, baseline, count) for setting in others]


Pairs = dict[tuple[int, int], float]  # (fold, seed) -> value


def _values_by_run(rows: Rows, metric: str) -> dict[int, Pairs]:
    table: dict[int, Pairs] = {}
    final = whole(summary(rows)).select("setting", "fold", "seed", "metric", "value")
    for setting, fold, seed, name, value in final.iter_rows():
        if name == metric and value is not None and math.isfinite(value):
            table.setdefault(setting, {})[fold, seed] = value
    return table


def _test(setting: int, ours: Pairs, baseline_setting: int, baseline: Pairs, comparisons: int) -> PairedTest:
    shared = sorted(ours.keys() & baseline.keys())
    left, right = np.array([ours[k] for k in shared]), np.array([baseline[k] for k in shared])
    if not shared:
        return PairedTest(setting, baseline_setting, 0, *(math.nan,) * 6)
    t, p = paired_t(left, right)
    means = float(left.mean()), float(right.mean()), float((left - right).mean())
    corrected = p if math.isnan(p) else min(1.0, p * comparisons)
    return PairedTest(setting, baseline_setting, len(shared), *means, t, p, corrected)


def paired_t(left: Array, right: Array) -> tuple[float, float]:
    """t = mean / (sd / sqrt(n)) of the differences, and its two-tailed p with n - 1 degrees of freedom."""
    differences = left - right
    if differences.size < 2:
        return math.nan, math.nan
    mean, sd = float(differences.mean()), float(differences.std(ddof=1))
    if sd == 0.0:  # all pairs differ by the same amount: p is 0, or 1 without a difference
        return (0.0, 1.0) if mean == 0.0 else (math.copysign(math.inf, mean), 0.0)
    t = mean / (sd / math.sqrt(differences.size))
    return t, float(2.0 * stdtr(differences.size - 1, -abs(t)))


def mark(test: PairedTest) -> str:
    """▲ better than the baseline, ▼ worse, empty where it is not significant."""
    if not test.corrected_p < SIGNIFICANT:  # nan is not significant
        return ""
    return "▲" if test.difference > 0 else "▼"


def significance(run: Run, metric: str) -> list[PairedTest]:
    """Within each panel of the figure (same users, same data), every line against the first one."""
    values = _values_by_run(run.rows, metric)
    groups = [[index for index in group if index in values] for group in baseline_groups(run.manifest)]
    total = sum(max(len(group) - 1, 0) for group in groups)
    return [
        test
        for first, *others in filter(None, groups)
        for test in _tests(values, first, settings=others, comparisons=total)
    ]
