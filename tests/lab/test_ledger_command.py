"""`foltr privacy ledger`: what a node released and what it cost; restored, copied and lost ledgers; their repair."""

import math
import shutil

import pytest
from laboratory import strict_json
from scipy.optimize import brentq
from scipy.special import ndtr

from foltr.privacy.calibration import noise_multiplier
from foltr.privacy.events import Event
from foltr.privacy.ledger_file import open_ledger
from foltr.privacy.ledger_repair import inspect_ledger

DELTA = 1e-5
SIGMA = noise_multiplier(1.0, DELTA, 20)
EVENT = Event("gaussian", "l2", 1.0, "l2", SIGMA, noise_contributors=800, present=800, parameters=46, colluders=100)


def epsilon_of(mu, delta=DELTA):
    """Of Gaussian noise (Balle and Wang 2018, theorem 8), with scipy."""
    return brentq(
        lambda target: ndtr(mu / 2 - target / mu) - math.exp(target) * ndtr(-mu / 2 - target / mu) - delta, 0.0, 50.0
    )


@pytest.fixture
def node(tmp_path):
    """Two folders; what a node that released 12 times in two federations leaves in them."""
    folders = tmp_path / "state", tmp_path / "elsewhere"
    for folder in folders:
        folder.mkdir()
    charge(folders, [("ours", round) for round in range(1, 8)] + [("theirs", round) for round in range(3, 8)])
    return folders


def charge(folders, rounds, event=EVENT):
    state, elsewhere = folders
    ledger = open_ledger(state / "ledger", witness=elsewhere / "ledger", delta=DELTA, budget=None)
    for federation, round in rounds:
        ledger.charge(event, federation=federation, round=round)


def restored(folders, tmp_path):
    """The ledger goes back to a backup; five releases were made since."""
    shutil.copy(folders[0] / "ledger", tmp_path / "backup")
    charge(folders, [("ours", round) for round in range(10, 15)])
    shutil.copy(tmp_path / "backup", folders[0] / "ledger")


def contents(folders):
    return [(folder / "ledger").read_bytes() for folder in folders]


def test_a_ledger_for_people(node, command):
    answer = command("privacy", "ledger", node[0], "--witness", node[1])
    assert (answer.code, answer.err) == (0, "")
    assert max(map(len, answer.out.splitlines()[1:])) <= 80  # the first line is a path
    said = " ".join(answer.out.split())
    mu = math.sqrt(12) / SIGMA  # of 800 shares; 100 colluders know their own, whoever is alone does not
    spent, alone = epsilon_of(mu), epsilon_of(mu * math.sqrt(800 / 900))
    for part in (
        "12 releases charged", "Highest round of ours: 7.", "Highest round of theirs: 7.",
        f"whoever gets the ranker {alone:.3g}, a curious server {alone:.3g}",
        f"a malicious server with its colluders {spent:.3g}.", "one node, zero-out", "delta 1e-05",
        "The ledger and its witness agree (record 12).",
    ):  # fmt: skip
        assert part in said


def test_a_ledger_for_programs_and_at_another_delta(node, command):
    answer = command(
        "privacy", "ledger", node[0] / "ledger", "--witness", node[1] / "ledger", "--json", "--delta", 1e-9
    )
    assert (answer.code, answer.err) == (0, "")
    found = strict_json(answer.out)
    assert found["counts"][0]["times"] == 12
    assert found["counts"][0]["event"]["noise"] == pytest.approx(SIGMA)
    assert found["epsilon"]["malicious"] == pytest.approx(epsilon_of(math.sqrt(12) / SIGMA, 1e-9), rel=1e-6)
    assert (found["rounds"], found["records"], found["witnessed"]) == ({"ours": 7, "theirs": 7}, 13, 12)
    assert (found["problem"], found["missing"], found["file"]) == ("", 0, str(node[0] / "ledger"))


def test_an_adversary_whom_an_event_does_not_name_sees_everything(tmp_path, command):
    folders = tmp_path / "a", tmp_path / "b"
    charge(folders, [("ours", 1)], Event("gaussian", "l2", 1.0, "l2", 5.0, against=("recipients",)))
    said = " ".join(command("privacy", "ledger", folders[0], "--witness", folders[1]).out.split())
    assert f"whoever gets the ranker {epsilon_of(1 / 5.0):.3g}, a curious server infinite" in said


def test_looking_changes_neither_file(node, command):
    before = contents(node)
    assert command("privacy", "ledger", node[0], "--witness", node[1]).code == 0
    assert contents(node) == before


