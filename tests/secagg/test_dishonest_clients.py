"""Lies, replays and damage: a clear failure with a name, and no sum; or no harm at all."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_rounds import answers, content, federation, plain_sum, run, said, until

from foltr.errors import SecureAggregationError
from foltr.secagg import crypto as primitives
from foltr.secagg import messages
from foltr.secagg.messages import STAGES, to_set

FED = federation(5, length=2, dropouts=0.2, corrupt=0.0)  # 4 neighbours each, threshold 3, sums of 4
LIAR, OTHER, THIRD, FOURTH, LAST = FED.identities
KINDS = dict(
    zip(STAGES, (messages.Keys, messages.Shares, messages.Masked, messages.Agreement, messages.Revealed), strict=True)
)
changed = msgspec.structs.replace


def lie(stage, change, silent=()):
    """The round goes on after one client's reply at a stage was changed and signed again; what the server says."""
    server, states, requests = until(FED, stage, silent)
    for current in STAGES[STAGES.index(stage) :]:
        replies = answers(states, requests, silent if current == "mask" else ())
        if current == stage:
            body = content(replies[LIAR], KINDS[stage])
            replies[LIAR] = said(FED, stage, LIAR, changed(body, **change(body)))
        requests = server.send(replies)


def flipped(data, byte=0, bit=0):
    return data[:byte] + bytes([data[byte] ^ 1 << bit]) + data[byte + 1 :]


@pytest.mark.parametrize(
    ("stage", "change", "says"),
    [
        ("advertise", lambda body: {"mask": body.channel}, "clients 10 and 10 sent the same key"),
        ("share", lambda body: {"sealed": body.sealed[:-1]}, "client 10 sent shares for 3 neighbours, not 4"),
        ("share", lambda body: {"sealed": [b"", *body.sealed[1:]]}, "client 10 sent shares"),
        ("share", lambda body: {"commitments": body.commitments[:-1]}, "client 10 sent shares"),
        ("share", lambda body: {"sealed": [flipped(body.sealed[0]), *body.sealed[1:]]}, "shares from client 10"),
        ("share", lambda _: {"seed": bytes(16)}, "client 10 shared a seed secret that is not its own"),
        ("share", lambda _: {"commitments": [bytes(32)] * 4}, "share of client 10 that is not the one committed"),
        ("mask", lambda body: {"vector": body.vector[:-1]}, "client 10 sent a vector of 7 bytes, expected 8"),
        ("mask", lambda body: {"proofs": body.proofs[:-1]}, "client 10 sent 3 proofs"),
        ("mask", lambda body: {"proofs": [bytes(16), *body.proofs[1:]]}, "client 10 did not prove"),
        ("agree", lambda _: {"digest": bytes(32)}, "client 10 signed another set"),
        ("unmask", lambda body: {"shares": [flipped(body.shares[0]), *body.shares[1:]]}, "client 10 opened a share of"),
        ("unmask", lambda body: {"shares": body.shares[1:]}, "client 10 did not open one share"),
        ("unmask", lambda body: {"shares": [b"x", *body.shares[1:]]}, "client 10 did not open one share"),
        ("unmask", lambda body: {"shares": [b"", *body.shares[1:]]}, "client 10 opened a share of"),
    ],
)
def test_a_lie_stops_the_round_with_its_name(stage, change, says):
    with pytest.raises(SecureAggregationError, match=says):
        lie(stage, change)


def test_a_wrong_share_of_a_mask_key_is_noticed():
    with pytest.raises(SecureAggregationError, match="client 10 opened a share of client 13"):
        lie("unmask", lambda body: {"shares": [flipped(body.shares[0]), *body.shares[1:]]}, silent=(OTHER,))


def finish(server, states, requests, silent=()):
    """The honest rest of a round that stands before its third stage."""
    for stage in STAGES[2:]:
        requests = server.send(answers(states, requests, silent if stage == "mask" else ()))


def test_shares_that_give_another_mask_key_are_noticed():
    """The commitments to the shares are right, the key that they give is not the one advertised."""
    server, states, requests = until(FED, "share")
    states[LIAR] = changed(states[LIAR], mask=primitives.new_secret())
    requests = server.send(answers(states, requests))
    with pytest.raises(SecureAggregationError, match="client 10 shared a mask secret that is not its own"):
        finish(server, states, requests, silent=(LIAR,))


def test_shares_that_give_another_self_mask_are_noticed():
    server, states, requests = until(FED, "share")
    true = states[LIAR].seed
    states[LIAR] = changed(states[LIAR], seed=primitives.new_secret())
    replies = answers(states, requests)
    whole = primitives.seed_commitment(states[LIAR].context, LIAR, true)
    replies[LIAR] = said(FED, "share", LIAR, changed(content(replies[LIAR], messages.Shares), seed=whole))
    requests = server.send(replies)
    with pytest.raises(SecureAggregationError, match="client 10 shared a seed secret that is not its own"):
        finish(server, states, requests)


