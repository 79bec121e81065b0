"""Groups: every member opens the same key, and nobody but the agreed maker can make one."""

from dataclasses import replace

import pytest
from silos import GROUP, IDENTITIES, KEY, MEMBERS, PLAN

from foltr.errors import SpecError
from foltr.silo.keys import VERSION, group_in_process, group_plan, make_group, new_identity, open_group, public
from foltr.silo.sketches import KEY_BYTES

MAKER = IDENTITIES[0]


def test_every_member_opens_the_same_key():
    assert {member.key for member in MEMBERS} == {KEY}
    assert {member.context for member in MEMBERS} == {MEMBERS[0].context}
    fresh = make_group(PLAN, MAKER, epoch=1)
    assert len({open_group(fresh, one, PLAN)[0].key for one in IDENTITIES}) == 1
    assert len(open_group(fresh, MAKER, PLAN)[0].key) == KEY_BYTES


def test_what_the_server_carries_and_what_is_printed_holds_no_secret():
    carried = b"".join([GROUP.name.encode(), GROUP.maker, GROUP.salt, *GROUP.boxes, GROUP.signature])
    carried += b"".join(key for member in GROUP.members for key in member)
    for hidden in (KEY, *(key for one in IDENTITIES for key in (one.signing, one.agreement))):
        assert hidden not in carried
        printed = repr(MEMBERS) + repr(IDENTITIES)
        assert repr(hidden)[2:-1] not in printed
        assert hidden.hex() not in printed


def test_the_server_cannot_make_the_group():
    """The attack: the server knows all public keys, makes a group with a key that it knows, and delivers that."""
    server = new_identity()
    everybody = [public(one) for one in IDENTITIES]
    as_a_member = make_group(group_plan("clinics", public(server), everybody), server, epoch=1)
    in_disguise = as_a_member._replace(maker=PLAN.maker, members=PLAN.members, boxes=as_a_member.boxes[:3])
    for forged in (as_a_member, in_disguise):
        with pytest.raises(SpecError, match=r"expected 'clinics' made by|not signed by its maker"):
            open_group(forged, IDENTITIES[1], PLAN)
    with pytest.raises(SpecError, match="only its maker can make it"):
        make_group(PLAN, server, epoch=1)


def test_nor_can_another_member():
    other = make_group(group_plan("clinics", public(IDENTITIES[1]), PLAN.members), IDENTITIES[1], epoch=1)
    with pytest.raises(SpecError, match="expected 'clinics' made by"):
        open_group(other, IDENTITIES[2], PLAN)


def test_a_member_more_or_less_is_refused_though_the_maker_signed_it():
    stranger = public(new_identity())
    for members, said in (((*PLAN.members, stranger), "1 unexpected, 0 missing"), (PLAN.members[:2], "1 missing")):
        if PLAN.maker not in {one.signing for one in members}:
            members = (*members[:1], public(MAKER))
        other = make_group(group_plan("clinics", public(MAKER), members), MAKER, epoch=2)
        with pytest.raises(SpecError, match=f"not the agreed ones.*{said}"):
            open_group(other, MAKER, PLAN)


@pytest.mark.parametrize("version", [1, VERSION - 1, VERSION + 1])
def test_another_version_is_refused_with_what_to_do(version):
    with pytest.raises(SpecError, match=f"version {version}; this program speaks version {VERSION}: ask its maker"):
        open_group(GROUP._replace(version=version), IDENTITIES[1], PLAN)


def test_an_old_epoch_is_not_opened_again():
    """A server that kept the first group cannot bring its key back after the second."""
    second = make_group(PLAN, MAKER, epoch=2)
    first, newest = open_group(GROUP, IDENTITIES[1], PLAN)
    assert open_group(GROUP, IDENTITIES[1], PLAN, newest)[0].key == first.key  # the same one, after a restart
    _, newest = open_group(second, IDENTITIES[1], PLAN, newest)
    with pytest.raises(SpecError, match="epoch 1 is an old one: this party has opened epoch 2"):
        open_group(GROUP, IDENTITIES[1], PLAN, newest)
    with pytest.raises(SpecError, match="a second group 'clinics' of epoch 2"):
        open_group(make_group(PLAN, MAKER, epoch=2), IDENTITIES[1], PLAN, newest)


@pytest.mark.parametrize(
    "changed",
    [{"salt": bytes(32)}, {"epoch": 7}, {"boxes": GROUP.boxes[1:] + GROUP.boxes[:1]}, {"signature": bytes(64)},
     {"boxes": tuple(bytes(len(box)) for box in GROUP.boxes)}],
)  # fmt: skip
def test_a_change_on_the_way_is_noticed(changed):
    with pytest.raises(SpecError, match="not signed by its maker"):
        open_group(GROUP._replace(**changed), IDENTITIES[1], PLAN)


def test_missing_boxes_a_strangers_name_and_a_stranger_are_refused():
    with pytest.raises(SpecError, match="damaged"):
        open_group(GROUP._replace(boxes=GROUP.boxes[:2]), IDENTITIES[1], PLAN)
    for epoch in (0, -1, 2**70):
        with pytest.raises(SpecError, match="damaged"):
            open_group(GROUP._replace(epoch=epoch), IDENTITIES[1], PLAN)
    with pytest.raises(SpecError, match="expected 'clinics'"):
        open_group(GROUP._replace(name="banks"), IDENTITIES[1], PLAN)
    with pytest.raises(SpecError, match="no member of the group 'clinics'"):
        open_group(GROUP, new_identity(), PLAN)
    half = replace(IDENTITIES[1], agreement=new_identity().agreement)
    with pytest.raises(SpecError, match="no member"):
        open_group(GROUP, half, PLAN)


def test_the_same_parties_never_get_the_same_key_or_box_twice():
    one, other = (make_group(PLAN, MAKER, epoch=1) for _ in range(2))
    assert open_group(one, MAKER, PLAN)[0].key != open_group(other, MAKER, PLAN)[0].key
    assert not set(one.boxes) & set(other.boxes)


def test_impossible_groups_are_refused():
    with pytest.raises(SpecError, match="group of one"):
        group_plan("alone", public(MAKER), [])
    with pytest.raises(SpecError, match="two members have one public key"):
        group_plan("twice", public(MAKER), [public(IDENTITIES[1])._replace(agreement=public(MAKER).agreement)])
    with pytest.raises(SpecError, match="epoch = 0"):
        make_group(PLAN, MAKER, epoch=0)


@pytest.mark.parametrize("parties", [1, 2, 4])
def test_a_group_in_one_process_has_its_parties(parties):
    members = group_in_process(parties, KEY)
    assert len({member.place for member in members}) == parties
    assert all(member.key == KEY for member in members)
