"""For a terminal of 80 columns: the table of settings by metrics, and the privacy cards."""

from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from foltr.lab.records import OFFLINE, VALIDATION, Run, SettingRecord
from foltr.lab.reporting.counted import counted_note
from foltr.lab.reporting.labels import (
    data_name,
    data_sets,
    difference,
    figure_of,
    is_synthetic,
    metric_name,
    overlap_warnings,
    p_value,
    setting_name,
)
from foltr.lab.reporting.privacy import COLUMNS, privacy_cards
from foltr.lab.reporting.significance import mark, method, significance, untested
from foltr.lab.reporting.tables import best_settings, main_metrics, metrics_of, settings_table


def terminal_table(run: Run, metrics: list[str] | None = None) -> Table:
    """Mean ± sd of a few metrics (default: the run's main ones), with the data named below."""
    content = settings_table(run, _shown(run) if metrics is None else metrics)
    footnote = _footnote(run, content.metrics)
    table = Table(box=box.SIMPLE_HEAD, caption=Text(footnote, style="dim"), caption_justify="left")
    table.add_column("setting", overflow="fold")
    for metric in content.metrics:
        # the kind of metric above its name keeps columns narrow
        table.add_column(Text(metric_name(metric).replace(" ", "\n", 1)), justify="right", no_wrap=True)
    table.add_column("runs", justify="right", no_wrap=True)
    for row in content.rows:
        cells = ["\n".join(filter(None, pair)) for pair in zip(row["cells"], row["others"], strict=True)]
        table.add_row(Text(row["name"]), *map(Text, cells), str(row["runs"]))
    return table


def _shown(run: Run) -> list[str]:
    """The main metrics; in a sweep of one's own, validation values beside those on test."""
    metrics = main_metrics(run)
    is_sweep = len(run.manifest.settings) > 1 and not figure_of(run.manifest).metric
    if is_sweep and OFFLINE[0] in metrics and VALIDATION[0] in metrics_of(run):
        metrics.insert(metrics.index(OFFLINE[0]) + 1, VALIDATION[0])
    return metrics if figure_of(run.manifest).metric else metrics[:_MOST_METRICS]


def terminal_tests(run: Run) -> Group:
    """The first main metric that was tested: every setting against its baseline, with the test in words below."""
    names = {setting.index: setting_name(setting) for setting in run.manifest.settings}
    found = next(((metric, tests) for metric in main_metrics(run) if (tests := significance(run, metric))), None)
    if found is None:
        return Group(*map(Text, best_settings(run)))
    metric, tests = found
    table = Table(box=box.SIMPLE_HEAD, caption=Text(method(tests), style="dim"), caption_justify="left")
    table.add_column("setting", overflow="fold")
    table.add_column("against", overflow="fold")
    for heading in (f"{metric_name(metric)}\ndifference", "p, after\nHolm"):
        table.add_column(Text(heading), justify="right", no_wrap=True)
    table.add_column("")
    for test in tests[:_MOST_TESTS]:
        change = difference(test.paired.difference, test.paired.left)
        sign = mark(test)
        table.add_row(
            *(Text(names[index]) for index in (test.setting, test.baseline)), change, p_value(test.corrected_p), sign
        )
    more = len(tests) - _MOST_TESTS
    left_out = [
        f"Not tested ({reason}): {'; '.join(names[index] for index in settings)}."
        for reason, settings in untested(run, tests).items()
    ]
    return Group(
        table,
        *([Text(f"and {more} more: see the page", style="dim")] if more > 0 else []),
        *map(Text, [*left_out, *best_settings(run)]),
    )


_MOST_METRICS = 3  # side by side in 80 columns
_MOST_TESTS = 20  # shown in a terminal


def _footnote(run: Run, metrics: list[str]) -> str:
    data = data_sets(run.manifest.settings)
    parts = ["mean ± sd over runs; " + (" and ".join(map(data_name, data)) or "unnamed data")]
    more = [metric_name(metric) for metric in main_metrics(run) if metric not in metrics]
    parts += [f"also measured (see --json or the page): {', '.join(more)}"] if more else []
    parts += filter(None, [counted_note(run, metrics)])
    if any(map(is_synthetic, data)):
        parts.append("SYNTHETIC data: not comparable with real search logs")
    parts += [f"WARNING: {warning}" for warning in overlap_warnings(run.manifest.settings)]
    if run.manifest.quick:
        parts.append("quick form: reduced, not comparable with the papers")
    return "\n".join(parts)


def terminal_cards(settings: list[SettingRecord]) -> Group:
    """`privacy_cards` for a terminal."""
    entries = privacy_cards(settings)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("setting", *COLUMNS):
        table.add_column(name, justify="left" if name == "setting" else "right", overflow="fold")
    for entry in entries:
        table.add_row(Text(entry["settings"]), *map(Text, entry["figures"]))
    return Group(table, *(part for entry in entries for part in _sentences(entry)))


def _sentences(entry: dict[str, Any]) -> list[Any]:
    listed = Table.grid(padding=(0, 1))
    for sentence in entry["sentences"]:
        listed.add_row("-", Text(sentence))
    return [Text(f"\n{entry['kind']} ({entry['settings']})", style="bold"), listed]
