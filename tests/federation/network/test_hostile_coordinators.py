"""Coordinators and invitations that cheat a node: each is refused with its reason, and nothing is charged or sent."""

import msgspec
import numpy as np
import pytest
from laptops import LIMITS, charter_of_nodes

from foltr import node as foltr_node
from foltr.errors import InputError, PrivacyError, Refused, SecureAggregationError
from foltr.federation.announcement import announce, parameters_of, ranker_of
from foltr.federation.network import enrolment, rounds, shared_ranker, wire
from foltr.federation.network.desk import in_memory
from foltr.federation.network.joined import accept_invitation, read_membership, start_of
from foltr.federation.network.syncing import read_receipt, read_synced, sync, why
from foltr.federation.policy import Guarded, Limits, check_terms
from foltr.federation.registries import Edition, Link, propose
from foltr.federation.registries import digest_of as head_digest
from foltr.node.learning import federated, versions
from foltr.secagg.crypto import new_identity
from foltr.secagg.round_keys import round_of
from foltr.secagg.terms import registry

pytestmark = pytest.mark.usefixtures("silent_operators")
VICTIM = 0


def tampered(laptops, endpoint, change):
    """The victim's connection, with one reply changed; what it sent is listed."""
    sent = []

    def connection(desk, key, clock):
        through = in_memory(desk, key, clock)

        def post(asked, body):
            sent.append(asked)
            reply = through(asked, body)
            return change(reply) if asked == endpoint else reply

        return post

    laptops.posts[VICTIM] = connection
    return sent


def changed(reply, **changes):
    return wire.encode(msgspec.structs.replace(wire.decode(reply, wire.Current), **changes))


def charged(laptops):
    return sum(laptops.ledger(VICTIM).counts().values())


def refused(laptops, match, kind=SecureAggregationError):
    """The visit is refused, the reason is stored, and neither ledger nor weights change."""
    before = charged(laptops)
    with pytest.raises(kind, match=match):
        laptops.visit(VICTIM)
    assert charged(laptops) == before
    assert read_synced(laptops.storage(VICTIM)).state == "refused"
    with foltr_node.open(laptops.homes[VICTIM]) as node:
        assert all(version.weights.origin.startswith(laptops.charter.terms.federation)
                   for version in versions.versions(node.log) if version.weights.origin)  # fmt: skip


def one_round(laptops):
    for k in range(5):
        laptops.visit(k)
    laptops.finish()


def test_another_ranker_than_the_one_of_the_sums_is_refused_and_never_ranks(laptops):
    laptops.begin()
    one_round(laptops)
    newest = shared_ranker.newest_shared(laptops.desk)
    other = ranker_of(newest.version, federated.parameter_names(), laptops.parameters() + 0.01)
    message = announce(
        "version", other, federation=laptops.charter.terms.federation, round=newest.round,
        identity=laptops.keys["coordinator"],
    )  # fmt: skip
    sent = tampered(laptops, "version", lambda reply: changed(reply, announcement=message))
    refused(laptops, "is not the one that follows")
    assert sent == ["version"]
    with foltr_node.open(laptops.homes[VICTIM]) as node:
        assert versions.versions(node.log) == []


def registry_of_strangers(laptops, second):
    """The next registry, with three members that the coordinator made up, countersigned by this key."""
    number = enrolment.effective(laptops.desk)
    before = enrolment.held(laptops.desk, number)
    added = {900 + k: new_identity().public_key().public_bytes_raw() for k in range(3)}
    coordinator = laptops.keys["coordinator"]
    members = registry(coordinator.public_key().public_bytes_raw(), before.members | added)
    head, signature = propose(laptops.charter.terms.federation, members, before.link.head, coordinator)
    return Edition(Link(head, signature, second.sign(head_digest(head))), added)


