"""Damaged files of a node: every error is declared and says what to do, and the node takes part again afterwards."""

import hashlib

import pytest
from small_nodes import VICTIM, node, round_with
from small_operators import operators, run
from small_rounds import announced_in, federation
from small_two_servers import federation as two_operators

from foltr.errors import FoltrError, PrivacyError, SecureAggregationError, StateError
from foltr.federation import draws
from foltr.federation.participant import end_if_late, end_round
from foltr.privacy.ledger_repair import inspect_ledger, repair_ledger
from foltr.witnessed import head

DAMAGED = {
    "empty": lambda whole: b"",
    "cut off": lambda whole: whole[: len(whole) // 2],
    "one bit": lambda whole: bytes([*whole[:-9], whole[-9] ^ 4, *whole[-8:]]),
    "the round": lambda whole: b"%c\x7f" % whole[0] + whole[2:],
    "zeros": lambda whole: bytes(len(whole)),
    "no text": lambda whole: b"\x94\x01\xc4\x00\xc4\x00\xa1\xff",
}


def damage(path, how):
    path.write_bytes(DAMAGED[how](path.read_bytes()))


@pytest.mark.parametrize("how", DAMAGED)
@pytest.mark.parametrize("ends", ["by itself", "by the person"])
def test_a_node_with_a_damaged_head_loses_the_round_and_joins_the_next_one(tmp_path, how, ends):
    victim = node(tmp_path, clock=lambda: 0.0)
    victim.join(round=3)
    _, _, requests = round_with(victim, "share", round=3)
    damage(victim.storage.witness / "round.head", how)
    for call in (lambda: victim.answer(requests[VICTIM]), lambda: victim.join(round=4)):
        with pytest.raises(StateError, match=r"round\.head: .* damaged .*nothing is sent: end it \(`participant.end_r"):
            call()
    if ends == "by itself":
        assert end_if_late(victim.member, storage=victim.storage, clock=lambda: 0.0)
    else:
        end_round(victim.storage)
    assert not (victim.storage.folder / "round.state").exists()
    with pytest.raises(SecureAggregationError, match="already joined round 3; rounds only rise"):
        victim.join(round=3)  # nothing was charged yet; two adverts of one node in one round are not survived
    victim.join(round=4)
    round_with(victim, "mask", round=4)


def test_where_both_files_are_damaged_the_person_states_the_round(tmp_path):
    victim = node(tmp_path)
    victim.join(round=3)
    damage(victim.storage.witness / "round.head", "cut off")
    damage(victim.storage.folder / "round.state", "empty")
    for call in (lambda: end_round(victim.storage), lambda: end_if_late(victim.member, storage=victim.storage)):
        with pytest.raises(StateError, match=r"state the highest number that may have been used \(highest = ...\)"):
            call()
    end_round(victim.storage, highest=3)
    with pytest.raises(SecureAggregationError, match="already joined round 3"):
        victim.join(round=3)
    victim.join(round=4)


def test_a_draw_with_a_damaged_head_is_ended_and_its_round_stays_used(tmp_path):
    fed = federation(12, length=6, dropouts=0, corrupt=0.15, cohort=5, noise_multiplier=4.0)
    victim = node(tmp_path, fed=fed)
    entering = {"ledger": victim.ledger, "storage": victim.storage}
    for ends in (lambda: end_round(victim.storage), lambda: end_if_late(victim.member, storage=victim.storage)):
        newest = max(head(draws.draw_place(victim.storage)).number, 0) + 1
        draws.enter_draw(victim.member, announced_in(victim.member, newest), **entering)
        damage(victim.storage.witness / "draw.head", "cut off")
        with pytest.raises(StateError, match=r"draw\.head: .* damaged"):
            draws.enter_draw(victim.member, announced_in(victim.member, newest + 1), **entering)
        ends()
        with pytest.raises(SecureAggregationError, match=f"already took part in round {newest}"):
            draws.enter_draw(victim.member, announced_in(victim.member, newest), **entering)


def test_a_record_that_is_no_text_is_refused_and_charged_by_a_repair(tmp_path):
    """Its digest is right, so whoever wrote it knew the format; nothing but the text is wrong."""
    victim = node(tmp_path)
    victim.join()
    _, _, requests = round_with(victim, "mask")
    victim.answer(requests[VICTIM])
    files = {"path": victim.storage.folder / "ledger", "witness": victim.storage.witness / "ledger"}
    lines = files["path"].read_bytes().splitlines()
    payload = b'{"number":2,"kind":"release","note":"\xff\xfe"}'
    digest = hashlib.sha256(bytes.fromhex(lines[-1][:64].decode()) + payload).hexdigest().encode()
    files["path"].write_bytes(b"\n".join([*lines, digest + b" " + payload, b""]))
    with pytest.raises(PrivacyError, match=r"cannot read .*or repair the ledger from its witness"):
        node(tmp_path)
    assert "repair" in inspect_ledger(**files).problem
    assert repair_ledger(**files) == 1
    assert sum(node(tmp_path).ledger.counts().values()) == 1
    with pytest.raises(SecureAggregationError, match="already joined round 1"):
        node(tmp_path).join(round=1)
    end_round(victim.storage)
    node(tmp_path).join(round=2)


@pytest.mark.parametrize("how", DAMAGED)
def test_an_aggregator_with_a_damaged_witness_opens_nothing_and_says_what_to_do(tmp_path, how):
    fed = two_operators(7, noise_multiplier=3.0)
    pair = operators(fed, tmp_path)
    window, _, _ = run(fed, pair)
    damage(tmp_path / "witness-0" / "memory.json", how)
    for call in (lambda: pair[0].half(window, b""), lambda: pair[0].statements(2), lambda: pair[0].listing(window, {})):
        with pytest.raises(
            StateError, match=r"not the witness of a memory of an operator, or damaged.*take a new identity"
        ):
            call()


@pytest.mark.parametrize("how", DAMAGED)
def test_damaged_state_files_raise_declared_errors_only(tmp_path, how):
    victim = node(tmp_path)
    victim.join()
    _, _, requests = round_with(victim, "share")
    damage(victim.storage.folder / "round.state", how)
    with pytest.raises(FoltrError, match="join the next one"):
        victim.answer(requests[VICTIM])
    victim.join(round=2)
