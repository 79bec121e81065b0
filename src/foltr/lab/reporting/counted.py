"""Which test queries an offline mean counts, and the mean by the other choice beside it.

With `metrics.empty = "skip"` (the default) a query without a relevant document is left out of offline means, with
"zero" it counts as 0, as it always does online. Pages, terminal and JSON show both means and both numbers of queries:
beside the mean where there is room, else as the factor from one mean to the other in a note. Runs on texts leave such
queries out.
"""

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

import polars as pl

from foltr.lab.records import (
    DISCOUNTED,
    OFFLINE,
    ONLINE,
    UNLEARNING,
    Queries,
    Run,
    SettingRecord,
    Statistic,
    client_statistics,
    is_offline,
    lowest_relevant,
    other_name,
    statistics,
)
from foltr.lab.reporting.labels import metric_name, number, value_of
from foltr.types import OTHER, Empty

_SILO = ("ERR, ", "nDCG@10, ", "nDCG, ")  # beginnings of metrics of cross-silo training
_TESTED, _RELEVANT = "test queries", "test queries with a relevant document"  # its rows


class Counted(NamedTuple):
    """Test or validation queries over all folds that ran."""

    relevant: int  # with a relevant document
    tested: int


def empty_of(setting: SettingRecord) -> Empty:
    """How offline means of a setting treat queries without a relevant document."""
    return "zero" if value_of(setting, "metrics.empty") == "zero" else "skip"


def counted(run: Run) -> dict[tuple[int, str], Counted]:
    """(setting, stored name of a metric) -> test queries; empty for runs without values by query."""
    if not (_latest and _latest[0] is run.queries):  # a page asks many times for the same queries
        _latest[:] = run.queries, _counted(run.queries)
    found: dict[tuple[int, str], Counted] = _latest[1]
    return found


_latest: list[Any] = []  # queries, and their numbers


def _counted(queries: Queries) -> dict[tuple[int, str], Counted]:
    query = pl.struct("fold", "query")
    sizes = queries.group_by("setting", "metric").agg(
        relevant=query.filter(pl.col("value").is_not_null()).n_unique(), tested=query.n_unique()
    )
    return {(setting, metric): Counted(relevant, tested) for setting, metric, relevant, tested in sizes.iter_rows()}


def size_of(run: Run, setting: SettingRecord, metric: str) -> Counted | None:
    """Queries of one mean; None where a run of an earlier version does not say."""
    if metric.startswith("validation_"):
        by_grade = setting.data.validated if setting.data else ()
        return Counted(sum(by_grade[lowest_relevant(metric) :]), sum(by_grade)) if by_grade else None
    if metric.startswith(_SILO):
        cells = statistics(run.rows).get(setting.index, {})
        known = [round(cells[name].mean) for name in (_RELEVANT, _TESTED) if name in cells]
        return Counted(*known) if len(known) == 2 else None
    return counted(run).get((setting.index, OFFLINE[0] if metric in UNLEARNING else metric))


def other_mean(run: Run, setting: SettingRecord, metric: str) -> Statistic | None:
    """The mean by the other choice; None where it is the same, because every query has a relevant document."""
    cells = statistics(run.rows).get(setting.index, {})
    other = _other(run, setting, metric)
    return None if other is None or (metric in cells and other.mean == cells[metric].mean) else other


def _other(run: Run, setting: SettingRecord, metric: str) -> Statistic | None:
    """The mean by the other choice, stored or, for means over the queries of all parties, computed."""
    cells = statistics(run.rows).get(setting.index, {})
    if metric.startswith(_SILO) and metric in cells and (size := size_of(run, setting, metric)):
        share, mean = size.relevant / size.tested, cells[metric]
        return Statistic(mean.mean * share, mean.sd * share, mean.runs)
    return cells.get(other_name(metric, empty_of(setting)))


def other_words(mean: float | None, empty: Empty) -> str:
    """ "0.4990 over all", or with "zero" "0.6940 if relevant"; empty without such a mean."""
    return "" if mean is None else f"{number(mean)} {_by_other(empty)}"


def _by_other(empty: Empty) -> str:
    return "over all" if empty == "skip" else "if relevant"


def size_words(size: Counted | None, empty: Empty) -> str:
    """ "564 of 784 queries": those that a mean counts; empty where they are not known."""
    if size is None:
        return ""
    return f"{size.relevant if empty == 'skip' else size.tested:,} of {size.tested:,} queries"


def both_words(run: Run, setting: SettingRecord, metric: str) -> str:
    """ "0.6940 (564 of 784 queries; 0.4990 over all)": the mean, the queries that it counts, and the other mean."""
    cell, empty = statistics(run.rows)[setting.index][metric], empty_of(setting)
    other = other_mean(run, setting, metric)
    words = [size_words(size_of(run, setting, metric), empty), other_words(other.mean if other else None, empty)]
    inside = "; ".join(filter(None, words))
    return f"{number(cell.mean)} ({inside})" if inside else number(cell.mean)


