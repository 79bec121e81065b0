"""Which settings a claim compares, and how its evidence reads."""

from typing import Any

from foltr.lab import records
from foltr.lab.figures.compare import Values, find, flat_label, paired_values
from foltr.lab.records import SettingRecord

Decided = tuple[bool | None, str]  # whether the claim holds (None: not decided), and the evidence


def matches(run: records.Run, claim: dict[str, Any]) -> list[tuple[str, SettingRecord, SettingRecord]]:
    """Pairs of settings of the left and the right group that agree on the keys `by`."""
    pairs = []
    for left in find(run, claim["left"]):
        mine = flat_label(left)
        shared = {key: mine.get(key) for key in claim.get("by", [])}
        for right in find(run, {**claim["right"], **shared}):
            pairs.append((", ".join(f"{v}" for v in shared.values()), left, right))
    return pairs


def sure(mine: Values, other: Values) -> str:
    """The difference over folds (with seeds averaged, or over the seeds of one fold), and its standard error."""
    if mine.numbers.size < 2 or mine.runs != other.runs:
        return ""
    test = paired_values(mine, other)
    return f" ({test.difference:+.4f} ± {test.error:.4f}, {test.pairs} {test.unit})"


def named(setting: SettingRecord, claim: dict[str, Any]) -> str:
    label = flat_label(setting)
    return ", ".join(str(label.get(key)) for key in claim.get("by", []))


def decided(good: list[bool], evidence: list[str], *, majority: bool = False) -> Decided:
    """Holds in all cases, or in more than half of them where the paper says "in most cases"."""
    if not good:
        return None, ""
    held = f"{sum(good)} of {len(good)}: " if len(good) > 1 else ""
    holds = 2 * sum(good) > len(good) if majority else all(good)
    return holds, held + "; ".join(evidence)


def number(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.4f}"
