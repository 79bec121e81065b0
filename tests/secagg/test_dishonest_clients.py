"""Lies, replays and damage: the sender is dropped and named, the round goes on, and every sum is exact."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_rounds import answers, content, federation, plain_sum, run, said, until

from foltr.errors import SecureAggregationError
from foltr.secagg import crypto as primitives
from foltr.secagg import messages
from foltr.secagg.client import answer
from foltr.secagg.messages import STAGES
from foltr.secagg.terms import to_set

FED = federation(5, length=2, dropouts=0.2, corrupt=0.0)  # 4 neighbours each, threshold 3, sums of 4
LIAR, OTHER, THIRD, FOURTH, LAST = FED.identities
KINDS = dict(
    zip(STAGES, (messages.Keys, messages.Shares, messages.Masked, messages.Agreement, messages.Revealed), strict=True)
)
changed = msgspec.structs.replace


def lie(stage, change, silent=()):
    """The sum after one client's reply at a stage was changed and signed again."""
    server, states, requests = until(FED, stage, silent)
    return rest(server, states, requests, stage, lambda at, replies: altered(at, replies, stage, change), silent)


def altered(at, replies, stage, change):
    if at == stage:
        body = content(replies[LIAR], KINDS[stage])
        replies[LIAR] = said(FED, stage, LIAR, changed(body, **change(body)))


def rest(server, states, requests, stage, meddle=lambda *_: None, silent=()):
    """What is left of a round from a stage on; a client that refuses a request is silent from then on."""
    gone = set()
    for at in STAGES[STAGES.index(stage) :]:
        replies = {}
        for client, request in requests.items():
            if client in gone or (at == "mask" and client in silent):
                gone.add(client)
                continue
            try:
                states[client], replies[client] = answer(states[client], request)
            except SecureAggregationError:
                gone.add(client)
        meddle(at, replies)
        try:
            requests = server.send(replies)
        except StopIteration as finished:
            return finished.value
    raise AssertionError("no sum")


def flipped(data, byte=0, bit=0):
    return data[:byte] + bytes([data[byte] ^ 1 << bit]) + data[byte + 1 :]


def exact(found):
    np.testing.assert_array_equal(found.total, plain_sum(FED, found.included))


WEAK = b"\x01" + bytes(31)  # agrees with everybody


@pytest.mark.parametrize(
    ("stage", "change", "says"),
    [
        ("advertise", lambda body: {"mask": body.channel}, "keys are not usable"),
        ("advertise", lambda _: {"channel": WEAK}, "keys are not usable"),
        ("advertise", lambda _: {"mask": WEAK}, "keys are not usable"),
        ("share", lambda body: {"sealed": body.sealed[:-1]}, "sent shares for 3 neighbours, not 4"),
        ("share", lambda body: {"sealed": [b"", b"", *body.sealed[2:]]}, "10 reports client 13: its keys"),
        ("share", lambda body: {"sealed": [b"x", *body.sealed[1:]]}, "of a wrong size"),
        ("share", lambda body: {"commitments": body.commitments[:-1]}, "sent shares"),
        (
            "share",
            lambda body: {"sealed": [flipped(body.sealed[0]), *body.sealed[1:]]},
            "13 reports client 10: its sea",
        ),
        ("share", lambda body: {"sealed": [bytes(84)] * 4}, "13 reports client 10: its sealed shares do not open"),
        ("mask", lambda body: {"vector": body.vector[:-1]}, "a vector of 7 bytes, expected 8"),
        ("mask", lambda body: {"proofs": body.proofs[:-1]}, "sent 3 proofs"),
        ("mask", lambda body: {"proofs": [b"", b"", *body.proofs[2:]]}, "10 reports client 13: its sealed shares"),
    ],
)
def test_a_liar_is_left_out_and_named(stage, change, says):
    found = lie(stage, change)
    assert found.included == tuple(FED.identities)[1:]
    assert list(found.dropped) == [LIAR]
    assert says in found.dropped[LIAR]
    exact(found)


@pytest.mark.parametrize(
    ("stage", "change", "dropped", "reports"),
    [
        ("agree", lambda _: {"digest": bytes(32)}, "signed another set", 0),
        ("unmask", lambda body: {"shares": body.shares[1:]}, "did not open one share", 0),
        ("unmask", lambda body: {"shares": [b"x", *body.shares[1:]]}, "did not open one share", 0),
        ("unmask", lambda body: {"shares": [flipped(body.shares[0]), *body.shares[1:]]}, None, 1),
        ("unmask", lambda body: {"shares": [b"", *body.shares[1:]]}, None, 1),
        ("mask", lambda body: {"proofs": [bytes(16), *body.proofs[1:]]}, None, 1),
        ("share", lambda body: {"commitments": [bytes(32), *body.commitments[1:]]}, None, 1),
    ],
)
def test_a_lie_after_the_vector_changes_nothing_in_the_sum(stage, change, dropped, reports):
    """A threshold of others opens what is needed; a report has the liar on one of its sides."""
    found = lie(stage, change)
    assert found.included == tuple(FED.identities)
    assert ([dropped in why for why in found.dropped.values()] or [dropped is None]) == [True]
    assert len(found.reports) == reports
    assert all(LIAR in (one.by, one.about) for one in found.reports)
    exact(found)


