"""One contract for all attacks, and for each: what it claims to do, checked by arithmetic or a slow search."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest, norm

from foltr import registry
from foltr.errors import SpecError
from foltr.federation.aggregators import aggregator_kind
from foltr.lab.attacks.attack import AttackView, check_num_attackers, transform_of
from foltr.lab.attacks.fang import krum_lambda
from foltr.lab.attacks.lie import largest_z
from foltr.lab.attacks.min_max import largest_gamma
from foltr.lab.attacks.plain import Unbounded
from foltr.rng import stream
from foltr.testing import check_attack
from foltr.types import Updates

AGGREGATORS = registry.names("aggregator")
ATTACKS = {name: registry.kind("attack", name) for name in registry.names("attack")}

SEEDS = st.integers(0, 2**32)
KNOWLEDGE = ["full", "partial"]
DRAWS = stream(7, round=3, purpose="choice")
CRAFTING = [name for name, kind in ATTACKS.items() if "updates" in kind.needs]
attacks = pytest.mark.parametrize("attack", ATTACKS)
knowledges = pytest.mark.parametrize("knowledge", KNOWLEDGE)


def scene(seed, clients=10, width=6, drift=0.5):
    """Honest models [n, P] around a common step from the start [P]."""
    draws = stream(seed, purpose="choice")
    start = draws.normal(width)
    common = drift * draws.skip(50).normal(width)
    return start + common + draws.skip(100).normal(clients * width).reshape(clients, width), start


def send(attack, honest, start, attackers, *, aggregator="krum", knowledge="full", draws=DRAWS):
    """The models that all clients send: deltas are crafted, put in the attackers' rows, and added to the start."""
    view = AttackView(honest - start, start, attackers, aggregator, knowledge, draws)
    crafted = ATTACKS[attack](num_attackers=attackers, knowledge=knowledge).craft(view)
    return np.vstack([start + crafted, honest[attackers:]])


def aggregated(aggregator, models, start, num_byzantine):
    return start + aggregator_kind(aggregator)()(models - start, np.ones(len(models)), num_byzantine=num_byzantine)


@attacks
def test_every_attack_keeps_the_contract(attack):
    check_attack(ATTACKS[attack])


def test_attacks_that_craft_nothing_send_what_was_trained():
    honest, start = scene(1)
    for attack in {*ATTACKS} - {*CRAFTING}:
        assert send(attack, honest, start, 3) == pytest.approx(honest, abs=1e-15)


@pytest.mark.parametrize("attack", CRAFTING)
@knowledges
@pytest.mark.parametrize("aggregator", AGGREGATORS)
@given(seed=SEEDS, attackers=st.integers(1, 4))
@settings(max_examples=10)
def test_only_the_attackers_rows_change(attack, knowledge, aggregator, seed, attackers):
    honest, start = scene(seed)
    deltas = honest - start
    before = deltas.copy()
    kind = ATTACKS[attack](num_attackers=attackers, knowledge=knowledge)
    updates = Updates(deltas, np.ones(10), np.arange(10), np.zeros(10))
    sent = transform_of(kind, aggregator=aggregator, seed=seed)(updates, start, 3).values
    assert sent[attackers:].tolist() == deltas[attackers:].tolist()
    assert deltas.tolist() == before.tolist()
    assert sent is not deltas
    assert np.isfinite(sent).all()


@attacks
@knowledges
def test_nobody_attacking_changes_nothing(attack, knowledge):
    assert transform_of(ATTACKS[attack](num_attackers=0, knowledge=knowledge), aggregator="krum", seed=1) is None


@pytest.mark.parametrize("attack", CRAFTING)
def test_a_cohort_without_attackers_sends_what_it_trained(attack):
    honest, start = scene(1)
    transform = transform_of(ATTACKS[attack](num_attackers=3), aggregator="krum", seed=1)
    updates = Updates(honest - start, np.ones(10), np.arange(3, 13), np.zeros(10))
    assert transform(updates, start, 1).values.tolist() == (honest - start).tolist()


