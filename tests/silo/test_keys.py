"""The hash key: everybody in the group gets it, nobody else does."""

import pytest

from foltr.errors import SpecError
from foltr.silo.keys import make_group, new_member, open_group, public
from foltr.silo.sketches import KEY_BYTES

SECRETS = [new_member() for _ in range(4)]
KEY, GROUP = make_group("clinics", SECRETS[0], [public(secret) for secret in SECRETS[1:]])


@pytest.mark.parametrize("secret", SECRETS)
def test_every_member_opens_the_same_key(secret):
    assert open_group(GROUP, secret) == KEY
    assert len(KEY) == KEY_BYTES


def test_what_the_server_carries_holds_neither_the_key_nor_a_secret():
    carried = b"".join([GROUP.name.encode(), GROUP.maker, *GROUP.members, GROUP.salt, *GROUP.boxes])
    for hidden in (KEY, *SECRETS):
        assert hidden not in carried


def test_a_party_without_the_key_is_told_what_to_do():
    with pytest.raises(SpecError, match=r"no hash key of the group 'clinics'.*ask the maker"):
        open_group(GROUP, new_member())


def test_another_members_box_does_not_open():
    turned = GROUP._replace(boxes=GROUP.boxes[1:] + GROUP.boxes[:1])
    with pytest.raises(SpecError, match="does not open"):
        open_group(turned, SECRETS[2])


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "banks"},
        {"salt": bytes(32)},
        {"boxes": tuple(bytes(len(box)) for box in GROUP.boxes)},
    ],
)
def test_a_change_on_the_way_is_noticed(changed):
    with pytest.raises(SpecError, match=r"does not open|no hash key"):
        open_group(GROUP._replace(**changed), SECRETS[1])


def test_another_member_in_somebodys_place_is_noticed():
    mine, stranger = public(SECRETS[1]), public(new_member())
    other = next(place for place, member in enumerate(GROUP.members) if member != mine)
    members = (*GROUP.members[:other], stranger, *GROUP.members[other + 1 :])
    with pytest.raises(SpecError, match=r"does not open|no hash key"):
        open_group(GROUP._replace(members=members), SECRETS[1])


def test_boxes_that_are_missing_are_noticed():
    with pytest.raises(SpecError, match="damaged"):
        open_group(GROUP._replace(boxes=GROUP.boxes[:2]), SECRETS[1])


def test_the_same_parties_never_get_the_same_key_or_box_twice():
    key, group = make_group("clinics", SECRETS[0], [public(secret) for secret in SECRETS[1:]])
    assert key != KEY
    assert not set(group.boxes) & set(GROUP.boxes)


def test_a_group_of_one_is_refused():
    with pytest.raises(SpecError, match="group of one"):
        make_group("alone", SECRETS[0], [])