def test_a_restored_ledger_is_shown_as_refused_and_repaired(node, command, tmp_path, monkeypatch):
    restored(node, tmp_path)
    before = contents(node)
    call = ("privacy", "ledger", node[0], "--witness", node[1])
    answer = command(*call)
    assert answer.code == 1
    assert "Refused:" in answer.out
    assert "the ledger ends with record 12, its witness saw record 17" in " ".join(answer.out.split())
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda *_: "n")
    assert command(*call, "--repair").code == 1
    assert contents(node) == before
    answer = command(*call, "--repair", "--yes")
    said = " ".join(answer.out.split())
    assert answer.code == 0
    assert "17 releases charged" in said
    assert "Highest round of ours: 14." in said
    assert "Repaired: 5 releases that may be missing." in said
    assert command(*call).code == 0


def test_a_repair_asks_and_says_what_it_will_charge(node, command, tmp_path, monkeypatch):
    restored(node, tmp_path)
    asked = []
    monkeypatch.setattr("typer.confirm", lambda words, abort: asked.append((words, abort)))
    assert command("privacy", "ledger", node[0], "--witness", node[1], "--repair").code == 0
    assert asked == [("Charge 5 releases, at the worst event ever charged?", True)]
    assert inspect_ledger(node[0] / "ledger", witness=node[1] / "ledger").counts == {EVENT: 17}


def test_a_repair_of_what_is_whole_changes_nothing(node, command):
    before = contents(node)
    answer = command("privacy", "ledger", node[0], "--witness", node[1], "--repair", "--yes", "--json")
    assert answer.code == 0
    assert "charged" not in strict_json(answer.out)
    assert contents(node) == before


def test_a_copy_that_was_used_beside_the_original(node, command, tmp_path):
    """Both go on from the same backup to the same number; the witness saw the other one."""
    seen = (node[1] / "ledger").read_bytes()
    shutil.copytree(node[0], tmp_path / "copy")
    charge(node, [("ours", 20)])
    newer = (node[1] / "ledger").read_bytes()
    (node[1] / "ledger").write_bytes(seen)
    charge((tmp_path / "copy", node[1]), [("ours", 21)])
    (node[1] / "ledger").write_bytes(newer)
    answer = command("privacy", "ledger", tmp_path / "copy", "--witness", node[1])
    assert answer.code == 1
    assert "a copy of the ledger was used elsewhere" in " ".join(answer.out.split())


def test_a_lost_ledger_is_begun_again_from_its_witness(node, command):
    (node[0] / "ledger").unlink()
    call = ("privacy", "ledger", node[0], "--witness", node[1])
    answer = command(*call)
    assert answer.code == 1
    assert "an older ledger was restored" in " ".join(answer.out.split())
    answer = command(*call, "--repair", "--yes")
    assert answer.code == 0
    assert "12 releases charged" in answer.out


def test_a_damaged_ledger_has_no_cost_and_is_set_aside(node, command, monkeypatch):
    whole = (node[0] / "ledger").read_bytes()
    (node[0] / "ledger").write_bytes(whole.replace(b'"ours":3', b'"ours":0'))
    call = ("privacy", "ledger", node[0], "--witness", node[1])
    answer = command(*call, "--json")
    assert answer.code == 1
    found = strict_json(answer.out)
    assert (found["records"], found["epsilon"]) == (None, None)
    assert "this is no crash" in found["problem"]
    asked = []
    monkeypatch.setattr("typer.confirm", lambda words, abort: asked.append(words))
    answer = command(*call, "--repair")
    assert answer.code == 0
    assert "The damaged file will be renamed." in answer.out
    assert asked == ["Charge 12 releases, at the worst event ever charged?"]
    assert len(list(node[0].glob("ledger.damaged-*"))) == 1


def test_a_damaged_witness_is_named_and_not_written_over(node, command, refused):
    (node[1] / "ledger").write_bytes(b"{}")
    call = ("privacy", "ledger", node[0], "--witness", node[1])
    answer = command(*call)
    assert answer.code == 1
    assert "12 releases charged" in answer.out
    assert "not the witness of a ledger, or damaged" in " ".join(answer.out.split())
    assert "move it away" in refused(*call, "--repair", "--yes")
    assert (node[1] / "ledger").read_bytes() == b"{}"


def test_a_lost_witness_asks_how_many_releases_may_be_missing(node, command, refused):
    (node[1] / "ledger").unlink()
    call = ("privacy", "ledger", node[0], "--witness", node[1])
    answer = command(*call)
    assert answer.code == 1
    assert "is missing; releases would be forgotten" in " ".join(answer.out.split())
    assert "--missing how many releases may be missing" in refused(*call, "--repair", "--yes")
    answer = command(*call, "--repair", "--missing", 3, "--yes")
    assert answer.code == 0
    assert "15 releases charged" in answer.out