def test_a_registry_that_the_second_operator_did_not_countersign_is_refused(laptops):
    laptops.begin()
    one_round(laptops)
    edition = registry_of_strangers(laptops, new_identity())
    tampered(laptops, "version", lambda reply: changed(reply, editions=(edition,)))
    refused(laptops, "the second operator did not countersign it")


def test_a_second_registry_of_a_number_is_refused_although_both_signed_it(laptops):
    """Both operators together could sign it; a node that holds the first of that number follows no other."""
    laptops.begin()
    one_round(laptops)
    first = registry_of_strangers(laptops, laptops.keys["second"])
    link = enrolment.held(laptops.desk, enrolment.effective(laptops.desk)).link
    twin = msgspec.structs.replace(first.link.head, number=link.head.number, previous=link.head.previous)
    signatures = [laptops.keys[name].sign(head_digest(twin)) for name in ("coordinator", "second")]
    edition = Edition(Link(twin, *signatures), first.added)
    tampered(laptops, "version", lambda reply: changed(reply, editions=(edition,)))
    refused(laptops, "does not follow registry")


def test_another_second_operator_signs_no_key_that_a_node_seals_for(laptops):
    laptops.begin()
    current = rounds.open_round(laptops.desk)
    ours = [laptops.desk.store.value("SELECT statement FROM statements WHERE operator = ? AND round = ?", operator,
                                     current.round) for operator in (0, 1)]  # fmt: skip
    forged = msgspec.msgpack.decode(ours[1])
    forged[-1] = new_identity().sign(b"anything")
    statements = (ours[0], msgspec.msgpack.encode(forged))
    assert round_of(statements[1]) == current.round
    message = announce(
        "round", shared_ranker.newest_ranker(laptops.desk), federation=laptops.charter.terms.federation,
        round=current.round, identity=laptops.keys["coordinator"], statements=statements,
    )  # fmt: skip
    sent = tampered(laptops, "announcement", lambda reply: changed(reply, announcement=message))
    refused(laptops, "operator")
    assert "open" not in sent
    assert "contribute" not in sent


def test_a_round_that_is_announced_again_costs_nothing(laptops):
    laptops.begin()
    first = rounds.announcement_of(laptops.desk, 1)
    one_round(laptops)
    laptops.visit(VICTIM)  # round 2
    laptops.finish()
    tampered(laptops, "announcement", lambda reply: changed(reply, announcement=first, round=1))
    refused(laptops, "round 1|follows from")


def test_a_window_that_ends_before_the_question_leaves_the_node_idle_and_uncharged(laptops):
    laptops.begin()

    def late(desk, key, clock):
        through = in_memory(desk, key, clock)

        def post(asked, body):
            if asked == "open":
                laptops.clock.now += laptops.charter.terms.stage_seconds
            return through(asked, body)

        return post

    laptops.posts[VICTIM] = late
    visit = laptops.visit(VICTIM)
    assert visit.state == "idle"
    assert "no round is open; nothing was charged" in visit.words
    assert charged(laptops) == 0


def test_an_answer_that_was_kept_from_another_question_charges_nothing(laptops):
    laptops.begin()
    kept = []

    def keep(reply):
        kept.append(reply)
        raise ConnectionError("the answer was held back")

    tampered(laptops, "open", keep)
    with pytest.raises(ConnectionError):
        laptops.visit(VICTIM)
    tampered(laptops, "open", lambda _reply: kept[0])
    refused(laptops, "does not wait for")
    assert charged(laptops) == 0
    laptops.posts.clear()
    assert laptops.visit(VICTIM).state == "sent"  # and the round is not lost


def test_a_receipt_that_the_coordinator_did_not_sign_is_none_and_the_same_bytes_go_again(laptops):
    laptops.begin()

    def forged(reply):
        receipt = wire.decode(reply, wire.Receipt)
        return wire.encode(msgspec.structs.replace(receipt, signature=bytes(64)))

    tampered(laptops, "contribute", forged)
    with pytest.raises(SecureAggregationError, match="did not sign a receipt"):
        laptops.visit(VICTIM)
    assert read_receipt(laptops.storage(VICTIM)) is None
    laptops.posts.clear()
    assert laptops.visit(VICTIM).state == "sent"
    assert charged(laptops) == 1


