"""`foltr node` in processes of its own: output, exit codes, hostile names, and a choice that survives kill -9."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import foltr.node


def text(said):
    return said.stdout.decode()


def test_search_prints_rank_title_path_date_passage_and_reason(foltr_node, library):
    said = foltr_node("search", "thread", "wait")
    assert said.returncode == 0, said.stderr
    lines = text(said).splitlines()
    assert lines[0].startswith(" 1  ")
    assert lines[0].endswith("2020-09-13")
    assert "/docs/" in lines[1]
    assert "thread" in "".join(lines[2:5]).lower()
    assert any("words" in line or "word is" in line for line in lines[2:6])
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in text(said)


def test_json_is_one_object_and_the_same_bytes_twice(foltr_node):
    first, second = (foltr_node("search", "--json", "thread wait") for _ in range(2))
    assert first.stdout == second.stdout
    assert len(json.loads(first.stdout)["rows"]) == 10
    assert first.stderr == b""


def test_minus_and_unknown_fields_are_words_of_the_query(foltr_node):
    found = json.loads(foltr_node("search", "--json", "thread", "-wait", "size:big").stdout)
    assert found["query"] == "thread -wait size:big"
    assert found["rows"]


def test_explain_adds_up(foltr_node):
    found = json.loads(foltr_node("search", "--json", "--explain", "--limit", "3", "thread wait").stdout)
    assert len(found["rows"]) == 3
    for row in found["rows"]:
        assert sum(one["points"] for one in row["contributions"]) == pytest.approx(row["score"], abs=1e-9)
    shown = text(foltr_node("search", "--explain", "thread"))
    assert "score" in shown
    assert "words anywhere, rare ones counting more" in shown
    assert "idfcov" not in shown


def test_open_prints_the_path_and_remembers_the_choice(foltr_node):
    rows = json.loads(foltr_node("search", "--json", "thread wait").stdout)["rows"]
    said = foltr_node("open", "8", "--print")
    assert said.returncode == 0, said.stderr
    assert text(said).strip() == rows[7]["path"]
    again = json.loads(foltr_node("search", "--json", "thread w").stdout)["rows"][0]
    assert again["id"] == rows[7]["id"]
    assert again["remembered"]
    assert "thread wait" in text(foltr_node("history"))
    foltr_node("search", "thread wait")
    assert foltr_node("forget", "--choice", "1").returncode == 0
    assert json.loads(foltr_node("search", "--json", "thread wait").stdout)["rows"] == rows


def test_open_without_a_search_or_beyond_the_list(foltr_node, tmp_path):
    said = foltr_node("open", "1", home=tmp_path / "new")
    assert said.returncode == 2
    assert b"search first" in said.stderr
    foltr_node("search", "thread")
    said = foltr_node("open", "99")
    assert said.returncode == 2
    assert b"99" in said.stderr
    assert foltr_node("open", "0").returncode == 2


@pytest.mark.parametrize("search", [("qqqxzv", "wxyzzq"), ("thread wait", "--offset", "900")])
def test_open_after_a_search_that_shows_nothing_opens_nothing_of_an_earlier_one(search, foltr_node):
    """A search without a result, and a page behind the end of a list."""
    foltr_node("search", "thread wait")
    assert json.loads(foltr_node("search", "--json", *search).stdout)["rows"] == []
    said = foltr_node("open", "1", "--print")
    assert said.returncode == 2
    assert said.stdout == b""
    assert b"search" in said.stderr


def test_a_search_without_a_result_is_in_the_history(foltr_node):
    foltr_node("search", "qqqxzv")
    first = json.loads(foltr_node("history", "--json").stdout)["searches"][0]
    assert (first["query"], first["documents"], first["choices"]) == ("qqqxzv", [], [])
    assert "nothing found" in text(foltr_node("history"))
    assert foltr_node("learn", "--now").returncode == 0  # nothing is learned from it


def test_open_starts_the_desktops_program(foltr_node, opened):
    rows = json.loads(foltr_node("search", "--json", "thread wait").stdout)["rows"]
    assert foltr_node("open", "1").returncode == 0
    assert opened() == rows[0]["path"]


def test_a_program_that_fails_is_an_error_with_its_exit_code_and_no_choice(foltr_node, opened):
    opened.program("xdg-open", code=3)
    foltr_node("search", "thread wait")
    said = foltr_node("open", "1")
    assert said.returncode == 2
    assert b"exit code 3: no program for this kind of file is installed" in said.stderr
    choices = json.loads(foltr_node("history", "--json").stdout)["searches"][0]["choices"]
    assert [bool(choice["withdrawn"]) for choice in choices] == [True]


def test_a_life_of_a_node(foltr_node, tmp_path):
    home, documents = tmp_path / "life", tmp_path / "life documents"
    documents.mkdir()
    (documents / "tax 2024.md").write_text("# Tax return 2024\n\nWhat to pay.")
    (documents / "notes.txt").write_text("remember the milk")
    assert "foltr node add" in text(foltr_node("init", home=home))
    said = foltr_node("add", documents, home=home)
    assert said.returncode == 0, said.stderr
    assert "2 documents" in text(said)
    status = json.loads(foltr_node("status", "--json", home=home).stdout)
    assert status["states"]["indexed"] == 2
    assert status["roots"] == [str(documents)]
    assert sum(status["states"].values()) == 2
    if sys.platform == "linux" and os.uname().machine in ("x86_64", "aarch64"):
        assert status["confinement"].startswith("an allow list of system calls")
        said = text(foltr_node("status", home=home))
        assert "files were read in processes confined by an allow list of system calls" in said
    assert "indexed" in text(foltr_node("why", documents / "notes.txt", home=home))
    assert "Tax return 2024" in text(foltr_node("search", "tax", home=home))
    (documents / "late.txt").write_text("late tax")
    assert foltr_node("index", home=home).returncode == 0
    assert len(json.loads(foltr_node("search", "--json", "tax", home=home).stdout)["rows"]) == 2
    assert foltr_node("exclude", "late.*", home=home).returncode == 0
    assert "excluded" in text(foltr_node("why", documents / "late.txt", home=home))
    assert len(json.loads(foltr_node("search", "--json", "tax", home=home).stdout)["rows"]) == 1
    assert foltr_node("export", tmp_path / "life.json", home=home).returncode == 0
    assert foltr_node("import", tmp_path / "life.json", home=tmp_path / "second").returncode == 0
    assert foltr_node("learn", home=home).returncode == 0
    assert foltr_node("history", "--delete-all", home=home).returncode == 0
    assert json.loads(foltr_node("history", "--json", home=home).stdout) == {"searches": []}
    assert foltr_node("remove", documents, home=home).returncode == 0
    assert json.loads(foltr_node("search", "--json", "tax", home=home).stdout)["rows"] == []
    assert foltr_node("forget", "--yes", home=home).returncode == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("add", "/does/not/exist"), b"/does/not/exist"),
        (("open", "1000"), b"1000"),
        (("learn", "--back-to", "99"), b"99"),
        (("import", "/does/not/exist.json"), b"/does/not/exist.json"),
        (("history", "--delete-since", "yesterday"), b"YYYY-MM-DD"),
        (("import", "x.json", "--moved", "abc"), b"OLD=NEW"),
    ],
)
def test_a_wrong_call_is_one_message_and_exit_code_2(words, expected, foltr_node):
    foltr_node("search", "thread")
    said = foltr_node(*words)
    assert said.returncode == 2
    assert expected in said.stderr
    assert b"Traceback" not in said.stderr
    assert said.stdout == b""


HOSTILE_NAME = "evil\x1b]0;owned\x07\nname\u202etxt.md"


def test_hostile_names_and_titles_do_not_reach_the_terminal(foltr_node, tmp_path):
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / HOSTILE_NAME).write_text(
        "# Title \x1b[31m\x9b31m\x07 [bold]markup[/bold] :smile: \u202e\n\nunusual \x1b[2J words"
    )
    bad = os.fsencode(str(documents)) + b"/broken\xff\x1b.txt"
    Path(os.fsdecode(bad)).write_bytes(b"unusual words")
    home = tmp_path / "own"
    assert foltr_node("add", documents, home=home).returncode == 0
    for words in (
        ("search", "unusual"),
        ("open", "1", "--print"),
        ("history",),
        ("why", documents / HOSTILE_NAME),
        ("status",),
    ):
        said = foltr_node(*words, home=home)
        assert said.returncode == 0, (words, said.stderr)
        shown = text(said)
        assert all(sign.isprintable() or sign == "\n" for sign in shown), (words, shown)
    shown = text(foltr_node("search", "unusual", home=home))
    assert "\\x1b]0;owned" in shown
    assert "[bold]markup[/bold]" in shown
    rows = json.loads(foltr_node("search", "--json", "unusual", home=home).stdout)["rows"]
    assert len(rows) == 2


CHOOSE = """\
import sys, foltr.node
with foltr.node.open() as node:
    while True:
        results = node.search("thread wait")
        node.choose(results, results.rows[int(sys.argv[1])].id)
        print("chosen", flush=True)
