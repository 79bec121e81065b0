"""A server that breaks the rules gets no answer: every request below is signed by the server itself."""

from functools import partial

import msgspec
import pytest
from small_rounds import answers, asked, certificate_of, content, federation, members, signature_of, until

from foltr.errors import SecureAggregationError
from foltr.secagg import crypto, messages, shamir
from foltr.secagg.client import answer
from foltr.secagg.messages import REQUESTS, STAGES
from foltr.secagg.terms import to_set

FED = federation(6, length=2, dropouts=1 / 6, corrupt=0.0)  # 5 neighbours each, threshold 4, sums of 5
ME, OTHER, THIRD = 10, 13, 16
EVERYBODY = list(FED.identities)
changed = msgspec.structs.replace


def refused(stage, body, says, states, fed=FED, client=ME):
    with pytest.raises(SecureAggregationError, match=says):
        answer(states[client], asked(fed, stage, client, body))


def at(stage, silent=()):
    """The states, and the honest request to one client."""
    _, states, requests = until(FED, stage, silent)
    return states, content(requests[ME], REQUESTS[stage])


@pytest.mark.parametrize("stage", STAGES)
def test_no_stage_is_answered_twice(stage):
    _, states, requests = until(FED, stage)
    after, _ = answer(states[ME], requests[ME])
    with pytest.raises(SecureAggregationError, match=r"stage is|has answered every stage"):
        answer(after, requests[ME])


@pytest.mark.parametrize("stage", STAGES[1:])
def test_no_stage_is_left_out(stage):
    _, _, requests = until(FED, stage)
    with pytest.raises(SecureAggregationError, match="expected 'advertise'"):
        answer(members(FED)[ME], requests[ME])


@pytest.mark.parametrize("stage", STAGES)
def test_a_request_to_another_client_is_not_answered(stage):
    _, states, requests = until(FED, stage)
    with pytest.raises(SecureAggregationError, match="client is 13, expected 10"):
        answer(states[ME], requests[OTHER])


@pytest.mark.parametrize("stage", STAGES)
def test_a_request_of_another_round_is_not_answered(stage):
    states, body = at(stage)
    with pytest.raises(SecureAggregationError, match="round is 2, expected 1"):
        answer(states[ME], asked(FED, stage, ME, body, round=2))


def test_a_request_of_another_federation_is_not_answered():
    stranger = FED._replace(terms=changed(FED.terms, federation="0" * 32))
    with pytest.raises(SecureAggregationError, match="signature"):
        answer(members(FED)[ME], asked(stranger, "advertise", ME, messages.Start()))


def test_somebody_else_than_the_server_is_not_answered():
    forger = FED._replace(server=FED.identities[OTHER])
    with pytest.raises(SecureAggregationError, match="signature"):
        answer(members(FED)[ME], asked(forger, "advertise", ME, messages.Start()))


# share: the list of keys


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda body: {"keys": body.keys[:-1]}, "was sent 4 keys, expected 5"),
        (lambda body: {"keys": [body.keys[0], *body.keys[:-1]]}, "1 neighbours have usable keys, at least 4"),
        (lambda _: {"members": to_set(EVERYBODY[:2], FED.registry)}, "2 clients take part, at least 5"),
        (lambda _: {"members": to_set(EVERYBODY[1:], FED.registry)}, "not among those who take part"),
        (lambda _: {"members": to_set(EVERYBODY[:5], FED.registry)}, "was sent 5 keys, expected 4"),
        (lambda body: {"members": body.members + b"\0"}, "does not fit the registry"),
        (lambda _: {"members": b""}, "does not fit the registry"),
        (lambda _: {"members": b"\xff"}, "does not fit the registry"),
        (lambda _: {"root": bytes(32)}, "that order the circle"),
        (lambda body: {"path": body.path[:-32]}, "that order the circle"),
        (lambda _: {"path": b""}, "that order the circle"),
    ],
)
def test_a_wrong_list_of_keys_is_refused(change, says):
    states, body = at("share")
    refused("share", changed(body, **change(body)), says, states)


def not_used(body, states):
    """The neighbours that get no share, because their keys cannot be used."""
    after, reply = answer(states[ME], asked(FED, "share", ME, body))
    sealed = content(reply, messages.Shares).sealed
    absent = {other for other, one in zip(after.neighbours, sealed, strict=True) if not one}
    assert after.shared.keys() == set(after.neighbours) - absent
    return absent


def test_a_clients_own_key_does_not_come_back_under_another_name():
    states, body = at("share")
    assert not_used(changed(body, keys=[messages.signed_keys(states[ME].advert), *body.keys[1:]]), states) == {OTHER}
    assert not_used(body, states) == set()


