"""Deadlines of the server: a stage ends in time whatever is sent, and whoever is late costs nobody else anything."""

import socket
import threading
import tracemalloc
from contextlib import ExitStack

import numpy as np
import pytest
import small_two_servers as two
from hypothesis import example, given
from hypothesis import strategies as st
from small_rounds import RANKER, announced, asked, federation, members, plain_sum, said, server_of, sizes, vectors
from transports import Simulated, Sockets, connected, serve

from foltr.errors import SecureAggregationError
from foltr.federation import participant
from foltr.federation.membership import round_place
from foltr.privacy.ledger_file import open_ledger
from foltr.secagg import deadlines, groups, messages, ring
from foltr.secagg.client import join
from foltr.secagg.deadlines import collect, conduct, contributions
from foltr.secagg.messages import STAGES, round_seconds
from foltr.secagg.terms import most_bytes
from foltr.secagg.two_in_process import run_round
from foltr.witnessed import load

FED = federation(5, length=2, dropouts=0.2, corrupt=0.0)  # 4 neighbours each, threshold 3, sums of 4
LATE, OTHER, *REST = FED.identities
LONGEST = most_bytes(FED.terms, sizes(FED), len(FED.identities))
LOOKS = deadlines._MOST_LOOKS


def conducted(sends, fed=FED):
    """What the server returns, and the network afterwards."""
    network = Simulated(clients=members(fed), sends=sends)
    seconds = fed.terms.stage_seconds
    return conduct(server_of(fed), network, seconds=seconds, most_bytes=LONGEST, clock=network.clock), network


def exact(found, included, fed=FED):
    assert found.included == tuple(included)
    np.testing.assert_array_equal(found.total, plain_sum(fed, included))


def late(stage):
    return f"no reply of stage {stage!r} within 120 s"


def test_a_round_lasts_as_long_as_five_stages():
    assert round_seconds(FED.terms) == 5 * 120


def test_where_all_reply_nobody_waits():
    found, network = conducted(lambda stage, client, reply: [(0.0, reply)])
    exact(found, FED.identities)
    assert not found.dropped
    assert network.now == 0


def test_a_stage_ends_with_its_last_reply():
    found, network = conducted(lambda stage, client, reply: [(119.5 if client == LATE else 1.0, reply)])
    exact(found, FED.identities)
    assert network.now == 5 * 119.5


@pytest.mark.parametrize("delay", [None, 120.25, 500.0], ids=str)
@pytest.mark.parametrize("stage", STAGES)
def test_whoever_is_silent_or_late_in_a_stage_is_out_of_the_round_and_named(stage, delay):
    def sends(at, client, reply):
        if (at, client) == (stage, LATE):
            return [] if delay is None else [(delay, reply)]
        return [(0.5, reply)]

    found, network = conducted(sends)
    exact(found, FED.identities if stage in ("agree", "unmask") else [OTHER, *REST])  # whose vectors had arrived
    assert found.dropped == {LATE: late(stage)}
    assert network.now == 120 + 4 * 0.5
    assert [at for at in STAGES if LATE in network.asked[at]] == list(STAGES[: STAGES.index(stage) + 1])


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        ("advertise", "3 clients sent keys, at least 4"),
        ("share", "2 neighbours of client .* shared their secrets, 3"),
        ("mask", "3 clients sent their vectors, at least 4"),
    ],
)
def test_too_many_late_clients_leave_no_sum_and_are_named(stage, says):
    def sends(at, client, reply):
        return [] if at == stage and client in (LATE, OTHER) else [(0.0, reply)]

    named = f"client {LATE}: {late(stage)}; client {OTHER}: {late(stage)}"
    with pytest.raises(SecureAggregationError, match=rf"{says} are needed; no sum \(dropped: {named}\)"):
        conducted(sends)


# what does not take the place of a reply


def test_repeated_replies_of_all_earlier_stages_drop_nobody():
    """A transport that delivers at least once: everything that a client has sent comes twice more before its reply."""
    before = {client: [] for client in FED.identities}

    def sends(_, client, reply):
        repeated = [(0.0, message) for message in before[client]]
        before[client].append(reply)
        return [*repeated, *repeated, (0.0, reply), (0.0, reply)]

    found, _ = conducted(sends)
    exact(found, FED.identities)
    assert not found.dropped


