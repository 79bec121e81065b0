"""Attacks on sums by two aggregators: each fails, or its effect is stated."""

import msgspec
import numpy as np
import pytest
from small_two_servers import (
    RANKER,
    agreed,
    begun,
    contributions,
    federation,
    inboxes,
    listed,
    plain_sum,
    public,
    vectors,
)

from foltr.errors import SecureAggregationError
from foltr.secagg import aggregator, crypto, two_servers
from foltr.secagg.aggregator import Agreement, Listing, Memory
from foltr.secagg.terms import registry, to_set
from foltr.secagg.two_in_process import run_round
from foltr.secagg.two_servers import At, Claim, Contribution, Part, Signed, parts, sign

SEVEN = federation(7)


def memory(fed, **stored):
    return Memory(fed.setup.terms.federation, **stored)


def refused(fed, name, part, index=0, **at):
    """What the aggregator says to a part; the state stays as it was."""
    state = begun(fed, index, **at)
    with pytest.raises(SecureAggregationError) as problem:
        aggregator.accept(state, name, part)
    return str(problem.value)


# messages of another context


def test_a_contribution_counts_in_its_round_only():
    sent = contributions(SEVEN, round=1)
    part = parts(sent[10], setup=SEVEN.setup)[0]
    assert "round" in refused(SEVEN, 10, part, round=2)


def test_a_forged_round_number_does_not_help():
    """The envelope says round 2, the signature was for round 1."""
    part = msgspec.msgpack.decode(parts(contributions(SEVEN)[10], setup=SEVEN.setup)[0], type=Part)
    envelope = msgspec.structs.replace(msgspec.msgpack.decode(part.claim, type=Signed), round=2)
    forged = msgspec.msgpack.encode(msgspec.structs.replace(part, claim=msgspec.msgpack.encode(envelope)))
    assert "signature" in refused(SEVEN, 10, forged, round=2)


def other_setups():
    """All that the parties agree on, changed one by one."""
    setup = SEVEN.setup
    terms = {
        "federation": "0" * 32, "clip": 2.0, "noise_multiplier": 1.0, "dropouts": 0.2, "fraction": 15, "corrupt": 0.2,
        "stage_seconds": 60.0,
    }  # fmt: skip
    for field, value in terms.items():
        yield field, setup._replace(terms=msgspec.structs.replace(setup.terms, **{field: value})), RANKER
    more = {**setup.registry.keys, 99: public(crypto.new_identity())}
    yield "registry", setup._replace(registry=registry(setup.registry.server, more)), RANKER
    changed = {**setup.registry.keys, 28: public(crypto.new_identity())}
    yield "another key of a client", setup._replace(registry=registry(setup.registry.server, changed)), RANKER
    fewer = {name: key for name, key in setup.registry.keys.items() if name != 28}
    yield "a client less", setup._replace(registry=registry(setup.registry.server, fewer)), RANKER
    yield "groups", setup._replace(groups=2), RANKER
    first, second = setup.operators
    yield "operator", setup._replace(operators=(first, public(crypto.new_identity()))), RANKER
    yield "order", setup._replace(operators=(second, first)), RANKER
    yield "ranker", setup, bytes(32)


@pytest.mark.parametrize(("setup", "ranker"), [pytest.param(*rest, id=name) for name, *rest in other_setups()])
def test_a_contribution_under_other_terms_is_refused(setup, ranker):
    """Signatures, and for themselves the keys of the sealed shares, depend on all that matters."""
    sent = contributions(SEVEN, setup=setup, ranker=ranker, rows={10: vectors(SEVEN)[10]})
    for index in (0, 1):
        assert "signature" in refused(SEVEN, 10, parts(sent[10], setup=SEVEN.setup)[index], index)
    # signed again for the right context by the client itself: the sealed shares are still of the other one
    found = msgspec.msgpack.decode(sent[10], type=Contribution)
    claim = msgspec.msgpack.decode(msgspec.msgpack.decode(found.claim, type=Signed).body, type=Claim)
    right = At(two_servers.context(SEVEN.window()), 1, "contribution", 10)
    again = msgspec.structs.replace(found, claim=sign(SEVEN.identities[10], right, claim))
    part = parts(msgspec.msgpack.encode(again), setup=SEVEN.setup)[0]
    assert "changed or is meant for somebody else" in refused(SEVEN, 10, part)


