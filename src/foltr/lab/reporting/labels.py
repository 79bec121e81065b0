"""Names and numbers as a reader sees them: settings, swept keys, metrics, data sets; digits, differences, durations."""

import json
import math
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from foltr.lab.records import OFFLINE, Data, FigureRecord, Manifest, SettingRecord, is_offline

NOTHING = "–"


def figure_of(manifest: Manifest) -> FigureRecord:
    """Drawing instructions of a run; without a figure, all defaults."""
    return manifest.figure or FigureRecord()


def value_of(setting: SettingRecord, key: str) -> Any:
    """The value of a dotted key: from the label, else from the resolved spec, else None."""
    label = setting.label
    if key in label:
        return label[key]
    place: Any = setting.resolved
    for part in key.split("."):
        if not isinstance(place, dict) or part not in place:
            return None
        place = place[part]
    return place


def swept_keys(settings: list[SettingRecord]) -> list[str]:
    """Keys that tell the settings apart, in the order in which they were written."""
    keys = dict.fromkeys(key for setting in settings for key in setting.label)
    return [key for key in keys if len({plain(value_of(setting, key)) for setting in settings}) > 1]


def plain(value: Any) -> str:
    """A value as text, so that 1, 1.0 and "1" from TOML, JSON and published tables meet."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def spoken(key: str, value: Any) -> str:
    """ "perfect" for users.clicks = "perfect", "ε 1.2" for privacy.epsilon = 1.2."""
    if isinstance(value, str) and value != "none":
        return value
    *_, table, last = ["", *key.split(".")]
    return f"{KEY_NAMES.get(key) or (table if last == 'kind' else last)} {plain(value)}"


def described(setting: SettingRecord, keys: list[str]) -> str:
    """The setting's values of some keys in a row; keys that it does not have are left out."""
    pairs = [(key, value_of(setting, key)) for key in keys]
    return ", ".join(spoken(key, value) for key, value in pairs if value is not None)


def setting_name(setting: SettingRecord) -> str:
    """Its title, else the values that the sweep varies."""
    return setting.title or label_name(setting.label)


def label_name(label: dict[str, Any]) -> str:
    """ "perfect, ε 1.2": the values that the sweep varies."""
    return ", ".join(spoken(key, value) for key, value in label.items() if value is not None) or "the only setting"


def figure_metrics(manifest: Manifest) -> list[str]:
    """Metrics that the figure of a paper is about; empty where the run belongs to none."""
    figure = figure_of(manifest)
    return list(figure.metrics or filter(None, [figure.metric]))


def listed_metrics(manifest: Manifest) -> list[str]:
    """Metrics that settings are compared by: those that the spec lists, else nDCG@10."""
    listed = list(dict.fromkeys(metric for setting in manifest.settings for metric in setting.metrics))
    return listed if listed and listed != list(OFFLINE) else [OFFLINE[0]]


def scatter_metrics(manifest: Manifest) -> set[str]:
    """Coordinates and grades of a scatter's points: no measurements, so no curve and no table shows them."""
    scatter = figure_of(manifest).scatter
    return {scatter.x, scatter.y, scatter.grade} if scatter else set()


def metric_name(metric: str) -> str:
    """ "offline nDCG@10"; the names of other offline metrics stay as a spec has them: "offline ERR(max_rel=2)@10"."""
    return METRIC_NAMES.get(metric, metric.replace("_", " ", 1 if is_offline(metric) else -1))


def picture_name(manifest: Manifest, metrics: Sequence[str]) -> str:
    """Title of a picture: its only metric, or what a trend calls those that it draws together."""
    trend, names = figure_of(manifest).trend, [metric_name(metric) for metric in metrics]
    if trend is None or not trend.metrics:
        return names[0]
    return trend.y or shared_start(names).removesuffix(", ") or ", ".join(names)


def shared_start(names: list[str]) -> str:
    """ "nDCG@10, " of "nDCG@10, Local" and "nDCG@10, Global": all that they share, up to a comma."""
    heads = zip(*(name.split(", ")[:-1] for name in names), strict=False)
    return "".join(f"{head[0]}, " for head in takewhile(lambda head: len(set(head)) == 1, heads))


