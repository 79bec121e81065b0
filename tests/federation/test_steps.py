"""The published ranker is tied to the sums: a node computes it itself, and takes over nothing else."""

from functools import partial

import msgspec
import numpy as np
import pytest
from small_members import LIMITS, NAMES, NODES, START, mean_of, rounds_of, small

from foltr.errors import SecureAggregationError, StateError
from foltr.federation.announcement import announce, parameters_of, ranker_of, with_steps
from foltr.federation.coordinator import go_back, publish
from foltr.federation.journal import read_journal
from foltr.federation.member import read_shared, respond
from foltr.federation.policy import Guarded, Policy, accept
from foltr.federation.round import Release, RoundModel
from foltr.federation.schedule import synchronous
from foltr.federation.steps import MOST_BACK, Step, advanced, step_back
from foltr.secagg.round_keys import round_of

pytestmark = pytest.mark.usefixtures("silent_operators")

NODE = 2


def after(fed, rounds):
    """A federation after so many rounds: its collector, the results and the journal."""
    transport = fed.transport()
    collector = fed.collector(transport)
    done = list(rounds_of(collector, rounds))
    assert not transport.refusals
    return collector, done, read_journal(collector.journal, fed.terms.federation)


def version(fed, state, steps, values=None, number=None, identity=None):
    ranker = ranker_of(
        state.version if number is None else number, NAMES, state.parameters if values is None else values
    )
    message = announce("version", ranker, federation=fed.terms.federation, round=3, identity=identity or fed.server)
    return with_steps(message, msgspec.msgpack.encode(steps))


def refused(fed, message, client=NODE):
    before = list(fed.adopted)
    with pytest.raises(SecureAggregationError) as problem:
        respond(fed.side(client), message)
    assert fed.adopted == before
    return str(problem.value)


def test_nodes_take_over_the_ranker_that_they_computed(tmp_path):
    fed = small(tmp_path)
    collector, done, _ = after(fed, 2)
    state = done[-1].state
    publish(collector, RoundModel(state.version, state.parameters, state.parameters), range(NODES), round=2)
    assert [client for client, _ in fed.adopted] == list(range(NODES))
    for _, ranker in fed.adopted:
        np.testing.assert_array_equal(parameters_of(ranker), state.parameters)
    assert state.parameters.tolist() == (START.parameters + 4 * mean_of(range(NODES))).tolist()


def test_a_coordinator_that_publishes_another_ranker_is_refused_by_every_node(tmp_path):
    """Signed by the coordinator itself, with the real halves beside it: off by the last bit, and off by far."""
    fed = small(tmp_path)
    _, done, journal = after(fed, 2)
    state = done[-1].state
    for values in (np.nextafter(state.parameters, np.inf), -state.parameters, START.parameters):
        assert "is not the one that follows" in refused(fed, version(fed, state, journal.steps, values))
    assert "is not the one that follows" in refused(fed, version(fed, state, journal.steps, number=0))
    respond(fed.side(NODE), version(fed, state, journal.steps))  # the right one is taken over


def test_a_round_that_begins_with_another_ranker_gets_no_update_and_no_charge(tmp_path):
    fed = small(tmp_path)
    transport = fed.transport()
    rounds = rounds_of(fed.collector(transport), 2)
    next(rounds)
    model = RoundModel(1, START.parameters + 100, START.parameters + 100)
    collected = fed.collector(transport).collect(model, synchronous(NODES, 1, 2).members(2), 2, Release(None, None))
    assert collected.delta is None
    assert all("is not the one that follows" in reason for reason in transport.refusals.values())
    assert [fed.charged(client) for client in range(NODES)] == [1] * NODES


def test_a_node_that_slept_computes_all_versions_that_it_missed(tmp_path):
    fed = small(tmp_path)
    transport = fed.transport()
    everybody = dict(transport.nodes)
    collector = fed.collector(transport)
    rounds = rounds_of(collector, 6)
    del transport.nodes[NODE]
    for _ in range(4):
        next(rounds)
    assert read_shared(fed.side(NODE)).version == 0
    transport.nodes.update(everybody)
    fifth = next(rounds)
    assert fifth.collected.included.tolist() == list(range(NODES))
    assert read_shared(fed.side(NODE)).version == 4
    next(rounds)
    assert fed.charged(NODE) == 2


@pytest.mark.parametrize("numbers", [(1, 2, 9), (4, 5, 6), (-2, -1, 2), (1, 1, 3)])
def test_steps_whose_versions_somebody_changed_on_the_way_lock_no_node_out(tmp_path, numbers):
    """Nobody signs the number of a step. A node that took the same ranker over under another number would be sent its
    sums again, and refuse every later step, since each sum counts once."""
    fed = small(tmp_path)
    _, done, journal = after(fed, 3)
    (tmp_path / f"node-{NODE}" / "data" / "shared").unlink()
    state, side = done[-1].state, fed.side(NODE)
    changed = tuple(
        msgspec.structs.replace(step, version=number) for step, number in zip(journal.steps, numbers, strict=True)
    )
    refused(fed, version(fed, state, changed))
    assert read_shared(side).version == 0
    respond(side, version(fed, state, journal.steps))
    assert read_shared(side).version == 3


def test_a_node_without_the_steps_in_between_takes_over_nothing(tmp_path):
    fed = small(tmp_path)
    _, done, journal = after(fed, 3)
    (tmp_path / f"node-{NODE}" / "data" / "shared").unlink()  # a node that has seen nothing yet
    state = done[-1].state
    for steps in ((), journal.steps[1:], journal.steps[:2]):
        assert "is not the one that follows" in refused(fed, version(fed, state, steps))
    respond(fed.side(NODE), version(fed, state, journal.steps))


