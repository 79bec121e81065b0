"""The store: what is written is read back, terms and their statistics are those of the texts."""

import os

import numpy as np
import pytest
from small_index import Text, file_number, indexed, new_writer, write

from foltr.errors import StorageError
from foltr.files import held
from foltr.node.index.store import Store
from foltr.node.index.writing import Result
from foltr.text.fields import FIELDS


@pytest.fixture
def writer(tmp_path):
    writer = new_writer(tmp_path)
    yield writer
    writer.close()


def words_of(store, tokens):
    names = dict(store.connection.execute("SELECT id, word FROM words").fetchall())
    return [names[int(number)] for number in tokens.words]


def test_documents_come_back_as_they_were_written(writer):
    mail = Text("Résumé of the run", "Body text\nwith lines", "mail", 86400.0, "Ann <ann@x.org>", "bob@y.org", "3")
    write(writer, {"/home/me/mail/inbox": mail})
    (found,) = writer.store.documents([1])
    assert found.path == "/home/me/mail/inbox"
    assert (found.title, found.kind, found.date, found.part) == ("Résumé of the run", "mail", 86400.0, "3")
    assert (found.sender, found.recipients, found.root) == ("Ann <ann@x.org>", "bob@y.org", "/home/me")
    assert writer.store.text(1) == "Body text\nwith lines"
    facts = writer.store.facts([1], np.ones(1), np.zeros(1), now=86400.0 * 3)
    assert facts.titles == ("resume of the run",)
    assert facts.names == ("inbox",)
    assert list(facts.age_days) == [2.0]
    assert list(facts.depth) == [1.0]


def test_sequences_hold_the_words_of_each_field_in_order(writer):
    write(writer, {"/home/me/notes/plan.txt": Text("The plan", "run the runners run", sender="ann")})
    tokens = writer.store.tokens([1])
    assert words_of(writer.store, tokens) == [
        "the",
        "plan",
        "run",
        "the",
        "runners",
        "run",
        "plan",
        "txt",
        "me",
        "notes",
        "ann",
    ]
    assert list(np.diff(tokens.offsets)) == [2, 4, 2, 2, 1, 0]
    assert len(tokens.offsets) == len(FIELDS) + 1
    the = tokens.words[0]
    assert the < writer.store.stop_count <= tokens.words[1]


def test_documents_that_are_gone_have_no_words_and_no_row(writer):
    write(writer, {"/home/me/a": "one", "/home/me/b": "two"})
    tokens = writer.store.tokens([2, 99, 1])
    assert words_of(writer.store, tokens) == ["two", "b", "me", "one", "a", "me"]
    assert [one.id for one in writer.store.documents([2, 99, 1])] == [2, 1]
    assert writer.store.present([99, 2]) == [2]


def test_a_term_has_the_words_and_counts_of_its_stem(writer):
    write(writer, {"/home/me/a": "running runs run", "/home/me/b": Text("Run", "walk"), "/home/me/c": "walk"})
    query = writer.store.query_text("runs walking run")
    run, walk = query.terms
    assert (run.text, run.repeats, run.document_frequency, run.collection_frequency) == ("run", 2, 2, 4)
    assert list(run.field_frequency) == [1, 1, 0, 0, 0, 0]
    assert list(query.order) == [0, 1, 0]
    assert len(run.words) == 3
    assert len(walk.words) == 1


def test_a_word_that_no_document_has_is_a_term_with_no_words(writer):
    write(writer, {"/home/me/a": "one"})
    (term,) = writer.store.query_text("zebra").terms
    assert (len(term.words), term.document_frequency, term.collection_frequency) == (0, 0, 0)


def test_a_beginning_matches_its_completions_and_their_stems(writer):
    write(writer, {"/home/me/a": "running", "/home/me/b": "run", "/home/me/c": "rung", "/home/me/d": "walk"})
    for typed in ("run", "runn", "runni", "running"):
        (term,) = writer.store.query_text(typed, prefix=True).terms
        matched = {i for i in (1, 2, 3, 4) if np.isin(writer.store.tokens([i]).words, term.words).any()}
        assert {1, 2} <= matched, typed
        assert 4 not in matched
        assert term.document_frequency <= 4


def test_stop_words_count_when_the_query_has_nothing_else(writer):
    write(writer, {"/home/me/a": "to be or not", "/home/me/b": "be quick"})
    terms = writer.store.query_text("to be").terms
    assert [term.text for term in terms] == ["to", "be"]
    assert [term.document_frequency for term in terms] == [1, 2]
    assert [term.text for term in writer.store.query_text("to be quick").terms] == ["quick"]


def test_a_second_version_of_a_file_replaces_the_first(writer):
    write(writer, {"/home/me/a": "old words"})
    write(writer, {"/home/me/a": "new words"})
    assert writer.store.present([1, 2]) == [2]
    assert writer.store.query_text("old").terms[0].document_frequency == 0
    assert writer.store.query_text("word").terms[0].document_frequency == 1
    assert writer.store.collection().documents == 1


def test_a_reader_in_another_connection_follows_the_writer(writer, tmp_path):
    reader = Store(tmp_path / "index.sqlite")
    assert reader.query_text("apple").terms[0].document_frequency == 0
    for i in range(80):  # more batches than records are stored: they are replaced by their sum in between
        write(writer, {f"/home/me/{i}": f"apple number{i}"})
        assert reader.query_text("apples").terms[0].document_frequency == i + 1
    reader.close()


def test_names_that_are_no_text_are_stored_as_bytes(writer):
    path = os.fsdecode(b"/home/me/caf\xe9\n\x1b[31m.txt")
    writer.write([indexed(writer, path, Text(body="coffee \udce9"))])
    (found,) = writer.store.documents([1])
    assert found.path == path
    assert writer.store.documents_of(path) == [1]
    assert writer.store.text(1) == "coffee ?"


def test_an_error_inside_a_batch_leaves_the_state_before(writer):
    write(writer, {"/home/me/a": "apple"})
    number = file_number(writer, "/home/me/b")
    broken = Result(number, "no such state", None, 1, 0, 1, [Text(body="pear")])
    with pytest.raises(Exception, match="CHECK"):
        writer.write([broken])
    assert writer.store.collection().documents == 1
    assert writer.store.query_text("pear").terms[0].document_frequency == 0
    write(writer, {"/home/me/b": "pear"})
    assert writer.store.query_text("pear").terms[0].document_frequency == 1


def test_a_second_writer_is_refused_with_the_number_of_the_first(tmp_path):
    lock = tmp_path / "index.lock"
    with held(lock, "indexing"), pytest.raises(StorageError, match=f"number {os.getpid()}"), held(lock, "indexing"):
        pass
    with held(lock, "indexing"):
        pass


def test_an_index_that_is_not_ours_is_refused(tmp_path):
    (tmp_path / "index.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(StorageError, match="delete the file"):
        Store(tmp_path / "index.sqlite")