def test_a_half_or_a_list_of_another_round_is_refused():
    states, _ = listed(SEVEN, round=2)
    _, old = listed(SEVEN, round=1)
    with pytest.raises(SecureAggregationError, match="round"):
        aggregator.agree(states[0], old[1])


# shares of somebody else


def test_shares_swapped_between_clients_are_refused_at_both():
    first, second = (msgspec.msgpack.decode(contributions(SEVEN)[name], type=Contribution) for name in (10, 13))
    swapped = msgspec.structs.replace(first, first=second.first, second=second.second)
    for index, part in enumerate(parts(msgspec.msgpack.encode(swapped), setup=SEVEN.setup)):
        assert "not the one that was signed" in refused(SEVEN, 10, part, index)


def test_a_colluder_cannot_send_the_shares_of_a_victim_as_its_own():
    """If it could, the victim's vector would be in the sum twice, and the noise would hide half as much."""
    victim = msgspec.msgpack.decode(contributions(SEVEN)[10], type=Contribution)
    claim = msgspec.msgpack.decode(msgspec.msgpack.decode(victim.claim, type=Signed).body, type=Claim)
    at = At(two_servers.context(SEVEN.window()), 1, "contribution", 13)
    copied = msgspec.structs.replace(victim, claim=sign(SEVEN.identities[13], at, claim))
    for index, part in enumerate(parts(msgspec.msgpack.encode(copied), setup=SEVEN.setup)):
        assert "meant for somebody else" in refused(SEVEN, 13, part, index)


def test_an_aggregator_cannot_open_what_is_sealed_for_the_other():
    sent = contributions(SEVEN)
    first, second = parts(sent[10], setup=SEVEN.setup)
    assert "not the one that was signed" in refused(SEVEN, 10, second, index=0)
    state = begun(SEVEN, 1)
    claim, _, sealed = two_servers.checked_part(first, 10, 0, setup=SEVEN.setup, context=state.context, round=1)
    shared = crypto.agree(crypto.agreement_key(SEVEN.secrets()[1].sealing), claim.ephemeral)
    for index in (0, 1):
        for to in SEVEN.window().keys:
            key = two_servers.box_key(shared, state.context, 10, index, claim.ephemeral, to)
            with pytest.raises(SecureAggregationError):
                crypto.decrypt(key, sealed, two_servers.box_label(state.context, 10))


def test_nobody_can_send_in_the_name_of_another():
    part = parts(contributions(SEVEN)[10], setup=SEVEN.setup)[0]
    assert "sender" in refused(SEVEN, 13, part)
    assert "nobody of that number" in refused(SEVEN, 999, part)
    at = At(two_servers.context(SEVEN.window()), 1, "contribution", 13)
    found = msgspec.msgpack.decode(contributions(SEVEN)[10], type=Contribution)
    claim = msgspec.msgpack.decode(msgspec.msgpack.decode(found.claim, type=Signed).body, type=Claim)
    forged = msgspec.structs.replace(found, claim=sign(crypto.new_identity(), at, claim))
    assert "signature" in refused(SEVEN, 13, parts(msgspec.msgpack.encode(forged), setup=SEVEN.setup)[0])


# aggregators that do not agree


@pytest.mark.parametrize("index", [0, 1])
def test_a_client_that_only_one_aggregator_has_is_struck_at_both(index):
    fed = federation(12)
    boxes = inboxes(fed, contributions(fed))
    del boxes[index][13]  # the relay, or the aggregator, drops one client on its side
    states, agreements = agreed(fed, boxes=boxes)
    halves = [aggregator.half(states[k], agreements[1 - k], memory(fed), None)[1] for k in (0, 1)]
    found = two_servers.combine(tuple(halves), window=fed.window())
    rest = [name for name in fed.identities if name != 13]
    assert found.members == (tuple(rest),)
    assert np.array_equal(found.totals[0], plain_sum(fed, rest))


