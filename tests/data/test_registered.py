"""Features and texts that were added by name."""

import pytest

from foltr.errors import DataError, DataMissing
from foltr.lab.data import catalog, corpora, registered


def test_texts_are_added_listed_and_refused_as_features(tmp_path):
    (tmp_path / "a.txt").write_text("a text")
    (tmp_path / "b.md").write_text("another")
    added = registered.add("notes", tmp_path)
    assert (added.ids, added.query_ids) == (("a.txt", "b.md"), ())
    assert corpora.load_corpus("notes").bodies == ("a text", "another")
    row = next(row for row in registered.listing() if row.name == "notes")
    assert (row.where, row.note) == (str(tmp_path), "texts, text files")
    with pytest.raises(DataMissing, match="or has texts, which only specs with a table `silo` use"):
        catalog.load("notes")


@pytest.mark.parametrize(
    ("file", "content", "ids"),
    [
        ("mine.jsonl", '{"_id": "a", "text": "x"}\n{"_id": "b", "text": "y"}\n', ("a", "b")),
        ("mine.trec", "<DOC><DOCNO>1</DOCNO>x</DOC>\n", ("1",)),
    ],
)
def test_one_file_of_documents_is_a_corpus_without_queries(tmp_path, file, content, ids):
    (tmp_path / file).write_text(content)
    assert registered.add("mine", tmp_path / file).ids == ids
    assert corpora.load_corpus("mine").ids == ids
    assert corpora.describe("mine").parts == {}


def test_features_with_a_readme_are_features_and_half_of_them_are_no_texts(tmp_path):
    (tmp_path / "whole").mkdir()
    for part in range(1, 6):
        (tmp_path / "whole" / f"S{part}.txt").write_text(f"1 qid:{part} 1:0.5\n")
    (tmp_path / "whole" / "README.txt").write_text("About these files")
    assert list(registered.add("whole", tmp_path / "whole").folds) == [1, 2, 3, 4, 5]
    assert next(row for row in registered.listing() if row.name == "whole").note.startswith("five parts")
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "S1.txt").write_text("1 qid:1 1:0.5\n")
    with pytest.raises(DataError, match="none of the known layouts is there"):
        registered.add("half", tmp_path / "half")


def test_judgments_without_queries_and_built_in_names_are_refused(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "x"}\n')
    with pytest.raises(DataError, match="belongs to a built-in corpus"):
        registered.add("docstrings", tmp_path)
    (tmp_path / "qrels.tsv").write_text("q\ta\t1\n")
    with pytest.raises(DataError, match="judgments without queries"):
        registered.add("mine", tmp_path)
    with pytest.raises(DataError, match="none of the known layouts"):
        registered.add("mq2007", tmp_path)