def test_a_ledger_that_has_a_witness_is_not_judged_without_it(node, command):
    answer = command("privacy", "ledger", node[0])
    assert answer.code == 1
    assert "this ledger has a witness" in " ".join(answer.out.split())
    assert "12 releases charged" in answer.out


def test_the_budget_is_shown_and_changed_after_showing_what_was_spent(node, command, monkeypatch):
    call = ("privacy", "ledger", node[0], "--witness", node[1])
    assert "Budget of all federations together: none." in command(*call).out
    asked = []
    monkeypatch.setattr("typer.confirm", lambda words, abort: asked.append((words, abort)))
    answer = command(*call, "--budget", 1.5, "--delta", 1e-6)
    assert asked == [("Change the budget from none to epsilon 1.5 at delta 1e-06?", True)]
    said = " ".join(answer.out.split())
    assert f"Spent: epsilon {epsilon_of(math.sqrt(12) / SIGMA, 1e-6):.3g} at delta 1e-06" in said
    assert "Budget of all federations together: epsilon 1.5 at delta 1e-06." in said
    found = strict_json(command(*call, "--json").out)
    assert found["limit"] == {"budget": 1.5, "delta": 1e-6, "against": "malicious"}


def test_a_budget_is_changed_by_nobody_who_says_no(node, command, monkeypatch):
    before = contents(node)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda *_: "n")
    for decision in (("--budget", 9), ("--accept", "0" * 32)):
        assert command("privacy", "ledger", node[0], "--witness", node[1], *decision).code == 1
    assert contents(node) == before


def test_a_new_ledger_takes_the_place_of_a_lost_one_by_command(node, command):
    lost = inspect_ledger(node[0] / "ledger", witness=node[1] / "ledger").identity
    for folder in node:
        (folder / "ledger").unlink()
    charge(node, [])
    assert command("privacy", "ledger", node[0], "--witness", node[1], "--accept", lost, "--yes").code == 0
    ledger = open_ledger(node[0] / "ledger", witness=node[1] / "ledger", delta=DELTA, budget=None)
    ledger.require(lost, path=node[0])


def test_a_refused_ledger_is_repaired_before_its_budget_changes(node, refused, tmp_path):
    restored(node, tmp_path)
    before = contents(node)
    call = ("privacy", "ledger", node[0], "--witness", node[1], "--budget", 1, "--yes")
    assert "repair the ledger first" in refused(*call)
    assert contents(node) == before


def test_a_ledger_without_a_witness_says_what_is_not_noticed(tmp_path, command):
    (tmp_path / "state").mkdir()
    open_ledger(tmp_path / "state" / "ledger", delta=DELTA, budget=None)
    answer = command("privacy", "ledger", tmp_path / "state")
    assert answer.code == 0
    assert "No witness: a ledger that was restored from a backup is not noticed." in answer.out


@pytest.mark.parametrize(
    ("damage", "says"),
    [(lambda whole: whole[:-30], "the last record is torn"), (None, "the witness is behind")],
    ids=["torn", "behind"],
)
def test_what_a_crash_leaves_is_no_refusal(node, command, damage, says):
    seen = (node[1] / "ledger").read_bytes()
    charge(node, [("ours", 30)])
    (node[1] / "ledger").write_bytes(seen)
    if damage:
        (node[0] / "ledger").write_bytes(damage((node[0] / "ledger").read_bytes()))
    answer = command("privacy", "ledger", node[0], "--witness", node[1])
    assert answer.code == 0
    assert says in answer.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere/ledger"], "there is no such folder"),
        (["."], "there is no ledger; name the folder that has the file ledger"),
        (["state", "--delta", "2"], "between 0 and 1"),
        (["state", "--repair", "--yes"], "--repair needs --witness"),
        (["state", "--yes"], "--yes goes with --repair, --budget or --accept"),
        (["state", "--missing", "3"], "--missing goes with --repair"),
        (["state", "--budget", "-1", "--yes"], "use a finite epsilon of 0 or more"),
        (["state", "--budget", "inf", "--yes"], "use a finite epsilon of 0 or more"),
        (["state", "--budget", "1", "--json"], "add --yes"),
        (["state", "--accept", "mine", "--yes"], "32 digits"),
        (["state", "--witness", "elsewhere", "--repair", "--json"], "add --yes"),
        (["state", "--witness", "state"], "belongs in another folder"),
    ],
    ids=str,
)
def test_wrong_calls_are_refused(node, refused, arguments, says):
    assert says in refused("privacy", "ledger", *arguments)


def test_a_negative_number_of_releases_is_a_wrong_call(node, command):
    assert command("privacy", "ledger", node[0], "--repair", "--missing", "-1").code == 2
