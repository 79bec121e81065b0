"""A party's files that are restored from a backup: with a witness elsewhere none of them answers, opens or releases."""

from functools import partial

import pytest
from silos import GROUP, IDENTITIES, MEMBERS, PLAN, TEXTS, index_of

from foltr.errors import StateError
from foltr.silo.allowance import Limits, open_allowance, spend
from foltr.silo.group_files import encode_group, open_delivered
from foltr.silo.keys import make_group
from foltr.silo.releases import release_times, release_to_file

ASKER, NAMES = bytes(32), [f"{number}.txt" for number in range(len(TEXTS))]
OWNER, LIMITS = MEMBERS[1], Limits(entries=100, total=100)


def opened(file, witness):
    return open_allowance(file, LIMITS, OWNER, lambda: 0.0, witness=witness)


def asked(number, file, witness):
    """The whole allowance, which may be spent once."""
    spend(opened(file, witness), ASKER, number, 100)


def delivered(epoch, file, witness):
    group = GROUP if epoch == 1 else make_group(PLAN, IDENTITIES[0], epoch=epoch)
    open_delivered(encode_group(group), IDENTITIES[1], PLAN, file, witness=witness)


def released(text, file, witness):
    index = index_of([*TEXTS[:-1], text])
    return release_to_file(file, index, NAMES, epsilon=0.5, budget=1.0, witness=witness)


FILES = {
    "allowance": [opened, partial(asked, 1), partial(asked, 2)],
    "epochs": [partial(delivered, 1), partial(delivered, 2), partial(delivered, 1)],
    "releases": [partial(released, "rash"), partial(released, "cough"), partial(released, "fever")],
}


@pytest.mark.parametrize("kind", FILES)
def test_a_restored_file_gives_nothing_a_second_time(kind, tmp_path):
    """First use, backup, second use; then the backup comes back and the party is asked for what it gave already."""
    begin, use, again = FILES[kind]
    alone, watched = tmp_path / "alone" / kind, tmp_path / "watched" / kind
    for file, witness in ((alone, None), (watched, tmp_path / "elsewhere" / kind)):
        begin(file, witness)
        backup = file.read_bytes()
        use(file, witness)
        file.write_bytes(backup)
    again(alone, None)  # why there is a witness
    for restored in (watched.read_bytes(), None):
        watched.unlink() if restored is None else watched.write_bytes(restored)
        with pytest.raises(StateError, match="restore the newest file"):
            again(watched, tmp_path / "elsewhere" / kind)


def test_a_witness_changes_no_figure(tmp_path):
    files = {"file": tmp_path / "a" / "releases", "witness": tmp_path / "b" / "releases"}
    first = released("rash", **files)
    assert released("rash", **files).secret == first.secret
    assert release_times(released("cough", **files)).tolist() == [1, 1, 1, 1, 2]