@attacks
@pytest.mark.parametrize("aggregator", ["krum", "multi_krum", "median"])
def test_partial_knowledge_does_not_look_at_others(attack, aggregator):
    honest, start = scene(2)
    other = honest.copy()
    other[3:] += 5.0
    sent, same = (
        send(attack, rows, start, 3, aggregator=aggregator, knowledge="partial")[:3] for rows in (honest, other)
    )
    assert sent.tolist() == same.tolist()


@pytest.mark.parametrize("attack", ["lie", "fang", "min_max", "min_max_unit"])
@pytest.mark.parametrize("aggregator", ["krum", "multi_krum", "median"])
def test_full_knowledge_looks_at_others(attack, aggregator):
    honest, start = scene(2)
    other = honest.copy()
    other[3:] = start - 2 * (honest[3:] - start)
    assert (
        send(attack, honest, start, 3, aggregator=aggregator)[0].tolist()
        != send(attack, other, start, 3, aggregator=aggregator)[0].tolist()
    )


@attacks
@knowledges
def test_identical_honest_updates_break_nothing(attack, knowledge):
    honest, start = scene(3)
    honest[:] = honest[0]
    for aggregator in AGGREGATORS:
        assert np.isfinite(send(attack, honest, start, 4, aggregator=aggregator, knowledge=knowledge)).all()
        assert np.isfinite(
            send(attack, np.tile(start, (10, 1)), start, 4, aggregator=aggregator, knowledge=knowledge)
        ).all()


@pytest.mark.parametrize(
    ("attackers", "share"),
    # n = 10: s = 6 - m, (n - m - s) / (n - m) = 4 / (10 - m)
    [(1, 4 / 9), (2, 4 / 8), (3, 4 / 7), (4, 4 / 6)],
)
def test_z_of_lie(attackers, share):
    assert norm.cdf(largest_z(10, attackers)) == pytest.approx(share, abs=1e-12)


def test_z_of_lie_is_negative_for_one_attacker_of_ten_and_zero_for_two():
    assert largest_z(10, 1) == pytest.approx(-0.1397, abs=1e-4)
    assert largest_z(10, 2) == pytest.approx(0.0, abs=1e-12)
    assert largest_z(10, 3) == pytest.approx(0.1800, abs=1e-4)
    assert largest_z(10, 4) == pytest.approx(0.4307, abs=1e-4)


def test_lie_by_hand():
    # the attackers' coordinates 1 and 3: mean 2, sd 1; four of nine: s = 5 - 4, Phi(z) = (9 - 4 - 1) / 5
    honest = np.array([[1.0], [3.0], [1.0], [3.0], [9.0], [9.0], [9.0], [9.0], [9.0]])
    sent = send("lie", honest, np.zeros(1), 4, knowledge="partial")
    assert sent[:4].tolist() == [pytest.approx([2 - norm.ppf(4 / 5)])] * 4


@pytest.mark.parametrize("attack", ["lie", "min_max", "min_max_unit"])
def test_one_attacker_that_knows_only_itself_sends_what_it_has(attack):
    honest, start = scene(4)
    assert send(attack, honest, start, 1, knowledge="partial") == pytest.approx(honest, abs=1e-14)


def test_sign_flipping_goes_as_far_the_other_way():
    honest, start = scene(5)
    sent = send("sign_flip", honest, start, 2)
    assert sent[:2] - start == pytest.approx(-(honest[:2] - start), abs=1e-14)


