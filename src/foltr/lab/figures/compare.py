"""A run against a paper: a verdict for each published number, and tables of two methods with their significance."""

import math
from typing import Any, NamedTuple

import polars as pl
from msgspec.structs import replace

from foltr.lab import records
from foltr.lab.records import DATA_MISSING, NOT_JUDGED, ComparisonRow, ComparisonTable, SettingRecord, Verdict
from foltr.lab.reporting.counted import empty_of, other_mean
from foltr.lab.reporting.labels import data_name
from foltr.lab.reporting.significance import Paired, holm, paired_runs, paired_settings
from foltr.lab.spec.setting import flat
from foltr.types import Array

Label = dict[str, Any]
_LEFT_OUT = "left out"  # by --only: no verdict


class Values(NamedTuple):
    """One number a single run, in the order of folds and seeds."""

    numbers: Array
    data: str
    runs: list[tuple[int, int]]  # fold, seed

    @property
    def mean(self) -> float:
        return float(self.numbers.mean())

    @property
    def sd(self) -> float:
        return float(self.numbers.std(ddof=1)) if self.numbers.size > 1 else 0.0

    def of(self, runs: list[tuple[int, int]]) -> "Values":
        """Only these runs, in their order."""
        return Values(self.numbers[[self.runs.index(one) for one in runs]], self.data, runs)


def flat_label(setting: SettingRecord) -> Label:
    """Every key of a resolved setting, flat, and its part."""
    return flat(setting.resolved)


def find(run: records.Run, where: Label) -> list[SettingRecord]:
    """Settings whose keys have these values."""

    def fits(setting: SettingRecord) -> bool:
        label = flat_label(setting)
        return all(label.get(key) == value for key, value in where.items())

    return [setting for setting in run.manifest.settings if fits(setting)]


def values(run: records.Run, setting: SettingRecord, metric: str, at: str) -> Values:
    """A metric of every single run: at the "first", "fifth" (20 %), "last_tenth", "final" round, or over "all"."""
    mine = records.whole(run.rows).filter(pl.col("setting") == setting.index)
    named = data_name(setting.data) if setting.data else "unnamed data"
    if at in ("final", "all"):
        chosen = records.summary(mine).filter(pl.col("metric") == metric).sort("fold", "seed")
        return Values(chosen["value"].to_numpy(), named, chosen.select("fold", "seed").rows())
    rows, last = mine.filter(pl.col("metric") == metric), setting.rounds
    if at == "first":
        rows = rows.filter(pl.col("round") == 1)
    elif at == "fifth":
        # a single round is noisy: the twentieth of the run around it
        rows = rows.filter(pl.col("round").is_between(0.175 * last, 0.225 * last))
    else:
        rows = rows.filter(pl.col("round") > 0.9 * last)
    means = rows.group_by("fold", "seed").agg(pl.col("value").mean()).sort("fold", "seed")
    return Values(means["value"].to_numpy(), named, means.select("fold", "seed").rows())


def verdicts(run: records.Run, figure: dict[str, Any], missing: list[str]) -> list[Verdict]:
    """One for each published number."""
    found = []
    for block in figure.get("expected", []):
        for *keys, published in block["rows"]:
            where = {**block.get("where", {}), **dict(zip(block["by"], keys, strict=True))}
            found.append(_verdict(run, block, where, float(published), missing))
    return [row for row in found if row.verdict != _LEFT_OUT]


def _verdict(run: records.Run, block: dict[str, Any], where: Label, published: float, missing: list[str]) -> Verdict:
    at = block.get("at", "final")
    words = ", ".join(f"{_short(key)} {value}" if not isinstance(value, str) else value for key, value in where.items())
    row = Verdict(
        what=f"{words}: {block['metric']}" + ("" if at in ("final", "all") else f" {at.replace('_', ' ')}"),
        published=published, verdict=_LEFT_OUT, tolerance=block["tolerance"],
        source=block.get("source", "as published"), data=str(where.get("data.name", "")), where=where,
        metric=block["metric"], at=at,
    )  # fmt: skip
    if run.manifest.quick:  # no published number beside one that cannot be compared
        row = replace(row, published=None)
    found = find(run, where)
    if not found:
        absent = where.get("data.name") in missing or not run.manifest.settings
        return replace(row, verdict=DATA_MISSING) if absent else row
    ours = values(run, found[0], block["metric"], at)
    verdict = NOT_JUDGED if run.manifest.quick else judge(ours.mean, published, block["tolerance"])
    runs = int(ours.numbers.size)
    other = other_mean(run, found[0], block["metric"]) if at in ("final", "all") else None
    return replace(
        row, ours=ours.mean, sd=ours.sd if runs > 1 else None, runs=runs, data=ours.data, verdict=verdict,
        other=other.mean if other else None, empty=empty_of(found[0]),
    )  # fmt: skip