def test_a_node_answers_under_no_other_number(laptops):
    laptops.begin()
    tampered(laptops, "version", lambda reply: changed(reply, client=77))
    refused(laptops, "calls this node 77")


def test_joining_takes_no_other_ranker_than_the_invitation_names(laptops):
    laptops.join_second()
    laptops.accept(VICTIM)
    other = ranker_of(0, federated.parameter_names(), parameters_of(federated.start_ranker()) + 1)
    tampered(laptops, "join", lambda reply: wire.encode(msgspec.structs.replace(wire.decode(reply, wire.JoinReply),
                                                                                ranker=other)))  # fmt: skip
    with pytest.raises(SecureAggregationError, match="another ranker than the invitation"):
        laptops.visit(VICTIM)
    assert read_membership(laptops.storage(VICTIM)).joined.start == b""


@pytest.mark.parametrize(
    ("terms", "reason"),
    [
        ({"noise_multiplier": 0.001}, "noise_multiplier is 0.001"),
        ({"corrupt": 0.0}, "corrupt is 0"),
        ({"failure": 0.5}, "failure is 0.5"),
        ({"noise_multiplier": 0.0, "quorum": 0.5, "dropouts": 0.0}, "needs all members"),
    ],
)
def test_an_invitation_with_weaker_terms_than_the_policy_is_refused_before_anything_is_sent(terms, reason):
    with pytest.raises(PrivacyError, match=reason):
        check_terms(Limits(), charter_of_nodes(**terms).terms)


def test_terms_that_the_coordinator_lowers_after_joining_bind_no_node(laptops):
    """The terms are the invitation's; a contribution under them is valid in no round of other terms."""
    laptops.begin()
    sent = []

    def connection(desk, key, clock):
        through = in_memory(desk, key, clock)

        def post(endpoint, body):
            sent.append((endpoint, body))
            return through(endpoint, body)

        return post

    laptops.posts[VICTIM] = connection
    laptops.visit(VICTIM)
    terms = read_membership(laptops.storage(VICTIM)).joined.invitation.terms
    assert terms == laptops.charter.terms
    lowered = charter_of_nodes(noise_multiplier=0.01)
    laptops.charter = msgspec.structs.replace(
        lowered, terms=msgspec.structs.replace(lowered.terms, federation=terms.federation)
    )
    laptops.restart_desk()
    message = dict(sent)["contribute"]
    with pytest.raises(Refused):
        in_memory(laptops.desk, read_membership(laptops.storage(1)).key, laptops.clock)("contribute", message)
    laptops.finish()
    assert laptops.states()[1] == "failed"  # nobody is summed under terms that nobody accepted


def test_a_policy_that_the_person_tightened_stops_the_next_round_with_its_reason(laptops):
    laptops.begin()
    guarded = Guarded(federated.policy_folder(laptops.places(VICTIM)))
    policy = guarded.load()
    guarded.save(msgspec.structs.replace(policy, limits=msgspec.structs.replace(LIMITS, min_clients=5)))
    refused(laptops, "the fewest in a sum is 4, this node's policy says at least 5", PrivacyError)


def test_a_spent_budget_sends_nothing_and_searching_goes_on(laptops):
    laptops.join_second()
    for k in range(5):
        laptops.accept(k, msgspec.structs.replace(LIMITS, epsilon=12.0) if k == VICTIM else LIMITS)
        laptops.visit(k)
    laptops.open_window()
    one_round(laptops)
    spent = laptops.ledger(VICTIM).spent()
    assert 8 < spent < 12  # a second round would exceed it
    sent = tampered(laptops, "open", lambda reply: reply)
    refused(laptops, "would exceed this node's budget", PrivacyError)
    assert sent == ["version", "announcement"]  # the coordinator waits for nobody who asked and cannot send
    with foltr_node.open(laptops.homes[VICTIM]) as node:
        assert node.search("tax").rows


