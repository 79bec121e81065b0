"""Ledgers that were written before events said who adds the noise: they load, their chains hold, their charges count.

`older/ledger` and `older/witness` are a node's files after one release to two servers and one to one server;
`older/federation.json` is the ledger of three users in the lab. None has the field `noise_by`.
"""

import json
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from foltr.errors import PrivacyError
from foltr.privacy import ledger
from foltr.privacy.ledger_file import inspect_ledger, open_ledger
from foltr.privacy.ledger_records import read_chain
from foltr.privacy.mechanisms import Gaussian, ReleaseContext
from foltr.privacy.release import release_to_servers
from foltr.secagg.ring import Ring

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


@pytest.mark.parametrize("name", ["ledger", "witness", "federation.json"])
def test_the_files_are_of_a_version_without_the_field(name):
    assert "noise_contributors" in (OLDER / name).read_text()
    assert "noise_by" not in (OLDER / name).read_text()


def test_the_chain_of_an_older_ledger_holds_and_its_witness_agrees(files):
    found = inspect_ledger(**files)
    assert (found.records, found.problem, found.note, found.missing) == (3, "", "", 0)
    assert list(found.counts.values()) == [1, 1]
    lines = (OLDER / "ledger").read_text().splitlines()
    assert [one.hex() for one in read_chain(files["path"]).digests.values()] == [line[:64] for line in lines]


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


def test_an_older_ledger_of_the_lab_loads_to_the_same_figures():
    book = ledger.loads((OLDER / "federation.json").read_text())
    assert book.counts.tolist() == [[2, 1], [2, 0], [0, 0]]
    context = ReleaseContext(12, 5, 46)
    two, one = (Gaussian(4.0).event(context._replace(secagg_mode=mode)) for mode in ("two-servers", "one-server"))
    assert book.events == (msgspec.structs.replace(two, noise_by="clients"), one)
    present = book._replace(events=(two, one))
    assert ledger.spent(book).epsilon == ledger.spent(present).epsilon
    assert ledger.loads(ledger.dumps(present)).events == (two, one)  # what is written now says who adds the noise
    assert [event["noise_by"] for event in json.loads(ledger.dumps(present))["events"]] == ["servers", "clients"]
