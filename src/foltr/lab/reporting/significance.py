"""Which settings differ from their baseline beyond chance.

Two-tailed paired t-test, corrected after Holm over all comparisons of a metric. The unit of the test is

    queries   values of the final rankers on each test query, averaged over the seeds (and folds) that both settings
              have: a query is one unit however often it was tested. An id that names different queries in
              different folds (folds that each count from 1, synthetic data) is a unit in each fold. Rankers of
              different folds are trained on overlapping queries, so p is approximate.
    folds     for metrics without values by query: the mean over seeds of each fold that both settings have
    seeds     for a single fold: single runs. They say how much chance in training matters on these queries, and
              nothing about other queries.

Pairs of (fold, seed) are never units: runs of one fold share their queries.

Sources: Smucker, Allan and Carterette (CIKM 2007) and Urbano, Lima and Hanjalic (SIGIR 2019) on the t-test over
queries; Holm (1979). Differs from them: identical samples count as p = 1, a single unit as no test.
"""

import math
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from scipy.special import stdtr, stdtrit

from foltr.lab.records import Run, summary, whole
from foltr.lab.reporting.counted import empty_of
from foltr.lab.reporting.layout import baselines
from foltr.lab.reporting.tables import main_metrics
from foltr.types import Array

SIGNIFICANT = 0.05
Unit: TypeAlias = Literal["queries", "folds", "seeds"]
SingleRuns: TypeAlias = dict[tuple[int, int], float]  # (fold, seed) -> value


class Paired(NamedTuple):
    """A paired comparison of two samples; a positive difference favours the left one."""

    unit: Unit
    pairs: int
    left: float  # mean over the units
    right: float
    difference: float
    error: float  # standard error of the difference; nan where fewer than two pairs exist
    t: float
    p: float  # two-tailed; nan where fewer than two pairs exist
    folds: int = 1  # behind the pairs
    seeds: int = 1  # behind a value of a pair, at most
    tested: int = 0  # queries, with those that were left out because no document is relevant; 0: no queries


class PairedTest(NamedTuple):
    """One setting against its baseline."""

    setting: int
    baseline: int
    paired: Paired
    corrected_p: float  # Holm


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


def holm(ps: list[float]) -> list[float]:
    """p-values after Holm's step-down correction, in the order given; nan is no comparison and stays nan."""
    tested = sorted((p, place) for place, p in enumerate(ps) if not math.isnan(p))
    corrected, largest = list(ps), 0.0
    for rank, (p, place) in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - rank) * p))
        corrected[place] = largest
    return corrected


def paired_settings(run: Run, left: int, right: int, metric: str) -> Paired:
    """Two settings of a run, by the final value of a metric: over queries where both have values of queries."""
    values = _query_values(run, left, right, metric)
    unit = ["fold", "query"] if _has_reused_ids(run, left) else ["query"]
    queries = values.group_by(unit).agg(pl.col("left", "right").mean()).sort(unit)
    if len(queries) > 1:
        paired = _paired("queries", queries["left"].to_numpy(), queries["right"].to_numpy())
        tested = run.queries.filter(pl.col("metric") == metric, pl.col("setting") == left).select(unit).n_unique()
        return paired._replace(folds=values["fold"].n_unique(), seeds=values["seed"].n_unique(), tested=tested)
    return paired_runs(*(_single_runs(run, setting, metric) for setting in (left, right)))


def paired_runs(left: SingleRuns, right: SingleRuns) -> Paired:
    """Two samples of single runs: over folds with seeds averaged, or over the seeds of a single fold."""
    shared = sorted(left.keys() & right.keys())
    folds = list(dict.fromkeys(fold for fold, _ in shared))
    if len(folds) < 2:
        unit: Unit = "seeds" if len(shared) > 1 else "folds"
        return _paired(unit, *(np.array([runs[key] for key in shared]) for runs in (left, right)))
    means = [[np.mean([runs[key] for key in shared if key[0] == fold]) for fold in folds] for runs in (left, right)]
    seeds = len({seed for _, seed in shared})
    return _paired("folds", *map(np.array, means))._replace(folds=len(folds), seeds=seeds)


def _paired(unit: Unit, left: Array, right: Array) -> Paired:
    if not left.size:
        return Paired(unit, 0, *(math.nan,) * 6)
    differences = left - right
    error = float(differences.std(ddof=1)) / math.sqrt(left.size) if left.size > 1 else math.nan
    means = float(left.mean()), float(right.mean()), float(differences.mean())
    return Paired(unit, left.size, *means, error, *paired_t(left, right))


def over_words(paired: Paired) -> str:
    """ "564 of 784 queries", or "5 folds": the units of a test."""
    return f"{paired.pairs:,} {f'of {paired.tested:,} ' if paired.tested else ''}{paired.unit}"


def half_width(paired: Paired) -> float:
    """Half of the 95 % confidence interval of the difference; nan where fewer than two pairs exist."""
    return paired.error * float(stdtrit(paired.pairs - 1, 0.975)) if paired.pairs > 1 else math.nan


