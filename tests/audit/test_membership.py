"""Was this client in the sum? Against the known power of the best test, and the intervals against plain counting."""

import numpy as np
import pytest
from scipy.stats import norm

from foltr.lab.audit.epsilon import Trials
from foltr.lab.audit.membership import advantage, auc, spread_of, statistic, sums
from foltr.rng import stream


def updates(count, size=4, seed=1):
    return stream(seed, purpose="choice").normal(count * size).reshape(count, size)


def test_the_statistic_has_unit_spread_without_the_target_and_rises_with_it():
    many = updates(20_000)
    others = spread_of(many)
    target = np.array([3.0, 0.0, 0.0, 0.0])
    totals = many[:20_000].reshape(1000, 20, 4).sum(axis=1)
    without = [statistic(total, target, others, 20) for total in totals]
    assert np.std(without) == pytest.approx(1, abs=0.1)  # four sd of a sd over 1,000
    swapped = totals - many.reshape(1000, 20, 4)[:, 0] + target
    rise = np.mean([statistic(total, target, others, 20) for total in swapped]) - np.mean(without)
    assert rise == pytest.approx(3 / np.sqrt(20), abs=0.1)  # |target| over the sd of the sum


@pytest.mark.parametrize("count", [5, 50])
def test_membership_is_as_clear_as_the_sizes_say(count):
    """Standard normal updates in 40 dimensions: |target| is about sqrt(40), a sum spreads by sqrt(count)."""
    many = updates(2000, size=40)
    found = auc(sums(many, many, count=count, trials=1000, draws=stream(2, purpose="choice")))
    expected = norm.cdf(np.sqrt(40 / count) / np.sqrt(2))
    # the target takes the place of one of the others inside, which lowers the spread a little: hence the tolerance
    assert found.low - 0.02 < expected < found.high + 0.02


def test_nobody_is_found_in_a_large_sum():
    many = updates(500)
    found = sums(many, many, count=2000, trials=400, draws=stream(3, purpose="choice"))
    assert auc(found).low < 0.5 + 0.05
    assert advantage(found).low < 0.05


def test_auc_counts_pairs():
    inside, outside = np.array([3.0, 1.0, 2.0]), np.array([0.0, 2.0])
    # 3 beats both, 1 beats one, 2 beats one and ties one: 2 + 1 + 1.5 of 6
    assert auc(Trials(inside, outside)).value == pytest.approx(4.5 / 6)


def test_auc_intervals_hold_the_truth_as_often_as_they_claim():
    often, truth = 300, norm.cdf(1 / np.sqrt(2))
    draws = stream(4, purpose="choice").normal(often * 120).reshape(often, 2, 60)
    held = [(found := auc(Trials(a + 1, b))).low <= truth <= found.high for a, b in draws]
    assert np.mean(held) > 0.95 - 3.1 * np.sqrt(0.95 * 0.05 / often)  # false alarm 1 in 1,000 were coverage exact


def test_advantage_is_hits_less_false_alarms():
    apart = advantage(Trials(np.arange(10.0, 20.0), np.arange(10.0)))
    assert apart.value == 1
    assert apart.low < 1 <= apart.high
    same = advantage(Trials(np.ones(100), np.ones(100)))
    assert same.value == 0
    assert same.low < 0 < same.high
