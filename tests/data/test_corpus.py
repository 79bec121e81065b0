"""Texts, queries and judgments: from files of every kind, and what is wrong with them."""

import lzma

import numpy as np
import pytest

from foltr.errors import DataError, DataMissing
from foltr.lab.data import corpora
from foltr.lab.data import corpus_formats as formats
from foltr.text.corpus import Document, Judgment, Place, Query, assemble, grade_of, text_folder

HERE = Place("test.txt", 1)
DOCUMENTS = '{"_id": "a", "title": "T", "text": "one two"}\n\n{"_id": 7, "text": "three", "metadata": {}}\n'
QUERIES = '{"_id": "x", "text": "two"}\n{"query_id": "y", "query": "three"}\n'


def written(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def beir(folder, qrels="query-id\tcorpus-id\tscore\nx\ta\t2\n"):
    return written(folder, corpus_jsonl=DOCUMENTS, queries_jsonl=QUERIES, qrels_tsv=qrels)


def complaint(reader, folder, text):
    (folder / "file").write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        list(reader(str(folder / "file")))
    return str(caught.value).removeprefix(str(folder))


def test_json_lines_become_a_corpus(tmp_path):
    found = corpora.load_folder(beir(tmp_path), name="mine")
    assert (found.name, found.ids, found.titles, found.bodies) == ("mine", ("a", "7"), ("T", ""), ("one two", "three"))
    assert (found.query_ids, found.query_texts) == (("x", "y"), ("two", "three"))
    assert found.judgments.tolist() == [[0, 0, 2]]
    assert {part: queries.tolist() for part, queries in found.parts.items()} == {"all": [0]}
    assert found.unknown == 0


def test_judgments_in_a_folder_are_parts(tmp_path):
    beir(tmp_path)
    (tmp_path / "qrels.tsv").unlink()
    written(tmp_path, qrels__train_tsv="x 0 a 1\n", qrels__test_qrel="y 0 7 3\ny 0 a 0\n")
    found = corpora.load_folder(tmp_path)
    assert {part: queries.tolist() for part, queries in found.parts.items()} == {"train": [0], "test": [1]}
    assert found.judgments.tolist() == [[0, 0, 1], [1, 0, 0], [1, 1, 3]]


def test_packed_files_are_read_as_they_are(tmp_path):
    beir(tmp_path)
    (tmp_path / "corpus.jsonl.xz").write_bytes(lzma.compress((tmp_path / "corpus.jsonl").read_bytes()))
    (tmp_path / "corpus.jsonl").unlink()
    assert corpora.load_folder(tmp_path).ids == ("a", "7")


def test_trec_files_become_a_corpus(tmp_path):
    documents = (
        "<DOC>\n<DOCNO> 1 </DOCNO>\n<TITLE>Waves &amp; noise</TITLE>\n<TEXT>if a < b and c > d\n</TEXT>\n</DOC>\n"
        "<doc><docno>2</docno>plain</doc>\n"
    )
    topics = (
        "<top>\n<num> Number: 5\n<title> Topic: loud waves\n\n<desc> more\n</top>\n"
        "<top>\n<num>6</num><title>\nWAVES\n</title>\n</top>\n"
    )
    (tmp_path / "doc-text.trec").write_text(documents)
    (tmp_path / "query-text.trec").write_text(topics)
    (tmp_path / "qrels").write_text("5 0 1 1\n6 0 2 1\n")
    found = corpora.load_folder(tmp_path)
    assert (found.ids, found.titles) == (("1", "2"), ("Waves & noise", ""))
    assert [body.split() for body in found.bodies] == [["if", "a", "<", "b", "and", "c", ">", "d"], ["plain"]]
    assert (found.query_ids, found.query_texts) == (("5", "6"), ("loud waves", "WAVES"))
    assert found.judgments.tolist() == [[0, 0, 1], [1, 1, 1]]


def test_a_folder_of_text_files_in_the_order_of_their_paths(tmp_path):
    written(tmp_path, b__note_txt="second", a_md="first\n\nline", c_png="no text", empty_txt="")
    found = list(text_folder(tmp_path))
    assert [(one.id, one.title, one.body) for one in found] == [
        ("a.md", "a", "first\nline"),
        ("b/note.txt", "note", "second"),
        ("empty.txt", "empty", ""),
    ]
    with pytest.raises(DataError, match="no such folder"):
        list(text_folder(tmp_path / "gone"))


def test_grades_of_pairs_are_0_where_nobody_judged():
    documents = [Document(name, "", "", HERE) for name in "abc"]
    judged = [Judgment("x", "c", 3, HERE), Judgment("x", "a", 1, HERE)]
    found = assemble("test", documents, [Query("x", "", HERE), Query("y", "", HERE)], {"all": judged})
    queries, pairs = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 2])
    assert grade_of(found, queries, pairs).tolist() == [1, 0, 3, 0, 0]
    assert grade_of(assemble("test", documents), queries, pairs).tolist() == [0] * 5