@pytest.mark.parametrize("length", [1.0, 1e6])
def test_an_unbounded_liar_goes_the_other_way_as_far_as_it_likes(length):
    honest, start = scene(5)
    view = AttackView(honest - start, start, 2, "fedavg", "partial", stream(1, purpose="attack"))
    sent = Unbounded(num_attackers=2, length=length).craft(view)
    assert np.linalg.norm(sent, axis=1) == pytest.approx([length] * 2)
    assert (sent * (honest[:2] - start)).sum(axis=1) == pytest.approx(
        -length * np.linalg.norm(honest[:2] - start, axis=1)
    )


def test_an_unbounded_liar_with_nothing_to_negate_sends_nothing():
    view = AttackView(np.zeros((3, 4)), np.zeros(4), 1, "fedavg", "partial", stream(1, purpose="attack"))
    assert not Unbounded(num_attackers=1).craft(view).any()


def test_replacement_sends_twice_the_model_turned_round():
    honest, start = scene(6)
    assert send("replacement", honest, start, 2)[:2] == pytest.approx(-2 * honest[:2], abs=1e-14)


def slow_krum_picks(crafted, count, honest, neighbours):
    """Scores of everybody in a game with `count` copies of a crafted update first; whether one wins, and is among
    as many best as there are honest ones."""
    everybody = [crafted] * count + list(honest)
    scores = [
        sum(sorted(math.dist(one, other) for j, other in enumerate(everybody) if j != i)[:neighbours])
        for i, one in enumerate(everybody)
    ]
    best = sorted(range(len(everybody)), key=lambda i: scores[i])[: len(honest)]
    return scores.index(min(scores)) < count, min(best) < count


def slow_bound(honest, start, against, crafted, neighbours):
    """The paper's upper bound for distances that are not squared."""
    lowest = min(sum(sorted(math.dist(one, other) for other in honest)[1 : neighbours + 1]) for one in honest)
    far = max(math.dist(one, start) for one in honest)
    return (lowest / max(1, neighbours - crafted + 1) + far) / math.sqrt(sum(against**2))


@pytest.mark.parametrize("aggregator", ["krum", "multi_krum"])
@given(seed=SEEDS, attackers=st.integers(1, 4), drift=st.sampled_from([0.0, 0.3, 1.0]))
@settings(max_examples=40)
def test_fang_halves_the_bound_until_the_rule_picks_an_attacker(aggregator, seed, attackers, drift):
    honest, start = scene(seed, drift=drift)
    others, against = honest[attackers:], -np.sign(honest.mean(axis=0) - start)
    step = slow_bound(others, start, against, attackers, 8 - attackers)

    def picked(step):
        return slow_krum_picks(start + step * against, attackers, others, 8 - attackers)[aggregator == "multi_krum"]

    assert aggregator == "multi_krum" or attackers == 4 or not picked(2.01 * step)  # nothing is lost above the bound
    while not picked(step) and step >= 1e-5:
        step /= 2
    expected = np.tile(start + step * against, (attackers, 1))
    assert send("fang", honest, start, attackers, aggregator=aggregator)[:attackers] == pytest.approx(
        expected, abs=1e-9
    )


@given(seed=SEEDS, attackers=st.integers(1, 4))
def test_fang_with_full_knowledge_makes_krum_take_an_attacker(seed, attackers):
    honest, start = scene(seed, width=46, drift=0.0)
    sent = send("fang", honest, start, attackers, aggregator="krum")
    taken = aggregated("krum", sent, start, attackers)
    assert taken == pytest.approx(sent[0], abs=1e-14)
    assert np.abs(taken - start).max() > 1e-3  # and that is no small thing


def test_fang_makes_krum_go_backwards():
    honest, start = scene(8, width=46, drift=0.5)
    common = honest.mean(axis=0) - start
    for aggregator in ("krum", "multi_krum", "trimmed_mean", "median"):
        sent = send("fang", honest, start, 4, aggregator=aggregator)
        quiet, attacked = (aggregated(aggregator, rows, start, 4) - start for rows in (honest, sent))
        assert quiet @ common > 0
        assert attacked @ common < 0


