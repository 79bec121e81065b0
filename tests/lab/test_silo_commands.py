"""`foltr silo`: for people and for programs, and what it says to bad input."""

import json
import shutil

import numpy as np
import pytest
from laboratory import strict_json

from foltr.lab.silo.training import TITLES


@pytest.mark.parametrize("words", [(), ("demo",), ("build",), ("query",), ("train",)], ids=" ".join)
def test_help_fits_eighty_columns(words, command):
    answer = command("silo", *words, "--help")
    assert (answer.code, answer.err) == (0, "")
    assert max(map(len, answer.out.splitlines())) <= 80


@pytest.fixture
def texts(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for name, text in (("a.txt", "Fever fever cough"), ("b.txt", "cough"), ("c.md", "rash"), ("empty.txt", "")):
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def built(command, texts, tmp_path):
    """A sketch and its key, under which no two of the words asked for share a cell."""
    sketch, key = tmp_path / "sketch.npz", tmp_path / "key.hex"
    key.write_text(bytes(range(32)).hex())
    answer = command("silo", "build", texts, "--to", sketch, "--key", key)
    assert answer.code == 0, answer.err
    return sketch, key


def test_a_folder_becomes_a_sketch(command, texts, tmp_path):
    sketch, key = tmp_path / "one.npz", tmp_path / "key.hex"
    result = strict_json(command("silo", "build", texts, "--to", sketch, "--key", key, "--json").out)
    assert (result["documents"], result["words"], result["top"], result["new_key"]) == (4, 3, 4, True)
    assert result["bytes"] == sketch.stat().st_size
    assert key.stat().st_mode & 0o077 == 0
    again = strict_json(command("silo", "build", texts, "--to", sketch, "--key", key, "--json").out)
    assert not again["new_key"]


def test_a_word_finds_its_documents_the_best_first(command, built):
    sketch, key = built
    result = strict_json(command("silo", "query", sketch, "FEVER", "--key", key, "--json").out)
    assert result["documents"] == [{"document": "a.txt", "count": 2}]
    answer = command("silo", "query", sketch, "cough", "--key", key)
    assert answer.out.splitlines() == [
        "     1  a.txt",
        "     1  b.txt",
        "An asker learns this list and nothing of other words; the owner learns the word.",
        "Exact counts: epsilon infinite against the asker (unit word, zero-out).",
    ]


def test_a_word_that_nobody_has_finds_nothing(command, built):
    sketch, key = built
    answer = command("silo", "query", sketch, "zebra", "--key", key)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("zebra: nothing found")
    result = strict_json(command("silo", "query", sketch, "zebra", "--key", key, "--json").out)
    assert (result["documents"], result["complete"]) == ([], True)


def test_without_names_documents_have_numbers(command, built):
    sketch, key = built
    sketch.with_name("sketch.npz.names.json").unlink()
    result = strict_json(command("silo", "query", sketch, "rash", "--key", key, "--json").out)
    assert result["documents"] == [{"document": "2", "count": 1}]


def test_names_of_other_documents_are_refused(refused, built):
    sketch, key = built
    sketch.with_name("sketch.npz.names.json").write_text('["a"]')
    assert "does not name the 4 documents" in refused("silo", "query", sketch, "rash", "--key", key)


@pytest.mark.parametrize("kind", ["empty", "absent", "wordless"])
def test_a_folder_without_words_is_refused(kind, refused, tmp_path):
    folder = tmp_path / kind
    if kind != "absent":
        folder.mkdir()
    if kind == "wordless":
        (folder / "a.txt").write_text("... !")
    says = refused("silo", "build", folder, "--to", tmp_path / "one.npz", "--key", tmp_path / "key.hex")
    assert "no text file" in says or "no such folder" in says


def test_more_documents_than_there_are_are_refused(refused, texts, built, tmp_path):
    more = ("--to", tmp_path / "one.npz", "--key", tmp_path / "key.hex", "--top", 5)
    assert "top = 5 of 4 documents; use 1 to 4" in refused("silo", "build", texts, *more)
    assert "use 1 to 4" in refused("silo", "query", built[0], "rash", "--key", built[1], "--top", 5)


def test_another_key_is_refused(command, refused, texts, built, tmp_path):
    other = tmp_path / "other.hex"
    assert command("silo", "build", texts, "--to", tmp_path / "two.npz", "--key", other).code == 0
    assert "is not the key that" in refused("silo", "query", built[0], "rash", "--key", other)
    assert "does not exist" in refused("silo", "query", built[0], "rash", "--key", tmp_path / "none.hex")
    other.write_text("no key")
    assert "holds no key" in refused("silo", "query", built[0], "rash", "--key", other)


def test_a_damaged_sketch_is_refused(refused, built, tmp_path):
    sketch, key = built
    broken = tmp_path / "broken.npz"
    broken.write_bytes(sketch.read_bytes()[:1000])
    assert "is damaged" in refused("silo", "query", broken, "rash", "--key", key)
    assert "does not exist" in refused("silo", "query", tmp_path / "none.npz", "rash", "--key", key)


@pytest.mark.parametrize(
    ("word", "says"), [("two words", "ask for one at a time"), ("?!", "ask for another"), ("the", "stop words")]
)
def test_one_word_at_a_time(word, says, refused, built):
    assert says in refused("silo", "query", built[0], word, "--key", built[1])


def test_an_index_of_other_words_is_refused(refused, built, monkeypatch):
    """Built by a version of the analyser that cut texts into other words."""
    monkeypatch.setattr("foltr.text.analysis.VERSION", 0)
    assert "build the index again" in refused("silo", "query", built[0], "rash", "--key", built[1])


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (["--noise", "some"], "there are none, paper, one_shot"),
        (["--noise", "per_query"], "averaged away by asking again"),
        (["--statistics", "some"], "there are exact, noisy"),
        (["--statistics-epsilon", "0"], "use a number above 0"),
        (["--epsilon", "0"], "use a number above 0"),
        (["--loss", "best"], "there are pointwise"),
        (["--lists", "best"], "there are index, paper, sound, sampled"),
        (["--noise", "paper"], "give --lists sound, paper or sampled too"),
        (["--real-rows", "5"], "give --lists sound, paper or sampled too"),
    ],
)
def test_training_that_cannot_be_is_refused(wrong, says, refused):
    assert says in refused("silo", "train", "docstrings", *wrong)


