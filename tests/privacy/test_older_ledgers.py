"""Ledgers that were written before events said who adds the noise: they load, their chains hold, their charges count.

`older/ledger` and `older/witness` are a node's files after one release to two servers and one to one server. Neither
has the field `noise_by`.
"""

import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from foltr.errors import PrivacyError
from foltr.privacy import ledger
from foltr.privacy.ledger_file import open_ledger, read_chain
from foltr.privacy.ledger_repair import inspect_ledger
from foltr.privacy.release import release_to_servers
from foltr.secagg.ring import Ring
from foltr.witnessed import Place

OLDER = Path(__file__).parent / "older"
DELTA = 1e-5


@pytest.fixture
def files(tmp_path):
    """Copies: a ledger that is opened is also written to."""
    found = {"path": tmp_path / "ledger" / "ledger", "witness": tmp_path / "elsewhere" / "witness"}
    for name, copy in zip(("ledger", "witness"), found.values(), strict=True):
        copy.parent.mkdir()
        shutil.copy(OLDER / name, copy)
    return found


def to_two_servers():
    """The release that the older ledger was charged for first, as it is stated now."""
    return release_to_servers(np.ones(5), clip=1.0, multiplier=3.0, ring=Ring(clients=3))[1]


@pytest.mark.parametrize("name", ["ledger", "witness"])
def test_the_files_are_of_a_version_without_the_field(name):
    assert "noise_contributors" in (OLDER / name).read_text()
    assert "noise_by" not in (OLDER / name).read_text()


def test_the_chain_of_an_older_ledger_holds_and_its_witness_agrees(files):
    found = inspect_ledger(**files)
    assert (found.records, found.problem, found.note, found.missing) == (3, "", "", 0)
    assert list(found.counts.values()) == [1, 1]
    lines = (OLDER / "ledger").read_text().splitlines()
    assert [one.hex() for one in read_chain(Place(**files, name="ledger")).digests.values()] == [
        line[:64] for line in lines
    ]


def test_a_changed_byte_in_an_older_ledger_still_breaks_the_chain(files):
    text = files["path"].read_text()
    assert text.count('"present":1,') == 1
    files["path"].write_text(text.replace('"present":1,', '"present":2,'))
    with pytest.raises(PrivacyError):
        open_ledger(**files, delta=DELTA, budget=4.0)


def test_a_new_release_is_charged_beside_the_older_ones(files):
    """An older event and its present form differ in a field that no epsilon depends on: together they cost as two."""
    node, new = open_ledger(**files, delta=DELTA, budget=4.0), to_two_servers()
    old, other = node.counts()
    assert (new.noise_by, old.noise_by) == ("servers", "clients")
    assert msgspec.structs.replace(old, noise_by="servers") == new
    node.charge(new, federation="ours", round=3)
    assert node.counts() == {old: 1, other: 1, new: 1}
    assert node.spent() == pytest.approx(ledger.closed_epsilon({new: 2, other: 1}, DELTA, "malicious"), rel=1e-12)
    again = open_ledger(**files, delta=DELTA, budget=4.0)
    assert again.counts() == node.counts()
    assert again.highest_round("ours") == 3


def test_an_older_ledger_says_nothing_of_its_messages_and_goes_on_with_new_records(files):
    node = open_ledger(**files, delta=DELTA, budget=None)
    assert {(record.time, record.address, record.size) for record in node.records()} == {(0.0, "", 0)}
    node.charge(to_two_servers(), federation="another", round=1, time=1.8e9, address="https://example.org", size=5)
    assert open_ledger(**files, delta=DELTA, budget=None).records()[-1].size == 5