@pytest.mark.parametrize(
    ("stage", "change", "says"),
    [
        ("share", lambda _: {"seed": bytes(16)}, "client 10 shared a seed secret that is not its own"),
        (
            "share",
            lambda _: {"commitments": [bytes(32)] * 4},
            "usable shares of client 10.*client 13 reports client 10",
        ),
        ("mask", lambda _: {"proofs": [bytes(16)] * 4}, "0 usable shares of client 10.*client 13 reports client 10"),
    ],
)
def test_what_shows_only_at_the_end_stops_the_round_with_a_name(stage, change, says):
    """The vector is in the agreed set by then: no exact sum is possible without it, so there is none."""
    with pytest.raises(SecureAggregationError, match=says):
        lie(stage, change)


def test_a_wrong_share_of_a_mask_key_is_noticed_and_not_used():
    fed = federation(9, length=2, dropouts=0.2, corrupt=0.0)
    server, states, requests = until(fed, "unmask", silent=(OTHER,))
    replies = answers(states, requests)
    body = content(replies[LIAR], messages.Revealed)
    wrong = said(fed, "unmask", LIAR, changed(body, shares=[flipped(body.shares[0]), *body.shares[1:]]))
    with pytest.raises(StopIteration) as finished:
        server.send({**replies, LIAR: wrong})
    found = finished.value.value
    assert [(one.by, one.about) for one in found.reports] == [(LIAR, OTHER)]
    np.testing.assert_array_equal(found.total, plain_sum(fed, [name for name in fed.identities if name != OTHER]))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("kind", ["garbage", "nothing", "huge", "repeated", "another client's"])
def test_one_bad_reply_at_any_stage_does_not_stop_the_round(stage, kind):
    server, states, requests = until(FED, stage)
    before, most = {}, next(iter(states.values())).most_bytes

    def meddle(at, replies):
        bad = {"garbage": b"\xff" * 99, "nothing": b"", "huge": bytes(most + 1), "another client's": replies[OTHER]}
        if at == stage:
            replies[LIAR] = before.get(LIAR, b"?") if kind == "repeated" else bad[kind]
        before.update(replies)

    found = rest(server, states, requests, stage, meddle)
    vectors_in = stage in ("agree", "unmask")
    assert found.included == tuple(FED.identities)[0 if vectors_in else 1 :]
    assert list(found.dropped) == [LIAR]
    assert ("bytes;" in found.dropped[LIAR]) == (kind == "huge")
    exact(found)


@pytest.mark.parametrize("stage", STAGES)
def test_who_was_not_asked_is_not_heard(stage):
    silent = (LIAR,) if stage in ("agree", "unmask") else ()
    server, states, requests = until(FED, stage, silent)
    stranger = {999: b"hello"}

    def meddle(_, replies):
        replies.update(stranger)
        if LIAR not in replies:
            replies[LIAR] = said(FED, "agree", LIAR, messages.agreement(b"", to_set(FED.identities, FED.registry)))

    found = rest(server, states, requests, stage, meddle)
    assert found.dropped == dict.fromkeys(silent, "no reply of stage 'mask' within 120 s")
    exact(found)


def test_one_weak_key_silences_nobody_else():
    """With ten clients, nine honest neighbours of a liar: today's complaint is that all of them fell silent."""
    fed = federation(10, length=2)
    server, states, requests = until(fed, "advertise")
    replies = answers(states, requests)
    weak = changed(content(replies[10], messages.Keys), channel=WEAK)
    requests = server.send({**replies, 10: said(fed, "advertise", 10, weak)})
    assert sorted(requests) == list(fed.identities)[1:]
    found = rest(server, states, requests, "share")
    assert found.included == tuple(fed.identities)[1:]
    assert list(found.dropped) == [10]


def test_a_client_that_reports_many_is_dropped_and_not_those_it_reports():
    found = lie("share", lambda body: {"sealed": [b""] * len(body.sealed)})
    assert list(found.dropped) == [LIAR]


