"""The command line: help that fits, exit codes, answers for people and for programs, and pipes that break."""

import os
import re
import subprocess
import warnings
from pathlib import Path

import pytest
from laboratory import ended, start, strict_json, the_run
from typer.main import get_command

from foltr.lab.figures import figures

with warnings.catch_warnings():  # the newest click gives up names that typer still imports
    warnings.simplefilter("ignore", DeprecationWarning)
    from foltr.cli.main import app

COMMANDS = [
    (),
    ("run",),
    ("reproduce",),
    ("report",),
    ("bench",),
    ("demo",),
    ("data",),
    ("data", "list"),
    ("data", "show"),
    ("data", "add"),
    ("privacy",),
    ("privacy", "card"),
    ("privacy", "plan"),
    ("privacy", "audit"),
    ("privacy", "promise"),
    ("privacy", "ledger"),
]


def every_command(group=None, words=()):
    """(words, click command) of all commands, groups left out."""
    group = get_command(app) if group is None else group
    for name, one in group.commands.items():
        if hasattr(one, "commands"):
            yield from every_command(one, (*words, name))
        else:
            yield (*words, name), one


# --- help and exit codes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(["foltr", *words]))
def test_help_fits_eighty_columns(words, command):
    answer = command(*words, "--help")
    assert answer.code == 0
    assert answer.err == ""
    assert "Usage: foltr" in answer.out
    assert max(map(len, answer.out.splitlines())) <= 80


def test_every_argument_and_option_has_a_help_text_that_is_shown(command):
    """click 8.5 clears the help texts of arguments that typer sets; the command line sets them again."""
    found = list(every_command())
    assert len(found) > 30
    for words, one in found:
        answer = command(*words, "--help")
        assert max(map(len, answer.out.splitlines())) <= 80
        shown = " ".join(answer.out.replace("│", " ").split())
        for parameter in one.params:
            explained = getattr(parameter, "help", None)
            assert explained, f"foltr {' '.join(words)}: {parameter.name} is not explained"
            assert explained.split()[0] in shown
            if parameter.param_type_name == "argument":
                assert " ".join(explained.split()) in shown, f"foltr {' '.join(words)}: {parameter.name}"