def test_judgments_of_what_is_not_there_are_counted(tmp_path):
    found = corpora.load_folder(beir(tmp_path, "x\ta\t2\nx\tgone\t1\nnobody\ta\t1\n"))
    assert (len(found.judgments), found.unknown) == (1, 2)


def test_judgments_none_of_which_fits_are_an_error(tmp_path):
    with pytest.raises(DataError, match="none of 2 judgments"):
        corpora.load_folder(beir(tmp_path, "x\tgone\t1\nnobody\ta\t1\n"))


def test_the_same_judgment_twice_counts_once_but_two_grades_are_an_error(tmp_path):
    assert len(corpora.load_folder(beir(tmp_path, "x\ta\t2\nx\ta\t2\n")).judgments) == 1
    with pytest.raises(DataError, match=r"qrels\.tsv:2: grade 1 .* grade 2 already"):
        corpora.load_folder(beir(tmp_path, "x\ta\t2\nx\ta\t1\n"))


def test_two_documents_with_one_id_are_an_error(tmp_path):
    beir(tmp_path)
    (tmp_path / "corpus.jsonl").write_text(DOCUMENTS + '{"_id": "a", "text": "again"}\n')
    with pytest.raises(DataError, match=r"corpus\.jsonl:4: a second document with the id 'a'; .*corpus\.jsonl:1"):
        corpora.load_folder(tmp_path)


def test_broken_lines_are_named(tmp_path):
    documents = formats.json_documents
    assert complaint(documents, tmp_path, '{"_id": "a", "text": "x"}\n{"_id": \n').startswith("/file:2: not JSON")
    assert complaint(documents, tmp_path, "[1]\n").startswith("/file:1: expected a JSON object")
    assert complaint(documents, tmp_path, '{"text": "x"}\n').startswith(
        "/file:1: no id; expected a string under one of _id"
    )
    assert complaint(documents, tmp_path, '{"_id": "a"}\n').startswith("/file:1: no text")
    assert complaint(documents, tmp_path, '{"_id": "a", "text": "x", "title": []}\n').startswith("/file:1: no title")


@pytest.mark.parametrize("grade", ["-2", "-01", "1.5", "high", "128", "²"])
def test_bad_grades_are_named(tmp_path, grade):
    said = complaint(formats.judgments, tmp_path, f"x 0 a 1\nx 0 b {grade}\n")
    assert said.startswith(f"/file:2: the grade {grade!r} is not a whole number from 0 to 127, nor -1")
    assert said.endswith("write 0")


def test_a_grade_of_minus_1_is_no_judgment(tmp_path):
    found = corpora.load_folder(beir(tmp_path, "x\ta\t-1\nx\t7\t2\nx\ta\t-1\ny\ta\t-1\nnobody\ta\t-1\n"))
    assert found.judgments.tolist() == [[0, 1, 2]]
    assert found.parts["all"].tolist() == [0]  # y has no judgment
    assert (found.unjudged, found.unknown) == (3, 1)
    again = corpora.load_folder(beir(tmp_path, "x\ta\t-1\nx\ta\t1\n"))  # judged after all
    assert again.judgments.tolist() == [[0, 0, 1]]


