"""Aggregators over the means of groups in runs: the groups, the noise of each sum, and liars of any length."""

import numpy as np
import pytest

from foltr.errors import SpecError
from foltr.federation.aggregators import FedAvg
from foltr.federation.robust import Median, TrimmedMean
from foltr.federation.round import Protection
from foltr.lab.runs.card import card_of
from foltr.lab.runs.single import run_setting
from foltr.lab.simulation.grouped import group_rows, grouped
from foltr.lab.simulation.population import load, task_of
from foltr.lab.simulation.protection import server_noise
from foltr.lab.simulation.task import protection_in
from foltr.lab.spec.parse import setting
from foltr.privacy.events import multiplier
from foltr.rng import stream
from foltr.secagg import two_in_process
from foltr.types import Updates


def spec(privacy=None, attack=None, secagg="one-server", **federation):
    shape = {"clients": 12, "interactions": 3, "rounds": 3, **federation}
    tables = {"data": {"name": "synthetic-mq2007@60", "folds": 1}, "federation": shape, "secagg": {"mode": secagg}}
    return tables | ({"privacy": privacy} if privacy else {}) | ({"attack": attack} if attack else {})


def trained(content, seed=1):
    one = setting(content)
    *_, result = run_setting(one, load(one.data, 1), seed)
    return result.parameters


def plain_mean(deltas, weights):
    return (weights[:, None] * deltas).sum(axis=0) / weights.sum()


def test_groups_part_the_rows_and_change_from_round_to_round():
    for clients, groups in ((12, 4), (13, 4)):
        found = group_rows(clients, groups, seed=1, round=1)
        assert sorted(np.concatenate(found).tolist()) == list(range(clients))
        assert {len(one) for one in found} <= {3, 4}
    rounds = [tuple(map(tuple, group_rows(12, 4, seed=1, round=round))) for round in range(20)]
    assert len(set(rounds)) == 20


def test_the_mean_of_groups_is_the_mean():
    deltas, weights = stream(1, purpose="data").normal(12 * 5).reshape(12, 5), np.arange(1.0, 13)
    combine = grouped(FedAvg(), plain_mean, 4, seed=1, num_byzantine=0)
    assert combine(deltas, weights, 0) == pytest.approx(plain_mean(deltas, weights), abs=1e-14)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_the_card_of_groups_is_that_of_a_federation_as_large_as_a_group(kind):
    """Noise is that of a group's sum: half of 20 clients are all of a group, and no sum has 18 of them."""
    privacy = {"kind": kind, "dropouts": 0.1, "corrupt": 0.05}  # one colluder of 10 and of 20
    grouped, alone = (card_of(setting(spec(privacy, **shape)), 46) for shape in (
        {"clients": 20, "groups": 2}, {"clients": 10}))  # fmt: skip
    for part in ("shares", "adversaries", "notes"):
        assert grouped[part] == alone[part]
    assert "no sum of fewer than 9 messages" in grouped["notes"][1]


@pytest.mark.parametrize("aggregator", [Median(), TrimmedMean()], ids=["median", "trimmed_mean"])
def test_liars_in_a_minority_of_groups_cannot_leave_the_range_of_honest_group_means(aggregator):
    """Any 3 of 28 clients lie by any length; 7 groups: at most 3 are spoiled, wherever the liars are."""
    deltas = stream(2, purpose="data").normal(28 * 5).reshape(28, 5)
    for seed in range(30):
        liars = stream(seed, purpose="attack").permutation(28)[:3]
        sent = deltas.copy()
        sent[liars] = 1e9 * stream(seed, round=1, purpose="attack").normal(15).reshape(3, 5)
        found = grouped(aggregator, plain_mean, 7, seed=seed, num_byzantine=3)(sent, np.ones(28), 0)
        honest = np.stack([
            deltas[rows].mean(axis=0)
            for rows in group_rows(28, 7, seed=seed, round=1) if not set(rows.tolist()) & set(liars.tolist())
        ])  # fmt: skip
        assert (honest.min(axis=0) <= found).all()
        assert (found <= honest.max(axis=0)).all()


def test_one_liar_decides_a_mean_and_not_a_median_of_groups():
    attack = {"kind": "unbounded", "num_attackers": 1}
    honest = trained(spec())
    mean = trained(spec(attack=attack))
    median = trained(spec(attack=attack, groups=4, aggregator="median"))
    assert np.linalg.norm(mean - honest) > 50 > 1 > np.linalg.norm(median - honest)


