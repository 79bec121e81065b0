"""For a terminal of 80 columns: the table of settings by metrics, and the privacy cards."""

from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from foltr.lab.records import Run, SettingRecord
from foltr.lab.reporting.labels import data_name, data_sets, is_synthetic, metric_name
from foltr.lab.reporting.privacy import COLUMNS, privacy_cards
from foltr.lab.reporting.tables import main_metrics, settings_table


def terminal_table(run: Run, metrics: list[str] | None = None) -> Table:
    """Mean ± sd of a few metrics (default: the run's main ones), with the data named below."""
    content = settings_table(run, main_metrics(run) if metrics is None else metrics)
    table = Table(box=box.SIMPLE_HEAD, caption=Text(_footnote(run), style="dim"), caption_justify="left")
    table.add_column("setting", overflow="fold")
    for metric in content.metrics:
        # the kind of metric above its name keeps columns narrow
        table.add_column(Text(metric_name(metric).replace(" ", "\n", 1)), justify="right", no_wrap=True)
    table.add_column("runs", justify="right", no_wrap=True)
    for row in content.rows:
        table.add_row(Text(row["name"]), *map(Text, row["cells"]), str(row["runs"]))
    return table


def _footnote(run: Run) -> str:
    data = data_sets(run.manifest.settings)
    parts = ["mean ± sd over runs; " + (" and ".join(map(data_name, data)) or "unnamed data")]
    if any(map(is_synthetic, data)):
        parts.append("SYNTHETIC data: not comparable with real search logs")
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
