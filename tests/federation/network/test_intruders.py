"""Intruders against the desk, the second operator and the transport: each does one thing that must not succeed."""

import asyncio
import os
import subprocess
import sys

import numpy as np
import pytest
from machines import Machines, public

from foltr.errors import FoltrError, InputError, Refused, SecureAggregationError
from foltr.federation.network import enrolment, inbox, rounds, second, shared_ranker, wire
from foltr.federation.network.desk import SMALL, handle, in_memory
from foltr.federation.network.invitation import from_text, to_text
from foltr.federation.network.requests import PREFIX, Nonces, sign
from foltr.federation.network.server import application
from foltr.federation.registries import Edition, Link, follow_editions, propose
from foltr.secagg.crypto import new_identity
from foltr.secagg.terms import registry


@pytest.fixture
def machines(tmp_path):
    made = Machines(tmp_path)
    made.begin()
    yield made
    made.desk.store.close()


def refused(machines, identity, endpoint, body, match):
    with pytest.raises(Refused, match=match):
        in_memory(machines.desk, public(identity), machines.clock)(endpoint, body)


# --- nodes ----------------------------------------------------------------------------------------------------------


def test_a_strangers_key_gets_nothing(machines):
    stranger = new_identity()
    for endpoint in ("announcement", "open", "contribute", "version", "rounds", "leave"):
        body = wire.encode(wire.SyncRequest(0, 0)) if endpoint in ("announcement", "version") else b"\x91\x01"
        refused(machines, stranger, endpoint, body, "no member")
    for endpoint in ("operator/work", "operator/statements", "operator/registry", "operator/parts", "operator/answer"):
        refused(machines, stranger, endpoint, b"\x91\x01", "not the second operator's")


def test_an_invitation_serves_one_key_and_ends(machines):
    invitation, body = machines.invite("new"), None
    body = wire.encode(wire.JoinRequest(invitation.code))
    first, thief = new_identity(), new_identity()
    client = wire.decode(in_memory(machines.desk, public(first), machines.clock)("join", body), wire.JoinReply).client
    again = wire.decode(in_memory(machines.desk, public(first), machines.clock)("join", body), wire.JoinReply).client
    assert client == again
    refused(machines, thief, "join", body, "used by another machine")
    late, other = machines.invite("late"), machines.invite("revoked")
    number = machines.desk.store.value("SELECT MAX(number) FROM invitations")
    enrolment.revoke_invitation(machines.desk, number, machines.clock())
    refused(machines, thief, "join", wire.encode(wire.JoinRequest(other.code)), "revoked")
    machines.clock.now += 15 * 86_400
    refused(machines, thief, "join", wire.encode(wire.JoinRequest(late.code)), "over")


def test_a_flood_of_joins_without_a_code_leaves_nothing_behind(machines):
    before = machines.desk.store.rows("SELECT COUNT(*) FROM members")
    for _ in range(200):
        refused(machines, new_identity(), "join", wire.encode(wire.JoinRequest(os.urandom(16))), "unknown here")
    assert machines.desk.store.rows("SELECT COUNT(*) FROM members") == before
    assert machines.desk.store.value("SELECT COUNT(*) FROM acts WHERE act LIKE '%unknown%'") == 0


def test_another_nodes_contribution_cannot_be_sent_in_its_place(machines):
    sent = []
    machines.sync(0, post=recording(machines, 0, sent))
    contribution = dict(sent)["contribute"]
    refused(machines, machines.node_keys[1], "contribute", contribution, "not a contribution of member 2")
    changed = bytearray(contribution)
    changed[-1] ^= 1
    refused(machines, machines.node_keys[0], "contribute", bytes(changed), "another contribution")
    machines.desk.store.execute("DELETE FROM receipts")
    machines.desk.store.execute("DELETE FROM inbox")
    for place in range(0, len(contribution), 7):  # a flipped bit anywhere is refused, and nothing is stored
        changed = bytearray(contribution)
        changed[place] ^= 1
        refused(machines, machines.node_keys[0], "contribute", bytes(changed), "contribution|share|signature|client")
        refused(machines, machines.node_keys[0], "contribute", contribution[:place], "contribution")
    assert machines.desk.store.rows("SELECT * FROM inbox") == []