# noise and epsilon of each group


@pytest.mark.parametrize(("mode", "contributors"), [("one-server", [12, 3]), ("two-servers", [2, 2])])
def test_each_sum_of_a_group_has_the_noise_of_a_whole_release(mode, contributors):
    """The ledger's event does not depend on the number of groups; its noise is that of one group's sum."""
    privacy = {"kind": "gaussian", "epsilon": 4.0}
    events = [
        protection_in(task_of(one, load(one.data, 1), 1)[0]).event
        for one in (setting(spec(privacy, secagg=mode, groups=groups)) for groups in (1, 4))
    ]
    assert multiplier(events[0]) == multiplier(events[1])
    assert [event.noise_contributors for event in events] == contributors


def test_two_servers_add_fresh_noise_to_every_group():
    """Zero updates of 2,000 numbers in 4 groups: each sum has twice the variance of one noise (4.9 deviations)."""
    one = setting(spec({"kind": "gaussian", "epsilon": 4.0}, secagg="two-servers", groups=4))
    protection = protection_in(task_of(one, load(one.data, 1), 1)[0])
    add_noise = server_noise(protection, seed=1, clients=12, groups=4)
    none = Updates(np.zeros((12, 2000)), np.ones(12), np.arange(12), np.zeros(12, int))
    noisy = add_noise(none, np.zeros(2000), 1).values
    sums = np.stack([noisy[rows].sum(axis=0) for rows in group_rows(12, 4, seed=1, round=1)])
    each = np.square(sums).sum(axis=1) / protection.event.noise**2
    assert np.abs(each - 2000).max() < 4.9 * np.sqrt(2 * 2000)
    assert np.abs(np.corrcoef(sums) - np.eye(4)).max() < 4.9 / np.sqrt(2000)
    assert isinstance(protection, Protection)


def test_the_price_of_groups_is_the_root_of_their_number():
    """Mean of group means of zero updates: variance times the number of groups, within 4.9 deviations."""
    found = []
    for groups in (1, 4):
        one = setting(spec({"kind": "gaussian", "epsilon": 4.0}, secagg="two-servers", groups=groups))
        protection = protection_in(task_of(one, load(one.data, 1), 1)[0])
        add_noise = server_noise(protection, seed=3, clients=12, groups=groups)
        none = Updates(np.zeros((12, 4000)), np.ones(12), np.arange(12), np.zeros(12, int))
        values = add_noise(none, np.zeros(4000), 1).values
        combine = grouped(FedAvg(), plain_mean, groups, seed=3, num_byzantine=0)
        found.append(float(np.square(combine(values, np.ones(12), 0)).mean()))
    assert found[1] / found[0] == pytest.approx(4, abs=4 * 4.9 * np.sqrt(4 / 4000))


# executed sums of two servers


@pytest.mark.parametrize("groups", [1, 3])
def test_executed_sums_of_two_servers_are_the_simulated_ones(groups, monkeypatch):
    calls, real = [], two_in_process.two_server_sum
    monkeypatch.setattr(two_in_process, "two_server_sum", lambda rows: calls.append(len(rows)) or real(rows))
    simulated, executed = (
        trained(
            spec({"kind": "gaussian", "epsilon": 4.0, "secure_aggregation": how}, secagg="two-servers", groups=groups)
        )
        for how in (True, "execute")
    )
    assert executed == pytest.approx(simulated, abs=1e-7)
    assert not np.array_equal(executed, simulated)
    assert calls == [12 // groups] * 3 * groups


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (spec(groups=5), r"federation\.groups = 5: a group needs 3 clients or more; use 1 to 4"),
        (spec(groups=2, mode="buffered", buffer=4), "no buffered mode"),
        (spec({"kind": "gaussian", "adaptive": 0.5}, groups=2), "privacy.adaptive"),
        (spec(groups=4, aggregator="median", num_byzantine=2), "use 0 to 1"),
        (spec({"kind": "gaussian"}, aggregator="median"), r"use fedavg, federation\.groups"),
        (spec({"kind": "gaussian", "corrupt": 0.25}, groups=4), "no honest noise is left"),
        (spec({"kind": "gaussian", "secure_aggregation": False}, secagg="two-servers"), '"two-servers" goes with'),
    ],
)
def test_groups_that_cannot_be_are_refused(content, says):
    with pytest.raises(SpecError, match=says):
        setting(content)
