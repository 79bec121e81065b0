"""The records of a run on disk; reporting reads nothing else.

    runs/<hash>/manifest.json   `Manifest`: spec, settings, data, versions, machine, times, verdicts
    runs/<hash>/rows.parquet    setting, fold, seed, round, metric, client, value
    runs/<hash>/queries.parquet setting, fold, seed, query, metric, value: the final ranker on every test query
    runs/<hash>/ranker.npz      final parameters, one array [folds * seeds, P] a setting
    runs/<hash>/privacy.json    the privacy card of every setting
    runs/<hash>/ledger.json     the releases of every user, where there is a mechanism

`client` is empty where a value is of the whole federation, else the client on whose own queries it was measured. Rows
are stored for about a thousand rounds of a run at most. A row of an online metric is the mean over the rounds since the
row before; `discounted_online_ndcg` is the sum so far; offline metrics are those of the ranker after that round, means
over the queries with a relevant document, or over all with `metrics.empty = "zero"`. The mean of the final ranker by
the other choice stands beside it, as "offline_ndcg@10 (zero)" or "(skip)", for single clients too. Online metrics count
such queries as 0.

A query of the test part is named as in its file. Its value is null where no document is relevant (such a query is left
out of a mean, or counts as 0). Where clients have rankers or labels of their own, it is the mean over the clients that
were tested on the query. The file of a run on texts is empty; runs of earlier versions have none.
"""

import re
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import polars as pl

from foltr.errors import StorageError
from foltr.files import write_json
from foltr.types import OTHER, Empty

ONLINE = ("online_ndcg@10", "online_max_rr")
OFFLINE = ("offline_ndcg@10", "offline_mrr@10")
VALIDATION = ("validation_ndcg@10", "validation_mrr@10")  # of the final ranker
DISCOUNTED = "discounted_online_ndcg"
UNLEARNING = (
    "honest",
    "attacked",
    "retrained",
    "honest history",
)  # offline nDCG@10 of rankers beside the unlearned one
_SHORT = {"nDCG@10": "ndcg@10", "RR(rel=1)@10": "mrr@10"}


def stored_name(part: Literal["offline", "validation"], metric: str) -> str:
    """The name of an offline metric in rows and queries: "offline_ndcg@10" of nDCG@10, else "offline_" and its own."""
    return f"{part}_{_SHORT.get(metric, metric)}"


def lowest_relevant(stored: str) -> int:
    """The lowest relevant grade of an offline metric: 2 of "validation_AP(rel=2)@10", 1 where the name has none."""
    named = re.search(r"\(rel=(\d+)", stored)
    return int(named[1]) if named else 1


def other_name(metric: str, empty: Empty) -> str:
    """The stored name of a metric's final mean by the other choice of `metrics.empty`: "offline_ndcg@10 (zero)"."""
    return f"{metric} ({OTHER[empty]})"


Rows = pl.DataFrame  # setting: i32, fold: i32, seed: i64, round: i64, metric: str, client: str, value: f64

Queries = pl.DataFrame  # setting: i32, fold: i32, seed: i64, query: str, metric: str, value: f32 or null
QUERY_SCHEMA = {
    "setting": pl.Int32, "fold": pl.Int32, "seed": pl.Int64, "query": pl.String, "metric": pl.String,
    "value": pl.Float32,
}  # fmt: skip


def is_offline(metric: str) -> bool:
    """Whether a stored metric is a mean over test or validation queries."""
    return metric.startswith(("offline_", "validation_")) or metric.split(" (")[0] in UNLEARNING


def is_other(metric: str) -> bool:
    """Whether a stored metric is the mean by the other choice of `metrics.empty`."""
    return is_offline(metric) and metric.endswith(tuple(f" ({empty})" for empty in OTHER))


class Data(msgspec.Struct, frozen=True, kw_only=True):
    """The collection that a setting ran on."""

    name: str = "unnamed data"
    note: str = ""
    normalize: str = ""
    checksum: str = ""
    queries: int | None = None
    documents: int | None = None
    features: int | None = None
    grades: int | None = None
    shorter_than_k: int = 0  # lists with fewer than k documents
    tested: int = 0  # test queries, over all folds that ran
    validated: tuple[int, ...] = ()  # validation queries over all folds that ran, by their highest grade
    shared_with_train: int = 0  # of them, queries of the fold's training part, by id or by content
    shared_ids: int = 0  # of these, by id
    shared_with_validation: int = 0  # of the tested queries
    reused_ids: int = 0  # ids that name different test queries in different folds


class SettingRecord(msgspec.Struct, frozen=True):
    """One setting of a run; its runs are those of all folds and seeds."""

    index: int  # as in the rows
    label: dict[str, Any] = {}  # the swept keys only
    resolved: dict[str, Any] = {}  # the whole spec, every default written out
    title: str = ""
    interactions: int = 0
    seconds: float = 0.0
    runs: int = 0
    rounds: int = 0
    metrics: list[str] = []  # that the spec lists, by their names in the rows
    clients: dict[str, tuple[int, int]] = {}  # client -> its test queries with a relevant document, and all of them
    data: Data | None = None
    privacy: dict[str, Any] = {}  # the card, as privacy.card has it


