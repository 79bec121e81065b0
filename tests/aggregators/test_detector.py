"""The detector: honest clients pass, attackers stand out; all on small synthetic deltas with fixed seeds.

A delta is a common direction plus noise about as long as in the trials (a cosine of about .2 with it), so that no
single round gives anybody away.
"""

import itertools

import numpy as np
import pytest

from foltr import registry
from foltr.errors import SpecError
from foltr.federation.detector import ALARM, WARM_UP, begin, observe
from foltr.lab.attacks.attack import transform_of
from foltr.rng import stream
from foltr.types import Updates

ATTACKS = {name: registry.kind("attack", name) for name in registry.names("attack")}

CLIENTS, WIDTH = 10, 20


CRAFTING = [name for name, kind in ATTACKS.items() if "updates" in kind.needs]


def detected(rounds, *, seed=1, attack=None, attackers=0, knowledge="partial", noise=1.0, lengths=1.0, meddle=None):
    """The state at its first alarm, or after all rounds, with that round or None."""
    common = 0.25 * stream(seed, purpose="data").normal(WIDTH)
    state, model = begin(CLIENTS, WIDTH), np.zeros(WIDTH)
    kind = ATTACKS[attack or "none"](num_attackers=attackers, knowledge=knowledge)
    transform = transform_of(kind, aggregator="fedavg", seed=seed)
    for round in range(1, rounds + 1):
        draws = stream(seed, round=round, purpose="noise")
        deltas = common + noise * draws.normal(CLIENTS * WIDTH).reshape(CLIENTS, WIDTH)
        deltas = np.atleast_1d(lengths)[:, None] * deltas
        if transform:
            everybody = np.arange(CLIENTS)
            deltas = transform(Updates(deltas, np.ones(CLIENTS), everybody, np.zeros(CLIENTS)), model, round).values
        if meddle:
            meddle(round, deltas)
        state, alarm = observe(state, deltas)
        if alarm:
            return state, round
        model = model + 0.1 * common
    return state, None


@pytest.mark.parametrize("seed", range(5))
def test_honest_clients_raise_no_alarm(seed):
    # 10 x 3,000 such rounds with the seeds 100 to 109 came up to 1.43; real users come much nearer, see the module
    state, alarm = detected(500, seed=seed)
    assert alarm is None
    assert not (state.score > ALARM).any()


def test_honest_clients_of_different_habits_raise_no_alarm():
    lengths = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.6, 1.6, 1.6])  # users who click more go farther
    assert detected(500, lengths=lengths)[1] is None


def in_sight(attack, knowledge, attackers):
    """LIE hides; one attacker that knows only itself sends its own update; min-max needs four to show here."""
    helpless = knowledge == "partial" and attackers == 1 and attack not in ("sign_flip", "replacement")
    return attack != "lie" and not helpless and not (attack == "min_max" and attackers < 4)


@pytest.mark.parametrize(
    ("attack", "knowledge", "attackers"),
    [case for case in itertools.product(CRAFTING, ("full", "partial"), (1, 2, 4)) if in_sight(*case)],
)
def test_attackers_raise_the_alarm(attack, knowledge, attackers):
    state, alarm = detected(300, attack=attack, attackers=attackers, knowledge=knowledge)
    assert alarm is not None
    assert (state.score > ALARM)[:attackers].any()
    assert not (state.score > ALARM)[attackers:].any()


def test_four_lie_attackers_raise_the_alarm():
    state, alarm = detected(300, attack="lie", attackers=4)
    assert alarm is not None
    assert (state.score > ALARM).tolist() == [True] * 4 + [False] * 6


def test_one_lie_attacker_is_honest():
    quiet, lied = (detected(60, attack=attack, attackers=1)[0] for attack in (None, "lie"))
    assert lied.score == pytest.approx(quiet.score)


def test_nobody_is_judged_before_the_warm_up():
    state, alarm = detected(WARM_UP - 1, attack="sign_flip", attackers=4)
    assert alarm is None
    assert not state.score.any()
    assert detected(WARM_UP, attack="sign_flip", attackers=4)[1] == WARM_UP


def test_an_attack_that_begins_late_is_seen():
    def flip(round, deltas):
        if round > 300:
            deltas[:2] = -deltas[:2]

    state, alarm = detected(600, meddle=flip)
    assert 300 < alarm <= 500
    assert (state.score > ALARM)[:2].any()


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_an_update_that_is_not_finite_raises_the_alarm_at_once(broken):
    def spoil(round, deltas):
        if round == 3:
            deltas[5, 2] = broken

    state, alarm = detected(10, meddle=spoil)
    assert alarm == 3
    assert (state.score > ALARM).tolist() == [False] * 5 + [True] + [False] * 4
    assert np.isfinite(state.average).all()


def test_clients_that_seldom_move_are_not_suspected():
    def idle(round, deltas):
        if round % 3:
            deltas[:2] = 0.0

    assert detected(300, meddle=idle)[1] is None


def test_rounds_of_zero_deltas_say_nothing():
    state = begin(5, 3)
    for _ in range(100):
        state, alarm = observe(state, np.zeros((5, 3)))
        assert not alarm
    assert state.moved.tolist() == [0] * 5


def test_the_state_given_is_left_as_it_was():
    state = detected(40)[0]
    before = [np.copy(part) for part in state]
    observe(state, np.ones((CLIENTS, WIDTH)))
    assert all(np.array_equal(one, other) for one, other in zip(state, before, strict=True))


def test_the_order_of_clients_does_not_matter():
    def reverse(_, deltas):
        deltas[:] = deltas[::-1].copy()

    one, other = detected(100)[0], detected(100, meddle=reverse)[0]
    assert other.score[::-1] == pytest.approx(one.score, abs=1e-9)


def test_too_few_clients_and_missing_ones_are_refused():
    with pytest.raises(SpecError, match="at least 3"):
        begin(2, 5)
    with pytest.raises(SpecError, match="everybody takes part"):
        observe(begin(5, 3), np.ones((4, 3)))


def test_the_alarm_is_above_what_honest_people_reach():
    assert detected(1000, seed=9)[0].score.max() < ALARM