def test_a_corpus_that_is_not_here_is_refused(refused):
    assert "is not on this machine" in refused("silo", "train", "elsewhere")


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A corpus of two files of the standard library in place of all."""
    from foltr.lab.data import corpora, docstrings

    library = tmp_path / "library"
    library.mkdir()
    source = docstrings.Path(docstrings.sysconfig.get_paths()["stdlib"])
    for name in ("threading", "subprocess", "argparse", "decimal", "datetime", "statistics", "zipfile", "ast"):
        if (source / f"{name}.py").is_file():
            shutil.copy(source / f"{name}.py", library)
    small = docstrings.load_docstrings(queries=60, root=library)
    monkeypatch.setattr(corpora.docstrings, "load_docstrings", lambda: small)


@pytest.mark.usefixtures("small")
def test_the_demo_for_people(command):
    answer = command("silo", "demo", "--queries", 30, "--parties", 2)
    assert answer.code == 0, answer.err
    for part in (
        "Party 1 asks party 2",
        "The server sees",
        "paper",
        "CS-F-LTR",
        "pooled",
        "Local to CS-F-LTR",
        "Allowance: off in this table",
        "A simulation",
    ):
        assert part in answer.out


@pytest.mark.usefixtures("small")
def test_the_demo_for_programs_shows_the_leak_and_every_regime(command):
    result = strict_json(command("silo", "demo", "--queries", 30, "--parties", 2, "--json").out)
    question, training = result["question"], result["training"]
    assert question["server"]["contains_term"] is False
    assert question["server"]["contains_hash"] is False
    assert question["identified"] == question["term"]
    shown = {row["by"]: row for row in question["disclosure"]}
    assert (shown["index"]["recall"], shown["index"]["unasked known"]) == (1, 0)
    assert shown["sampled"]["unasked known"] > 0.3
    assert shown["index"]["kB sent"] < 0.1 * shown["sampled"]["kB sent"]
    assert training["allowance"] == "off"
    assert training["allowances"] > 0
    assert training["mb_sent"] > 0
    assert [one["real_rows"] for one in question["owner"]] == [2, 3, 4, 5]
    kinds = {one["noise"]: one for one in question["noise"] if (one["of"], one["noise"]) != ("index", "one_shot")}
    assert kinds["paper"]["answer"] != kinds["none"]["answer"]
    assert kinds["paper"]["after_the_attack"] == kinds["none"]["after_the_attack"]  # whatever the draw was
    assert [kinds[name]["epsilon"] for name in ("none", "paper")] == ["infinite", "infinite"]
    assert kinds["one_shot"]["epsilon"] == pytest.approx(0.5, rel=0.01)
    assert all(one["same_when_asked_again"] for one in kinds.values())
    assert training["simulation"] is True
    assert list(training["regimes"]) == list(TITLES)
    assert all(len(row["parties"]) == 2 for row in training["regimes"].values())
    assert {one["verdict"] for one in training["changes"]} <= {"gains", "loses", "same"}


@pytest.mark.usefixtures("small")
def test_the_demo_says_the_same_every_time(command):
    first, second = (command("silo", "demo", "--queries", 30, "--parties", 2, "--json").out for _ in range(2))
    assert first == second


@pytest.mark.usefixtures("small")
def test_training_with_one_shot_noise_states_its_epsilon(command):
    more = ("--parties", 2, "--queries", 30, "--noise", "one_shot", "--epsilon", 4)
    result = strict_json(command("silo", "train", "docstrings", *more, "--json").out)
    assert result["epsilon"]["answers"] == pytest.approx(4, rel=0.01)
    assert result["epsilon"]["total"] == result["epsilon"]["statistics"] == "infinite"
    noisy = ("--statistics", "noisy", "--statistics-epsilon", 2)
    result = strict_json(command("silo", "train", "docstrings", *more, *noisy, "--json").out)
    assert result["epsilon"]["total"] == pytest.approx(6, rel=0.01)
    assert (result["epsilon"]["unit"], result["epsilon"]["adjacency"]) == ("word", "zero-out")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"version": 1}, "build the index again with this version of foltr"),
        ({"kind": "rtk", "variant": "sampled"}, "build it again: foltr silo build now writes an index"),
    ],
)
def test_a_file_of_an_earlier_version_is_refused_with_what_to_do(changed, says, built, refused):
    index, key = built
    with np.load(index) as file:
        inside = {name: file[name] for name in file.files}
    header = json.loads(bytes(inside["header"])) | changed
    np.savez(index, **inside | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)})
    assert says in refused("silo", "query", index, "rash", "--key", key)
