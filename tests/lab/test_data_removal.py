"""`foltr data add` reads what it is given; `foltr data remove` takes back what it did."""

import io
import json
import tracemalloc

import pytest
from laboratory import own_data, strict_json

from foltr.lab.data import letor


def spoiled(folder, part, line):
    """A one-fold collection with one more line in one of its parts."""
    own_data(folder, 4, [0, 1])
    with (folder / f"{part}.txt").open("a") as file:
        file.write(line)
    return folder


@pytest.mark.parametrize("part", ["train", "vali", "test"])
def test_a_feature_number_above_the_limit_is_refused_with_its_file_and_line(part, command, tmp_path):
    folder = spoiled(tmp_path / "mine", part, "1 qid:900 1:0.5 999999999:1\n")
    lines = (folder / f"{part}.txt").read_text().count("\n")
    tracemalloc.start()
    answer = command("data", "add", "mine", folder)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (answer.code, answer.out) == (2, "")
    assert f"{part}.txt:{lines}: feature 999,999,999 is above the limit of 5,000 features" in answer.err
    assert "--max-features" in answer.err
    assert peak < 200e6
    assert "mine" not in [one["name"] for one in strict_json(command("data", "list", "--json").out)]


def test_the_limit_can_be_raised_and_is_remembered(command, tmp_path):
    folder = spoiled(tmp_path / "mine", "train", "1 qid:900 1:0.5 6000:1\n")
    assert "feature 6,000 is above the limit of 5,000" in command("data", "add", "mine", folder).err
    assert command("data", "add", "mine", folder, "--max-features", 6000).code == 0
    assert "6000 features" in command("data", "show", "mine").out
    command("data", "add", "mine", folder, "--max-features", 5999)
    assert "6000 features" in command("data", "show", "mine").out  # what was refused changed nothing


def test_reading_without_a_width_has_the_limit_too(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 qid:1 1:0.5\n" * 10 + "1 qid:2 70000:1\n")
    with pytest.raises(letor.DataError, match=r"a.txt:11: feature 70,000 is above the limit of 5,000"):
        letor.read(str(path), chunk=64)
    assert letor.read(str(path), chunk=64, max_features=70_000).features.shape == (11, 70_000)


@pytest.mark.parametrize(
    ("line", "piece"),
    [
        ("1 qid:900 1:0.5 2:x\n", "expected a number"),
        ("1 qid:900 1:nan\n", "expected a number"),
        ("200 qid:900 1:1\n", "expected a label"),
        ("1 qid:201 1:1\n", "query 201 comes back"),
    ],
)
def test_a_wrong_line_is_found_when_a_collection_is_added(line, piece, refused, tmp_path):
    folder = spoiled(tmp_path / "mine", "test", line)
    before = json.dumps(sorted(map(str, tmp_path.rglob("*"))))
    message = refused("data", "add", "mine", folder)
    assert "test.txt:" in message
    assert piece in message
    assert json.dumps(sorted(map(str, tmp_path.rglob("*")))) == before


@pytest.mark.parametrize("part", ["train", "vali", "test"])
def test_an_empty_part_is_refused_when_a_collection_is_added(part, refused, tmp_path):
    folder = own_data(tmp_path / "mine", 4)
    (folder / f"{part}.txt").write_text("# nothing but a comment\n")
    assert f"{part}.txt: it holds no document" in refused("data", "add", "mine", folder)


@pytest.mark.parametrize("content", ["", '{"_id": "a", "title": " ", "text": ""}\n'])
def test_a_corpus_without_any_text_is_refused(content, refused, tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "corpus.jsonl").write_text(content)
    assert "there is no document" in refused("data", "add", "mine", tmp_path / "texts")


def test_removing_a_data_set_leaves_the_users_files_and_deletes_parsed_copies(command, tmp_path, monkeypatch):
    monkeypatch.setenv("FOLTR_CACHE", str(tmp_path / "cache"))
    folder, other = own_data(tmp_path / "mine", 4), own_data(tmp_path / "other", 5)
    for name, place in (("mine", folder), ("other", other)):
        assert command("data", "add", name, place).code == 0
    content = {path: path.read_bytes() for path in folder.iterdir()}
    assert len(list((tmp_path / "cache" / "data").glob("*/entry.json"))) == 6
    answer = command("data", "remove", "mine", "--yes")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == f"mine: removed, 3 parsed copies deleted; the files in {folder} are as they were\n"
    assert {path: path.read_bytes() for path in folder.iterdir()} == content
    assert len(list((tmp_path / "cache" / "data").glob("*/entry.json"))) == 3
    assert "no data set 'mine'" in command("data", "show", "mine").err
    assert command("data", "show", "other").code == 0


def test_texts_and_data_sets_whose_files_are_gone_can_be_removed(command, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("a text")
    command("data", "add", "notes", tmp_path / "notes")
    (tmp_path / "notes").rename(tmp_path / "elsewhere")
    assert command("data", "remove", "notes", "--yes").code == 0
    assert (tmp_path / "elsewhere" / "a.txt").read_text() == "a text"
    assert "notes" not in command("data", "list").out


def test_a_removal_that_is_not_confirmed_removes_nothing(command, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    command("data", "add", "mine", own_data(tmp_path / "mine", 4))
    assert command("data", "remove", "mine").code == 1
    assert command("data", "show", "mine").code == 0


@pytest.mark.parametrize(
    ("name", "piece"),
    [
        ("mine", "'mine' is not registered"),
        ("mq2007", "'mq2007' was not added by `foltr data add`"),
        ("synthetic-mslr", "was not added"),
    ],
)
def test_a_name_that_was_never_added_cannot_be_removed(name, piece, refused):
    assert piece in refused("data", "remove", name, "--yes")


def test_data_with_one_fold_runs_with_a_spec_that_names_no_folds(command, tmp_path):
    command("data", "add", "mine", own_data(tmp_path / "mine", 4, [0, 1], 3))
    spec = tmp_path / "spec.toml"
    spec.write_text("""data = { name = "mine" }
users = { k = 2 }
federation = { clients = 2, rounds = 2, interactions = 1 }
""")
    answer = command("run", spec, "--jobs", "1", "--json")
    assert answer.code == 0, answer.err
    result = strict_json(answer.out)["results"][0]
    assert result["metrics"]["offline_ndcg@10"]["runs"] == 1
    assert "has no fold 2; there are 1: choose with data.folds" in command("run", spec, "--folds", "1-2").err