def test_judgments_with_other_columns_are_named(tmp_path):
    assert complaint(formats.judgments, tmp_path, "x a\n").startswith("/file:1: found 'x a\\n'; expected `query 0")


def test_trec_files_that_break_off_are_named(tmp_path):
    documents, topics = formats.trec_documents, formats.trec_topics
    assert complaint(documents, tmp_path, "<DOC>\n<DOCNO>1</DOCNO>\n").startswith("/file:1: <doc> without </doc>")
    assert complaint(documents, tmp_path, "<DOC>\n<DOC>\n</DOC>").startswith(
        "/file:2: <doc> within the one that begins at"
    )
    assert complaint(documents, tmp_path, "\n<DOC>\n</DOC>\n").startswith("/file:2: a document without <DOCNO>")
    assert complaint(topics, tmp_path, "<top>\n<title>x\n</top>").startswith("/file:1: a topic without <num>")
    assert complaint(topics, tmp_path, "<top>\n<num>1\n</top>").startswith("/file:1: a topic without <title>")


def test_bytes_that_are_not_utf8_are_named(tmp_path):
    (tmp_path / "file").write_bytes(b"x 0 a 1\nx 0 \xff 1\n")
    with pytest.raises(DataError, match=r"file:2: not UTF-8 \(byte 4 of the line\)"):
        list(formats.judgments(str(tmp_path / "file")))


def test_a_truncated_xz_is_named(tmp_path):
    whole = lzma.compress(DOCUMENTS.encode() * 1000)
    (tmp_path / "file.xz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"file\.xz: damaged or cut short"):
        list(formats.json_documents(str(tmp_path / "file.xz")))


def test_no_document_is_an_error(tmp_path):
    beir(tmp_path)
    (tmp_path / "corpus.jsonl").write_text("\n")
    with pytest.raises(DataError, match="there is no document"):
        corpora.load_folder(tmp_path)


def test_a_folder_without_a_corpus_says_what_was_looked_for(tmp_path):
    with pytest.raises(DataError, match=r"no known layout; looked for corpus\.jsonl"):
        corpora.load_folder(tmp_path)
    beir(tmp_path)
    (tmp_path / "qrels.tsv").unlink()
    with pytest.raises(DataError, match="no judgments"):
        corpora.load_folder(tmp_path)


def test_a_corpus_that_is_absent_says_where_to_get_it():
    with pytest.raises(DataMissing, match=r"nfcorpus.*not on this machine(.|\n)*heidelberg(.|\n)*FOLTR_DATA"):
        corpora.load_corpus("nfcorpus")
    with pytest.raises(DataMissing, match="known are nfcorpus, vaswani, msmarco-sample, docstrings"):
        corpora.load_corpus("nothing")


def test_a_corpus_is_found_by_name(tmp_path, monkeypatch):
    beir(tmp_path / "mine")
    monkeypatch.setenv("FOLTR_DATA", str(tmp_path))
    assert corpora.load_corpus("mine").name == "mine"


@pytest.mark.data
@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize(
    ("name", "documents", "queries", "judgments", "unknown", "top"),
    [
        ("nfcorpus", 3_633, 3_237, 169_649, 110, 3),  # seven judged queries have no text
        ("vaswani", 11_429, 93, 2_083, 0, 1),
        ("msmarco-sample", 5_000, 50, 4_102, 0, 3),
    ],
)
def test_counts_of_the_real_ones(name, documents, queries, judgments, unknown, top):
    found = corpora.load_corpus(name)
    assert (len(found.ids), len(found.query_ids), len(found.judgments)) == (documents, queries, judgments)
    assert (found.unknown, found.judgments[:, 2].max()) == (unknown, top)
    assert sorted(found.parts) == (["dev", "test", "train"] if name == "nfcorpus" else ["all"])