KEYS = messages.Keys(b"\1" * 32, b"\2" * 32)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(said(FED, "advertise", LATE, KEYS, round=2), id="another round"),
        pytest.param(said(FED, "advertise", OTHER, KEYS), id="another client's"),
        pytest.param(asked(FED, "advertise", LATE, messages.Start()), id="the request"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_is_no_reply_to_the_request_does_not_take_its_place(other):
    found, _ = conducted(lambda stage, client, reply: [(0.0, other)] * (client == LATE) + [(1.0, reply)])
    exact(found, FED.identities)
    assert not found.dropped


@pytest.mark.parametrize(
    ("bad", "says"),
    [(b"?", "not a message"), (b"\xff" * (LONGEST + 5), f"a reply of {LONGEST + 1} bytes; {LONGEST} at most")],
    ids=["garbage", "too long"],
)
def test_whoever_sends_nothing_else_is_told_apart_from_the_silent(bad, says):
    found, network = conducted(lambda stage, client, reply: [(0.0, bad if client == LATE else reply)])
    exact(found, [OTHER, *REST])
    assert says in found.dropped[LATE]
    assert network.now == 120  # the real reply could still have come


def test_the_first_claim_to_be_the_reply_counts():
    """Signatures are checked once for each client and stage: who sends two replies cannot have more checked."""

    def sends(stage, client, reply):
        forged = reply[:-1] + bytes([reply[-1] ^ 1])  # of the signature
        return [(0.0, forged), (0.0, reply)] if client == LATE else [(0.0, reply)]

    found, _ = conducted(sends)
    exact(found, [OTHER, *REST])
    assert "signature" in found.dropped[LATE]


# floods


@pytest.mark.parametrize("sender", ["asked", "not asked", "has replied"])
def test_a_message_every_second_keeps_no_stage_open(sender):
    client, message = {"asked": (1, b"?"), "not asked": (9, b"reply"), "has replied": (1, b"reply")}[sender]
    network = Simulated([(float(at), client, message) for at in range(1000)] + [(121.0, 2, b"reply")])
    found = collect(network, [1, 2], seconds=120.0, most_bytes=9, fits=fits, clock=network.clock)
    assert found == ({} if client == 9 else {1: message})
    assert network.now == 120


def fits(_, message):
    return message.startswith(b"reply")


@pytest.mark.parametrize("flood", [b"?", b"\xff" * (LONGEST + 1)], ids=["garbage", "too long"])
@pytest.mark.parametrize("stage", STAGES)
def test_a_flood_from_one_client_costs_the_others_nothing(stage, flood):
    """Its reply, after a thousand other messages, is not heard; nobody waits for it."""

    def sends(at, client, reply):
        return [(0.0, flood)] * 1000 * ((at, client) == (stage, LATE)) + [(0.0, reply)]

    found, network = conducted(sends)
    exact(found, FED.identities if stage in ("agree", "unmask") else [OTHER, *REST])
    assert list(found.dropped) == [LATE]
    assert network.now == 0


class Flood:
    """A gigabyte of messages from some clients, then the reply of each."""

    def __init__(self, clients):
        self.messages = ((client, kind) for kind in [b"\xff"] * 1000 + [b"reply"] for client in clients)

    def receive(self, _):
        found = next(self.messages, None)
        return found and (found[0], found[1] * (1 if found[1] == b"reply" else 1_000_000))


@pytest.mark.parametrize(("longest", "stored", "looks"), [(50_000, 50_001, 0), (1_000_000, 1_000_000, LOOKS)])
def test_memory_and_work_are_bounded_whatever_is_sent(longest, stored, looks):
    """Messages that are too long, and messages that are not but no replies."""
    decoded = []
    tracemalloc.start()
    try:
        found = collect(Flood([1, 7, 8]), [1, 2], seconds=120.0, most_bytes=longest,
                        fits=lambda *one: decoded.append(len(one[1])) or fits(*one), clock=lambda: 0.0)  # fmt: skip
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert {client: len(message) for client, message in found.items()} == {1: stored}
    assert peak < 4_000_000  # the one that stays, and two while the next is received
    assert len(decoded) == looks


def test_a_client_is_looked_at_a_few_times_in_a_stage():
    tries = []
    network = Simulated([(0.0, 1, b"?")] * 100 + [(0.0, 1, b"reply"), (0.0, 2, b"reply")])
    found = collect(network, [1, 2], seconds=120.0, most_bytes=9,
                    fits=lambda *one: tries.append(one) or fits(*one), clock=network.clock)  # fmt: skip
    assert found == {1: b"?", 2: b"reply"}
    assert len(tries) == LOOKS + 1


def expected(events, asked, seconds):
    """The slow way: what each client sent in time, for itself; and when the last of them is done."""
    replies, ends = {}, []
    for client in asked:
        heard = [(at, message) for at, one, message in sorted(events) if one == client and at < seconds][:LOOKS]
        fitting = [(at, message) for at, message in heard if fits(client, message)]
        if heard:
            replies[client] = (fitting or heard)[0][1]
        done = fitting[0][0] if fitting else heard[-1][0] if len(heard) == LOOKS else seconds
        ends.append(done)
    return replies, max(ends, default=0.0)


NO_REPLIES = [bytes([number]) for number in range(30)]
times = st.integers(0, 20).map(lambda half: half + 0.5)
events = st.lists(
    st.tuples(times, st.integers(0, 4), st.sampled_from([*NO_REPLIES, b"reply", b"reply 2"])), max_size=60
)


@given(events=events, asked=st.sets(st.integers(0, 3)))
@example(events=[(0.5, 1, b"first"), (1.5, 1, b"second")], asked={1, 2})
def test_whatever_arrives_when_each_client_is_treated_for_itself(events, asked):
    events = [(at, client, message) for at, client, message in sorted(events)]
    network = Simulated(events)
    found = collect(network, asked, seconds=10.0, most_bytes=9, fits=fits, clock=network.clock)
    assert (found, network.now) == expected(events, asked, 10.0)


# groups, and two aggregators


def test_groups_side_by_side_have_the_same_deadlines():
    fed = federation(12, dropouts=0.2, corrupt=0.0)
    seed, fixed, rows = bytes(32), ring.Ring(12), vectors(fed)
    clients = {
        name: join(name, one, rows[name], terms=fed.terms, registry=groups.own_group(name, seed, fed.registry, 2),
                   round=1, ranker=RANKER)
        for name, one in fed.identities.items()
    }  # fmt: skip
    parts = groups.assign(seed, fed.registry.clients, 2)
    server = groups.group_means(
        parts, ring=fixed, terms=fed.terms, known=fed.registry, identity=fed.server, round=1, ranker=RANKER
    )
    lost = parts[0][0]
    network = Simulated(
        clients=clients, sends=lambda stage, client, reply: [(0.0, reply)] * ((stage, client) != ("mask", lost))
    )
    found = conduct(server, network, seconds=120.0, most_bytes=100_000, clock=network.clock)
    assert network.now == 120
    assert [one.dropped for one in found.sums] == [{lost: late("mask")}, {}]
    for one, group in zip(found.sums, parts, strict=True):
        exact(one, [name for name in group if name != lost], fed)


TWO = two.federation(7, dropouts=0.3)


def test_two_aggregators_add_up_what_arrived_in_time():
    sent, old = two.contributions(TWO, round=2), two.contributions(TWO, round=1)
    first, second, third, *rest = sent
    events = [(120.5, first, sent[first]), (0.0, second, bytes(10**6)), (119.0, third, old[third])]
    events += [(119.5, third, sent[third]), *((1.0, name, sent[name]) for name in rest), (2.0, 999, sent[first])]
    network = Simulated(events)
    found = contributions(network, setup=TWO.setup, round=2, clock=network.clock)
    assert network.now == 120
    assert {name: message for name, message in found.items() if name != second} == {
        name: sent[name] for name in (third, *rest)
    }
    both = run_round(found, TWO.secrets(2), window=TWO.window(2))
    assert both.sums.members == ((third, *rest),)
    np.testing.assert_array_equal(both.sums.totals[0], two.plain_sum(TWO, (third, *rest)))
    assert second in both.refused[0]


def test_two_aggregators_do_not_wait_when_everybody_has_sent():
    network = Simulated([(3.0, name, message) for name, message in two.contributions(TWO).items()])
    assert len(contributions(network, setup=TWO.setup, round=1, clock=network.clock)) == 7
    assert network.now == 3


# real sockets, real clocks


def test_deployed_nodes_over_sockets_reach_a_sum_without_the_silent_one(tmp_path):
    """Four nodes with ledgers answer over TCP, the fifth is connected and sends nothing."""
    fed = federation(5, length=6, noise_multiplier=4.0, stage_seconds=6.0)
    silent, *active = fed.identities
    longest = most_bytes(fed.terms, sizes(fed), len(fed.identities))
    noisy, ledgers, threads = {}, {}, []
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        ends = {name: connected(listener) for name in fed.identities}
        for pair in ends.values():
            for connection in pair:
                stack.enter_context(connection)
        for name in active:
            home = tmp_path / str(name)
            storage = participant.Storage(home / "state", home / "witness")
            ledgers[name] = open_ledger(
                home / "state" / "ledger", delta=1e-5, budget=None, witness=home / "witness" / "ledger"
            )
            member = participant.Member(name, fed.identities[name], fed.terms, fed.registry)
            known = {"ledger": ledgers[name], "storage": storage}
            participant.join_round(member, announced(fed), np.full(6, 0.1), **known)
            noisy[name] = np.frombuffer(load(round_place(storage), participant._Stored).vector, "<u4")
            replies = bound(participant.answer, member, known)
            threads.append(threading.Thread(target=serve, args=(ends[name][0], replies)))
        for thread in threads:
            thread.start()
        network = Sockets({name: server for name, (_, server) in ends.items()}, longest)
        stack.callback(network.selector.close)
        found = conduct(server_of(fed), network, seconds=fed.terms.stage_seconds, most_bytes=longest)
        for _, server in ends.values():
            server.close()
        for thread in threads:
            thread.join()
    assert found.included == tuple(active)
    assert found.dropped == {silent: "no reply of stage 'advertise' within 6 s"}
    np.testing.assert_array_equal(found.total, sum(noisy.values(), np.zeros(6, "<u4")))
    assert [sum(one.counts().values()) for one in ledgers.values()] == [1] * 4


def bound(answer, member, known):
    return lambda request: answer(member, request, **known)
