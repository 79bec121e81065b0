"""Registries over time: nobody shows two of one number, and no node is surrounded unnoticed."""

import msgspec
import pytest

from foltr.errors import SecureAggregationError, SpecError
from foltr.federation.registries import Head, Link, countersign, digest_of, follow, newest_link, propose
from foltr.secagg.crypto import new_identity
from foltr.secagg.terms import new_federation, registry

FEDERATION = new_federation()
COORDINATOR, SECOND, STRANGER = (new_identity() for _ in range(3))
KEYS = {client: new_identity().public_key().public_bytes_raw() for client in range(9)}


def public(identity):
    return identity.public_key().public_bytes_raw()


def members(*clients):
    return {client: KEYS[client] for client in clients}


def proposed(clients, before=None, *, identity=COORDINATOR):
    return propose(FEDERATION, registry(public(COORDINATOR), members(*clients)), before, identity)


def signed(tmp_path, clients, before=None, *, name="second", round_open=False):
    head, signature = proposed(clients, before)
    return countersign(
        head, signature, members(*clients), coordinator=public(COORDINATOR), identity=SECOND,
        path=tmp_path / name / "registry", round_open=round_open,
    )  # fmt: skip


def received(tmp_path, links, clients, *, name="node"):
    return follow(
        links, members(*clients), federation=FEDERATION, coordinator=public(COORDINATOR), second=public(SECOND),
        path=tmp_path / name / "registry",
    )  # fmt: skip


@pytest.fixture
def chain(tmp_path):
    """Three registries: three members, four, five."""
    links = [signed(tmp_path, range(3))]
    for size in (4, 5):
        links.append(signed(tmp_path, range(size), links[-1].head))
    return links


def test_a_node_follows_a_chain_over_several_numbers(tmp_path, chain):
    assert received(tmp_path, chain[:1], range(3)).keys == members(0, 1, 2)
    assert received(tmp_path, chain[1:], range(5)).keys == members(0, 1, 2, 3, 4)
    assert received(tmp_path, [], range(5)).keys == members(0, 1, 2, 3, 4)
    assert received(tmp_path, chain, range(5)).digest == chain[-1].head.registry
    assert newest_link(tmp_path / "node" / "registry") == chain[-1]


def test_the_second_operator_signs_one_registry_a_number(tmp_path, chain):
    with pytest.raises(SecureAggregationError, match="does not follow"):
        signed(tmp_path, (0, 1, 2, 7), chain[0].head)
    assert signed(tmp_path, range(5), chain[1].head) == chain[2]  # asked again after a crash: the same bytes


def test_the_second_operator_leaves_no_number_out(tmp_path, chain):
    skipped = msgspec.structs.replace(chain[-1].head, number=7)
    with pytest.raises(SecureAggregationError, match="does not follow"):
        signed(tmp_path, range(6), skipped)


def test_a_registry_changes_between_rounds_only(tmp_path, chain):
    with pytest.raises(SecureAggregationError, match="a round is open"):
        signed(tmp_path, range(6), chain[-1].head, round_open=True)
    assert signed(tmp_path, range(5), chain[1].head, round_open=True) == chain[2]


def test_the_second_operator_sees_the_members_that_it_signs(tmp_path):
    head, signature = proposed(range(3))
    with pytest.raises(SecureAggregationError, match="not that of its members"):
        countersign(head, signature, members(0, 1, 7), coordinator=public(COORDINATOR), identity=SECOND,
                    path=tmp_path / "registry", round_open=False)  # fmt: skip
    assert not (tmp_path / "registry").exists()


def test_a_stranger_registers_nobody(tmp_path):
    head, signature = proposed(range(3), identity=STRANGER)
    with pytest.raises(SecureAggregationError, match="coordinator of this federation did not sign"):
        countersign(head, signature, members(0, 1, 2), coordinator=public(COORDINATOR), identity=SECOND,
                    path=tmp_path / "registry", round_open=False)  # fmt: skip


def test_a_coordinator_that_shows_another_registry_to_one_node_is_noticed(tmp_path, chain):
    """Both heads carry both signatures: the second operator was restored from a backup and signed again."""
    other = signed(tmp_path, (0, 7, 8), name="restored")
    received(tmp_path, chain[:1], range(3))
    with pytest.raises(SecureAggregationError, match="another one of this number"):
        received(tmp_path, [other], (0, 7, 8))
    behind = signed(tmp_path, (0, 5, 7, 8), other.head, name="restored")
    with pytest.raises(SecureAggregationError, match="does not follow"):
        received(tmp_path, [behind], (0, 5, 7, 8))
    assert newest_link(tmp_path / "node" / "registry") == chain[0]


@pytest.mark.parametrize("party", ["coordinator", "second"])
def test_a_link_without_one_of_the_signatures_is_refused(tmp_path, chain, party):
    forged = msgspec.structs.replace(chain[0], **{party: STRANGER.sign(digest_of(chain[0].head))})
    with pytest.raises(SecureAggregationError, match="did not"):
        received(tmp_path, [forged], range(3))


def test_a_gap_an_older_registry_and_other_members_are_refused(tmp_path, chain):
    received(tmp_path, chain[:1], range(3))
    with pytest.raises(SecureAggregationError, match="does not follow"):
        received(tmp_path, chain[2:], range(5))
    with pytest.raises(SecureAggregationError, match="not that of the members"):
        received(tmp_path, chain[1:], (0, 1, 2, 3, 7))
    received(tmp_path, chain[1:], range(5))
    with pytest.raises(SecureAggregationError, match="not that of the members"):
        received(tmp_path, chain[:2], range(4))  # back to the smaller one


def test_a_registry_of_another_federation_is_refused(tmp_path):
    head, _ = propose(new_federation(), registry(public(COORDINATOR), members(0, 1, 2)), None, COORDINATOR)
    link = Link(head, COORDINATOR.sign(digest_of(head)), SECOND.sign(digest_of(head)))
    with pytest.raises(SecureAggregationError, match="is one of federation"):
        received(tmp_path, [link], range(3))


def test_a_node_without_a_registry_needs_its_invitation(tmp_path):
    with pytest.raises(SecureAggregationError, match="join with an invitation"):
        received(tmp_path, [], range(3))


def test_numbers_cannot_be_moved_between_fields_of_a_head():
    first = Head("a", 1, b"\0" * 32, 23, b"\1" * 32)
    assert digest_of(first) != digest_of(Head("a", 12, b"\0" * 32, 3, b"\1" * 32))


def test_a_member_without_a_usable_key_reaches_no_registry(tmp_path):
    head, signature = proposed(range(3))
    with pytest.raises((SecureAggregationError, SpecError)):
        countersign(head, signature, members(0, 1) | {2: b"short"}, coordinator=public(COORDINATOR), identity=SECOND,
                    path=tmp_path / "registry", round_open=False)  # fmt: skip