def judge(ours: float, published: float, tolerance: str) -> str:
    """`tolerance` is "4 %" of the published number, or an absolute ".01"."""
    off = ours - published
    if tolerance.endswith("%"):
        share = 100 * off / published
        return "reproduced" if abs(share) <= float(tolerance[:-1]) else f"off by {share:+.1f} %"
    return "reproduced" if abs(off) <= float(tolerance) + 1e-12 else f"off by {off:+.4f}"


def paired(run: records.Run, left: SettingRecord, right: SettingRecord, metric: str, at: str = "final") -> Paired:
    """The paired test of two settings: over queries at the end of a run, else over folds or seeds."""
    if at in ("final", "all"):
        return paired_settings(run, left.index, right.index, metric)
    return paired_values(*(values(run, setting, metric, at) for setting in (left, right)))


def paired_values(left: Values, right: Values) -> Paired:
    """The paired test of two numbers of single runs: over folds, or over the seeds of a single fold."""
    return paired_runs(*(dict(zip(side.runs, side.numbers.tolist(), strict=True)) for side in (left, right)))


def comparisons(run: records.Run, figure: dict[str, Any]) -> list[ComparisonTable]:
    """Tables of two methods side by side, each pair tested; Holm's correction over the rows of a table."""
    tables = []
    for block in figure.get("comparison", []):
        rows = []
        for entry in block["rows"]:
            left, right = (find(run, {**block[side], **entry[side]}) for side in ("left", "right"))
            if left and right:
                rows.append(_compared(run, block, entry, left[0], right[0]))
        if rows:
            corrected = holm([math.nan if row.p is None else row.p for row in rows])
            marked = [_marked(row, p) for row, p in zip(rows, corrected, strict=True)]
            tables.append(ComparisonTable(block["title"], marked, block["metric"]))
    return tables


def _compared(
    run: records.Run, block: dict[str, Any], entry: dict[str, Any], left: SettingRecord, right: SettingRecord
) -> ComparisonRow:
    at = block.get("at", "final")
    mine, other = (values(run, side, block["metric"], at) for side in (left, right))
    shared = [single for single in mine.runs if single in other.runs]
    test = paired(run, left, right, block["metric"], at)
    # without runs in common, only the means can be compared
    means = (test.left, test.right) if test.pairs else (mine.mean, other.mean)
    tested = math.isfinite(test.p)
    return ComparisonRow(
        setting=entry["name"], left=means[0], right=means[1], difference=means[0] - means[1],
        p=test.p if tested else None, runs=len(shared), unit=test.unit if tested else "",
        pairs=test.pairs if tested else 0, published_mark=None if run.manifest.quick else entry.get("published_mark"),
    )  # fmt: skip


def _marked(row: ComparisonRow, corrected_p: float) -> ComparisonRow:
    """The row with its corrected p, its sign, and a note where the published sign differs."""
    corrected = None if math.isnan(corrected_p) else corrected_p
    ours = _mark(row.difference or 0.0, corrected)
    differs = row.published_mark is not None and ours != row.published_mark
    note = f"published: {row.published_mark or 'no significant difference'}" if differs else ""
    return replace(row, corrected_p=corrected, mark=ours, note=note)


def _mark(difference: float, corrected_p: float | None) -> str:
    """The papers' signs: filled for p < .01, open for p < .05, none otherwise."""
    if corrected_p is None or corrected_p >= 0.05:
        return ""
    filled = corrected_p < 0.01
    return ("▲" if filled else "△") if difference > 0 else ("▼" if filled else "▽")


def _short(key: str) -> str:
    return key.rsplit(".", 1)[-1]