"""


def test_acknowledged_choices_survive_kill_9(home):
    environment = {**os.environ, "FOLTR_NODE_HOME": str(home)}
    acknowledged = 0
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", CHOOSE, "4"], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(5):
            assert process.stdout.readline() == "chosen\n"
            acknowledged += 1
        process.send_signal(signal.SIGKILL)
        acknowledged += process.stdout.read().count("chosen\n")
        process.wait()
        process.stdout.close()
    with foltr.node.open(home) as node:
        choices = [choice for one in node.history(limit=1000) for choice in one.choices]
        assert len(choices) in (acknowledged, acknowledged + 1, acknowledged + 2, acknowledged + 3)
        assert node.search("thread wait").rows[0].remembered


def test_a_choice_that_the_command_acknowledged_survives_kill_9(home, foltr_node):
    environment = {**os.environ, "FOLTR_NODE_HOME": str(home)}
    foltr_node("search", "thread wait")
    for number in range(1, 4):
        command = [sys.executable, "-u", "-m", "foltr", "node", "open", str(number), "--print"]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        path = process.stdout.readline().decode().strip()
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        with foltr.node.open(home) as node:
            assert node.history()[0].choices[-1].document == path
            assert len(node.history()[0].choices) == number


def test_ctrl_c_ends_a_command_with_exit_code_1(foltr_node, tmp_path):
    documents = tmp_path / "documents"
    documents.mkdir()
    for number in range(400):
        (documents / f"{number}.txt").write_text(f"words of document {number}")
    home = tmp_path / "own"
    environment = {**os.environ, "FOLTR_NODE_HOME": str(home)}
    command = [sys.executable, "-m", "foltr", "node", "add", str(documents)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None and not list(home.glob("cache/index*")):
        pass
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (0, 1), errors
    assert b"Traceback" not in errors
    said = foltr_node("index", "--json", home=home)
    assert json.loads(said.stdout)["states"]["indexed"] == 400
