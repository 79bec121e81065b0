"""From five nodes' logs to one shared ranker: in memory and as processes, with one server and with two."""

import shutil
from pipes import Joining, Pipes

import msgspec
import numpy as np
import pytest
from five_nodes import CLIP, NODES, OPTIMIZER, STEP, collector, federation, fill, member, plain_round, start

from foltr import node as foltr_node
from foltr.errors import SecureAggregationError
from foltr.federation.announcement import Ranker, announce, ranker_of
from foltr.federation.coordinator import publish
from foltr.federation.in_memory import InMemory
from foltr.federation.member import respond
from foltr.federation.round import RoundModel, run_rounds
from foltr.federation.schedule import synchronous
from foltr.node.learning import federated, versions
from foltr.secagg.crypto import new_identity

MODES = ("one-server", "two-servers")
ABSENT, ABSENT_IN = 3, 2  # a node, and the round in which it is away


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The homes of five nodes, made once."""
    folder = tmp_path_factory.mktemp("nodes")
    for number in range(NODES):
        fill(folder / str(number), number)
    return folder


@pytest.fixture
def nodes(filled, tmp_path):
    shutil.copytree(filled, tmp_path / "nodes")
    opened = {number: foltr_node.open(tmp_path / "nodes" / str(number) / "home") for number in range(NODES)}
    yield opened
    for one in opened.values():
        one.close()


def sides(nodes, fed, mode, budget=None):
    operators = fed.operators if mode == "two-servers" else None
    return {
        number: federated.side_of(
            node.places, node.log, member(fed, number), delta=1e-5, budget=budget, operators=operators
        )
        for number, node in nodes.items()
    }  # fmt: skip


def three_rounds(collecting, transport, leave, come_back):
    """The rounds, and the final ranker published; a node is away in the second."""
    done = []
    for result in run_rounds(start(), synchronous(NODES, 1, 3), collecting, server_optimizer=OPTIMIZER):
        done.append(result)
        (leave if result.round + 1 == ABSENT_IN else come_back)()
    state = done[-1].state
    publish(
        collecting.coordinator, RoundModel(state.version, state.parameters, state.parameters), range(NODES), round=3
    )
    return done


def plain_rounds(nodes):
    """The same rounds with the updates in the clear, before any of them: logs do not change meanwhile."""
    names, parameters = federated.parameter_names(), start().parameters
    for round in (1, 2, 3):
        ranker = msgspec.msgpack.decode(ranker_of(round - 1, names, parameters), type=Ranker)
        taking_part = [node for number, node in nodes.items() if (number, round) != (ABSENT, ABSENT_IN)]
        updates = np.stack([federated.update(node.log, ranker) for node in taking_part])
        assert (np.linalg.norm(updates, axis=1) > 0.01).all()  # there is something to learn
        parameters = plain_round(updates, parameters)
        yield parameters


@pytest.mark.parametrize("mode", MODES)
def test_five_nodes_learn_one_ranker_from_their_logs(nodes, tmp_path, mode):
    fed = federation()
    expected = list(plain_rounds(nodes))
    transport = InMemory({number: lambda message, side=side: respond(side, message)
                          for number, side in sides(nodes, fed, mode).items()})  # fmt: skip
    everybody = dict(transport.nodes)
    done = three_rounds(
        collector(fed, transport, tmp_path, mode), transport,
        lambda: transport.nodes.pop(ABSENT), lambda: transport.nodes.update(everybody),
    )  # fmt: skip
    check(done, expected)
    assert not transport.refusals
    for number, node in nodes.items():
        check_node(node, number, fed, mode, done[-1].parameters)


@pytest.mark.parametrize("mode", MODES)
def test_five_nodes_in_processes_of_their_own_learn_the_same_ranker(nodes, tmp_path, mode):
    fed = federation()
    expected = list(plain_rounds(nodes))
    for node in nodes.values():
        node.close()
    operators = [tuple(one) for one in fed.operators] if mode == "two-servers" else None
    programs = {
        number: msgspec.json.encode(
            Joining(str(tmp_path / "nodes" / str(number) / "home"), number, identity.private_bytes_raw(),
                    msgspec.msgpack.encode(fed.terms), fed.registry.server, fed.registry.keys, operators)
        ).decode()
        for number, identity in fed.identities.items()
    }  # fmt: skip
    transport = Pipes(programs)
    try:
        done = three_rounds(
            collector(fed, transport, tmp_path, mode), transport,
            lambda: transport.away.add(ABSENT), transport.away.clear,
        )  # fmt: skip
        check(done, expected)
    finally:
        transport.close()
    assert all(child.returncode == 0 for child in transport.children.values())
    for number in nodes:
        with foltr_node.open(tmp_path / "nodes" / str(number) / "home") as node:
            check_node(node, number, fed, mode, done[-1].parameters)


def check_node(node, number, fed, mode, parameters):
    """The shared ranker ranks on this node, and its ledger on the disk has every round that it took part in."""
    weights = versions.serving(node.log).current
    assert versions.values_of(weights, federated.parameter_names()).tolist() == parameters.tolist()
    charged = sides({number: node}, fed, mode)[number].ledger.counts()
    assert sum(charged.values()) == (2 if number == ABSENT else 3)
    assert {event.mechanism for event in charged} == {"none"}


def check(done, expected):
    for result, parameters in zip(done, expected, strict=True):
        assert result.released
        assert np.abs(result.parameters - parameters).max() <= 3 * STEP  # of three rounds at most
        away = [ABSENT] if result.round == ABSENT_IN else []
        assert sorted(result.collected.dropped) == away
        assert result.collected.included.tolist() == [number for number in range(NODES) if number not in away]
        assert result.collected.updates is None  # nobody saw one


@pytest.mark.parametrize("mode", MODES)
def test_with_noise_the_sum_is_noisy_and_every_node_is_charged_for_it(nodes, tmp_path, mode):
    fed = federation(noise_multiplier=0.5)
    transport = InMemory({number: lambda message, side=side: respond(side, message)
                          for number, side in sides(nodes, fed, mode, budget=50.0).items()})  # fmt: skip
    (result,) = run_rounds(
        start(), synchronous(NODES, 1, 1), collector(fed, transport, tmp_path, mode), server_optimizer=OPTIMIZER
    )
    exact = next(plain_rounds(nodes))
    off = np.abs(result.parameters - exact) / (versions.FEDERATED.server_learning_rate * CLIP * 0.5 / NODES)
    assert off.min() > 0
    assert off.max() < 8 * np.sqrt(5 / 3)  # deviations: five shares where three are counted on, or two full noises
    for side in sides(nodes, fed, mode, budget=50.0).values():
        assert 0 < side.ledger.spent() < 50


@pytest.mark.parametrize("mode", MODES)
def test_too_few_nodes_give_no_sum_and_the_model_stays(nodes, tmp_path, mode):
    fed = federation()
    present = {number: side for number, side in sides(nodes, fed, mode).items() if number < 3}
    transport = InMemory({number: lambda message, side=side: respond(side, message)
                          for number, side in present.items()})  # fmt: skip
    (result,) = run_rounds(
        start(), synchronous(NODES, 1, 1), collector(fed, transport, tmp_path, mode), server_optimizer=OPTIMIZER
    )
    assert not result.released
    assert result.parameters.tolist() == start().parameters.tolist()
    assert all("no sum" in reason for reason in result.collected.dropped.values())


@pytest.mark.parametrize("mode", MODES)
def test_a_node_acts_on_no_announcement_but_its_coordinators(nodes, mode):
    fed = federation()
    side = sides(nodes, fed, mode)[0]
    names, parameters = federated.parameter_names(), start().parameters
    before = versions.serving(nodes[0].log).current
    good = {"federation": fed.terms.federation, "round": 1, "identity": fed.server}
    ranker = ranker_of(1, names, parameters)
    wrong = [
        announce("version", ranker, **good | {"identity": new_identity()}),
        announce("version", ranker, **good | {"federation": federation().terms.federation}),
        announce("round", ranker, **good | {"round": 2**62}),
        announce("version", ranker_of(1, names[:-1], parameters[:-1]), **good),
        announce("version", ranker_of(1, names, parameters * np.nan), **good),
        announce("version", ranker_of(1, ("x", *names[1:]), parameters), **good),
        announce("version", b"\x93", **good),
        announce("version", ranker, **good)[:-1] + b"?",
        announce("version", ranker, **good) + bytes(10**6),
        b"", b"\xc1", bytes(100),
    ]  # fmt: skip
    for message in wrong:
        with pytest.raises(SecureAggregationError):
            respond(side, message)
    assert versions.serving(nodes[0].log).current == before
    assert not side.ledger.counts()
