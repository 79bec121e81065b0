"""From five nodes' logs to one shared ranker: in memory and as processes, with one server and with two."""

import shutil
from pipes import Joining, Pipes

import msgspec
import numpy as np
import pytest
from five_nodes import (
    CLIP,
    NODES,
    OPTIMIZER,
    STEP,
    TOPICS,
    collector,
    federation,
    fill,
    join,
    member,
    plain_round,
    start,
)

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


def sides(nodes, fed, mode):
    operators = fed.operators if mode == "two-servers" else None
    for node in nodes.values():
        join(node.places, fed)
    return {
        number: federated.side_of(node.places, node.log, member(fed, number), operators=operators)
        for number, node in nodes.items()
    }


def without_noise(mode):
    """Terms under which nodes take part. With two operators these state noise, and `silent_operators` draws zeros:
    without noise a node may not be absent."""
    return {} if mode == "one-server" else {"noise_multiplier": 0.5}


def three_rounds(collecting, leave, come_back, after=lambda result: None):
    """Three rounds, each with its ranker published at the end; a node is away in the second, from start to end."""
    done = []
    for result in run_rounds(start(), synchronous(NODES, 1, 3), collecting, server_optimizer=OPTIMIZER):
        done.append(result)
        model = RoundModel(result.state.version, result.parameters, result.parameters)
        publish(collecting, model, range(NODES), round=result.round)
        after(result)
        (leave if result.round + 1 == ABSENT_IN else come_back)()
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


@pytest.mark.usefixtures("silent_operators")
@pytest.mark.parametrize("mode", MODES)
def test_five_nodes_learn_one_ranker_from_their_logs(nodes, tmp_path, mode):
    fed = federation(**without_noise(mode))
    expected = list(plain_rounds(nodes))
    transport = InMemory({number: lambda message, side=side: respond(side, message)
                          for number, side in sides(nodes, fed, mode).items()})  # fmt: skip
    everybody, adopted = dict(transport.nodes), {}

    def check_ranking(result):
        """Every node that is there ranks by the ranker of this round; the one that is away by its last one."""
        for number, node in nodes.items():
            if (number, result.round) != (ABSENT, ABSENT_IN):
                adopted[number] = result.parameters.tolist()
            results = node.search(TOPICS[number])
            weights = {part.feature: part.weight for part in node.explain(results, results.rows[0].id)}
            names = [name.partition(":")[0] for name in federated.parameter_names()]
            assert weights == dict(zip(names, adopted[number], strict=True))

    done = three_rounds(
        collector(fed, transport, tmp_path, mode), lambda: transport.nodes.pop(ABSENT),
        lambda: transport.nodes.update(everybody), check_ranking,
    )  # fmt: skip
    check(done, expected)
    assert not transport.refusals
    for number, node in nodes.items():
        check_node(node, number, fed, mode, done)


@pytest.mark.usefixtures("silent_operators")
@pytest.mark.parametrize("mode", MODES)
def test_five_nodes_in_processes_of_their_own_learn_the_same_ranker(nodes, tmp_path, mode):
    fed = federation(**without_noise(mode))
    expected = list(plain_rounds(nodes))
    for node in nodes.values():
        join(node.places, fed)
        node.close()
    operators = list(fed.operators) if mode == "two-servers" else None
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
            collector(fed, transport, tmp_path, mode), lambda: transport.stop(ABSENT),
            lambda: ABSENT in transport.children or transport.start(ABSENT),
        )  # fmt: skip
        check(done, expected)
    finally:
        transport.close()
    for number in nodes:
        with foltr_node.open(tmp_path / "nodes" / str(number) / "home") as node:
            check_node(node, number, fed, mode, done)


def check_node(node, number, fed, mode, done):
    """This node has the ranker of every round that it took part in, the last one ranks, and its ledger on the disk has
    these rounds."""
    there = [result for result in done if (number, result.round) != (ABSENT, ABSENT_IN)]
    names = federated.parameter_names()
    received = [versions.values_of(version.weights, names).tolist() for version in node.versions()[: len(there)]]
    assert received == [result.parameters.tolist() for result in reversed(there)]
    current = versions.values_of(versions.serving(node.log).current, names)
    assert current.tolist() == done[-1].parameters.tolist()
    assert np.linalg.norm(current - start().parameters) > 0.1
    charged = sides({number: node}, fed, mode)[number].ledger.counts()
    assert sum(charged.values()) == (2 if number == ABSENT else 3)
    assert {event.mechanism for event in charged} == {"none" if mode == "one-server" else "discrete-gaussian"}


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
                          for number, side in sides(nodes, fed, mode).items()})  # fmt: skip
    (result,) = run_rounds(
        start(), synchronous(NODES, 1, 1), collector(fed, transport, tmp_path, mode), server_optimizer=OPTIMIZER
    )
    exact = next(plain_rounds(nodes))
    off = np.abs(result.parameters - exact) / (versions.FEDERATED.server_learning_rate * CLIP * 0.5 / NODES)
    assert off.min() > 0
    assert off.max() < 8 * np.sqrt(5 / 3)  # deviations: five shares where three are counted on, or two full noises
    for side in sides(nodes, fed, mode).values():
        assert 0 < side.ledger.spent() < 50


@pytest.mark.parametrize("mode", MODES)
def test_too_few_nodes_give_no_sum_and_the_model_stays(nodes, tmp_path, mode):
    fed = federation(**without_noise(mode))
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


def test_without_noise_a_member_that_joins_between_two_sums_is_nearly_read(nodes):
    """Nodes learn from their whole log: without new choices their updates of two rounds are almost the same."""
    names, parameters, rounds = federated.parameter_names(), start().parameters, []
    for version in range(2):
        ranker = Ranker(version, names, parameters.astype("<f8").tobytes())
        rounds.append(np.array([clipped(federated.update(node.log, ranker)) for node in nodes.values()]))
        parameters = plain_round(rounds[-1], parameters)
    before, after = rounds
    assert min(cosine(*pair) for pair in zip(before, after, strict=True)) > 0.98
    read = [cosine(after.sum(axis=0) - np.delete(before, new, axis=0).sum(axis=0), after[new]) for new in range(NODES)]
    assert min(read) > 0.75
    assert max(read) > 0.97


def clipped(update):
    return update * min(1.0, CLIP / np.linalg.norm(update))


def cosine(first, second):
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))