@pytest.mark.parametrize("fault", ["twice", "swapped", "of another round", "invented", "no sums", "garbage", "many"])
def test_steps_that_the_operators_did_not_sign_are_refused(tmp_path, fault):
    fed = small(tmp_path)
    _, done, journal = after(fed, 2)
    first, second = journal.steps
    (one,), (other,) = first.sums, second.sums
    changed = msgspec.structs.replace
    wrong = {
        "twice": [first, Step(2, (one,))],
        "swapped": [first, Step(2, (changed(other, halves=other.halves[::-1]),))],
        "of another round": [first, Step(2, (changed(one, round=2),))],
        "invented": [first, Step(2, (changed(other, halves=(other.halves[0], one.halves[1])),))],
        "no sums": [first, Step(2)],
        "garbage": [first, Step(2, (changed(other, halves=(b"", b"\xc1")),))],
        "many": [Step(2, (one, other, other))],
    }[fault]
    (tmp_path / f"node-{NODE}" / "data" / "shared").unlink()
    assert refused(fed, version(fed, done[-1].state, wrong))


def test_messages_that_are_no_steps_are_refused(tmp_path):
    fed = small(tmp_path)
    message = version(fed, START, ())
    for steps in (b"\xc1", b"\x91\x01", msgspec.msgpack.encode([[1, []]])[:-1], bytes(10**7)):
        assert refused(fed, with_steps(message, steps))


def test_a_lost_ranker_is_computed_again_and_a_damaged_one_says_what_to_do(tmp_path):
    fed = small(tmp_path)
    _, done, journal = after(fed, 2)
    path = tmp_path / f"node-{NODE}" / "data" / "shared"
    message = version(fed, done[-1].state, journal.steps)
    path.write_bytes(b"\xff")
    with pytest.raises(StateError, match="delete the file"):
        respond(fed.side(NODE), message)
    path.unlink()
    respond(fed.side(NODE), message)
    assert read_shared(fed.side(NODE)).version == 2


# going back


def test_a_step_back_is_a_new_version_with_old_weights_and_a_reason(tmp_path):
    fed = small(tmp_path)
    collector, done, _ = after(fed, 3)
    state = go_back(collector, done[2].state, done[0].state, "version 3 ranks worse")
    assert state.version == 4
    publish(collector, RoundModel(state.version, state.parameters, state.parameters), range(NODES), round=3)
    assert len(fed.adopted) == NODES
    shared = read_shared(fed.side(NODE))
    assert (shared.version, shared.reason, shared.round) == (4, "version 3 ranks worse", 3)
    np.testing.assert_array_equal(np.frombuffer(shared.values), done[0].state.parameters)


def test_an_older_version_that_is_sent_again_takes_nothing_back(tmp_path):
    """The real announcement of version 1, with its signature, after version 2."""
    fed = small(tmp_path)
    _, done, journal = after(fed, 2)
    respond(fed.side(NODE), version(fed, done[1].state, journal.steps))
    assert "is not the one that follows" in refused(fed, version(fed, done[0].state, journal.steps[:1]))


def test_a_step_back_needs_the_coordinators_signature_and_a_reason_and_has_a_limit(tmp_path):
    fed = small(tmp_path)
    _, done, journal = after(fed, 2)
    back = partial(step_back, fed.server, federation=fed.terms.federation, version=3)
    changed, good = msgspec.structs.replace, back(back_to=1, reason="worse")
    for wrong in (
        changed(good, signature=bytes(64)), changed(good, reason="better"), changed(good, back_to=0),
        changed(good, version=4), changed(good, sums=journal.steps[1].sums), back(back_to=1, reason=" "),
        back(back_to=1, reason="two\nlines"),
    ):  # fmt: skip
        assert refused(fed, version(fed, done[0].state, [*journal.steps, wrong], number=wrong.version))
    respond(fed.side(NODE), version(fed, done[0].state, [*journal.steps, good], number=3))
    shared, setup = read_shared(fed.side(NODE)), fed.setup
    for number in range(4, 4 + MOST_BACK):
        to = step_back(fed.server, federation=fed.terms.federation, version=number, back_to=number - 1, reason="again")
        shared = advanced(shared, (to,), setup=setup, server_learning_rate=2.0)
    far = step_back(fed.server, federation=fed.terms.federation, version=40, back_to=1, reason="far")
    with pytest.raises(SecureAggregationError, match="goes back 10 at most"):
        advanced(shared, (far,), setup=setup, server_learning_rate=2.0)


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_without_noise_the_same_weights_under_another_number_get_no_update(tmp_path, noise):
    """A second sum over the same weights, with one member less, would show that member's update exactly."""
    fed = small(tmp_path, noise_multiplier=noise, dropouts=0.0)
    Guarded(tmp_path / f"node-{NODE}" / "state").save(
        accept(Policy(LIMITS), fed.terms.federation, fed.setup.operators, circle=fed.registry)
    )
    left = [{round_of(one): one for one in operator.statements(1)} for operator in fed.operators()]
    message = announce(
        "round", ranker_of(7, NAMES, START.parameters), federation=fed.terms.federation, round=1, identity=fed.server,
        statements=tuple(by_round[1] for by_round in left),
    )  # fmt: skip
    if noise:
        assert respond(fed.side(NODE), message)
    else:
        assert "is not the one that follows" in refused(fed, message)
    true = announce(
        "round", ranker_of(0, NAMES, START.parameters), federation=fed.terms.federation, round=1, identity=fed.server,
        statements=tuple(by_round[1] for by_round in left),
    )  # fmt: skip
    assert respond(fed.side(NODE), true)