def _query_values(run: Run, left: int, right: int, metric: str) -> pl.DataFrame:
    """fold, seed, query, left, right: of the folds and seeds that both settings have."""
    sides = (_values(run, setting, metric) for setting in (left, right))
    ours, other = (side.select("fold", "seed", "query", pl.col("value").cast(pl.Float64)) for side in sides)
    return ours.rename({"value": "left"}).join(other.rename({"value": "right"}), on=["fold", "seed", "query"])


def _has_reused_ids(run: Run, setting: int) -> bool:
    return any(one.data is not None and one.data.reused_ids for one in run.manifest.settings if one.index == setting)


def _values(run: Run, setting: int, metric: str) -> pl.DataFrame:
    """Values of queries; those without a relevant document are left out, or 0 where the setting counts them so."""
    values = run.queries.filter((pl.col("metric") == metric) & (pl.col("setting") == setting))
    if any(empty_of(record) == "zero" for record in run.manifest.settings if record.index == setting):
        values = values.with_columns(pl.col("value").fill_null(0.0))
    return values.filter(pl.col("value").is_finite())


def _single_runs(run: Run, setting: int, metric: str) -> SingleRuns:
    final = whole(summary(run.rows)).filter((pl.col("setting") == setting) & (pl.col("metric") == metric))
    values = final.filter(pl.col("value").is_finite()).select("fold", "seed", "value")
    return {(fold, seed): value for fold, seed, value in values.iter_rows()}


def significance(run: Run, metric: str) -> list[PairedTest]:
    """Every setting against its baseline, where both measured the metric; Holm over all of these comparisons."""
    pairs = [(setting, baseline) for setting, baseline in baselines(run.manifest).items() if baseline is not None]
    tests = [(setting, baseline, paired_settings(run, setting, baseline, metric)) for setting, baseline in pairs]
    tests = [test for test in tests if test[2].pairs > 1]  # a single pair is no test
    corrected = holm([paired.p for _, _, paired in tests])
    return [PairedTest(*test, p) for test, p in zip(tests, corrected, strict=True)]


def tests_of(run: Run) -> list[dict[str, Any]]:
    """All tests of the run's main metrics as plain data, settings by their labels."""
    labels = {setting.index: setting.label for setting in run.manifest.settings}
    return [
        {
            "metric": metric, "setting": labels[test.setting], "baseline": labels[test.baseline],
            **test.paired._asdict(), "test": "paired t-test", "correction": "Holm", "comparisons": len(tests),
            "corrected_p": test.corrected_p,
        }
        for metric in main_metrics(run)
        for tests in [significance(run, metric)]
        for test in tests
    ]  # fmt: skip


def untested(run: Run, tests: list[PairedTest]) -> dict[str, list[int]]:
    """Reason -> settings that take no part in any of the tests; empty where nothing was tested."""
    against = baselines(run.manifest)
    took_part = {index for test in tests for index in (test.setting, test.baseline)}
    reasons: dict[str, list[int]] = {}
    for setting in run.manifest.settings if tests else []:
        if setting.index not in took_part:
            reason = (
                "has the baseline's values itself" if setting.index not in against
                else "no baseline on the same data and users" if against[setting.index] is None
                else "fewer than two units that the baseline has too"
            )  # fmt: skip
            reasons.setdefault(reason, []).append(setting.index)
    return reasons


def mark(test: PairedTest) -> str:
    """▲ better than the baseline, ▼ worse, empty where it is not significant."""
    if not test.corrected_p < SIGNIFICANT:  # nan is not significant
        return ""
    return "▲" if test.paired.difference > 0 else "▼"


def method(tests: list[PairedTest]) -> str:
    """The test in words: unit, number, correction and what the unit does not cover."""
    units = list(dict.fromkeys(test.paired.unit for test in tests))
    sizes = {unit: sorted({test.paired.pairs for test in tests if test.paired.unit == unit}) for unit in units}
    tested = sorted({test.paired.tested for test in tests if test.paired.tested})
    of = {"queries": f" of {_range(tested)}"} if tested else {}
    over = " or ".join(f"{_range(sizes[unit])}{of.get(unit, '')} {unit} ({_averaged(unit, tests)})" for unit in units)
    count = f"Holm's correction for {len(tests)} comparison{'' if len(tests) == 1 else 's'}"
    limits = dict.fromkeys(_limit(test.paired) for test in tests)
    return " ".join([f"Two-tailed paired t-test over {over}; {count}.", *limits])


def _averaged(unit: Unit, tests: list[PairedTest]) -> str:
    seeds = sorted({test.paired.seeds for test in tests if test.paired.unit == unit})
    return "of one fold" if unit == "seeds" else "one seed" if seeds == [1] else f"{_range(seeds)} seeds averaged"


def _limit(paired: Paired) -> str:
    """A sentence about what p does not cover."""
    if paired.unit == "seeds":
        return "Seeds show chance in training on these queries, nothing about other queries."
    if paired.folds == 1:
        return "All rankers were trained on the same fold: p says nothing about other training sets."
    each = "Each query counts once; training" if paired.unit == "queries" else "Training"
    return f"{each} sets of folds overlap, so p is approximate."


def _range(sizes: list[int]) -> str:
    return f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