@pytest.mark.parametrize("aggregator", ["krum", "multi_krum"])
@given(seed=SEEDS, attackers=st.integers(2, 4))
@settings(max_examples=40)
def test_fang_with_partial_knowledge_plays_with_its_own_updates(aggregator, seed, attackers):
    honest, start = scene(seed)
    own, neighbours = honest[:attackers], max(1, attackers - 2)
    against = -np.sign(own.mean(axis=0) - start)
    for crafted in range(1, attackers + 1):
        step = slow_bound(own, start, against, crafted, neighbours)
        while step >= 1e-5:
            if slow_krum_picks(start + step * against, crafted, own, neighbours)[aggregator == "multi_krum"]:
                break
            step /= 2
        else:
            continue
        break
    sent = send("fang", honest, start, attackers, aggregator=aggregator, knowledge="partial")[:attackers]
    assert sent == pytest.approx(np.tile(start + step * against, (attackers, 1)), abs=1e-9)


def test_one_fang_attacker_with_partial_knowledge_goes_as_far_back_as_it_had_gone():
    honest, start = scene(9)
    sent = send("fang", honest, start, 1, knowledge="partial")
    assert math.dist(sent[0], start) == pytest.approx(math.dist(honest[0], start))
    assert (np.sign(sent[0] - start) == -np.sign(honest[0] - start)).all()


def test_fang_stays_at_the_start_where_krum_picks_nobody_else():
    """Honest updates side by side, far from the start: no crafted one is ever near enough."""
    start = np.zeros(3)
    honest = np.full((10, 3), 100.0) + 1e-6 * stream(1, purpose="choice").normal(30).reshape(10, 3)
    against = -np.ones(3)
    step = krum_lambda(honest[1:] - start, against, fewest=1, attackers=1, any_place=False)
    assert 0 < step < 1e-5
    assert send("fang", honest, start, 1)[0] == pytest.approx(step * against)


def test_fang_where_any_lambda_wins_sends_the_bound():
    honest, start = scene(10, clients=9)  # 4 of 9: the 3 nearest of an attacker are the other attackers
    sent = send("fang", honest, start, 4)
    against = -np.sign(honest.mean(axis=0) - start)
    bound = slow_bound(honest[4:], start, against, 4, 3)
    assert sent[0] == pytest.approx(start + bound * against)


def test_intervals_of_fang_against_trimmed_mean():
    # others' values: up to 4 or -2 (pushed up), down to 2 or -6 (pushed down); s is against the mean's move
    start = np.array([10.0, 10.0, -10.0, -10.0, 1.0])
    others = np.array([[3.0, -4.0, 2.0, -6.0, 1.0], [4.0, -2.0, 5.0, -1.0, 1.0], [3.5, -3.0, 3.0, -3.0, 1.0]])
    honest = np.vstack([others[2], others])
    sent = np.array(
        [send("fang", honest, start, 1, aggregator="median", draws=DRAWS.skip(5 * i))[0] for i in range(2000)]
    )
    ends = [(4, 8), (-2, -1), (1, 2), (-12, -6)]
    for coordinate, (low, high) in enumerate(ends):
        share = (sent[:, coordinate] - low) / (high - low)
        assert kstest(share, "uniform").pvalue > 1e-3  # false alarm 1 in 1,000 for each of the four
    assert (sent[:, 4] == 1.0).all()  # nobody moves it: nothing to go against


def test_intervals_of_fang_with_partial_knowledge():
    # own values 1 and 3: mean 2, sd 1
    honest = np.array([[1.0, 1.0], [3.0, 3.0], [7.0, 7.0], [8.0, 8.0], [9.0, 9.0]])
    start = np.array([0.0, 5.0])
    sent = np.concatenate([
        send("fang", honest, start, 2, aggregator="median", knowledge="partial", draws=DRAWS.skip(4 * i))[:2]
        for i in range(1000)
    ])  # fmt: skip
    assert kstest(sent[:, 0] - (2 - 4), "uniform").pvalue > 1e-3  # false alarm 1 in 1,000 for each of the two
    assert kstest(sent[:, 1] - (2 + 3), "uniform").pvalue > 1e-3


