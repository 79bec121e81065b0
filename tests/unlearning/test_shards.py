"""Shards know nothing of each other, and only that of the forgotten client is learnt again."""

import numpy as np
import pytest
from forgetting import federation, learnt_slowly, small

from foltr.errors import SpecError
from foltr.lab.runs.unlearning import exactly
from foltr.lab.simulation.click_logs import log_engine, log_of, recorder
from foltr.lab.simulation.task import Federated
from foltr.rankers import Mlp
from foltr.unlearning.logs import only
from foltr.unlearning.replay import negate
from foltr.unlearning.shards import Logged, assign, forget, learn_shard, merged, train

TASK = small(Federated(7, (4, 2, 3), 6))


START = np.zeros(6)


def trained(shards, transform=None):
    engine = recorder(TASK)
    return train(federation(TASK, engine), 7, assign(7, shards), transform), log_of(engine)


def logged(log):
    return Logged(log, lambda rows: log_engine(TASK, rows))


def test_clients_are_dealt_in_turn():
    assert assign(7, 3) == [(0, 3, 6), (1, 4), (2, 5)]


def test_a_shard_is_a_federation_of_its_members_only():
    shards, log = trained(3)
    for shard in shards:
        assert np.abs(shard.model - learnt_slowly(TASK, only(log, shard.members))).max() < 1e-9


def test_the_served_model_is_the_mean_by_searches():
    shards, _ = trained(3)
    searches = [4 + 4 + 4, 2 + 2, 3 + 3]
    expected = np.average([shard.model for shard in shards], axis=0, weights=searches)
    assert merged(shards) == pytest.approx(expected)


@pytest.mark.parametrize("forget_clients", [[4], [1, 4], [0, 5]], ids=["one", "a whole shard", "of two shards"])
def test_forgetting_equals_learning_all_shards_from_the_others_logs(forget_clients):
    shards, log = trained(3)
    after, _ = forget(START, shards, logged(log), forget_clients)
    models, searches = [], []
    for members in ({0, 3, 6}, {1, 4}, {2, 5}):
        rows = only(log, members - set(forget_clients))
        models.append(learnt_slowly(TASK, rows) if len(rows.rounds) else np.zeros(6))
        searches.append(len(rows.rounds))
    assert merged(after) == pytest.approx(np.average(models, axis=0, weights=searches), abs=1e-9)


def test_shards_without_a_forgotten_client_are_not_touched():
    shards, log = trained(3)
    after, cost = forget(START, shards, logged(log), [4])
    assert after[0] is shards[0]
    assert after[2] is shards[2]
    assert cost.local_steps == 6 * 2  # client 1 alone, two searches in each of six rounds
    assert cost.searches == 0


def test_an_attacker_spoils_its_own_shard_only():
    (honest, log), (attacked, poisoned) = trained(3), trained(3, negate([4], 1.0))
    for one, other in zip(honest, attacked, strict=True):
        assert np.array_equal(one.model, other.model) == (4 not in one.members)
    untouched = {0, 3, 6, 2, 5}
    assert np.array_equal(only(log, untouched).rankings, only(poisoned, untouched).rankings)


def test_one_shard_is_the_usual_federation():
    (whole,), _ = trained(1)
    (usual,) = train(federation(TASK), 7, [tuple(range(7))])
    assert whole.model == pytest.approx(usual.model, abs=1e-11)


def test_what_cannot_be_is_refused():
    shards, log = trained(3)
    with pytest.raises(SpecError, match=r"use 1 \.\. 7"):
        assign(7, 8)
    with pytest.raises(SpecError, match="linear"):
        exactly("shards", TASK._replace(ranker=Mlp(4)), forget_clients=(4,), num_shards=2)
    with pytest.raises(SpecError, match="nothing to forget"):
        forget(START, shards, logged(log), [9])
    with pytest.raises(SpecError, match="has to remain"):
        merged([learn_shard(START, logged(log), ())])
