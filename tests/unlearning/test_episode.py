"""The evaluation by poisoning: what is left of the leaver, and what forgetting costs."""

import numpy as np
import pytest
from foltr.unlearning.cost import Cost, together, walk
from foltr.unlearning.episode import episode
from foltr.unlearning.exact import WAYS, exactly
from foltr.unlearning.history import gather
from foltr.unlearning.recording import log_of, recorder
from foltr.unlearning.residual import residual, turn
from foltr.unlearning.rounds import federate, negate
from forgetting import WIDTH, last, learnt_slowly, small

from foltr.errors import SpecError
from foltr.federation.round import Federated
from foltr.lab.simulation import compiled
from foltr.unlearning.replay import replay

TASK = small(Federated(6, 5, 40))
ENGINE = compiled.engine(TASK)


@pytest.fixture(scope="module")
def lived():
    return episode(TASK, ENGINE, leavers=[5], z=2.0, keep_every=4, local_steps=3, every=8)


def final(part):
    return part.parameters[-1]


def test_the_four_models_are_made_as_they_are_named(lived):
    attacked = list(federate(TASK, ENGINE, keep_every=4, transform=negate([5], 2.0)))
    assert np.array_equal(final(lived.honest), last(federate(TASK, ENGINE)))
    assert np.array_equal(final(lived.attacked), attacked[-1].parameters)
    assert np.array_equal(final(lived.retrained), last(federate(TASK, ENGINE, without=[5])))
    again = replay(TASK, ENGINE, gather(attacked), leavers=[5], local_steps=3)
    assert np.array_equal(final(lived.unlearned), last(again))


def test_an_attacker_leaves_a_residual_in_calibrated_replay(lived):
    assert lived.residual > 0.01
    assert 0 < lived.turn <= 2


def test_without_an_attack_nothing_differs():
    history = gather(federate(TASK, ENGINE, keep_every=4))
    one, other = (last(replay(TASK, ENGINE, history, leavers=[5], local_steps=3)) for _ in range(2))
    assert residual(one, other) == 0.0


def test_curves_keep_every_so_manieth_model_and_the_last(lived):
    assert lived.honest.rounds.tolist() == [8, 16, 24, 32, 40]
    assert lived.unlearned.rounds.tolist() == [5, 13, 21, 29, 37]  # every second of the kept rounds 1, 5, 9, ...
    assert lived.honest.parameters.shape == lived.unlearned.parameters.shape == (5, WIDTH)


def test_costs_are_counted_by_hand(lived):
    """Five remain. Retraining: 40 rounds of 5 steps. Replay: 10 kept rounds of 3 steps, 6 clients kept 10 updates."""
    messages = 2 * 5 * 40
    assert lived.retrained.cost[:5] == (5 * 40 * 5, 5 * 40 * 5, messages, messages * 8 * WIDTH, 0)
    messages = 2 * 5 * 10
    assert lived.unlearned.cost[:5] == (5 * 10 * 3, 5 * 10 * 3, messages, messages * 8 * WIDTH, 6 * 10 * 4 * WIDTH)
    assert lived.saved == pytest.approx((5 / 3 * 4, 4))  # n / n' * dt and dt, as section 6.1.3 says


def test_costs_add_up():
    assert together([Cost(1, 2, 3, 4, 5, 0.5), Cost(10, 20, 30, 40, 50, 1.0)]) == Cost(11, 22, 33, 44, 55, 1.5)


def test_no_rounds_cost_an_error():
    with pytest.raises(SpecError, match="no rounds"):
        walk([])


def test_residual_and_turn_by_arithmetic():
    assert residual(np.array([3.0, 4.0]), np.array([0.0, 4.0])) == pytest.approx(3 / 4)
    assert turn(np.array([2.0, 0.0]), np.array([9.0, 0.0])) == 0.0
    assert turn(np.array([2.0, 0.0]), np.array([0.0, 5.0])) == pytest.approx(2**0.5)
    assert residual(np.zeros(2), np.zeros(2)) == turn(np.zeros(2), np.zeros(2)) == 0.0


def test_an_episode_that_makes_no_sense_computes_nothing():
    for wrong in ({"leavers": [6]}, {"keep_every": 41}, {"local_steps": 5}, {"z": 11.0}):
        with pytest.raises(SpecError):
            episode(TASK, None, **{"leavers": [5], **wrong})


@pytest.fixture(scope="module")
def exact():
    return {way: exactly(way, TASK, leavers=[5], z=2.0, parts=3, ridge=1.0) for way in WAYS}


@pytest.mark.parametrize("way", WAYS)
def test_exact_ways_leave_no_residual(exact, way):
    assert exact[way].residual < 1e-6
    assert residual(exact[way].parameters, exact[way].before) > 1e-3


def test_replay_of_logs_is_the_slow_way_on_the_others_logs(exact):
    engine = recorder(TASK)
    attacked = last(federate(TASK, engine, transform=negate([5], 2.0)))
    assert np.array_equal(exact["logs"].before, attacked)
    slow = learnt_slowly(TASK, log_of(engine), [5])
    assert residual(exact["logs"].parameters, slow) < 1e-9


def test_costs_of_exact_ways_by_hand(exact):
    """Six clients, five searches in each of forty rounds, 42 bytes each; three shards of two."""
    kept = 6 * 5 * 40 * 42
    assert exact["logs"].cost[:5] == (5 * 5 * 40, 0, 2 * 5 * 40, 2 * 5 * 40 * 8 * WIDTH, kept)
    assert exact["shards"].cost[:5] == (5 * 40, 0, 2 * 40, 2 * 40 * 8 * WIDTH, kept)
    sums = 8 * (WIDTH * WIDTH + WIDTH)
    assert exact["statistics"].cost[:5] == (0, 0, 1, sums, 6 * sums)


def test_an_attack_that_would_blow_up_a_small_shard_is_refused():
    with pytest.raises(SpecError, match="1 attacking of 1"):
        exactly("shards", TASK, leavers=[5], z=2.0, parts=6)