def test_a_client_with_different_contributions_at_the_two_is_struck_at_both():
    """A client that sends twice, or a relay that mixes two of its messages."""
    fed = federation(12)
    boxes, others = inboxes(fed, contributions(fed)), inboxes(fed, contributions(fed))
    boxes[1][13] = others[1][13]
    states, _ = agreed(fed, boxes=boxes)
    rest = to_set([name for name in fed.identities if name != 13], fed.setup.registry)
    assert states[0].members == states[1].members == rest


def test_a_second_contribution_of_a_round_does_not_replace_the_first():
    state = begun(SEVEN, 0)
    first, second = (inboxes(SEVEN, contributions(SEVEN))[0][10] for _ in range(2))
    state = aggregator.accept(state, 10, first)
    with pytest.raises(SecureAggregationError, match="two different contributions in round 1"):
        aggregator.accept(state, 10, second)
    assert aggregator.accept(state, 10, first).digests == state.digests  # the same bytes again change nothing


def test_an_aggregator_that_adds_clients_to_its_list_gains_nothing():
    """It claims a client that the honest one never saw: the client is not in the sum."""
    fed = federation(12)
    boxes = inboxes(fed, contributions(fed))
    del boxes[1][13]
    states, lists = listed(fed, boxes=boxes)
    state, _ = aggregator.agree(states[1], lists[0])
    assert not any(name == 13 for name in _names(fed, state.members))


def _names(fed, members):
    flags = two_servers.from_set(members, fed.setup.registry)
    return [name for name, there in zip(fed.setup.registry.clients, flags, strict=True) if there]


def test_an_aggregator_cannot_shrink_the_sum_below_the_smallest():
    """A list with one victim and nobody else: the honest aggregator opens nothing."""
    states, lists = listed(SEVEN)
    body = msgspec.msgpack.decode(msgspec.msgpack.decode(lists[0], type=Signed).body, type=Listing)
    short = Listing(to_set([10], SEVEN.setup.registry), body.digests[:32], body.commitment)
    lie = sign(SEVEN.operators[0], At(states[0].context, 1, "listing", 0), short)
    with pytest.raises(SecureAggregationError, match="of 1 clients, at least 6 are needed"):
        aggregator.agree(states[1], lie)


def test_nothing_is_opened_for_an_aggregator_that_agreed_to_other_clients():
    fed = federation(12)
    states, agreements = agreed(fed)
    honest = msgspec.msgpack.decode(msgspec.msgpack.decode(agreements[0], type=Signed).body, type=Agreement)
    less = to_set([name for name in fed.identities if name != 10], fed.setup.registry)
    lie = sign(fed.operators[0], At(states[0].context, 1, "agreement", 0), Agreement(less, honest.coin))
    with pytest.raises(SecureAggregationError, match="do not agree on the clients"):
        aggregator.half(states[1], lie, memory(fed), None)


def test_a_coin_that_was_not_committed_to_is_refused():
    """An aggregator that waits for the other's coin cannot choose the groups."""
    states, agreements = agreed(SEVEN)
    lie = sign(SEVEN.operators[0], At(states[0].context, 1, "agreement", 0), Agreement(states[0].members, bytes(32)))
    with pytest.raises(SecureAggregationError, match="another coin"):
        aggregator.half(states[1], lie, memory(SEVEN), None)
    assert aggregator.half(states[1], agreements[0], memory(SEVEN), None)


# a second sum


