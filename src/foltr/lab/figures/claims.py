"""Published conclusions that a run decides: each kind is a function of the run and of the claim's table."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from foltr.lab import records
from foltr.lab.figures.compare import find, flat_label, paired_values, values
from foltr.lab.figures.evidence import Decided, decided, matches, named, number, sure
from foltr.lab.figures.spreads import (
    larger_difference,
    larger_step,
    less_spread,
    more_variable,
    never_clearly_greater,
    weakest_gains_most,
)
from foltr.lab.records import Claim, SettingRecord


def claims(run: records.Run, figure: dict[str, Any], missing: Sequence[str] = ()) -> list[Claim]:
    """Each claim of a figure, decided by the run; `missing`: collections that are not on this machine."""
    listed = figure.get("claim", [])
    if run.manifest.quick:
        return [Claim(claim["text"], None, "quick form", *_about(claim)) for claim in listed]
    why = _undecided(run, missing)
    verdicts = [CLAIMS[claim["kind"]](run, claim) for claim in listed]
    return [
        Claim(claim["text"], holds, evidence or (why if holds is None else ""), *_about(claim))
        for claim, (holds, evidence) in zip(listed, verdicts, strict=True)
    ]


def _about(claim: dict[str, Any]) -> tuple[str, str]:
    """Id and metric."""
    return claim.get("id", ""), claim.get("metric", "")


def _undecided(run: records.Run, missing: Sequence[str]) -> str:
    """Why a run has no settings that decide a claim."""
    reasons = [f"left out by {run.manifest.chosen}"] if run.manifest.chosen else []
    reasons += [f"{', '.join(missing)} is not on this machine"] if missing else []
    return ", or ".join(reasons) or "no setting of this run decides it"


def _greater(run: records.Run, claim: dict[str, Any]) -> Decided:
    """Every left setting is above its right one, by more than `margin` (0 if not given)."""
    return _all_pairs(run, claim, lambda a, b: a > b + claim.get("margin", 0.0))


def _close(run: records.Run, claim: dict[str, Any]) -> Decided:
    """Every left setting is within `margin` of its right one."""
    return _all_pairs(run, claim, lambda a, b: abs(a - b) <= claim["margin"])


def _ratio(run: records.Run, claim: dict[str, Any]) -> Decided:
    """Every left setting is at most `margin` times its right one."""
    evidence, held = [], []
    for name, left, right in matches(run, claim):
        a, b = (values(run, side, claim["metric"], "final").mean for side in (left, right))
        held.append(a <= claim["margin"] * b)
        times = f"1 / {b / a:,.1f}" if 0 < 2 * a < b else f"{a / b:.3f}"
        evidence.append(f"{name + ': ' if name else ''}{number(a)} against {number(b)}: {times}")
    return decided(held, evidence)


def _never_greater(run: records.Run, claim: dict[str, Any]) -> Decided:
    """No left setting is above its right one by more than `margin` (0 if not given)."""
    return _all_pairs(run, claim, lambda a, b: a <= b + claim.get("margin", 0.0))


def _falls_along(run: records.Run, claim: dict[str, Any]) -> Decided:
    """Within each group of settings the metric falls from one value of the key `along` to the next."""
    return _along(run, claim, ">", lambda earlier, later: later < earlier)


def _rises_along(run: records.Run, claim: dict[str, Any]) -> Decided:
    """The metric rises from first to last value and never falls by more than `margin` (0 if not given) in between."""
    margin = claim.get("margin", 0.0)
    return _along(run, claim, "<", lambda earlier, later: later > earlier - margin, last_above_first=True)


def _along(
    run: records.Run, claim: dict[str, Any], sign: str, good_step: Callable[[float, float], bool], *,
    last_above_first: bool = False,
) -> Decided:  # fmt: skip
    groups: dict[str, list[tuple[Any, float]]] = {}
    for setting in find(run, claim["left"]):
        label, name = flat_label(setting), named(setting, claim)
        mean = values(run, setting, claim["metric"], claim.get("at", "final")).mean
        groups.setdefault(name, []).append((label[claim["along"]], mean))
    evidence, good = [], []
    for name, points in groups.items():
        means = [mean for _, mean in sorted(points)]
        steps = all(good_step(earlier, later) for earlier, later in itertools.pairwise(means))
        good.append(steps and (means[-1] > means[0] or not last_above_first))
        evidence.append(f"{name}: {(f' {sign} ' if good[-1] else ', ').join(map(number, means))}")
    return decided(good, evidence)


def _above_own(run: records.Run, claim: dict[str, Any]) -> Decided:
    """The metric is above another one of the same runs, by more than `margin`."""
    return _against_own(run, claim, lambda a, b: a > b + claim["margin"])


def _near_own(run: records.Run, claim: dict[str, Any]) -> Decided:
    """The metric is within `margin` of another one of the same runs."""
    return _against_own(run, claim, lambda a, b: abs(a - b) <= claim["margin"])


def _clearly_above_own(run: records.Run, claim: dict[str, Any]) -> Decided:
    """The metric is above another one of the same runs by `margin` at least, and by more than two standard errors."""
    evidence, held = [], []
    for setting in find(run, claim["left"]):
        mean, error, words = _difference(run, setting, claim["metric"], claim["than"])
        held.append(mean >= claim["margin"] and mean > 2 * error)
        evidence.append(f"{named(setting, claim)}: {words}")
    return decided(held, evidence)


def _never_below_own(run: records.Run, claim: dict[str, Any]) -> Decided:
    """At none of `clicks` is the metric below the other by more than `margin`, nor beyond two standard errors.

    `significance = false`: the margin alone decides.
    """
    evidence, held = [], []
    for setting in find(run, claim["left"]):
        found = [_difference(run, setting, *names) for names in _at_clicks(claim)]
        significant = claim.get("significance", True)
        held.append(all(d >= -claim["margin"] and not (significant and d < -2 * error) for d, error, _ in found))
        worst = min(found, key=lambda one: one[0])
        evidence.append(f"{named(setting, claim)}: at worst {worst[2]}")
    return decided(held, evidence)


def _somewhere_below_own(run: records.Run, claim: dict[str, Any]) -> Decided:
    """At one of `clicks` at least the metric is below the other beyond two standard errors."""
    evidence, held = [], []
    for setting in find(run, claim["left"]):
        found = [_difference(run, setting, *names) for names in _at_clicks(claim)]
        held.append(any(d < -2 * error for d, error, _ in found))
        evidence.append(f"{named(setting, claim)}: at worst {min(found, key=lambda one: one[0])[2]}")
    return decided(held, evidence)


def _at_clicks(claim: dict[str, Any]) -> list[tuple[str, str]]:
    """The two metrics, for each number of clicks."""
    return [
        (claim["metric"].replace("{clicks}", str(one)), claim["than"].replace("{clicks}", str(one)))
        for one in claim.get("clicks", [""])
    ]


def _difference(run: records.Run, setting: SettingRecord, metric: str, than: str) -> tuple[float, float, str]:
    """Mean paired difference, its standard error, and words; the error is infinite where there is one pair."""
    mine, other = (values(run, setting, name, "final") for name in (metric, than))
    test = paired_values(mine, other)
    error = test.error if test.pairs > 1 else math.inf
    spread = f"{test.difference:+.4f} ± {error:.4f}, {test.pairs} {test.unit}"
    return test.difference, error, f"{number(mine.mean)} against {number(other.mean)} ({spread})"


def _below(run: records.Run, claim: dict[str, Any]) -> Decided:
    """The metric of every single run is below `margin`."""
    evidence, good = [], []
    for setting in find(run, claim["left"]):
        found = values(run, setting, claim["metric"], "final").numbers
        if found.size:
            good.append(bool(found.max() < claim["margin"]))
            evidence.append(f"{named(setting, claim)}: at most {found.max():.2g}, mean {found.mean():.2g}")
    return decided(good, evidence)


def _above(run: records.Run, claim: dict[str, Any]) -> Decided:
    """The mean of the metric over the runs of every setting is above `margin`."""
    evidence, good = [], []
    for setting in find(run, claim["left"]):
        mean = values(run, setting, claim["metric"], "final").mean
        good.append(mean > claim["margin"])
        evidence.append(f"{named(setting, claim)}: {number(mean)}")
    return decided(good, evidence)


def _all_pairs(run: records.Run, claim: dict[str, Any], good: Callable[[float, float], bool]) -> Decided:
    metric, at = claim["metric"], claim.get("at", "final")
    evidence, held = [], []
    for name, left, right in matches(run, claim):
        a, b = values(run, left, metric, at), values(run, right, metric, at)
        held.append(good(a.mean, b.mean))
        evidence.append(f"{name + ': ' if name else ''}{number(a.mean)} against {number(b.mean)}{sure(a, b)}")
    return decided(held, evidence, majority=claim.get("majority", False))


def _against_own(run: records.Run, claim: dict[str, Any], good: Callable[[float, float], bool]) -> Decided:
    evidence, held = [], []
    for setting in find(run, claim["left"]):
        mine, other = (values(run, setting, claim[key], "final") for key in ("metric", "than"))
        held.append(good(mine.mean, other.mean))
        evidence.append(f"{named(setting, claim)}: {number(mine.mean)} against {number(other.mean)}{sure(mine, other)}")
    return decided(held, evidence)


def _falls(run: records.Run, claim: dict[str, Any]) -> Decided:
    """After a fifth of the run the metric is higher than in its last tenth."""
    return _during(run, claim, "fifth", lambda early, late: late < early)


def _rises(run: records.Run, claim: dict[str, Any]) -> Decided:
    """From the "first" round or the "fifth" to the last tenth the metric rises by more than `margin`."""
    return _during(run, claim, claim["since"], lambda early, late: late > early + claim["margin"])


def _never_rises(run: records.Run, claim: dict[str, Any]) -> Decided:
    """From the "first" round or the "fifth" to the last tenth the metric rises by `margin` at most."""
    return _during(run, claim, claim["since"], lambda early, late: late <= early + claim["margin"])


_SINCE = {"first": "at first", "fifth": "after a fifth"}


def _during(run: records.Run, claim: dict[str, Any], since: str, good: Callable[[float, float], bool]) -> Decided:
    evidence, held = [], []
    for setting in find(run, claim["left"]):
        early, late = (values(run, setting, claim["metric"], at) for at in (since, "last_tenth"))
        held.append(good(early.mean, late.mean))
        label = named(setting, claim)
        evidence.append(
            f"{label + ': ' if label else ''}{number(early.mean)} {_SINCE[since]}, {number(late.mean)} in the last "
            f"tenth{sure(late, early)}"
        )
    return decided(held, evidence, majority=claim.get("majority", False))


def _common_factor(run: records.Run, claim: dict[str, Any]) -> Decided:
    """Ours / published is the same for all numbers of a source, up to `spread` (relative)."""
    ratios = [
        verdict.ours / verdict.published
        for verdict in run.manifest.verdicts
        if verdict.source == claim["source"] and verdict.ours is not None and verdict.published
    ]
    if not ratios:
        return None, "no numbers"
    spread = max(ratios) / min(ratios) - 1
    evidence = [
        f"ratios {min(ratios):.4f} to {max(ratios):.4f}, mean {np.mean(ratios):.4f}, spread {100 * spread:.2f} %"
    ]
    return decided([spread <= claim["spread"]], evidence)


CLAIMS = {
    "greater": _greater,
    "never-greater": _never_greater,
    "never-clearly-greater": never_clearly_greater,
    "larger-difference": larger_difference,
    "less-spread": less_spread,
    "more-variable": more_variable,
    "weakest-gains-most": weakest_gains_most,
    "close": _close,
    "ratio": _ratio,
    "falls-along": _falls_along,
    "rises-along": _rises_along,
    "above-own": _above_own,
    "near-own": _near_own,
    "clearly-above-own": _clearly_above_own,
    "never-below-own": _never_below_own,
    "somewhere-below-own": _somewhere_below_own,
    "larger-step": larger_step,
    "below": _below,
    "above": _above,
    "falls": _falls,
    "rises": _rises,
    "never-rises": _never_rises,
    "common-factor": _common_factor,
}
