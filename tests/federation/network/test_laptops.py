"""Five search nodes through join and sync: the ranker is that of the plain sum, and every refusal has a reason."""

import msgspec
import numpy as np
import pytest
from five_nodes import NODES, STEP, plain_round, start

from foltr import node as foltr_node
from foltr.federation.announcement import Ranker, ranker_of
from foltr.federation.network import rounds
from foltr.node.learning import federated, versions

ABSENT, ABSENT_IN = 3, 2  # a node, and the round in which it sleeps


def plain_rounds(laptops, count):
    """The parameters after each round, with the updates in the clear; logs do not change meanwhile."""
    names, parameters = federated.parameter_names(), start().parameters
    for round in range(1, count + 1):
        ranker = msgspec.msgpack.decode(ranker_of(round - 1, names, parameters), type=Ranker)
        updates = []
        for k in range(NODES):
            if (k, round) != (ABSENT, ABSENT_IN):
                with foltr_node.open(laptops.homes[k]) as node:
                    updates.append(federated.update(node.log, ranker))
        parameters = plain_round(np.stack(updates), parameters)
        yield parameters


def test_a_rehearsal_charges_nothing_and_changes_no_ranker(laptops):
    laptops.join_second()
    rounds.rehearse(laptops.desk, laptops.clock())
    for k in range(NODES):
        laptops.accept(k)
        laptops.visit(k)
    laptops.open_window()
    for k in range(NODES):
        for _ in range(2):
            synced = laptops.visit(k)
            assert (synced.state, synced.round, synced.version) == ("rehearsed", 1, 0)
        assert not laptops.ledger(k).counts()
    laptops.finish()
    assert laptops.states() == {1: "published", 2: "announced"}
    assert laptops.parameters().tolist() == start().parameters.tolist()
    assert laptops.visit(0).state == "sent"  # the next round counts
    assert sum(laptops.ledger(0).counts().values()) == 1


@pytest.mark.usefixtures("silent_operators")
def test_five_laptops_learn_the_ranker_of_the_plain_sum(laptops):
    expected = list(plain_rounds(laptops, 3))
    laptops.begin()
    for round in (1, 2, 3):
        for k in range(NODES):
            if (k, round) != (ABSENT, ABSENT_IN):
                synced = laptops.visit(k)
                assert (synced.state, synced.round) == ("sent", round)
                assert laptops.visit(k).state == "sent"  # again: the same bytes, no second charge
        laptops.finish()
        assert np.abs(laptops.parameters() - expected[round - 1]).max() <= round * STEP
    names = federated.parameter_names()
    for k in range(NODES):
        assert laptops.visit(k).version == 3
        with foltr_node.open(laptops.homes[k]) as node:
            serving = versions.serving(node.log)
            assert serving.current.origin == f"{laptops.charter.terms.federation}/3"
            assert serving.trusted is not None  # it is on trial
            assert np.abs(versions.values_of(serving.current, names) - expected[-1]).max() <= 3 * STEP
        assert sum(laptops.ledger(k).counts().values()) == (3 if k == ABSENT else 4)  # the fourth round is open
        records = [record for record in laptops.ledger(k).records() if record.kind == "release"]
        assert {(record.address, record.size > 8 * len(names), record.time > 1e9) for record in records} == {
            ("https://127.0.0.1:1", True, True)
        }