def test_shares_that_give_another_mask_key_are_noticed():
    """The commitments to the shares are right, the key that they give is not the one advertised."""
    server, states, requests = until(FED, "share")
    states[LIAR] = changed(states[LIAR], mask=primitives.new_secret())
    with pytest.raises(SecureAggregationError, match="client 10 shared a mask secret that is not its own"):
        rest(server, states, requests, "share", silent=(LIAR,))


def test_shares_that_give_another_self_mask_are_noticed():
    server, states, requests = until(FED, "share")
    true = states[LIAR].seed
    states[LIAR] = changed(states[LIAR], seed=primitives.new_secret())

    def meddle(at, replies):
        if at == "share":
            whole = primitives.seed_commitment(states[LIAR].context, LIAR, true)
            replies[LIAR] = said(FED, "share", LIAR, changed(content(replies[LIAR], messages.Shares), seed=whole))

    with pytest.raises(SecureAggregationError, match="client 10 shared a seed secret that is not its own"):
        rest(server, states, requests, "share", meddle)


def test_two_clients_with_one_key_are_both_dropped():
    fed = federation(9, length=2, dropouts=0.25, corrupt=0.0)
    server, states, requests = until(fed, "advertise")
    replies = answers(states, requests)
    replies[OTHER] = said(fed, "advertise", OTHER, content(replies[LIAR], messages.Keys))
    requests = server.send(replies)
    assert sorted(requests) == list(fed.identities)[2:]


@pytest.mark.parametrize("key", [bytes(31), bytes(33), bytes(31) + b"\x80"])
def test_a_key_that_is_none_drops_its_sender(key):
    server, states, requests = until(FED, "advertise")
    replies = answers(states, requests)
    replies[LIAR] = forged_keys(key)
    assert LIAR not in server.send(replies)


def forged_keys(key):
    """`Keys` refuses to be made with a wrong one, so this is another struct of the same form."""

    class Unchecked(messages.Body, frozen=True):
        channel: bytes
        mask: bytes

    return said(FED, "advertise", LIAR, Unchecked(key, key))


@pytest.mark.parametrize("stage", STAGES)
def test_a_replay_of_another_round_is_not_taken(stage):
    old = {}

    def record(at, direction, client, message):
        if direction == "reply":
            old[at, client] = message
        return message

    run(FED, round=1, mutate=record)

    def replay(at, direction, client, message):
        return old[at, client] if (at, direction, client) == (stage, "reply", LIAR) else message

    found = run(FED, round=2, mutate=replay)
    assert "round is 1, expected 2" in found.dropped[LIAR]
    exact(found)


def test_too_many_liars_leave_no_sum_and_are_named():
    def lies(_, direction, client, message):
        return b"?" if direction == "reply" and client in (LIAR, OTHER) else message

    with pytest.raises(
        SecureAggregationError, match=r"3 clients sent keys, at least 4 .*dropped: client 10: .*client 13: "
    ):
        run(FED, mutate=lies)


def test_after_a_failure_the_server_gives_nothing():
    server, states, requests = until(FED, "unmask")
    replies = answers(states, requests)
    with pytest.raises(SecureAggregationError):
        server.send({})
    with pytest.raises(StopIteration) as finished:
        server.send(replies)
    assert finished.value.value is None


@pytest.mark.parametrize("direction", ["request", "reply"])
@pytest.mark.parametrize("stage", STAGES)
@settings(max_examples=15)
@given(data=st.data())
def test_a_changed_byte_costs_at_most_one_client(stage, direction, data):
    client = data.draw(st.sampled_from(sorted(FED.identities)))
    place, bit = data.draw(st.floats(0, 1, exclude_max=True)), data.draw(st.integers(0, 7))

    def damage(at, way, who, message):
        if (at, way, who) != (stage, direction, client):
            return message
        return flipped(message, int(place * len(message)), bit)

    found = run(FED, mutate=damage)
    assert len(found.included) >= 4
    exact(found)


@pytest.mark.parametrize("direction", ["request", "reply"])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("left", [0, 1, -1], ids=["nothing", "one byte", "all but one"])
def test_a_message_cut_short_costs_one_client(stage, direction, left):
    def cut(at, way, who, message):
        return message[:left] if (at, way, who) == (stage, direction, LIAR) else message

    found = run(FED, mutate=cut)
    assert ("not a message" in found.dropped.get(LIAR, "")) == (direction == "reply")
    exact(found)


def test_a_huge_request_is_refused_before_it_is_decoded():
    _, states, _ = until(FED, "share")
    with pytest.raises(SecureAggregationError, match="at most"):
        answer(states[LIAR], bytes(states[LIAR].most_bytes + 1))