@pytest.mark.parametrize("aggregator", [name for name in AGGREGATORS if name not in ("krum", "multi_krum")])
def test_fang_is_the_same_for_all_aggregators_without_neighbours(aggregator):
    honest, start = scene(11)
    assert (
        send("fang", honest, start, 3, aggregator=aggregator).tolist()
        == send("fang", honest, start, 3, aggregator="median").tolist()
    )


@pytest.mark.parametrize("aggregator", ["krum", "median"])
@knowledges
@given(seed=SEEDS, clients=st.integers(9, 20))
def test_fang_leaves_coordinates_alone_that_nobody_moved(aggregator, knowledge, seed, clients):
    """The mean of n equal models may round away from them, the mean of n zero deltas does not."""
    honest, start = scene(seed, clients=clients)
    deltas = honest - start
    deltas[:, :3] = 0.0
    view = AttackView(deltas, start, 4, aggregator, knowledge, DRAWS)
    assert not ATTACKS["fang"](num_attackers=4, knowledge=knowledge).craft(view)[:, :3].any()


def test_every_fang_attacker_draws_for_itself():
    honest, start = scene(12)
    sent = send("fang", honest, start, 3, aggregator="median")
    assert len(np.unique(sent[:3], axis=0)) == 3


@pytest.mark.parametrize("attack", ["min_max", "min_max_unit"])
@knowledges
@given(seed=SEEDS, attackers=st.integers(2, 4))
@settings(max_examples=40)
def test_min_max_goes_as_far_as_honest_clients_are_apart_and_no_farther(attack, knowledge, seed, attackers):
    honest, start = scene(seed)
    known = honest if knowledge == "full" else honest[:attackers]
    apart = max(math.dist(one, other) for one in known for other in known)
    sent = send(attack, honest, start, attackers, knowledge=knowledge)[0]
    mean = known.mean(axis=0)
    assert max(math.dist(sent, one) for one in known) == pytest.approx(apart, rel=1e-9)
    beyond = mean + 1.001 * (sent - mean)
    assert max(math.dist(beyond, one) for one in known) > apart
    direction = -known.std(axis=0) if attack == "min_max" else start - mean
    assert (sent - mean) / np.linalg.norm(sent - mean) == pytest.approx(direction / np.linalg.norm(direction))


@given(seed=SEEDS)
def test_the_factor_of_min_max_is_what_the_papers_search_finds(seed):
    known, start = scene(seed, clients=5)
    mean, direction = known.mean(axis=0), start - known.mean(axis=0)
    apart = max(math.dist(one, other) for one in known for other in known)
    low, high = 0.0, 1e4
    for _ in range(60):
        gamma = (low + high) / 2
        fits = max(math.dist(mean + gamma * direction, one) for one in known) <= apart
        low, high = (gamma, high) if fits else (low, gamma)
    assert largest_gamma(known, mean, direction) == pytest.approx(low, rel=1e-6)


@pytest.mark.parametrize("attack", [name for name in ATTACKS if name != "none"])
def test_attackers_are_fewer_than_half(attack):
    for attackers in range(5):
        check_num_attackers(ATTACKS[attack](num_attackers=attackers), 10)
    for attackers in (-1, 5, 10, 11):
        with pytest.raises(SpecError, match="use 0 to 4"):
            check_num_attackers(ATTACKS[attack](num_attackers=attackers), 10)


def test_attackers_without_an_attack_are_refused():
    check_num_attackers(ATTACKS["none"](), 10)
    with pytest.raises(SpecError, match=r"num_attackers = 1 without an attack; say attack\.kind"):
        check_num_attackers(ATTACKS["none"](num_attackers=1), 10)