def test_a_contribution_sent_twice_counts_once_and_has_one_receipt(machines):
    sent = []
    first = machines.sync(0, post=recording(machines, 0, sent))
    machines.clock.now += 5
    again = in_memory(machines.desk, public(machines.node_keys[0]), machines.clock)(
        "contribute", dict(sent)["contribute"]
    )
    assert wire.decode(again, wire.Receipt) == first
    assert machines.desk.store.value("SELECT COUNT(*) FROM inbox") == 1


def test_a_question_of_another_number_is_not_answered(machines):
    sent = []
    machines.sync(0, post=recording(machines, 0, sent))
    refused(machines, machines.node_keys[1], "open", dict(sent)["open"], "not a question of member 2")


def test_a_member_that_left_is_refused_and_not_in_the_next_registry(tmp_path):
    machines = Machines(tmp_path, nodes=6, noise_multiplier=1.0, quorum=0.5)
    machines.begin()
    in_memory(machines.desk, public(machines.node_keys[5]), machines.clock)("leave", b"")
    refused(machines, machines.node_keys[5], "announcement", wire.encode(wire.SyncRequest(0, 0)), "left or was removed")
    for k in range(5):
        machines.sync(k)
    machines.finish()
    machines.finish()
    newest = enrolment.known(machines.desk, enrolment.effective(machines.desk))
    assert machines.clients[5] not in newest.keys
    assert machines.sync(0).round > 1


def test_what_is_too_long_or_nonsense_is_refused_before_anything_is_decoded(machines):
    key = machines.node_keys[0]
    refused(machines, key, "announcement", b"\x00" * (SMALL + 1), "at most")
    refused(machines, key, "contribute", os.urandom(100_000), "at most")
    refused(machines, key, "nothing", b"", "no endpoint")
    refused(machines, key, "announcement", b"\xc1", "not a SyncRequest")
    refused(machines, key, "announcement", wire.encode(wire.SyncRequest(0, 0, 99)), "protocol 99")


def recording(machines, k, sent):
    def post(endpoint, body):
        sent.append((endpoint, body))
        return machines.post(machines.node_keys[k])(endpoint, body)

    return post


# --- the coordinator ------------------------------------------------------------------------------------------------


def test_an_invitation_that_was_cut_off_or_changed_is_refused(machines):
    text = to_text(machines.invite("text"))
    assert from_text(text[:40] + " \n" + text[40:]).federation == machines.charter.terms.federation
    for changed in (text[:-9], text[:100] + ("A" if text[100] != "A" else "B") + text[101:], "foltr-1-", "https://x"):
        with pytest.raises(InputError):
            from_text(changed)


def test_a_registry_without_the_second_operators_signature_is_not_followed(machines):
    desk, terms = machines.desk, machines.charter.terms
    held = enrolment.held(desk, 1)
    made_up = {**held.members, 99: public(new_identity())}
    head, signature = propose(terms.federation, registry(public(desk.identity), made_up), held.link.head, desk.identity)
    forged = Edition(Link(head, signature, desk.operator.sign(b"not hers")), {99: made_up[99]})
    with pytest.raises(SecureAggregationError, match="did not countersign"):
        follow_editions([forged], held, federation=terms.federation, coordinator=public(desk.identity),
                        second=public(machines.keys["second"]))  # fmt: skip


def test_the_second_operator_signs_one_registry_a_number(machines):
    desk, terms = machines.desk, machines.charter.terms
    held = enrolment.held(desk, 1)

    def proposed(members):
        head, signature = propose(
            terms.federation, registry(public(desk.identity), members), held.link.head, desk.identity
        )
        added = {client: key for client, key in members.items() if client not in held.members}
        return wire.Proposal(head, signature, added, ())

    posted = []

    def post(endpoint, body):
        posted.append((endpoint, body))
        return b""

    operator = machines.second._replace(post=post)
    second._registry(operator, wire.Work(0, proposed({**held.members, 98: public(new_identity())}), ()))
    with pytest.raises(SecureAggregationError, match="each number has one registry"):
        second._registry(operator, wire.Work(0, proposed({**held.members, 99: public(new_identity())}), ()))
    assert [endpoint for endpoint, _ in posted] == ["operator/registry"]