def test_a_log_without_a_choice_sends_zeros_and_is_charged(laptops, tmp_path):
    """Taking part must not tell that something was clicked."""
    laptops.homes[VICTIM] = tmp_path / "empty"
    foltr_node.open(tmp_path / "empty").close()
    laptops.begin()
    with foltr_node.open(laptops.homes[VICTIM]) as node:
        assert not federated.update(node.log, federated.start_ranker()).any()
    assert laptops.visit(VICTIM).state == "sent"
    assert charged(laptops) == 1
    sizes = {laptops.ledger(k).records()[-1].size for k in range(5) if laptops.visit(k)}
    assert max(sizes) - min(sizes) <= 4  # numbers of members have one digit or two; values change nothing


def test_a_circle_sends_nothing_before_every_fingerprint_was_confirmed(laptops):
    laptops.charter = charter_of_nodes(noise_multiplier=0.0, quorum=0.0, dropouts=0.0)
    laptops.restart_desk()
    laptops.begin()
    refused(laptops, "the fingerprint of every member must be confirmed", PrivacyError)


def test_why_names_the_reason_of_every_round(laptops):
    laptops.begin()
    for k in range(1, 5):
        laptops.visit(k)
    laptops.finish()  # a sum without the victim
    laptops.visit(VICTIM)
    laptops.finish()  # too few
    with foltr_node.open(laptops.homes[VICTIM]) as node:
        found = why(read_membership(laptops.storage(VICTIM)), federated.builder(node.places, node.log, laptops.clock),
                    laptops.post_of(VICTIM))  # fmt: skip
    told = {row.round: (row.charged, row.included, row.words) for row in found}
    assert told[1] == (False, False, "not in the sum: no contribution arrived in time")
    assert told[2][:2] == (True, False)
    assert "1 of 5 members sent their update, 4 are needed" in told[2][2]


def test_an_invitation_is_used_once_and_only_with_its_own_federation(laptops, tmp_path):
    laptops.join_second()
    laptops.accept(VICTIM)
    laptops.visit(VICTIM)
    stolen = laptops.invitations[VICTIM]
    storage = laptops.storage(1)
    accept_invitation(stolen, storage, laptops.clock())
    with pytest.raises(Refused, match="used by another machine"), foltr_node.open(laptops.homes[1]) as node:
        sync(read_membership(storage), federated.builder(node.places, node.log, laptops.clock), laptops.post_of(1))
    late = msgspec.structs.replace(stolen, expires=laptops.clock() - 1)
    with pytest.raises(InputError, match="is over"):
        accept_invitation(late, laptops.storage(2), laptops.clock())
    others = msgspec.structs.replace(stolen, operators=(stolen.operators[1], stolen.operators[0]))
    with pytest.raises(InputError, match="other terms or operators"):
        accept_invitation(others, laptops.storage(VICTIM), laptops.clock())


def test_a_coordinator_that_moved_is_followed_by_another_invitation_of_the_same_parties(laptops):
    laptops.begin()
    before = read_membership(laptops.storage(VICTIM)).joined
    moved = msgspec.structs.replace(laptops.invite(1), address="https://elsewhere.example:8490", certificate=b"new")
    after = accept_invitation(moved, laptops.storage(VICTIM), laptops.clock()).joined
    assert (after.client, after.start) == (before.client, before.start)
    assert (after.invitation.address, after.invitation.certificate) == ("https://elsewhere.example:8490", b"new")
    assert after.invitation.terms == before.invitation.terms
    assert np.array_equal(parameters_of(federated.start_ranker()), start_values(after))


def start_values(joined):
    return parameters_of(start_of(joined))
