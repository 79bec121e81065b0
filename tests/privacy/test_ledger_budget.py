"""The budget stands in the ledger and only the person changes it; a new ledger does not stand in for a lost one."""

import shutil
from pathlib import Path

import pytest
from releases_by_hand import gaussian

from foltr.errors import PrivacyError
from foltr.privacy.calibration import noise_multiplier
from foltr.privacy.ledger_file import Limit, open_ledger
from foltr.privacy.ledger_repair import accept_ledger, change_budget, inspect_ledger, repair_ledger

DELTA = 1e-5
EVENT = gaussian(noise_multiplier(1.0, DELTA, 20))  # 20 releases are worth epsilon 1
HERE = Path(__file__).parent


@pytest.fixture
def files(tmp_path):
    return {"path": tmp_path / "state" / "ledger", "witness": tmp_path / "elsewhere" / "ledger"}


def opened(files, budget=1.0, delta=DELTA, **more):
    return open_ledger(**files, delta=delta, budget=budget, **more)


def charged(node, rounds, federation="a"):
    for round in rounds:
        node.charge(EVENT, federation=federation, round=round)
    return node


@pytest.mark.parametrize(
    "stated",
    [{"budget": None}, {"budget": 1000.0}, {"delta": 0.5}, {"against": "recipients"}, {"budget": 50.0, "delta": 1e-2}],
)
def test_whoever_opens_a_ledger_does_not_loosen_its_budget(files, stated):
    """An invitation of another federation, a changed setting, a second program: 20 releases are all there are."""
    charged(opened(files), range(20))
    other = opened(files, **{"budget": 1.0, **stated})
    assert not other.admits(EVENT)
    with pytest.raises(
        PrivacyError, match="budget of epsilon 1 at delta 1e-05 against malicious; nothing was released"
    ):
        charged(other, [0], "b")
    assert inspect_ledger(**files).limit == Limit(1.0, DELTA, "malicious")


def test_a_stricter_budget_holds_for_whoever_states_it(files):
    charged(opened(files), range(5))
    strict = opened(files, budget=0.3)
    with pytest.raises(PrivacyError, match=r"budget of epsilon 0\.3"):
        charged(strict, [5])
    charged(opened(files), [5])
    assert inspect_ledger(**files).limit.budget == 1.0


def test_federations_share_one_budget_whatever_each_was_promised(files):
    a, b = opened(files), opened(files, budget=9.0)
    charged(a, range(12), "a")
    charged(b, range(8), "b")
    for node, federation in ((a, "a"), (b, "b"), (opened(files, None), "c")):
        with pytest.raises(PrivacyError, match="would exceed this node's budget of epsilon 1"):
            charged(node, [30], federation)


def test_a_ledger_of_an_earlier_version_keeps_the_first_budget_that_it_gets(tmp_path):
    files = {"path": tmp_path / "state" / "ledger", "witness": tmp_path / "elsewhere" / "ledger"}
    for name, file in zip(("ledger", "witness"), files.values(), strict=True):
        file.parent.mkdir()
        shutil.copy(HERE / "older" / name, file)
    assert inspect_ledger(**files).limit is None
    opened(files, None)
    assert inspect_ledger(**files).limit is None
    opened(files, 4.0)
    opened(files, 8.0)
    assert inspect_ledger(**files).limit == Limit(4.0, DELTA, "malicious")


def test_a_ledger_that_gets_witness_and_budget_later_has_both_in_one_record(files):
    charged(open_ledger(files["path"], delta=DELTA, budget=None), range(3))
    opened(files)
    assert inspect_ledger(**files).records == 5
    assert inspect_ledger(**files).limit.budget == 1.0


def test_the_person_changes_the_budget_and_a_restored_ledger_does_not_bring_the_old_one_back(files, tmp_path):
    charged(opened(files), range(20))
    shutil.copy(files["path"], tmp_path / "backup")
    change_budget(files["path"], Limit(2.0, DELTA, "malicious"), witness=files["witness"])
    with pytest.raises(PrivacyError, match="budget of epsilon 1 "):  # of the program that states it
        charged(opened(files), [20])
    charged(opened(files, None), [20])
    change_budget(files["path"], Limit(0.5, DELTA, "malicious"), witness=files["witness"])
    assert not opened(files, None).admits(EVENT)
    shutil.copy(tmp_path / "backup", files["path"])
    with pytest.raises(PrivacyError, match="older ledger was restored"):
        opened(files)
    repair_ledger(**files)
    assert inspect_ledger(**files).limit.budget == 0.5
    assert inspect_ledger(**files).problem == ""


def test_a_ledger_that_is_begun_again_from_its_witness_keeps_budget_and_identity(files):
    before = charged(opened(files), range(5)).identity
    files["path"].unlink()
    repair_ledger(**files)
    node = opened(files, None)
    assert (node.identity, inspect_ledger(**files).limit.budget) == (before, 1.0)
    node.require(before, path=files["path"])


@pytest.mark.parametrize("wrong", [Limit(-1.0, DELTA, "malicious"), Limit(float("inf"), DELTA, "malicious"),
                                   Limit(1.0, 1.0, "malicious")])  # fmt: skip
def test_an_impossible_budget_is_refused(files, wrong):
    opened(files)
    with pytest.raises(PrivacyError, match=r"budget =|delta ="):
        change_budget(files["path"], wrong, witness=files["witness"])
    assert inspect_ledger(**files).records == 1


def test_a_new_ledger_stands_in_for_a_lost_one_only_when_the_person_says_so(files):
    lost = charged(opened(files), range(3)).identity
    for file in files.values():
        file.unlink()
    new = opened(files)
    new.require("", path=Path("round.state"))
    new.require(new.identity, path=Path("round.state"))
    with pytest.raises(PrivacyError, match=rf"round\.state: .* another ledger .*--witness .* --accept {lost}$"):
        new.require(lost, path=Path("round.state"))
    with pytest.raises(PrivacyError, match="32 digits"):
        accept_ledger(files["path"], "all of them", witness=files["witness"])
    accept_ledger(files["path"], lost, witness=files["witness"])
    new.require(lost, path=Path("round.state"))
    opened(files).require(lost, path=Path("round.state"))
