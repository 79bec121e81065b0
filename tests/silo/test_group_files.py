"""What a party stores and what the server delivers: identities, groups, and the newest epoch."""

import pytest
from silos import GROUP, IDENTITIES, MEMBERS, PLAN

from foltr.errors import DataError, SpecError, StorageError
from foltr.silo.group_files import create_identity, decode_group, encode_group, open_delivered, read_identity
from foltr.silo.keys import make_group


def test_an_identity_comes_back_is_private_and_is_never_overwritten(tmp_path):
    made = create_identity(tmp_path / "me.key")
    assert read_identity(tmp_path / "me.key") == made
    assert (tmp_path / "me.key").stat().st_mode & 0o077 == 0
    with pytest.raises(StorageError, match="could not be written"):
        create_identity(tmp_path / "me.key")


@pytest.mark.parametrize("content", ["", "ab\ncd\n", "zz" * 32 + "\n" + "00" * 32, "00" * 32])
def test_what_is_no_identity_is_refused(content, tmp_path):
    (tmp_path / "me.key").write_text(content)
    with pytest.raises(DataError, match="holds no identity"):
        read_identity(tmp_path / "me.key")
    with pytest.raises(DataError, match="create an identity first"):
        read_identity(tmp_path / "nobody.key")


def test_a_group_travels_as_bytes():
    assert decode_group(encode_group(GROUP)) == GROUP
    with pytest.raises(DataError, match="another version"):
        decode_group(b"\x93\x01\x02\x03")


def test_after_a_restart_an_old_epoch_is_still_refused(tmp_path):
    """The server delivers the second group, and after a restart of the party the first one again."""
    file = tmp_path / "epochs.json"
    first, second = encode_group(GROUP), encode_group(make_group(PLAN, IDENTITIES[0], epoch=2))
    assert open_delivered(first, IDENTITIES[1], PLAN, file).key == MEMBERS[1].key
    assert open_delivered(second, IDENTITIES[1], PLAN, file).epoch == 2
    assert open_delivered(second, IDENTITIES[1], PLAN, file).epoch == 2
    with pytest.raises(SpecError, match="this party has opened epoch 2"):
        open_delivered(first, IDENTITIES[1], PLAN, file)
    file.write_text("[]")
    with pytest.raises(DataError, match="does not hold the epochs"):
        open_delivered(second, IDENTITIES[1], PLAN, file)


def test_a_refused_group_is_not_remembered(tmp_path):
    file = tmp_path / "epochs.json"
    with pytest.raises(SpecError, match="not signed"):
        open_delivered(encode_group(GROUP._replace(epoch=9)), IDENTITIES[1], PLAN, file)
    assert not file.exists()
