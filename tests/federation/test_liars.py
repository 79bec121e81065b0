"""One node that lies: how far it moves a sum, what is not applied, and what it costs the others."""

from functools import partial

import numpy as np
import pytest
from small_members import NAMES, NODES, START, rounds_of, small

from foltr.federation import participant, two_servers
from foltr.federation.coordinator import Coordinator, OneServer
from foltr.federation.in_memory import InMemory
from foltr.federation.member import MOST_UNREWARDED, read_shared, respond, resume
from foltr.federation.round import run_rounds
from foltr.federation.schedule import synchronous
from foltr.federation.server import add_scaled

pytestmark = pytest.mark.usefixtures("silent_operators")

LIAR = 4


def lying(monkeypatch, value):
    """From now on the node LIAR sends this number in every place of its vector, whatever the clip is."""
    real = two_servers.contribute

    def contribute(vector, client, identity, *, window):
        lie = np.full_like(vector, np.uint64(value)) if client == LIAR else vector
        return real(lie, client, identity, window=window)

    monkeypatch.setattr(two_servers, "contribute", contribute)


@pytest.mark.parametrize("value", [2**63, 2**63 // 100, 12 * 2**32])
def test_a_sum_beyond_what_its_nodes_could_have_made_is_not_applied_and_no_node_takes_it_over(
    tmp_path, monkeypatch, value
):
    """The largest lie that the ring holds, a hundredth of it, and 20 clips where all five and the noise have 13."""
    fed = small(tmp_path)
    transport = fed.transport()
    rounds = rounds_of(fed.collector(transport), 3)
    assert next(rounds).released
    with monkeypatch.context() as patched:
        lying(patched, value)
        spoiled = next(rounds)
    assert not spoiled.released
    assert all("cannot have sent" in reason for reason in spoiled.collected.dropped.values())
    honest = next(rounds)
    assert honest.released  # one spoiled round costs that round and its release
    assert read_shared(fed.side(0)).version == 1
    assert [fed.charged(client) for client in range(NODES)] == [3] * NODES


def test_what_a_liar_can_do_within_the_norm_of_an_honest_sum(tmp_path, monkeypatch):
    """It is applied, nobody sees it, and nobody can name the liar: this is what validity proofs would remove."""
    fed = small(tmp_path)
    lying(monkeypatch, int(2.5 * 2**32))  # 2.5 in each of 3 places: 4.3 clips, where 5 nodes have 5
    assert next(rounds_of(fed.collector(fed.transport()), 1)).released


def test_nodes_pause_after_two_charged_rounds_without_a_version_and_go_on_with_the_next(tmp_path, monkeypatch):
    fed = small(tmp_path)
    lying(monkeypatch, 2**63)
    transport = fed.transport()
    rounds = rounds_of(fed.collector(transport), 9)
    for _ in range(6):
        assert not next(rounds).released
        transport.nodes.update(fed.transport().nodes)  # every node is started again
    assert [fed.charged(client) for client in range(NODES)] == [MOST_UNREWARDED] * NODES
    assert all("this node pauses" in reason for reason in transport.refusals.values())
    monkeypatch.undo()  # the liar is gone; each person decides
    assert not next(rounds).released
    for client in range(NODES):
        resume(fed.side(client))
    transport.refusals.clear()
    assert next(rounds).released
    assert next(rounds).released
    assert not transport.refusals
    assert [fed.charged(client) for client in range(NODES)] == [MOST_UNREWARDED + 2] * NODES


def test_deleting_what_a_node_stored_of_the_ranker_does_not_end_its_pause(tmp_path, monkeypatch):
    fed = small(tmp_path)
    lying(monkeypatch, 2**63)
    list(rounds_of(fed.collector(fed.transport()), 3))
    for client in range(NODES):
        (tmp_path / f"node-{client}" / "data" / "shared").unlink(missing_ok=True)
        (tmp_path / f"node-{client}" / "data" / "contribution").unlink()
    transport = fed.transport()
    collector = fed.collector(transport)
    schedule = synchronous(NODES, 1, 4)._replace(rounds=[4])
    list(run_rounds(START, schedule, collector, server_optimizer=add_scaled(1.0)))
    assert all("this node pauses" in reason for reason in transport.refusals.values())
    assert [fed.charged(client) for client in range(NODES)] == [2] * NODES


def test_with_one_server_a_sum_beyond_what_its_nodes_could_have_made_is_not_applied(tmp_path, monkeypatch):
    fed = small(tmp_path, noise_multiplier=1.0)
    sides = {client: fed.side(client)._replace(operators=None) for client in range(NODES)}
    transport = InMemory({client: partial(respond, side) for client, side in sides.items()})
    collector = OneServer(Coordinator(fed.terms, fed.registry, fed.server, NAMES, transport))
    real = participant.release

    def release(update, **given):
        vector, event = real(update, **given)
        return (np.full_like(vector, 2**62) if abs(update[0] - LIAR / 16) < 1e-9 else vector), event

    rounds = run_rounds(START, synchronous(NODES, 1, 2), collector, server_optimizer=add_scaled(1.0))
    assert next(rounds).released
    monkeypatch.setattr(participant, "release", release)
    spoiled = next(rounds)
    assert not spoiled.released
    assert all("cannot have sent" in reason for reason in spoiled.collected.dropped.values())
