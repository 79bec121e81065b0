"""Claims about differences, spreads and variation, beyond which of two means is larger."""

import math
from typing import Any

import numpy as np

from foltr.lab import records
from foltr.lab.figures.compare import find, flat_label, paired, values
from foltr.lab.figures.evidence import Decided, decided, matches, named, number
from foltr.lab.reporting.labels import p_value
from foltr.lab.reporting.significance import SIGNIFICANT
from foltr.types import Array


def never_clearly_greater(run: records.Run, claim: dict[str, Any]) -> Decided:
    """No left setting is significantly above its right one (paired t-test, p < .05, not corrected)."""
    evidence, held = [], []
    for name, left, right in matches(run, claim):
        test = paired(run, left, right, claim["metric"], claim.get("at", "final"))
        if test.pairs < 2:
            return None, "needs two runs or more of every setting"
        held.append(not (test.difference > 0 and test.p < SIGNIFICANT))
        words = f"{number(test.left)} against {number(test.right)} ({test.difference:+.4f} ± {test.error:.4f}"
        evidence.append(f"{name + ': ' if name else ''}{words}, {test.pairs} {test.unit}, p {p_value(test.p)})")
    return decided(held, evidence)


def larger_difference(run: records.Run, claim: dict[str, Any]) -> Decided:
    """Left minus right is larger than the same difference of another pair of settings, or of the pair at another place.

    `other_left`, `other_right` and `other_at` say what differs; the pairs agree on the keys `by`.
    """
    at = claim.get("at", "final")
    evidence, held = [], []
    for name, left, right in matches(run, claim):
        shared = {key: flat_label(left).get(key) for key in claim.get("by", [])}
        others = [find(run, {**claim.get(f"other_{side}", claim[side]), **shared}) for side in ("left", "right")]
        if not all(others):
            continue
        mine, other = (
            values(run, high, claim["metric"], place).mean - values(run, low, claim["metric"], place).mean
            for high, low, place in ((left, right, at), (others[0][0], others[1][0], claim.get("other_at", at)))
        )
        held.append(mine > other)
        evidence.append(f"{name + ': ' if name else ''}{mine:+.4f} against {other:+.4f}")
    return decided(held, evidence, majority=claim.get("majority", False))


def less_spread(run: records.Run, claim: dict[str, Any]) -> Decided:
    """Within each group the means of the left settings lie closer together than those of the right ones."""
    spreads: list[dict[str, float]] = []
    for side in ("left", "right"):
        groups: dict[str, list[float]] = {}
        for setting in find(run, claim[side]):
            mean = values(run, setting, claim["metric"], claim.get("at", "final")).mean
            groups.setdefault(named(setting, claim), []).append(mean)
        spreads.append({name: max(means) - min(means) for name, means in groups.items()})
    shared = [name for name in spreads[0] if name in spreads[1]]
    evidence = [f"{name}: {spreads[0][name]:.4f} against {spreads[1][name]:.4f}" for name in shared]
    return decided([spreads[0][name] < spreads[1][name] for name in shared], evidence)


def more_variable(run: records.Run, claim: dict[str, Any]) -> Decided:
    """The left setting varies more from run to run (standard deviation) than the right one."""
    evidence, held = [], []
    for name, left, right in matches(run, claim):
        mine, other = (values(run, side, claim["metric"], claim.get("at", "final")) for side in (left, right))
        if mine.numbers.size < 2 or other.numbers.size < 2:
            return None, "needs two runs or more of every setting"
        held.append(mine.sd > other.sd)
        evidence.append(f"{name + ': ' if name else ''}{mine.sd:.4f} against {other.sd:.4f}")
    return decided(held, evidence)


def weakest_gains_most(run: records.Run, claim: dict[str, Any]) -> Decided:
    """In the mean over runs, the party with the lowest `metric` has a larger `gain` than the one with the highest.

    Both names contain {party}, which stands for 1 to `parties`.
    """
    evidence, held = [], []
    for setting in find(run, claim["left"]):
        strength, gain = (
            np.stack(
                [
                    values(run, setting, claim[key].replace("{party}", str(party)), "final").numbers
                    for party in range(1, claim["parties"] + 1)
                ]
            )
            for key in ("metric", "gain")
        )  # [parties, runs]
        runs = np.arange(strength.shape[1])
        weakest, strongest = gain[strength.argmin(axis=0), runs], gain[strength.argmax(axis=0), runs]
        held.append(bool(weakest.mean() > strongest.mean()))
        words = f"{weakest.mean():+.4f} against {strongest.mean():+.4f}{_spread_of(weakest - strongest)}"
        evidence.append(f"{named(setting, claim)}: {words}")
    return decided(held, evidence, majority=claim.get("majority", False))


def _spread_of(differences: Array) -> str:
    """Mean difference over the runs with its standard error; empty for a single run."""
    runs = len(differences)
    if runs < 2:
        return ""
    error = differences.std(ddof=1) / math.sqrt(runs)
    return f" ({differences.mean():+.4f} ± {error:.4f}, {runs} runs)"


def larger_step(run: records.Run, claim: dict[str, Any]) -> Decided:
    """Of three metrics of the same runs, the second adds more to the first than the third to the second."""
    evidence, held = [], []
    for setting in find(run, claim["left"]):
        first, second, third = (values(run, setting, metric, "final").mean for metric in claim["metrics"])
        held.append(second - first > third - second)
        evidence.append(f"{named(setting, claim)}: {second - first:+.4f} against {third - second:+.4f}")
    return decided(held, evidence)
