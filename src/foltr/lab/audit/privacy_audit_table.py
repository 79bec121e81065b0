"""What an audit found, for a terminal of 80 columns."""

from typing import Any

import msgspec
from rich import box
from rich.table import Table
from rich.text import Text

from foltr.lab.records import Data
from foltr.lab.reporting.labels import data_name, label_name

_COLUMNS = ("least squares", "least absolute")  # the best two; the others are in --json


def audit_tables(found: dict[str, Any]) -> list[Table]:
    """Up to three tables for each setting: clicks, membership, epsilon."""
    return [table for one in found["settings"] for table in _of_setting(one)]


def _of_setting(one: dict[str, Any]) -> list[Table]:
    data = data_name(msgspec.convert(one["data"], Data))
    name = f"{label_name(one['label'])}: {data}, fold {one['fold']}, seed {one['seed']}"
    tables = [_clicks(one, name), _membership(one, name)] if one["guessing"] else []
    return [*tables, *([_epsilon(one, name)] if one["epsilon"] else [])]


def _table(title: str, name: str, first: str, columns: list[str], caption: str) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD, title=Text(f"{title}\n{name}"), title_justify="left",
        caption=Text(caption, style="dim"), caption_justify="left", width=80,
    )  # fmt: skip
    table.add_column(first, overflow="fold")
    for column in columns:
        table.add_column(Text(column), justify="right", no_wrap=True)
    return table


def _clicks(one: dict[str, Any], name: str) -> Table:
    caption = (
        "precision / recall of guessed clicks; random: as many guesses at random; without: least absolute when the "
        "client's own message is not in the sum. Only the excess over both is a leak"
    )
    columns = [*(attack.replace(" ", "\n") for attack in _COLUMNS), "without", "random"]
    table = _table("Clicks behind messages", name, "the server sees", columns, caption)
    for row in one["guessing"]:
        best = row["attacks"][_COLUMNS[-1]]
        cells = [_pair(row["attacks"][attack]) for attack in _COLUMNS]
        without = _pair(best, "absent_") if "absent_precision" in best else ""
        chance = _pair({"precision": row["random_precision"], "recall": best["guessed"]})
        table.add_row(_seen(row), *cells, without, chance)
    return table


def _membership(one: dict[str, Any], name: str) -> Table:
    caption = "0.5 is chance for AUC, 0 for advantage (hits less false alarms); 95 % intervals"
    table = _table("Was a client in the sum?", name, "the server sees", ["AUC", "advantage"], caption)
    for row in one["membership"]:
        table.add_row(f"sum of {row['clients']:,} clients", _interval(row["auc"]), _interval(row["advantage"]))
    return table


def _epsilon(one: dict[str, Any], name: str) -> Table:
    caption = (
        f"at least: 95 % confidence, {one['epsilon'][0]['trials']:,} trials of the two worst neighbouring datasets"
    )
    table = _table("Epsilon", name, "release", ["at least", "ledger", "δ", "nominal"], caption)
    for row in one["epsilon"]:
        ledger = "infinite" if row["ledger"] is None else f"{row['ledger']:.3g}"
        nominal = "" if row["nominal"] is None else f"{row['nominal']:.3g}"
        table.add_row(row["release"], f"{row['at_least']:.3g}", ledger, f"{row['delta']:g}", nominal)
    return table


def _seen(row: dict[str, Any]) -> str:
    if row["clients"] > 1:
        return f"sum of {row['clients']:,} clients"
    return f"a message of {row['searches']} {'search' if row['searches'] == 1 else 'searches'}"


def _pair(found: dict[str, float], prefix: str = "") -> str:
    return f"{_share(found[prefix + 'precision'])} / {_share(found[prefix + 'recall'])}"


def _share(value: float) -> str:
    return f"{value:.2f}".removeprefix("0") if value < 1 else f"{value:.2f}"


def _interval(found: dict[str, float]) -> str:
    return f"{found['value']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"