def counted_note(run: Run, metrics: Iterable[str]) -> str:
    """Sentences about the queries that means of these metrics count; empty where there is nothing to say."""
    metrics = list(dict.fromkeys(metrics))
    sentences = [
        _note(run, [metric for metric in metrics if is_offline(metric) and not _is_validation(metric)], "test"),
        _note(run, [metric for metric in metrics if _is_validation(metric)], "validation"),
        _note(run, [metric for metric in metrics if metric.startswith(_SILO)], "texts"),
    ]
    if any(metric in (ONLINE[0], DISCOUNTED) for metric in metrics):
        sentences.append("Online nDCG@10 counts a query without a relevant document as 0.")
    return " ".join(filter(None, sentences))


def _is_validation(metric: str) -> bool:
    return metric.startswith("validation_")


_SUBJECT = {"test": "Offline means", "validation": "Validation means", "texts": "Means over queries"}


def _note(run: Run, metrics: list[str], part: str) -> str:
    """Where some settings skip such queries and others count them as 0, both ways, each with its key."""
    words = {empty: found for empty in OTHER if (found := _numbers(run, metrics, empty))}
    queries = "validation queries" if part == "validation" else "test queries"
    ways = {"skip": f"over the {queries} with a relevant document", "zero": f"over all {queries}"}
    parts = {
        empty: f"{ways[empty]} ({'with a relevant document: ' if empty == 'zero' else ''}{found})"
        for empty, found in words.items()
    }
    if len(parts) == 2:
        each = "; ".join(f'with metrics.empty = "{empty}" {words}' for empty, words in parts.items())
        return f"{_SUBJECT[part]} are counted in two ways, not to be compared with each other: {each}."
    return "".join(f"{_SUBJECT[part]} are {words}." for words in parts.values())


def _numbers(run: Run, metrics: list[str], empty: Empty) -> str:
    """ "mq2007: 1,433 of 1,692; over all x 0.847", with names where metrics or data sets differ."""
    named: dict[str, dict[str, None]] = {}  # numbers -> metrics that count so many
    settings = [setting for setting in run.manifest.settings if empty_of(setting) == empty]
    for metric, (name, members) in itertools.product(metrics, _by_data(settings).items()):
        sizes = [size for setting in members if (size := size_of(run, setting, metric)) is not None]
        for relevant, tested in dict.fromkeys(sizes):
            same = [one for one in members if size_of(run, one, metric) == (relevant, tested)]
            key = f"{name}{relevant:,} of {tested:,}{_factor(run, same, metric, empty)}"
            named.setdefault(key, {})[metric_name(metric)] = None
    apart = len({tuple(those) for those in named.values()}) > 1
    return "; ".join(f"{size} by {', '.join(those)}" if apart else size for size, those in named.items())


def _by_data(settings: list[SettingRecord]) -> dict[str, list[SettingRecord]]:
    found: dict[str, list[SettingRecord]] = {}
    for setting in settings:
        found.setdefault(f"{setting.data.name}: " if setting.data else "", []).append(setting)
    return found


def _factor(run: Run, settings: list[SettingRecord], metric: str, empty: Empty) -> str:
    """ ", over all x 0.847": the other mean divided by this one, over the settings; empty where both are the same."""
    measured = statistics(run.rows)
    pairs = [(other_mean(run, one, metric), measured.get(one.index, {}).get(metric)) for one in settings]
    factors = sorted(f"{other.mean / mine.mean:.3f}" for other, mine in pairs if other and mine and mine.mean)
    if not factors:
        return ""
    words = factors[0] if factors[0] == factors[-1] else f"{factors[0]} to {factors[-1]}"
    return f", {_by_other(empty)} x {words}"


def as_json(run: Run, setting: SettingRecord, metric: str) -> dict[str, Any]:
    """Further entries of a metric: the choice for queries without a relevant document, both means, both numbers."""
    if metric in (ONLINE[0], DISCOUNTED):
        return {"empty": "zero"}
    empty, cells, size = empty_of(setting), statistics(run.rows)[setting.index], size_of(run, setting, metric)
    other = _other(run, setting, metric)
    means = {} if other is None else {"empty": empty, empty: cells[metric].mean, OTHER[empty]: other.mean}
    return means if size is None else {**means, "queries": size.tested, "relevant_queries": size.relevant}


def clients_as_json(run: Run, setting: SettingRecord) -> dict[str, dict[str, Any]]:
    """Client -> nDCG@10 on its own test queries: mean, sd, runs, both means, both numbers."""
    empty = empty_of(setting)
    mine, others = (
        client_statistics(run.rows, name).get(setting.index, {}) for name in (OFFLINE[0], other_name(OFFLINE[0], empty))
    )
    found: dict[str, dict[str, Any]] = {client: one._asdict() for client, one in mine.items()}
    for client, other in others.items():
        found[client] |= {"empty": empty, empty: mine[client].mean, OTHER[empty]: other.mean}
    for client, (relevant, tested) in setting.clients.items():
        found[client] |= {"queries": tested, "relevant_queries": relevant}
    return found
