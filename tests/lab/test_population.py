"""From a setting to clients: who holds what, who clicks how, who attacks, and what each is tested on."""

import numpy as np
import pytest

from foltr.federation.schedule import Members
from foltr.lab.runs.single import run_setting
from foltr.lab.simulation import compiled
from foltr.lab.simulation.evaluation import RunResult
from foltr.lab.simulation.population import interactions_in, load, task_of
from foltr.lab.simulation.rounds import run
from foltr.lab.spec.parse import setting
from foltr.types import Updates

DATA = {"name": "synthetic-mq2007@40", "folds": "1"}


def small(**tables):
    return setting({"data": DATA, **tables})


def task(one, seed=1):
    return task_of(one, load(one.data, 1), seed)


def finished(one):
    *_, last = run_setting(one, load(one.data, 1), 1)
    assert isinstance(last, RunResult)
    return last


def test_poisoning_clients_click_by_the_poison_table_and_the_others_do_not():
    plain = small(federation={"clients": 5, "rounds": 2})
    poisoned = small(federation={"clients": 5, "rounds": 2}, attack={"kind": "poison", "num_attackers": 2})
    before, after = task(plain)[0], task(poisoned)[0]
    assert after.transform is None
    assert after.pools.users.tolist() == [1, 1, 0, 0, 0]
    start, clients, steps = np.zeros(46), np.arange(5), np.full(5, 20)
    honest, mixed = (
        engine.train(start, engine.prepare(Members(clients, steps)), round=1)[0]
        for engine in (compiled.engine(before), compiled.engine(after))
    )
    assert np.array_equal(mixed[2:], honest[2:])
    assert (mixed[:2] != honest[:2]).any(axis=1).all()


def test_attackers_replace_what_they_send_and_nothing_else():
    one = small(federation={"clients": 6, "rounds": 1}, attack={"kind": "sign_flip", "num_attackers": 2})
    attacked, _ = task(one)
    deltas, model = np.arange(12.0).reshape(6, 2), np.array([1.0, 1.0])

    def sent_by(*clients):
        updates = Updates(deltas, np.full(6, 4), np.array(clients), np.zeros(6, np.int64))
        return attacked.transform(updates, model, 1).values

    sent = sent_by(0, 1, 2, 3, 4, 5)
    assert np.array_equal(sent[2:], deltas[2:])
    assert sent[:2].tolist() == (-deltas[:2]).tolist()
    in_a_cohort = sent_by(1, 2, 5, 7, 8, 9)
    assert np.array_equal(in_a_cohort[1:], deltas[1:])  # only client 1 attacks
    assert in_a_cohort[0].tolist() == (-deltas[0]).tolist()


def test_an_aggregator_withstands_the_attackers_there_are_unless_a_number_is_given():
    attack = {"kind": "lie", "num_attackers": 3}
    assert task(small(federation={"clients": 9}, attack=attack))[0].federation.num_byzantine == 3
    assert task(small(federation={"clients": 9, "num_byzantine": 1}, attack=attack))[0].federation.num_byzantine == 1
    assert task(small(federation={"clients": 9}))[0].federation.num_byzantine == 0


def test_shared_queries_are_the_servers_and_everybodys():
    one = small(
        federation={"clients": 3, "interactions": 5}, partition={"kind": "labels"},
        sharing={"fraction": 0.25, "warm_up": 30},
    )  # fmt: skip
    shared, _ = task(one)
    held = shared.pools
    public = set(held.pools[held.start[3] : held.stop[3]].tolist())
    assert len(public) == round(0.25 * len(load(one.data, 1).train.queries))
    for client in range(3):
        assert public <= set(held.pools[held.start[client] : held.stop[client]].tolist())
    first = next(run(shared, compiled.engine(shared)))
    cold = next(run(shared._replace(warm_up=0), compiled.engine(shared)))
    assert np.abs(first.parameters).sum() > np.abs(cold.parameters).sum()


def test_amounts_become_interactions_and_count_as_their_mean():
    one = small(federation={"clients": 5, "interactions": 5, "rounds": 3}, partition={"kind": "quantity"})
    assert task(one)[0].federation.interactions == (1, 3, 5, 7, 9)
    assert interactions_in(one) == 3 * 25
    assert finished(one).interactions == 3 * 25


def test_clients_with_labels_of_their_own_are_tested_one_by_one():
    one = setting({
        "data": {"name": "synthetic-intents@40", "folds": "1"},
        "federation": {"clients": 4, "interactions": 5, "rounds": 20},
        "partition": {"kind": "intents", "shuffled": False},
    })  # fmt: skip
    single = finished(one)
    assert single.clients.tolist() == [f"intent {intent}" for intent in (1, 2, 3, 4)]
    assert len(set(single.client_ndcg.tolist())) == 4
    assert single.offline[0, -1] == pytest.approx(
        single.client_ndcg.mean(), abs=0.1
    )  # all have as many test queries, nearly


def test_personal_rankers_are_tested_each_on_its_clients_queries():
    tables = {
        "data": {"name": "synthetic-intents@40", "folds": "1"},
        "federation": {"clients": 4, "interactions": 5, "rounds": 20},
        "partition": {"kind": "intents", "shuffled": False},
    }
    alone = finished(setting({**tables, "personal": {"kind": "local_only"}}))
    apart = finished(setting({**tables, "personal": {"kind": "offset", "local_weight": 1.0}}))
    assert alone.offline[0, -1] == pytest.approx(alone.client_ndcg.mean())
    assert apart.client_ndcg == pytest.approx(alone.client_ndcg, abs=1e-6)


@pytest.mark.parametrize("method", ["retrain", "calibrated", "logs", "shards", "statistics"])
def test_a_run_that_forgets_leaves_a_ranker_and_its_costs(method):
    one = small(federation={"clients": 10, "interactions": 5, "rounds": 20}, unlearning={"method": method, "shards": 2})
    single = finished(one)
    further = dict(zip(single.names.tolist(), single.more, strict=True))
    assert 0 < single.offline[0, -1] <= 1
    assert (
        further["local steps"]
        == {"retrain": 900, "calibrated": 54, "logs": 900, "shards": 400, "statistics": 0}[method]
    )
    assert ("residual" in further) == (method != "retrain")
    assert np.array_equal(finished(one).parameters, single.parameters)
