"""The evaluation by poisoning: what is left of the forgotten client, and what unlearning costs."""

import numpy as np
import pytest
from forgetting import WIDTH, federation, last, learnt_slowly, recorded, small

from foltr.errors import SpecError
from foltr.lab.runs.unlearning import METHODS, check_unlearning, exactly
from foltr.lab.simulation.task import Federated
from foltr.lab.spec.parse import setting
from foltr.unlearning.evaluation import Request, direction_residual, episode, residual
from foltr.unlearning.replay import Cost, federate, history_of, negate, replay, total_cost, walk

TASK = small(Federated(6, 5, 40))
FEDERATION = federation(TASK)


@pytest.fixture(scope="module")
def evaluated():
    return episode(FEDERATION, Request([5], z=2.0, keep_every=4, local_steps=3), every=8)


def stored(rounds, every=4):
    return history_of(done for done in rounds if (done.round - 1) % every == 0)


def final(part):
    return part.parameters[-1]


def test_the_four_models_are_made_as_they_are_named(evaluated):
    attacked = list(federate(FEDERATION, transform=negate([5], 2.0)))
    assert np.array_equal(final(evaluated.honest), last(federate(FEDERATION)))
    assert np.array_equal(final(evaluated.attacked), attacked[-1].parameters)
    assert np.array_equal(final(evaluated.retrained), last(federate(FEDERATION, without=[5])))
    again = replay(FEDERATION, stored(attacked), forget_clients=[5], local_steps=3)
    assert np.array_equal(final(evaluated.unlearned), last(again))
    honest = replay(FEDERATION, stored(federate(FEDERATION)), forget_clients=[5], local_steps=3)
    assert np.array_equal(final(evaluated.reference), last(honest))


def test_an_attacker_leaves_a_residual_in_calibrated_replay(evaluated):
    assert evaluated.residual > 0.01
    assert 0 < evaluated.direction_residual <= 2


def test_without_an_attack_nothing_differs():
    history = stored(federate(FEDERATION))
    one, other = (last(replay(FEDERATION, history, forget_clients=[5], local_steps=3)) for _ in range(2))
    assert residual(one, other) == 0.0


def test_curves_keep_every_so_manieth_model_and_the_last(evaluated):
    assert evaluated.honest.rounds.tolist() == [8, 16, 24, 32, 40]
    assert evaluated.unlearned.rounds.tolist() == [5, 13, 21, 29, 37]  # every second of the stored rounds 1, 5, 9, ...
    assert evaluated.honest.parameters.shape == evaluated.unlearned.parameters.shape == (5, WIDTH)


def test_costs_are_counted_by_hand(evaluated):
    """Five remain. Retraining: 40 rounds of 5 steps. Replay: 10 stored rounds of 3 steps; 6 clients stored 10 each."""
    messages = 2 * 5 * 40
    assert evaluated.retrained.cost[:5] == (5 * 40 * 5, 5 * 40 * 5, messages, messages * 8 * WIDTH, 0)
    messages = 2 * 5 * 10
    assert evaluated.unlearned.cost[:5] == (5 * 10 * 3, 5 * 10 * 3, messages, messages * 8 * WIDTH, 6 * 10 * 4 * WIDTH)
    assert evaluated.saved == pytest.approx((5 / 3 * 4, 4))  # n / n' * dt and dt, as section 6.1.3 says


def test_costs_add_up():
    assert total_cost([Cost(1, 2, 3, 4, 5, 0.5), Cost(10, 20, 30, 40, 50, 1.0)]) == Cost(11, 22, 33, 44, 55, 1.5)


def test_no_rounds_cost_an_error():
    with pytest.raises(SpecError, match="no rounds"):
        walk([])


def test_residuals_by_arithmetic():
    assert residual(np.array([3.0, 4.0]), np.array([0.0, 4.0])) == pytest.approx(3 / 4)
    assert direction_residual(np.array([2.0, 0.0]), np.array([9.0, 0.0])) == 0.0
    assert direction_residual(np.array([2.0, 0.0]), np.array([0.0, 5.0])) == pytest.approx(2**0.5)
    assert residual(np.zeros(2), np.zeros(2)) == direction_residual(np.zeros(2), np.zeros(2)) == 0.0


@pytest.mark.parametrize(
    "wrong",
    [{"forget_clients": [6]}, {"keep_every": 41}, {"local_steps": 5}, {"z": 11.0}],
    ids=lambda one: next(iter(one)),
)
def test_a_request_that_makes_no_sense_is_refused_before_anything_is_computed(wrong):
    asked = {"method": "calibrated", "forget_clients": [5], "keep_every": 4, "local_steps": 3, **wrong}
    spec = {"data": {"name": "synthetic"}, "unlearning": asked}
    with pytest.raises(SpecError):
        check_unlearning(setting(spec), TASK)


@pytest.fixture(scope="module")
def exact():
    return {method: exactly(method, TASK, forget_clients=(5,), z=2.0, num_shards=3, ridge=1.0) for method in METHODS}


@pytest.mark.parametrize("method", METHODS)
def test_exact_methods_leave_no_residual(exact, method):
    assert exact[method].residual < 1e-6
    assert residual(exact[method].parameters, exact[method].before) > 1e-3


def test_replay_of_logs_is_the_slow_way_on_the_others_logs(exact):
    attacked, log = recorded(TASK, transform=negate([5], 2.0))
    assert np.array_equal(exact["logs"].before, attacked)
    slow = learnt_slowly(TASK, log, [5])
    assert residual(exact["logs"].parameters, slow) < 1e-9


def test_costs_of_exact_methods_by_hand(exact):
    """Six clients, five searches in each of forty rounds, 42 bytes each; three shards of two."""
    stored_bytes = 6 * 5 * 40 * 42
    assert exact["logs"].cost[:5] == (5 * 5 * 40, 0, 2 * 5 * 40, 2 * 5 * 40 * 8 * WIDTH, stored_bytes)
    assert exact["shards"].cost[:5] == (5 * 40, 0, 2 * 40, 2 * 40 * 8 * WIDTH, stored_bytes)
    sums = 8 * (WIDTH * WIDTH + WIDTH)
    assert exact["statistics"].cost[:5] == (0, 0, 1, sums, 6 * sums)


def test_an_attack_that_would_blow_up_a_small_shard_is_refused():
    with pytest.raises(SpecError, match="1 attacking of 1"):
        exactly("shards", TASK, forget_clients=(5,), z=2.0, num_shards=6)


def test_a_method_that_is_not_exact_is_refused():
    with pytest.raises(SpecError, match="there are logs, shards, statistics"):
        exactly("calibrated", TASK, forget_clients=(5,))