def test_a_second_sum_of_a_round_with_one_client_less_is_refused():
    """The difference of both sums would be the client's vector with the noise of a second release."""
    fed = federation(12, noise_multiplier=1.0)
    drawn = np.zeros
    states, agreements = agreed(fed)
    after, _ = aggregator.half(states[1], agreements[0], memory(fed), lambda size: drawn(size, np.int64))
    sent = contributions(fed)
    del sent[10]
    fewer, others = agreed(fed, sent=sent)  # a state that was begun before the first half left
    with pytest.raises(SecureAggregationError, match="has opened its half of round 1; a sum of round 1 is refused"):
        aggregator.half(fewer[1], others[0], after, lambda size: drawn(size, np.int64))
    with pytest.raises(SecureAggregationError, match="is refused"):
        begun(fed, 1, round=1, memory=after)
    with pytest.raises(SecureAggregationError, match="is refused"):  # the same clients: fresh noise would average out
        aggregator.half(states[1], agreements[0], after, lambda size: drawn(size, np.int64))


def test_rounds_only_rise():
    with pytest.raises(SecureAggregationError, match="half of round 5; a sum of round 4 is refused"):
        begun(SEVEN, 0, round=4, memory=memory(SEVEN, highest=5))
    assert begun(SEVEN, 0, round=6, memory=memory(SEVEN, highest=5)).round == 6


def test_an_aggregator_agrees_once_and_only_after_its_own_list():
    states, lists = listed(SEVEN)
    once, _ = aggregator.agree(states[0], lists[1])
    with pytest.raises(SecureAggregationError, match="has agreed"):
        aggregator.agree(once, lists[1])
    with pytest.raises(SecureAggregationError, match="own list must be sent"):
        aggregator.agree(begun(SEVEN, 0), lists[1])
    with pytest.raises(SecureAggregationError, match="before both aggregators agreed"):
        aggregator.half(states[0], b"", memory(SEVEN), None)


def test_a_late_contribution_is_refused():
    """Nobody chooses its vector or its presence after the lists are known."""
    states, _ = listed(SEVEN, sent={})
    part = parts(contributions(SEVEN)[10], setup=SEVEN.setup)[0]
    with pytest.raises(SecureAggregationError, match="closed"):
        aggregator.accept(states[0], 10, part)


# malformed messages


def sealed_anew(fed, name, first, second):
    """A contribution with any plain shares, sealed and signed as a client does."""
    ephemeral, now = crypto.agreement_key(crypto.new_secret()), two_servers.context(fed.window())
    public_key = crypto.public_of(ephemeral)
    boxes = [
        crypto.encrypt(
            two_servers.box_key(crypto.agree(ephemeral, key), now, name, index, public_key, key),
            share, two_servers.box_label(now, name),
        )
        for index, (key, share) in enumerate(zip(fed.window().keys, (first, second), strict=True))
    ]  # fmt: skip
    digests = [two_servers._digest(box) for box in boxes]
    claim = sign(fed.identities[name], At(now, 1, "contribution", name), Claim(public_key, *digests))
    return msgspec.msgpack.encode(Contribution(claim, *boxes))


def broken(fed, name, honest):
    """Ways to send something else than a contribution."""
    found = msgspec.msgpack.decode(honest, type=Contribution)
    yield b""
    yield b"garbage"
    yield honest[:-1]
    yield honest + bytes(1)
    yield bytes(2**20)  # oversized: refused before it is decoded
    yield msgspec.msgpack.encode([1, 2, 3])
    yield msgspec.msgpack.encode(msgspec.structs.replace(found, first=found.first[:-1]))
    yield msgspec.msgpack.encode(msgspec.structs.replace(found, claim=b""))
    yield sealed_anew(fed, name, bytes(16), bytes(32))  # 4 numbers in place of 5
    yield sealed_anew(fed, name, bytes(20), bytes(31))
    yield sealed_anew(fed, name, bytes(24), bytes(32))
    at = At(two_servers.context(fed.window()), 1, "contribution", name)
    digests = [two_servers._digest(box) for box in (found.first, found.second)]
    zero = sign(fed.identities[name], at, Claim(bytes(32), *digests))  # a point that gives everybody the same secret
    yield msgspec.msgpack.encode(msgspec.structs.replace(found, claim=zero))