def test_one_key_under_two_names_is_used_for_neither():
    """The server and client 13 work together: 13 signs the key of another. Two unusable neighbours are too many."""
    states, body = at("share")
    stolen = content(states[THIRD].advert, messages.Keys)
    for key in (stolen, changed(stolen, channel=stolen.mask, mask=stolen.channel)):
        advert = said_by(OTHER, key)
        refused("share", changed(body, keys=[advert, *body.keys[1:]]), "3 neighbours have usable keys", states)


def said_by(client, keys):
    address = messages.Address(members(FED)[client].context, 1, "reply", "advertise", client)
    return messages.signed_keys(messages.send(FED.identities[client], address, keys))


def test_keys_of_an_earlier_round_are_not_used():
    states, body = at("share")
    _, earlier = answer(members(FED, round=7)[OTHER], asked(FED, "advertise", OTHER, messages.Start(), round=7))
    assert not_used(changed(body, keys=[messages.signed_keys(earlier), *body.keys[1:]]), states) == {OTHER}


def test_keys_that_the_server_made_up_are_not_used():
    states, body = at("share")
    address = messages.Address(states[ME].context, 1, "reply", "advertise", OTHER)
    invented = messages.send(FED.server, address, content(states[THIRD].advert, messages.Keys))
    invented = messages.signed_keys(invented)
    assert not_used(changed(body, keys=[invented, *body.keys[1:]]), states) == {OTHER}


@pytest.mark.parametrize("field", ["channel", "mask"])
def test_a_key_that_agrees_with_everybody_is_not_used(field):
    states, body = at("share")
    weak = changed(content(states[OTHER].advert, messages.Keys), **{field: b"\x01" + bytes(31)})
    assert not_used(changed(body, keys=[said_by(OTHER, weak), *body.keys[1:]]), states) == {OTHER}


# mask: the delivery of shares


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda sealed: sealed[:3] + [b""] * 2, "3 neighbours take part, at least 4"),
        (lambda sealed: sealed[:-1], "was sent 4 sealed shares, expected 5"),
        (lambda sealed: [sealed[1], sealed[0], *sealed[2:]], "3 neighbours take part, at least 4"),
    ],
)
def test_a_wrong_delivery_is_refused(change, says):
    states, body = at("mask")
    refused("mask", messages.Deliveries(change(body.sealed)), says, states)


@pytest.mark.parametrize("damage", [lambda sealed: sealed[:-1], lambda _: b"", lambda _: bytes(84)])
def test_a_neighbour_whose_share_is_bad_counts_as_absent(damage):
    """No mask with it and no proof for it; and nothing is signed if it is among the survivors all the same."""
    states, body = at("mask")
    request = asked(FED, "mask", ME, messages.Deliveries([damage(body.sealed[0]), *body.sealed[1:]]))
    states[ME], reply = answer(states[ME], request)
    assert [bool(one) for one in content(reply, messages.Masked).proofs] == [False, True, True, True, True]
    refused("agree", messages.Survivors(to_set(EVERYBODY, FED.registry)), "shared nothing", states)
    answer(
        states[ME],
        asked(FED, "agree", ME, messages.Survivors(to_set([c for c in EVERYBODY if c != OTHER], FED.registry))),
    )


# agree: the set of survivors


@pytest.mark.parametrize(
    ("survivors", "says"),
    [
        (EVERYBODY[1:], "not among the survivors"),
        (EVERYBODY[:2], "2 clients survive, at least 5"),
        (EVERYBODY[:4], "4 clients survive, at least 5"),
    ],
)
def test_a_wrong_set_of_survivors_is_not_signed(survivors, says):
    states, _ = at("agree")
    refused("agree", messages.Survivors(to_set(survivors, FED.registry)), says, states)


def test_a_survivor_that_never_shared_is_not_believed():
    states, body = at("mask")
    some = messages.Deliveries([b"", *body.sealed[1:]])  # client 13 is said to have shared nothing
    states[ME], _ = answer(states[ME], asked(FED, "mask", ME, some))
    refused("agree", messages.Survivors(to_set(EVERYBODY, FED.registry)), "shared nothing", states)