def test_a_round_of_a_registry_that_was_not_countersigned_gets_no_list(machines):
    posted = []

    def post(endpoint, body):
        posted.append((endpoint, body))
        return b""

    work = wire.RoundWork(1, 7, bytes(32), (b"\x01" * 32, b"\x02" * 32), "list")
    second._round(machines.second._replace(post=post), work)
    answer = wire.decode(posted[-1][1], wire.OperatorAnswer)
    assert (answer.kind, b"not countersigned" in answer.content) == ("failure", True)


def test_parts_that_the_coordinator_withholds_make_no_smaller_sum(machines, monkeypatch):
    """A circle: all members or no sum, whatever the coordinator passes on."""
    for k in range(5):
        machines.sync(k)
    whole = inbox.parts_for_second
    monkeypatch.setattr(
        inbox,
        "parts_for_second",
        lambda *given: {client: part for client, part in whole(*given).items() if client != 3},
    )
    machines.finish()
    assert machines.states()[1] == "failed"
    assert shared_ranker.newest_shared(machines.desk).version == 0


def test_a_window_below_the_quorum_has_no_sum(machines):
    for k in range(4):
        machines.sync(k)
    machines.finish()
    reason = machines.desk.store.value("SELECT reason FROM rounds WHERE round = 1")
    assert (machines.states()[1], reason) == ("failed", "4 of 5 members sent their update, 5 are needed")


# --- the second operator --------------------------------------------------------------------------------------------


def test_a_second_answer_of_the_second_operator_changes_nothing(machines):
    for k in range(5):
        machines.sync(k)
    machines.clock.now += machines.charter.terms.stage_seconds
    rounds.advance(machines.desk, machines.clock())
    post = in_memory(machines.desk, public(machines.keys["second"]), machines.clock)
    post("operator/answer", wire.encode(wire.OperatorAnswer(1, "half", b"first")))
    with pytest.raises(Refused, match="another half before"):
        post("operator/answer", wire.encode(wire.OperatorAnswer(1, "half", b"second")))


def test_a_half_that_is_not_the_sum_of_the_parts_is_noticed_or_bounded(machines, monkeypatch):
    """Its signature is right and its numbers are not: a sum that honest nodes cannot have is not applied."""
    from foltr.secagg import aggregator

    summed = aggregator._summed
    monkeypatch.setattr(
        aggregator, "_summed",
        lambda state, seed: summed(state, seed) + (np.uint64(2**60) if state.index else np.uint64(0)),
    )  # fmt: skip
    for k in range(5):
        machines.sync(k)
    machines.finish()
    assert machines.states()[1] == "failed"
    assert "honest nodes cannot have sent" in machines.desk.store.value("SELECT reason FROM rounds WHERE round = 1")


def test_forged_messages_of_the_second_operator_end_the_round_with_a_reason(machines):
    for k in range(5):
        machines.sync(k)
    machines.clock.now += machines.charter.terms.stage_seconds
    rounds.advance(machines.desk, machines.clock())
    post = in_memory(machines.desk, public(machines.keys["second"]), machines.clock)
    post("operator/answer", wire.encode(wire.OperatorAnswer(1, "listing", b"\x90")))
    assert machines.states()[1] == "failed"


# --- requests -------------------------------------------------------------------------------------------------------


def ask(machines, nonces, endpoint, headers, body, *, method="POST", pieces=None):
    """A request to the ASGI application, as uvicorn would hand it over; (status, body, bytes that were read)."""
    app = application(machines.desk, machines.clock)
    events = pieces or [body]
    read, sent = [], []

    async def receive():
        piece = events[len(read)]
        read.append(piece)
        return {"type": "http.request", "body": piece, "more_body": len(read) < len(events)}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "path": PREFIX + endpoint, "client": ("192.0.2.1", 1),
             "headers": [(name.encode(), value.encode()) for name, value in headers.items()]}  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], sent[1]["body"], sum(map(len, read)), dict(sent[0]["headers"])


def signed_headers(machines, identity, endpoint, nonce, body, **changes):
    signature = sign(identity, machines.charter.terms.federation, changes.get("signed_for", endpoint), nonce, body)
    return {"foltr-key": public(identity).hex(), "foltr-nonce": nonce.hex(), "foltr-signature": signature.hex()}