@pytest.mark.parametrize("words", [(), ("data",), ("privacy",)], ids=["foltr", "foltr data", "foltr privacy"])
def test_a_call_without_a_command_shows_what_there_is(words, command):
    answer = command(*words)
    assert answer.code == 2
    assert "Commands" in answer.out + answer.err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("dance",), "'dance'"),
        (("data", "dance"), "'dance'"),
        (("run",), "SPEC"),
        (("run", "a.toml", "b.toml"), "b.toml"),
        (("run", "a.toml", "--joobs", "2"), "--joobs"),
        (("report",), "RUNS"),
        (("data", "add", "mine"), "PATH"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_call_that_makes_no_sense_is_exit_code_2(words, named, command):
    answer = command(*words)
    assert answer.code == 2
    assert answer.out == ""
    assert named in answer.err
    assert "Traceback" not in answer.err


def test_a_failure_is_one_message_whatever_is_in_it(command):
    """Words in brackets are no markup, and a message that is longer than a line is not torn apart."""
    name = "[bold]" + "x" * 100 + ".toml"
    answer = command("run", name)
    assert answer.code == 2
    assert answer.err == f"foltr: {name}: there is no such spec file\n"


def test_too_little_memory_is_told_without_a_traceback(command, tiny, monkeypatch):
    def starved(*_, **__):
        raise MemoryError("Unable to allocate 8.00 TiB")

    monkeypatch.setattr("foltr.lab.runs.progress.prepare", starved)
    answer = command("run", tiny)
    assert answer.code == 1
    assert answer.err.startswith("foltr: not enough memory (Unable to allocate 8.00 TiB); use fewer clients")


@pytest.mark.parametrize("kind", ["pdgd", "foltr-es"])
def test_a_ranker_that_diverges_is_reported_and_nothing_is_stored(kind, command, tiny, tmp_path):
    out = tmp_path / "away"
    answer = command("run", tiny, "--set", f"learner={{kind='{kind}', learning_rate=1e308}}", "--out", out, "--jobs", 1)
    assert answer.code == 2
    assert "the ranker's parameters are not finite; lower learner.learning_rate (it is 1e+308)" in answer.err
    assert not list(out.rglob("*.npz"))


def test_a_fault_of_the_program_itself_is_not_hidden(command, tiny, monkeypatch):
    def faulty(*_, **__):
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr("foltr.lab.runs.progress.prepare", faulty)
    with pytest.raises(ZeroDivisionError):
        command("run", tiny)


@pytest.mark.parametrize("arguments", [("data", "list"), ("data", "list", "--json"), ("--help",)], ids=" ".join)
def test_a_reader_that_goes_away_is_no_fault(arguments):
    reading, writing = os.pipe()
    os.close(reading)
    answer = ended(start(*arguments, stdout=writing))
    os.close(writing)
    assert answer.code == 1
    assert answer.err == ""


def test_a_reader_of_one_line_gets_it():
    listing = start("data", "list")
    first = subprocess.run(["head", "-1"], stdin=listing.stdout, capture_output=True, text=True).stdout
    assert first.split() == ["name", "queries", "documents", "features", "grades", "here"]
    assert "Traceback" not in ended(listing).err


# --- foltr reproduce ------------------------------------------------------------------------------------------------

FIGURE = """\
title = "Made up: careful users"
question = "Do careful users teach better?"
source = "nobody, nowhere"

[figure]
metric = "offline_ndcg@10"
metrics = ["offline_ndcg@10"]
columns = "data.name"
lines = ["users.clicks"]
x = "rounds"

[base]
federation = { clients = 8, rounds = 30 }

[[part]]
part = "all"
[part.sweep]
"data" = [{ name = "synthetic-mq2007@60" }, { name = "yahoo" }]
"users.clicks" = ["navigational", "informational"]

[[expected]]
source = "made up"
where = { "users.clicks" = "navigational" }
metric = "offline_ndcg@10"
tolerance = "0.9"
by = ["data.name"]
rows = [["synthetic-mq2007@60", 0.5], ["yahoo", 0.4]]

[[claim]]
text = "Careful users teach better"
kind = "greater"
metric = "offline_ndcg@10"
margin = -1.0
left = { "users.clicks" = "navigational" }
right = { "users.clicks" = "informational" }
by = ["data.name"]

[[comparison]]
title = "Careful users against careless ones"
metric = "offline_ndcg@10"
left = { "users.clicks" = "navigational" }
right = { "users.clicks" = "informational" }
rows = [{ name = "synthetic", left = {}, right = {} }]
"""


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    home = tmp_path / "figures"
    (home / "made-up").mkdir(parents=True)
    (home / "made-up" / "fig1.toml").write_text(FIGURE, encoding="utf-8")
    monkeypatch.setattr(figures, "HOME", home)


def test_reproduce_lists_every_figure_with_its_title(command):
    answer = command("reproduce", "--list")
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert [line.split()[0] for line in lines if re.match(r"[a-z-]+/", line)] == figures.figure_ids()
    assert max(map(len, lines)) <= 80
    listed = strict_json(command("reproduce", "--list", "--json").out)["figures"]
    assert [one["id"] for one in listed] == figures.figure_ids()


def test_reproduce_of_nothing_lists_them_and_asks_which(command):
    answer = command("reproduce")
    assert answer.code == 2
    assert "fpdgd/table2" in answer.out
    assert "name a figure, such as: foltr reproduce fpdgd/table2 --quick" in answer.err


def test_reproduce_of_an_unknown_figure_lists_the_known_ones(refused):
    message = refused("reproduce", "fpdgd/fig9")
    for name in figures.figure_ids():
        assert name in message


@pytest.mark.usefixtures("made_up")
def test_reproduce_answers_with_a_verdict_for_every_number(command, tmp_path):
    answer = command("reproduce", "made-up/fig1", "--folds", "1-2", "--jobs", 1, "--json")
    assert answer.code == 0, answer.err
    reported = strict_json(answer.out)
    assert (reported["id"], reported["quick"], reported["missing"]) == ("made-up/fig1", False, ["yahoo"])
    here, gone = reported["verdicts"]
    assert {"what", "published", "ours", "sd", "runs", "data", "verdict"} <= set(here)
    assert (here["verdict"], here["runs"], here["data"]) == ("reproduced", 2, "synthetic-mq2007@60 (synthetic)")
    assert (gone["verdict"], gone["ours"]) == ("data missing", None)
    assert [claim["holds"] for claim in reported["claims"]] == [True]
    assert reported["comparisons"][0]["rows"][0]["runs"] == 2
    assert len(reported["results"]) == 2
    page = (tmp_path / reported["page"]).read_text(encoding="utf-8")
    assert "Made up: careful users" in page


@pytest.mark.usefixtures("made_up")
def test_the_quick_form_says_so_and_judges_nothing(command):
    answer = command("reproduce", "made-up/fig1", "--quick", "--jobs", 1)
    assert answer.code == 0, answer.err
    assert figures.QUICK in " ".join(answer.out.split())
    assert "judged" in answer.out
    assert "reproduced" not in answer.out
    assert "published" not in answer.out
    assert "±" not in answer.out  # one run has no standard deviation
    reported = strict_json(command("reproduce", "made-up/fig1", "--quick", "--json").out)
    assert {row["verdict"] for row in reported["verdicts"]} == {"quick form: not judged", "data missing"}
    assert [claim["holds"] for claim in reported["claims"]] == [None]
    assert reported["comparisons"][0]["rows"][0]["unit"] == "queries"  # one run has as many
    assert {(row["published"], row["sd"]) for row in reported["verdicts"]} == {(None, None)}
    page = Path(reported["page"]).read_text()
    here = sum(row["ours"] is not None for row in reported["verdicts"])
    assert f"{here} without verdict (quick form: not judged)" in page
    assert "0 of " not in page
    assert "expected</th>" not in page


@pytest.mark.usefixtures("made_up")
def test_a_part_of_a_figure_can_be_reproduced_alone(command):
    arguments = ("made-up/fig1", "--quick", "--jobs", 1, "--json")
    reported = strict_json(command("reproduce", *arguments, "--only", "users.clicks=informational", "--seeds", 1).out)
    assert len(reported["results"]) == 1
    assert reported["claims"][0]["holds"] is None
    page, chosen = Path(reported["page"]).read_text(), "--only users.clicks=informational --seeds 1"
    assert f"quick form of <code>made-up/fig1</code>, but <code>{chosen}</code>" in page
    assert f"foltr reproduce made-up/fig1 --quick {chosen}<" in page


@pytest.mark.usefixtures("made_up")
def test_a_claim_of_a_figure_can_be_decided_alone(command):
    falling = 'id = "falls"\ntext = "Their ranker falls"\nkind = "falls"\nmetric = "offline_ndcg@10"\n'
    falling += 'left = { "users.clicks" = "informational" }\n'
    text = FIGURE.replace("[[claim]]", f'[[claim]]\n{falling}\n[[claim]]\nid = "careful-teach-better"', 1)
    (figures.HOME / "made-up" / "fig1.toml").write_text(text, encoding="utf-8")
    arguments = ("made-up/fig1", "--jobs", 1, "--folds", "1", "--json", "--claim", "falls")
    reported = strict_json(command("reproduce", *arguments).out)
    assert len(reported["results"]) == 1
    decided, left_out = reported["claims"]
    assert decided["holds"] is not None
    assert (left_out["holds"], left_out["evidence"][:29]) == (None, "left out by --claim falls --f")
    assert "foltr reproduce made-up/fig1 --claim falls --folds 1<" in Path(reported["page"]).read_text()


@pytest.mark.usefixtures("made_up")
def test_a_figure_whose_data_is_not_here_is_told(refused):
    message = refused("reproduce", "made-up/fig1", "--only", "data.name=yahoo")
    assert message == "made-up/fig1 needs yahoo, which are not on this machine: foltr data show NAME"


@pytest.mark.data
def test_a_real_figure_in_its_quick_form_has_verdicts_on_real_data(real_data, command):
    assert real_data.is_dir()
    answer = command(
        "reproduce", "fpdgd/table2", "--quick", "--jobs", 1, "--json",
        "--only", "users.clicks=navigational", "--only", "privacy.epsilon=10.0",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    reported = strict_json(answer.out)
    assert reported["missing"] == ["mslr-web10k"]
    (row,) = [row for row in reported["verdicts"] if row["ours"] is not None]
    assert (row["published"], row["sd"], row["runs"]) == (None, None, 1)
    assert row["verdict"] == "quick form: not judged"
    assert "sample" in row["data"]


# --- foltr report ---------------------------------------------------------------------------------------------------


def test_report_of_a_real_run_is_a_page_beside_it(command, copied):
    answer = command("report", the_run(copied))
    assert answer.code == 0, answer.err
    page = the_run(copied) / "report.html"
    assert answer.out == f"{page}\n"
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    for word in ("tiny", "navigational", "informational", "SYNTHETIC".lower(), "nDCG@10", "numba"):
        assert word in text


def test_report_of_two_runs_is_one_page_where_it_is_wanted(command, copied, tmp_path):
    answer = command("report", the_run(copied), the_run(copied), "--to", tmp_path / "both.html")
    assert answer.code == 0, answer.err
    assert (tmp_path / "both.html").is_file()
    assert not (the_run(copied) / "report.html").exists()


def test_report_on_a_folder_that_is_no_run_says_so_and_writes_nothing(command, tmp_path):
    answer = command("report", tmp_path)
    assert answer.code == 1
    assert answer.out == ""
    assert f"foltr: {tmp_path}: not a finished run" in answer.err
    assert not (tmp_path / "report.html").exists()


def half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def other_json(path):
    path.write_text("[1, 2]")


DAMAGES = {
    "manifest cut off": ("manifest.json", half),
    "rows cut off": ("rows.parquet", half),
    "another JSON": ("manifest.json", other_json),
}


@pytest.mark.parametrize(("name", "damage"), DAMAGES.values(), ids=DAMAGES)
def test_report_on_a_damaged_run_names_it(name, damage, command, copied):
    damage(the_run(copied) / name)
    answer = command("report", the_run(copied))
    assert answer.code == 1
    assert f"foltr: {the_run(copied)}: " in answer.err
    assert "Traceback" not in answer.err
    assert not (the_run(copied) / "report.html").exists()


@pytest.mark.slow
def test_the_tour_of_the_methods_ends_with_a_page(command, tmp_path):
    answer = command("demo", "lab", "--out", tmp_path)
    assert answer.code == 0, answer.err
    assert list(tmp_path.rglob("report.html"))