@pytest.mark.parametrize("size", [0, shamir.SHARE, 2 * shamir.SHARE - 1, 2 * shamir.SHARE + 1])
def test_shares_of_another_length_count_as_absent(size):
    """A neighbour that works for the server seals them; an honest server would not pass them on."""
    states, body = at("mask")
    key = crypto.derive(states[OTHER].shared[ME], states[OTHER].view, OTHER, ME, "shares")
    place = states[ME].neighbours.index(OTHER)
    sealed = [*body.sealed[:place], crypto.encrypt(key, bytes(size), states[OTHER].context), *body.sealed[place + 1 :]]
    after, reply = answer(states[ME], asked(FED, "mask", ME, messages.Deliveries(sealed)))
    assert OTHER not in after.held
    assert [not proof for proof in content(reply, messages.Masked).proofs] == [
        other == OTHER for other in after.neighbours
    ]


# unmask: the proofs of neighbours (`test_certificate` has the signatures)


@pytest.mark.parametrize("change", [lambda proofs: [b"", *proofs[1:]], lambda proofs: [proofs[1], *proofs[1:]]])
def test_without_proof_that_it_hides_nobody_is_opened(change):
    """No share of client 13 at all; those of the others are opened."""
    states, body = at("unmask")
    _, reply = answer(states[ME], asked(FED, "unmask", ME, changed(body, proofs=change(body.proofs))))
    assert [bool(one) for one in content(reply, messages.Revealed).shares] == [False, True, True, True, True]


def test_one_proof_for_each_neighbour():
    states, body = at("unmask")
    refused("unmask", changed(body, proofs=body.proofs[:-1]), "was sent 4 proofs, expected 5", states)


@pytest.mark.parametrize("reflected", [False, True])
def test_a_client_kept_from_its_neighbours_is_not_opened_by_them(reflected):
    """The server tells client 10 that a neighbour is absent and the neighbour that all is well.

    `reflected`: in place of the proof that it lacks it sends the neighbour's own one, which is of the other direction.
    """
    _, states, requests = until(FED, "mask")
    delivered = content(requests[ME], messages.Deliveries).sealed
    requests[ME] = asked(FED, "mask", ME, messages.Deliveries([b"", *delivered[1:]]))
    replies = answers(states, requests)
    view, everybody = states[ME].view, to_set(EVERYBODY, FED.registry)
    proofs = {client: content(reply, messages.Masked).proofs for client, reply in replies.items()}
    signatures = {}
    for client in EVERYBODY[1:]:  # client 10 would refuse the set of survivors
        states[client], reply = answer(states[client], asked(FED, "agree", client, messages.Survivors(everybody)))
        signatures[client] = signature_of(reply)
    near = states[OTHER].neighbours
    shown = [proofs[other][states[other].neighbours.index(OTHER)] for other in near]
    assert not shown[near.index(ME)]
    if reflected:
        shown[near.index(ME)] = proofs[OTHER][near.index(ME)]
    body = messages.Opening(certificate_of(states[OTHER], signatures), shown)
    assert states[OTHER].view == view
    _, reply = answer(states[OTHER], asked(FED, "unmask", OTHER, body))
    opened = dict(zip(near, content(reply, messages.Revealed).shares, strict=True))
    assert {other for other, share in opened.items() if not share} == {ME}


def split_views():
    """The server tells three clients that all survive, and the three others that client 10 does not."""
    _, states, _ = until(FED, "agree")
    replies = {}
    for place, client in enumerate(EVERYBODY):
        survivors = EVERYBODY if place < 3 else EVERYBODY[1:]
        request = asked(FED, "agree", client, messages.Survivors(to_set(survivors, FED.registry)))
        states[client], replies[client] = answer(states[client], request)
    return states, {client: signature_of(reply) for client, reply in replies.items()}


@pytest.mark.parametrize("client", EVERYBODY)
def test_two_sets_of_survivors_open_nothing(client):
    """Shares of both secrets of client 10 would show its vector; either half finds too few who saw the same."""
    states, signatures = split_views()
    for choose, says in ((EVERYBODY.__contains__, "of 4 sampled"), (partial(same_half, client), "3 clients signed")):
        shown = certificate_of(states[client], {other: one for other, one in signatures.items() if choose(other)})
        refused("unmask", messages.Opening(shown, [b""] * 5), says, states, client=client)


def same_half(client, other):
    return (EVERYBODY.index(client) < 3) == (EVERYBODY.index(other) < 3)


@pytest.mark.parametrize("silent", [(), (OTHER,)])
def test_of_each_neighbour_one_share_is_opened_never_both(silent):
    _, states, requests = until(FED, "unmask", silent)
    held = {client: state.held for client, state in states.items()}
    for client, reply in answers(states, requests).items():
        opened = content(reply, messages.Revealed).shares
        for other, share in zip(states[client].neighbours, opened, strict=True):
            mask, seed = held[client][other][: shamir.SHARE], held[client][other][shamir.SHARE :]
            assert share == (mask if other in silent else seed)