def test_a_request_is_bound_to_key_path_nonce_and_body(machines):
    from foltr.federation.network import server

    nonces, key = Nonces(), machines.node_keys[0]
    body, now = wire.encode(wire.RoundsRequest()), machines.clock()

    def answer(endpoint, headers, content):
        return server._answer(machines.desk, nonces, endpoint, headers, content, now).status

    nonce = nonces.new(now)
    good = signed_headers(machines, key, "rounds", nonce, body)
    assert answer("version", good, body) == 403  # another path
    assert answer("rounds", good, body + b"\x00") == 403  # another body
    assert answer("rounds", good | {"foltr-key": public(new_identity()).hex()}, body) == 403  # another key
    assert answer("rounds", {}, body) == 403
    assert answer("rounds", good | {"foltr-signature": "zz"}, body) == 403
    assert answer("rounds", good, body) == 200
    assert answer("rounds", good, body) == 401  # a replay
    foreign = signed_headers(machines, key, "rounds", Nonces().new(now), body)
    assert answer("rounds", foreign, body) == 401  # a nonce that this process did not make
    old = nonces.new(now - 301)
    assert answer("rounds", signed_headers(machines, key, "rounds", old, body), body) == 401


def test_a_body_is_bounded_before_it_is_read(machines):
    status, _, read, _ = ask(machines, None, "announcement", {"content-length": "10000000"}, b"x" * 10)
    assert (status, read) == (413, 0)
    status, _, read, headers = ask(machines, None, "announcement", {}, b"", pieces=[b"x" * 1000] * 1000)  # chunked
    assert status == 413
    assert read <= SMALL + 1000
    assert headers[b"connection"] == b"close"


def test_there_is_nothing_but_the_endpoints(machines):
    assert ask(machines, None, "announcement", {}, b"", method="GET")[0] == 404
    assert ask(machines, None, "../../etc/passwd", {}, b"")[0] == 403  # not signed; there is no such endpoint either
    assert ask(machines, None, "nonce", {}, b"")[0] == 200


def test_fuzzed_requests_end_in_a_refusal(machines):
    """500 mutations of every request of a conversation, from a fixed seed: `Refused` or a reply, nothing else."""
    from foltr.rng import stream

    sent = []
    machines.sync(0, post=recording(machines, 0, sent))
    numbers = iter(stream(27, purpose="attack").uniform(50_000).tolist())

    def draw(below):
        return int(next(numbers) * below)

    sender = public(machines.node_keys[0])
    for endpoint, body in [*sent, ("rounds", b"\x91\x0a"), ("operator/answer", b"\x94\x01\xa4half\xc4\x00\x80")]:
        for _ in range(500):
            changed = bytearray(body)
            for _ in range(1 + draw(4)):
                place = draw(len(changed))
                changed[place] = draw(256)
            del changed[len(changed) - draw(1 + len(changed) // 4) :]
            key = public(machines.keys["second"]) if endpoint.startswith("operator") else sender
            try:
                handle(machines.desk, endpoint, key, bytes(changed), machines.clock())
            except Refused:
                continue


def test_the_log_of_acts_cannot_be_changed_and_has_no_content(machines):
    for k in range(5):
        machines.sync(k)
    machines.finish()
    for statement in ("DELETE FROM acts", "UPDATE acts SET act = 'nothing happened'"):
        with pytest.raises(FoltrError, match="append-only"):
            machines.desk.store.execute(statement)
    acts = [act for (act,) in machines.desk.store.rows("SELECT act FROM acts")]
    assert any("version 1 is published" in act for act in acts)
    assert not any(name in act for act in acts for name in ("bm25", "title", "127.0.0.1"))


def test_the_database_holds_no_code_no_secret_and_no_sealed_message_after_the_sum(machines):
    code = machines.invite("x").code
    for k in range(5):
        machines.sync(k)
    machines.finish()
    machines.desk.store.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    content = machines.desk.store.path.read_bytes()
    secrets = [identity.private_bytes_raw() for identity in (*machines.keys.values(), *machines.node_keys)]
    assert not any(secret in content for secret in (code, *secrets))
    assert machines.desk.store.rows("SELECT * FROM inbox WHERE round = 1") == []


def test_other_commands_start_without_the_network_stack():
    heavy = ("httpx", "uvicorn", "sqlite3", "cryptography")
    program = f"import foltr.cli.main, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