def test_two_clients_with_one_key_stop_the_round():
    server, states, requests = until(FED, "advertise")
    replies = answers(states, requests)
    replies[OTHER] = said(FED, "advertise", OTHER, content(replies[LIAR], messages.Keys))
    with pytest.raises(SecureAggregationError, match="clients 10 and 13 sent the same key"):
        server.send(replies)


@pytest.mark.parametrize("key", [bytes(31), bytes(33), bytes(31) + b"\x80"])
def test_a_key_that_is_none_stops_the_round(key):
    server, states, requests = until(FED, "advertise")
    replies = answers(states, requests)
    replies[LIAR] = forged_keys(key)
    with pytest.raises(SecureAggregationError, match="an X25519 public key is 32 bytes"):
        server.send(replies)


def forged_keys(key):
    """`Keys` refuses to be made with a wrong one, so this is another struct of the same form."""

    class Unchecked(messages.Body, frozen=True):
        channel: bytes
        mask: bytes

    return said(FED, "advertise", LIAR, Unchecked(key, key))


def test_a_key_that_agrees_with_everybody_is_refused_by_its_neighbours():
    server, states, requests = until(FED, "advertise")
    replies = answers(states, requests)
    body = content(replies[LIAR], messages.Keys)
    replies[LIAR] = said(FED, "advertise", LIAR, changed(body, channel=b"\x01" + bytes(31)))
    requests = server.send(replies)
    with pytest.raises(SecureAggregationError, match="not usable"):
        answers(states, {OTHER: requests[OTHER]})


@pytest.mark.parametrize("stage", STAGES)
def test_the_reply_of_another_client_is_not_taken(stage):
    server, states, requests = until(FED, stage)
    replies = answers(states, requests)
    replies[LIAR] = replies[OTHER]
    with pytest.raises(SecureAggregationError, match="client is 13, expected 10"):
        server.send(replies)


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

    with pytest.raises(SecureAggregationError, match="round is 1, expected 2"):
        run(FED, round=2, mutate=replay)


@pytest.mark.parametrize("stage", STAGES[1:])
def test_a_replay_of_another_stage_is_not_taken(stage):
    old = {}

    def replay(at, direction, client, message):
        if (direction, client) != ("reply", LIAR):
            return message
        before = old.get("last", message)
        old["last"] = message
        return before if at == stage else message

    with pytest.raises(SecureAggregationError, match=f"expected '{stage}'"):
        run(FED, mutate=replay)


def test_one_who_has_dropped_out_does_not_come_back():
    server, states, requests = until(FED, "agree", silent=(OTHER,))
    replies = answers(states, requests)
    replies[OTHER] = said(FED, "agree", OTHER, messages.agreement(b"", to_set(FED.identities, FED.registry)))
    with pytest.raises(SecureAggregationError, match="client 13 replied at stage 'agree' but was not asked"):
        server.send(replies)


def test_after_a_failure_the_server_gives_nothing():
    server, states, requests = until(FED, "unmask")
    replies = answers(states, requests)
    body = content(replies[LIAR], messages.Revealed)
    wrong = said(FED, "unmask", LIAR, changed(body, shares=[flipped(body.shares[0]), *body.shares[1:]]))
    with pytest.raises(SecureAggregationError):
        server.send({**replies, LIAR: wrong})
    with pytest.raises(StopIteration) as finished:
        server.send(replies)
    assert finished.value.value is None


@pytest.mark.parametrize("direction", ["request", "reply"])
@pytest.mark.parametrize("stage", STAGES)
@settings(max_examples=25)
@given(data=st.data())
def test_a_changed_byte_is_noticed_or_harmless(stage, direction, data):
    client = data.draw(st.sampled_from(sorted(FED.identities)))
    place, bit = data.draw(st.floats(0, 1, exclude_max=True)), data.draw(st.integers(0, 7))

    def damage(at, way, who, message):
        if (at, way, who) != (stage, direction, client):
            return message
        return flipped(message, int(place * len(message)), bit)

    total, says = outcome(damage)
    if total is None:
        assert f"client {client}" in says
    else:
        np.testing.assert_array_equal(total, plain_sum(FED, FED.identities))


def outcome(damage):
    """The sum or the failure; any other exception is a fault of the protocol."""
    try:
        return run(FED, mutate=damage).total, ""
    except SecureAggregationError as problem:
        return None, str(problem)


@pytest.mark.parametrize("direction", ["request", "reply"])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("left", [0, 1, -1], ids=["nothing", "one byte", "all but one"])
def test_a_message_cut_short_is_noticed(stage, direction, left):
    def cut(at, way, who, message):
        return message[:left] if (at, way, who) == (stage, direction, LIAR) else message

    with pytest.raises(SecureAggregationError, match="not a message"):
        run(FED, mutate=cut)
