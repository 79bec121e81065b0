"""Tables: settings x metrics with mean ± sd, and which settings differ from their baseline beyond chance.

Significance is the two-tailed paired t-test over (fold, seed) pairs with Bonferroni's correction: every p is
multiplied by the number of comparisons made for the metric. Runs of one fold share their queries, so the
pairs are not fully independent and p reads somewhat low, here as in the papers.

Differs from the papers: nothing in the test; identical samples count as p = 1, a single pair as no test.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtr

from foltr.lab.records import DISCOUNTED, OFFLINE, Rows, Run, statistics, summary
from foltr.lab.reporting.labels import (
    METRIC_NAMES,
    figure_metrics,
    plain,
    scatter_metrics,
    setting_name,
    swept_keys,
    value_of,
)
from foltr.lab.reporting.layout import baseline_groups
from foltr.lab.reporting.numbers import NOTHING, mean_sd
from foltr.types import Array

SIGNIFICANT = 0.05
OF_TEXTS = (
    *(f"nDCG@10, average, {regime}" for regime in ("BM25", "Local", "Global", "CS-F-LTR", "pooled")),
    "recall@K", "recall", "ms a query", "AUC",
)  # fmt: skip


class Comparison(NamedTuple):
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
) -> list[Comparison]:
    """Each setting (default: every other one) against the baseline, over the (fold, seed) pairs both have.

    `comparisons` corrects for more tests than these, where several baselines share a table.
    """
    values = _values_by_run(rows, metric)
    return _tests(values, baseline_setting, settings=settings, comparisons=comparisons)


def _tests(
    values: "dict[int, Pairs]", baseline_setting: int, *, settings: list[int] | None, comparisons: int | None
) -> list[Comparison]:
    others = sorted(values.keys() - {baseline_setting}) if settings is None else settings
    count = max(comparisons or len(others), 1)
    baseline = values.get(baseline_setting, {})
    return [_test(setting, values.get(setting, {}), baseline_setting, baseline, count) for setting in others]


Pairs = dict[tuple[int, int], float]  # (fold, seed) -> value


def _values_by_run(rows: Rows, metric: str) -> dict[int, Pairs]:
    table: dict[int, Pairs] = {}
    kept = summary(rows).select("setting", "fold", "seed", "metric", "value")
    for setting, fold, seed, name, value in kept.iter_rows():
        if name == metric and value is not None and math.isfinite(value):
            table.setdefault(setting, {})[fold, seed] = value
    return table


def _test(setting: int, ours: Pairs, baseline_setting: int, baseline: Pairs, comparisons: int) -> Comparison:
    shared = sorted(ours.keys() & baseline.keys())
    left, right = np.array([ours[k] for k in shared]), np.array([baseline[k] for k in shared])
    if not shared:
        return Comparison(setting, baseline_setting, 0, *(math.nan,) * 6)
    t, p = paired_t(left, right)
    means = float(left.mean()), float(right.mean()), float((left - right).mean())
    corrected = p if math.isnan(p) else min(1.0, p * comparisons)
    return Comparison(setting, baseline_setting, len(shared), *means, t, p, corrected)


def paired_t(left: Array, right: Array) -> tuple[float, float]:
    """t = mean / (sd / sqrt(n)) of the differences, and its two-tailed p with n - 1 degrees of freedom."""
    gaps = left - right
    if gaps.size < 2:
        return math.nan, math.nan
    mean, sd = float(gaps.mean()), float(gaps.std(ddof=1))
    if sd == 0.0:  # every pair differs by the same amount: no chance at work, or no difference at all
        return (0.0, 1.0) if mean == 0.0 else (math.copysign(math.inf, mean), 0.0)
    t = mean / (sd / math.sqrt(gaps.size))
    return t, float(2.0 * stdtr(gaps.size - 1, -abs(t)))


def mark(test: Comparison) -> str:
    """▲ better than the baseline, ▼ worse, empty where it may be chance."""
    if not test.corrected_p < SIGNIFICANT:  # nan is no finding
        return ""
    return "▲" if test.difference > 0 else "▼"


def significance(run: Run, metric: str) -> list[Comparison]:
    """Within each panel of the figure (same users, same data), every line against the first one."""
    values = _values_by_run(run.rows, metric)
    groups = [[index for index in group if index in values] for group in baseline_groups(run.manifest)]
    total = sum(max(len(group) - 1, 0) for group in groups)
    return [
        test
        for first, *others in filter(None, groups)
        for test in _tests(values, first, settings=others, comparisons=total)
    ]


def metrics_of(run: Run) -> list[str]:
    """Metrics that the run measured: the known ones in their usual order, then any others."""
    measured = {metric for cells in statistics(run.rows).values() for metric in cells} - scatter_metrics(run.manifest)
    known = [metric for metric in METRIC_NAMES if metric in measured]
    return known + sorted(measured - set(known))


def main_metrics(run: Run) -> list[str]:
    """Those the figure is about, else the quality of the final ranker and what users lived through.

    Of organisations with texts: nDCG@10 of every regime, or what was found and how fast.
    """
    wanted, measured = figure_metrics(run.manifest) or [OFFLINE[0], DISCOUNTED, *OF_TEXTS], metrics_of(run)
    return [metric for metric in wanted if metric in measured] or measured[:1]


class Table(NamedTuple):
    keys: list[str]  # swept keys, one column each
    metrics: list[str]
    rows: list[dict[str, Any]]  # name, values [keys], cells [metrics], runs


def settings_table(run: Run, metrics: list[str] | None = None) -> Table:
    """Settings x metrics, each cell "mean ± sd"; a cell says its runs where they differ from the row's."""
    settings = run.manifest.get("settings") or []
    keys, measured = swept_keys(settings), statistics(run.rows)
    metrics = metrics_of(run) if metrics is None else metrics
    return Table(keys, metrics, [_row(s, keys, metrics, measured.get(s["index"], {})) for s in settings])


def _row(
    setting: dict[str, Any], keys: list[str], metrics: list[str], measured: dict[str, dict[str, float]]
) -> dict[str, Any]:
    runs = max((int(measured[metric]["runs"]) for metric in metrics if metric in measured), default=0)
    values = [value_of(setting, key) for key in keys]
    return {
        "name": setting_name(setting),
        "values": [NOTHING if value is None else plain(value) for value in values],
        "cells": [shown(measured.get(metric), runs) for metric in metrics],
        "runs": runs,
    }


def shown(cell: dict[str, float] | None, usual: int) -> str:
    """Mean ± sd, with the number of runs where it is not the usual one."""
    if cell is None:
        return NOTHING
    runs = int(cell["runs"])
    spread = mean_sd(cell["mean"], cell["sd"], runs)
    return spread if runs == usual else f"{spread} ({runs} run{'' if runs == 1 else 's'})"