def test_a_malformed_contribution_drops_its_sender_only():
    fed = federation(30, dropouts=0.5)
    sent = contributions(fed)
    ways = list(broken(fed, 10, sent[10]))
    for wrong in ways:
        found = run_round({**sent, 10: wrong}, fed.secrets(), window=fed.window())
        rest = [name for name in fed.identities if name != 10]
        assert found.sums.members == (tuple(rest),)
        assert np.array_equal(found.sums.totals[0], plain_sum(fed, rest))
        assert any(10 in refused for refused in found.refused)


def test_an_oversized_message_is_refused_before_it_is_decoded(monkeypatch):
    decodes = []
    decode = msgspec.msgpack.decode
    monkeypatch.setattr(msgspec.msgpack, "decode", lambda *a, **k: decodes.append(1) or decode(*a, **k))
    huge = bytes(two_servers.max_contribution(SEVEN.setup) + 1)
    with pytest.raises(SecureAggregationError, match="at most"):
        parts(huge, setup=SEVEN.setup)
    assert "at most" in refused(SEVEN, 10, huge)
    states, _ = listed(SEVEN, sent={})
    decodes.clear()
    with pytest.raises(SecureAggregationError, match="at most"):
        aggregator.agree(states[0], bytes(two_servers.max_listing(SEVEN.setup) + 1))
    assert not decodes


def test_a_list_that_does_not_fit_the_registry_is_refused():
    states, _ = listed(SEVEN)
    at = At(states[0].context, 1, "listing", 0)
    for body in (Listing(b"\xff\xff", bytes(64), bytes(32)), Listing(b"\xfe", bytes(64), bytes(32))):
        with pytest.raises(SecureAggregationError, match=r"does not fit|bytes of digests"):
            aggregator.agree(states[1], sign(SEVEN.operators[0], at, body))


# what is not prevented


def test_shares_that_do_not_match_spoil_the_sum_of_their_group_and_are_seen_to_be_out_of_range():
    """A client whose shares are of nothing: nobody can name it, and the sum of its group is uniform.

    5 numbers within 7 times the clip of 1 by chance: (14 / 65536)^5 < 10^-18.
    """
    fed = federation(21, groups=3, dropouts=0.0)
    sent = contributions(fed)
    sent[10] = sealed_anew(fed, 10, crypto.new_secret()[:20], crypto.new_secret())
    found = run_round(sent, fed.secrets(), window=fed.window()).sums
    spoiled = [10 in members for members in found.members]
    assert found.beyond.tolist() == spoiled
    for total, members, wrong in zip(found.totals, found.members, spoiled, strict=True):
        assert np.array_equal(total, plain_sum(fed, members)) != wrong


@pytest.mark.parametrize(("most", "clips"), [((2**31 - 1) // 100, 926.8), (2**31, 92_681.9)])
def test_one_liar_moves_the_sum_of_100_by_926_clips_in_a_hundredth_of_the_ring_and_by_92_680_in_all_of_it(most, clips):
    """8 numbers, a hundredth of the range of 32 bits each: sqrt(8) x 327.67 clips; the whole: sqrt(8) x 32,768."""
    fed = federation(100, length=8, dropouts=0.0)
    rows = {name: np.zeros(8, np.uint32) for name in fed.identities}
    rows[10] = np.full(8, most, np.uint32)
    found = run_round(contributions(fed, rows=rows), fed.secrets(), window=fed.window()).sums
    moved = np.linalg.norm(found.totals[0].view("<i4") / 2.0**16)
    assert moved == pytest.approx(clips, abs=0.1)
    assert found.beyond.tolist() == [True]  # 100 clips of 1 give a norm of 100 at most


@pytest.mark.parametrize(("norm", "seen"), [(99.0, False), (101.0, True)])
def test_a_liar_within_the_range_of_an_honest_sum_is_not_seen(norm, seen):
    """99 times its bound: that is what one sum of 100 lets pass; groups of 10 let 10 pass."""
    fed = federation(100, length=8, dropouts=0.0)
    rows = {name: np.zeros(8, np.uint32) for name in fed.identities}
    rows[10][0] = int(norm * 2**16)
    found = run_round(contributions(fed, rows=rows), fed.secrets(), window=fed.window()).sums
    assert found.beyond.tolist() == [seen]