class Published(msgspec.Struct, frozen=True):
    """A value that a paper's curve has at a round."""

    round: int
    value: float
    label: dict[str, Any] = {}
    series: str = "published"
    metric: str = ""  # empty: the figure's


class Trend(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The final value along one number: see `reporting.series`."""

    x: str | dict[str, str]
    name: str | dict[str, str] = ""
    metrics: list[str] = []
    y: str = ""
    log: bool = False
    log_y: bool | list[str] = False


class Scatter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Three metrics whose rounds are points: see `reporting.series`."""

    x: str
    y: str
    grade: str
    name: str = "points"


class MetricTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table whose cells are metrics: see `reporting.tables`."""

    title: str
    corner: str
    rows: list[str | int | float]
    columns: list[str | int | float]
    cell: str
    bold: Literal["row", "column"] | None = None


class Matrix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Keys whose values make rows, columns and panels: see `reporting.tables`."""

    rows: list[str]
    columns: list[str]
    panels: list[str]


class FigureRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Drawing instructions of a paper's figure: the table `figure` of its TOML."""

    id: str = ""
    question: str = ""
    metric: str = ""
    metrics: list[str] = []
    x: Literal["rounds", "interactions"] = "rounds"
    rows: str | list[str] = []
    columns: str | list[str] = []
    lines: list[str] = []
    baseline: dict[str, Any] = {}  # values of the setting that the others are tested against; empty: the first
    share_y: bool = True
    published: list[Published] = []
    trend: Trend | None = None
    scatter: Scatter | None = None
    tables: list[MetricTable] | None = None
    matrix: Matrix | None = None


# verdicts of numbers that were not compared
NOT_JUDGED, DATA_MISSING = "quick form: not judged", "data missing"


class Verdict(msgspec.Struct, frozen=True):
    """A published number beside ours."""

    what: str
    published: float | None  # None in the quick form, which cannot be compared
    verdict: str
    tolerance: str = ""
    source: str = ""
    data: str = ""
    ours: float | None = None
    sd: float | None = None
    runs: int = 0
    where: dict[str, Any] = {}
    metric: str = ""
    at: str = "final"
    other: float | None = None  # ours by the other choice of `metrics.empty`
    empty: Empty = "skip"  # the choice of `ours`


class Claim(msgspec.Struct, frozen=True):
    """A published conclusion; `holds` is None where the run does not decide it."""

    claim: str
    holds: bool | None = None
    evidence: str = ""
    id: str = ""  # within its figure
    metric: str = ""


class ComparisonRow(msgspec.Struct, frozen=True):
    """Two methods in one setting, over the runs that both have."""

    setting: str
    left: float | None = None
    right: float | None = None
    difference: float | None = None
    p: float | None = None
    corrected_p: float | None = None
    runs: int = 0
    unit: str = ""  # of the test: queries, folds or seeds; "" where none was possible
    pairs: int = 0
    mark: str = ""
    published_mark: str | None = None
    note: str = ""


class ComparisonTable(msgspec.Struct, frozen=True):
    """A table of two methods side by side; its title reads "A against B"."""

    title: str
    rows: list[ComparisonRow] = []
    metric: str = ""


class Manifest(msgspec.Struct, frozen=True):
    """Settings, data, machine, and the verdicts about a paper."""

    run: str = ""
    name: str = ""
    quick: bool = False
    chosen: str = ""  # options of the command that reduced the figure
    baseline: dict[str, Any] = {}  # of the spec or of --baseline: goes before the figure's
    tune: Literal["test", "validation"] = "test"  # part on which the best setting is chosen
    spec_toml: str = ""
    spec: dict[str, Any] = {}
    settings: list[SettingRecord] = []
    versions: dict[str, str] = {}
    commit: str | None = None
    machine: dict[str, Any] = {}
    started: str = ""
    finished: str = ""
    figure: FigureRecord | None = None
    verdicts: list[Verdict] = []
    claims: list[Claim] = []
    comparisons: list[ComparisonTable] = []
    remarks: list[str] = []


class Run(NamedTuple):
    dir: Path
    manifest: Manifest
    rows: Rows
    queries: Queries = pl.DataFrame(schema=QUERY_SCHEMA)


def read(folder: Path) -> Run:
    """A finished run, read from disk."""
    manifest, rows = folder / "manifest.json", folder / "rows.parquet"
    if not manifest.is_file() or not rows.is_file():
        raise StorageError(
            f"{folder}: not a finished run (manifest.json or rows.parquet is missing); run it to its end"
        )
    try:
        run = Run(folder, msgspec.json.decode(manifest.read_bytes(), type=Manifest), pl.read_parquet(rows))
        if (queries := folder / "queries.parquet").is_file():
            run = run._replace(queries=pl.read_parquet(queries))
    except msgspec.ValidationError as problem:
        raise StorageError(f"{folder}: manifest.json is not of this version of foltr ({problem})") from None
    except (ValueError, OSError, pl.exceptions.PolarsError) as problem:
        raise StorageError(f"{folder}: damaged ({problem}); run it again with the same command") from None
    if "client" not in run.rows.columns:  # a run of an older version
        run = run._replace(rows=run.rows.with_columns(client=pl.lit("")))
    if not set(_COLUMNS) < set(run.rows.columns):
        raise StorageError(f"{folder}: rows.parquet is not of this version of foltr; run the same command again")
    if dict(run.queries.schema) != QUERY_SCHEMA:
        raise StorageError(f"{folder}: queries.parquet is not of this version of foltr; run the same command again")
    return run


def write_manifest(folder: Path, manifest: Manifest, *, instead: str = "another folder with --out") -> None:
    write_json(folder / "manifest.json", msgspec.to_builtins(manifest), instead=instead)


def whole(rows: Rows) -> Rows:
    """Rows of the whole federation, without those of single clients."""
    return rows.filter(pl.col("client") == "")


def curves(rows: Rows, metric: str) -> Rows:
    """Mean, sd and number of runs of a metric of the whole federation, by setting and round."""
    return (
        whole(rows)
        .filter(pl.col("metric") == metric)
        .group_by("setting", "round")
        .agg(mean=pl.col("value").mean(), sd=pl.col("value").std(), runs=pl.len())
        .sort("setting", "round")
    )


def all_curves(rows: Rows) -> Rows:
    """`curves` of every metric, with its name."""
    parts = [curves(rows, metric).with_columns(metric=pl.lit(metric)) for metric in rows["metric"].unique()]
    return pl.concat(parts).sort("setting", "metric", "round")


def summary(rows: Rows) -> Rows:
    """One value a metric, client and single run; metric names as in `foltr run --json`."""
    if not (_latest and _latest[0] is rows):  # a page asks many times for the same rows, which may be millions
        parts = [_last(rows), _means(rows), _ends(rows)]
        _latest[:] = rows, pl.concat(parts).sort("setting", "metric", "client", "fold", "seed")
    return _latest[1]


_latest: list[Rows] = []  # rows, and their summary


_KEY = ["setting", "fold", "seed"]
_COLUMNS = [*_KEY, "metric", "client", "value"]


def _last(rows: Rows) -> Rows:
    """Metrics of the final ranker, the final discounted sum, and other final metrics."""
    final = rows.filter(~pl.col("metric").is_in(ONLINE))
    return final.sort("round").group_by([*_KEY, "metric", "client"]).agg(pl.col("value").last()).select(_COLUMNS)


def _weighted(rows: Rows) -> Rows:
    """Online rows with the number of rounds each stands for."""
    online = rows.filter(pl.col("metric").is_in(ONLINE)).sort("round")
    rounds = pl.col("round") - pl.col("round").shift(1, fill_value=0).over([*_KEY, "metric"])
    return online.with_columns(rounds=rounds)


def _mean_of(rows: Rows) -> Rows:
    value = (pl.col("value") * pl.col("rounds")).sum() / pl.col("rounds").sum()
    return rows.group_by([*_KEY, "metric", "client"]).agg(value=value).select(_COLUMNS)


def _means(rows: Rows) -> Rows:
    return _mean_of(_weighted(rows))


def _ends(rows: Rows) -> Rows:
    """MaxRR of the first round, and of the last tenth of the rounds."""
    max_rr = _weighted(rows).filter(pl.col("metric") == "online_max_rr")
    last = pl.col("round").max().over(_KEY)
    first = max_rr.filter(pl.col("round") == 1).with_columns(metric=pl.lit("online_max_rr_first"))
    tenth = max_rr.filter(pl.col("round") > last * 0.9).with_columns(metric=pl.lit("online_max_rr_last_tenth"))
    return pl.concat([first.select(_COLUMNS), _mean_of(tenth)])


class Statistic(NamedTuple):
    """Over folds and seeds."""

    mean: float
    sd: float
    runs: int


Statistics = dict[int, dict[str, Statistic]]  # setting -> metric -> statistic


def statistics(rows: Rows) -> Statistics:
    """Of the whole federation."""
    return _statistics(whole(summary(rows)), "metric")


def client_statistics(rows: Rows, metric: str = OFFLINE[0]) -> Statistics:
    """setting -> client -> statistic of a metric that was measured client by client."""
    return _statistics(summary(rows).filter(pl.col("client") != "", pl.col("metric") == metric), "client")


def _statistics(final: Rows, key: str) -> Statistics:
    table: Statistics = {}
    for (setting, name), part in final.group_by("setting", key, maintain_order=True):
        values = part["value"].to_numpy()
        sd = float(np.std(values, ddof=1)) if values.size > 1 else 0.0
        table.setdefault(int(str(setting)), {})[str(name)] = Statistic(float(values.mean()), sd, int(values.size))
    return table
