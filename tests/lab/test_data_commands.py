"""`foltr data`: what is here, what is added, what is refused."""

import pytest
from laboratory import own_data, strict_json


def test_data_list_says_which_collections_are_here(command):
    answer = command("data", "list")
    assert answer.code == 0
    assert answer.err == ""
    lines = {line.split()[0]: line for line in answer.out.splitlines() if line[:1].strip()}
    assert "built in" in lines["synthetic-mq2007"]
    assert " no: " in lines["yahoo"]
    assert max(map(len, answer.out.splitlines())) <= 80


def test_data_list_in_json_has_the_published_sizes(command):
    listed = {one["name"]: one for one in strict_json(command("data", "list", "--json").out)}
    assert listed["mq2007"].items() >= {"queries": 1692, "documents": 69623, "features": 46, "grades": 3}.items()
    assert listed["mq2007"]["where"] is None
    assert listed["synthetic-mslr"]["where"] == "built in"


def test_data_add_and_show_tell_what_is_there(command, tmp_path):
    folder = own_data(tmp_path / "mine", 4, [0, 0])
    added = command("data", "add", "mine", folder)
    assert (added.code, added.err) == (0, "")
    assert added.out == f"mine: 1 fold of 6 queries, 18 documents, 3 features in {folder}\n"
    shown = command("data", "show", "mine")
    assert shown.code == 0
    assert "own data; 3 features, 3 grades" in shown.out
    assert "fold 1 train           2 queries        6 documents" in shown.out
    listed = {one["name"]: one for one in strict_json(command("data", "list", "--json").out)}
    assert listed["mine"]["where"] == str(folder)


def test_data_show_in_json_counts_documents_and_grades(command, tmp_path):
    command("data", "add", "mine", own_data(tmp_path / "mine", 4, [0, 0]))
    about = strict_json(command("data", "show", "mine", "--json").out)
    assert (about["name"], about["features"], about["grades"]) == ("mine", 3, 3)
    train = about["folds"]["1"]["train"]
    assert (train["queries"], train["documents"], train["without_relevant"]) == (2, 6, 1)
    assert train["grade_counts"] == [4, 1, 1]  # 0 1 2 0, and 0 0
    assert train["files"] == [str(tmp_path / "mine" / "train.txt")]
    assert len(about["checksums"]["1"]) == 64


def test_texts_are_added_and_shown(command, tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text('{"_id": "a", "text": "one"}\n{"_id": "b", "text": "two"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "one"}\n')
    (folder / "qrels.tsv").write_text("q\ta\t2\nq\tb\t-1\n")
    added = command("data", "add", "mine", folder)
    assert (added.code, added.out) == (0, f"mine: texts, 2 documents, 1 queries, 1 judgments in {folder}\n")
    shown = command("data", "show", "mine").out
    assert "judged queries: all 1" in shown
    assert "1 judgments, of grade 0, 1, ...: 0 0 1" in shown
    assert "left out: 1 of -1 (not judged), 0 of missing" in shown
    about = strict_json(command("data", "show", "mine", "--json").out)
    assert (about["documents"], about["unjudged"], about["grade_counts"]) == (2, 1, [0, 0, 1])
    listed = {one["name"]: one for one in strict_json(command("data", "list", "--json").out)}
    assert (listed["mine"]["where"], listed["mine"]["note"]) == (str(folder), "texts, BEIR")


def test_data_show_of_a_built_in_collection_says_that_it_is_synthetic(command):
    answer = command("data", "show", "synthetic-mq2007@60")
    assert answer.code == 0
    assert "synthetic-mq2007@60: synthetic; 46 features, 3 grades" in answer.out


@pytest.mark.parametrize(
    ("arguments", "pieces"),
    [
        (("data", "show", "mq2009"), ["no data set 'mq2009'", "mq2007, mq2008", "foltr data add mq2009 PATH"]),
        (("data", "show", "yahoo"), ["'yahoo' is not on this machine", "Webscope", "FOLTR_DATA"]),
        (("data", "add", "mine", "nowhere"), ["nowhere: there is no such folder"]),
        (("data", "add", "mine", "."), ["none of the known layouts is there", "S1.txt"]),
        (("data", "add", "synthetic-mslr", "."), ["belongs to a built-in collection"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_data_that_cannot_be_had_is_told_with_what_to_do(arguments, pieces, refused):
    message = refused(*arguments)
    for piece in pieces:
        assert piece in message


def test_a_name_that_cannot_be_one_is_refused(command, tmp_path):
    answer = command("data", "add", "Mine!", own_data(tmp_path / "mine", 4))
    assert answer.code == 2
    assert "the name 'Mine!' is not allowed" in answer.err
    assert not (tmp_path / "config").exists()