def is_synthetic(data: Data) -> bool:
    return "synthetic" in f"{data.name} {data.note}".lower()


def data_name(data: Data) -> str:
    """ "mq2007 (85 % sample)"."""
    return f"{data.name} ({data.note})" if data.note else data.name


def overlap_warnings(settings: list[SettingRecord]) -> list[str]:
    """A sentence for each data set whose test queries are among those that its rankers were trained on."""
    warnings = []
    for data in data_sets(settings):
        shared, tested = data.shared_with_train, data.tested
        if shared:
            by_id = f"{data.shared_ids:,} by id" if data.shared_ids < shared else "by id"
            how = by_id if data.shared_ids else "by content, under other ids"
            warnings.append(
                f"{data.name}: {shared:,} of {tested:,} test queries are training queries ({how}): "
                "test values are too high."
            )
        if data.shared_with_validation:
            warnings.append(
                f"{data.name}: {data.shared_with_validation:,} of {tested:,} test queries are validation queries."
            )
    return warnings


def data_sets(settings: list[SettingRecord]) -> list[Data]:
    """Each data set once, in the order of the settings."""
    return list(dict.fromkeys(setting.data for setting in settings if setting.data is not None))


def data_names(settings: list[SettingRecord]) -> str:
    """All of them in a row, for a caption."""
    return " and ".join(map(data_name, data_sets(settings))) or "unnamed data"


KEY_NAMES = {"privacy.epsilon": "ε", "privacy.delta": "δ", "personalize.mu": "μ", "learner.sigma": "σ"}

METRIC_NAMES = {
    "offline_ndcg@10": "offline nDCG@10",
    "validation_ndcg@10": "validation nDCG@10",
    "residual": "residual",
    "honest": "nDCG@10, honest, 10H-0M",
    "attacked": "nDCG@10, attacked, 9H-1M",
    "retrained": "nDCG@10, retrained, 9H-0M",
    "honest history": "nDCG@10, honest history",
    "offline_mrr@10": "offline MRR@10",
    "validation_mrr@10": "validation MRR@10",
    "online_ndcg@10": "online nDCG@10",
    "discounted_online_ndcg": "discounted online nDCG@10",
    "online_max_rr": "online MaxRR",
    "online_max_rr_first": "online MaxRR, first update",
    "online_max_rr_last_tenth": "online MaxRR, last tenth",
}


def number(value: float | int | None, digits: int | None = None) -> str:
    """4,000,000 / 304.1 / 12.30 / 0.4071; the dash for what is missing or not a number."""
    if value is None or math.isnan(value):
        return NOTHING
    if isinstance(value, int):
        return f"{value:,}"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return _minus(f"{value:,.{decimals(value) if digits is None else digits}f}")


def decimals(value: float) -> int:
    """Digits after the point that leave about four that count."""
    size = abs(value)
    return 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 10 else 3 if size >= 1 else 4


def difference(value: float | None, left: float | None) -> str:
    """With its sign, and with the digits of the number that it was taken from."""
    text = number(value, None if left is None or not math.isfinite(left) else decimals(left))
    return f"+{text}" if value is not None and value > 0 else text


def mean_sd(mean: float | None, sd: float | None, runs: int) -> str:
    """Mean ± sd with the same digits for both; a single run has no sd."""
    if mean is None or sd is None or runs < 2 or not math.isfinite(mean) or not math.isfinite(sd):
        return number(mean)
    digits = decimals(mean)
    return _minus(f"{mean:,.{digits}f} ± {sd:,.{digits}f}")


def p_value(p: float | None) -> str:
    """< .001 / .012 / 1, as papers print them."""
    if p is None or math.isnan(p):
        return NOTHING
    if p < 0.001:
        return "< .001"
    return "1" if p >= 0.9995 else f"{p:.3f}".removeprefix("0")


def duration(seconds: float | None) -> str:
    """12.3 s / 4 min 05 s / 2 h 07 min."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def _minus(text: str) -> str:
    return text.replace("-", "−")
