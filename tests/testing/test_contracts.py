"""The contract suites for other people's kinds find each broken law, and say which."""

import subprocess
import sys
from typing import ClassVar

import msgspec
import numpy as np
import pytest

from foltr.testing import check_aggregator, check_attack


class Mean(msgspec.Struct, frozen=True, tag_field="kind", tag="mean"):
    """A right aggregator, as somebody else would write it."""

    sees: ClassVar[str] = "single"

    def __call__(self, values, weights, *, num_byzantine):
        rows = np.asarray(values, dtype=float)
        rows = rows[np.isfinite(rows).all(axis=1)]
        return rows.mean(axis=0) if len(rows) else np.zeros(rows.shape[1])

    def max_byzantine(self, n):
        return (n - 1) // 2


def broken_aggregator(call, **traits):
    return type("Broken", (), {"__call__": call, "max_byzantine": Mean.max_byzantine, "sees": "single", **traits})


def mean(values, weights=None):
    return Mean()(values, weights, num_byzantine=0)


def drifting():
    calls = iter(range(10**9))

    def call(self, values, weights, *, num_byzantine):
        return mean(values) * (1 + 1e-3 * next(calls))

    return call


def overwriting(self, values, weights, *, num_byzantine):
    result = mean(values)
    values[:] = 0.0
    return result


def first(self, values, weights, *, num_byzantine):
    rows = values[np.isfinite(values).all(axis=1)]
    return rows[0].astype(float) if len(rows) else np.zeros(values.shape[1])


def bounded(self, values, weights, *, num_byzantine):
    result = mean(values)
    return result / max(1.0, np.abs(result).max())


def halved(self, values, weights, *, num_byzantine):
    return 0.5 * mean(values)


def scalar(self, values, weights, *, num_byzantine):
    return mean(values).sum()


def averaging_broken_rows(self, values, weights, *, num_byzantine):
    return np.nan_to_num(np.asarray(values, dtype=float), posinf=0.0, neginf=0.0).sum(axis=0) / max(1, len(values))


def dividing_by_what_is_left(self, values, weights, *, num_byzantine):
    with np.errstate(all="ignore"):
        left = len(values) - 2 * num_byzantine
        return np.zeros(values.shape[1]) if not len(values) else mean(values) * np.divide(left, left)


def test_a_right_aggregator_passes():
    check_aggregator(Mean)


@pytest.mark.parametrize(
    ("call", "law"),
    [
        (drifting(), "the same updates give two results"),
        (overwriting, "changes the values"),
        (first, "order of clients matters"),
        (bounded, r"identical updates|scaling all values"),
        (halved, "identical updates do not give that update"),
        (scalar, r"has the shape \(\), not \(4,\)"),
        (averaging_broken_rows, "is not left out"),
        (dividing_by_what_is_left, "the result is not finite"),
    ],
)
def test_a_broken_law_of_aggregators_is_named(call, law):
    with pytest.raises(AssertionError, match=f"Broken: .*{law}"):
        check_aggregator(broken_aggregator(call))


def call_mean(self, values, weights, *, num_byzantine):
    return mean(values)


def median(self, values, weights, *, num_byzantine):
    rows = np.asarray(values, dtype=float)
    rows = rows[np.isfinite(rows).all(axis=1)]
    return np.median(rows, axis=0) if len(rows) else np.zeros(rows.shape[1])


def shortened(self, values, weights, *, num_byzantine):
    """Norm bounding: a delta has a length only from the origin."""
    rows = np.asarray(values, dtype=float)
    rows = rows[np.isfinite(rows).all(axis=1)]
    if not len(rows):
        return np.zeros(rows.shape[1])
    norms = np.linalg.norm(rows, axis=1)
    return (rows * np.minimum(1.0, np.median(norms) / np.where(norms > 0, norms, 1.0))[:, None]).mean(axis=0)


@pytest.mark.parametrize(
    ("call", "traits", "law"),
    [
        (call_mean, {"sees": "all"}, 'use "sum" or "single"'),
        (call_mean, {"max_byzantine": lambda self, n: n / 2}, "is no int"),
        (call_mean, {"max_byzantine": lambda self, n: n}, "there must be an honest client"),
        (median, {"sees": "sum"}, "no function of the weighted sum"),
        (shortened, {"translation_equivariant": True}, "does not add it to the result"),
        (call_mean, {"is_weighted_mean": True}, "not the weighted mean"),  # it leaves out the weights
    ],
)
def test_a_wrong_trait_of_an_aggregator_is_named(call, traits, law):
    with pytest.raises(AssertionError, match=law):
        check_aggregator(broken_aggregator(call, **traits))


def test_ties_that_are_declared_are_allowed():
    check_aggregator(broken_aggregator(first, has_ties=lambda self, n, num_byzantine: True))


class Noise(msgspec.Struct, frozen=True, tag_field="kind", tag="noise"):
    """A right attack, as somebody else would write it."""

    needs: ClassVar[frozenset] = frozenset({"updates"})
    num_attackers: int = 0
    knowledge: str = "partial"
    scale: float = 1.0

    def craft(self, view):
        size = (view.num_attackers, len(view.model))
        return self.scale * view.draws.normal(size[0] * size[1]).reshape(size)


def broken_attack(craft, **traits):
    def init(self, num_attackers, knowledge):
        self.num_attackers, self.knowledge = num_attackers, knowledge

    return type("Broken", (), {"__init__": init, "craft": craft, "needs": frozenset({"updates"}), **traits})


def unpredictable():
    calls = iter(range(10**9))
    return lambda self, view: view.deltas[: view.num_attackers] + next(calls)


def overwriting_deltas(self, view):
    view.deltas[: view.num_attackers] *= -1.0
    return view.deltas[: view.num_attackers].copy()


def test_a_right_attack_passes():
    check_attack(Noise)
    check_attack(Noise, scale=10.0)


@pytest.mark.parametrize(
    ("craft", "traits", "law"),
    [
        (lambda self, view: view.deltas, {}, r"has the shape \(3, 5\), not \(0, 5\)"),
        (lambda self, view: view.deltas[: view.num_attackers] / 0.0, {}, "not finite"),
        (overwriting_deltas, {}, "changes the deltas"),
        (lambda self, view: view.deltas[: view.num_attackers], {}, "a view of the deltas"),
        (unpredictable(), {}, "the same view gives two results"),
        (lambda self, view: np.tile(-view.deltas.mean(axis=0), (view.num_attackers, 1)), {}, "rows of others matter"),
        (Noise.craft, {"needs": {"models"}}, "needs = "),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_a_broken_law_of_attacks_is_named(craft, traits, law):
    with pytest.raises(AssertionError, match=f"Broken: .*{law}"):
        check_attack(broken_attack(craft, **traits))


def test_the_suites_and_fedavg_need_numpy_only():
    """A machine without the lab's dependencies can test a plug-in, and average."""
    code = (
        "import sys; from foltr import registry, testing; "
        "[testing.CHECKS[slot](registry.kind(slot, name)) for slot, name in "
        "[('aggregator', 'fedavg'), ('ranker', 'mlp'), ('learner', 'pdgd'), ('mechanism', 'gaussian')]]; "
        "print(sorted({'numba', 'llvmlite', 'scipy', 'polars', 'hypothesis'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
