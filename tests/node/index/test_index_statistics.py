"""Statistics stay exact: after any sequence of additions, replacements and removals they equal a recount."""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from small_index import Text, file_number, indexed, new_writer

from foltr.node.index import sequences, statistics
from foltr.node.index.writing import field_sums

WORDS = ["run", "running", "runner", "the", "of", "apple", "Äpfel", "snake_case", "getName", "3.1", "検索語"]
texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
documents = st.builds(Text, title=texts, body=texts, sender=texts)
step = st.tuples(
    st.lists(st.tuples(st.integers(0, 4), st.lists(documents, max_size=3)), max_size=3, unique_by=lambda pair: pair[0]),
    st.lists(st.integers(0, 4), max_size=2, unique=True),
)


def recount(connection, stem_of):
    """The statistics from the word sequences alone, all of them in memory."""
    batch = stored_sequences(connection)
    return statistics.change(batch, stem_of) if batch else statistics.Statistics(0).total()


def stored_sequences(connection):
    rows = connection.execute("SELECT s.content, d.has_text FROM sequences s JOIN documents d ON d.id = s.document")
    return [statistics.Sequence(*sequences.decode(content), 1, bool(has_text)) for content, has_text in rows]


def assert_exact(store):
    """Everything that is stored beside the sequences equals what follows from them."""
    connection = store.connection
    store.refresh()
    counted = recount(connection, store.statistics.stem_of)
    for name, ours, theirs in zip(counted._fields, store.statistics.total(), counted, strict=True):
        assert np.array_equal(ours, theirs), name
    stored = statistics.Statistics(store.stop_count)
    stored.refresh(connection)
    for ours, theirs in zip(stored.total(), counted, strict=True):
        assert np.array_equal(ours, theirs)
    used = set(counted.words.tolist())
    words = {row[0]: row[1] for row in connection.execute("SELECT id, stem FROM words") if row[0] >= store.stop_count}
    assert words.keys() == {number for number in used if number >= store.stop_count}
    assert all(words[number] == store.statistics.stem_of[number] for number in words)
    stems = {row[0] for row in connection.execute("SELECT id FROM stems")}
    assert stems == {number for number in counted.stems.tolist() if number >= store.stop_count}
    batch = stored_sequences(connection)
    sums = field_sums(batch, store.stop_count) if batch else {}
    for field, length, number in connection.execute("SELECT field, length, documents FROM sums"):
        assert (length, number) == sums.get(field, (0, 0)), field
    for table in ("sequences", "bodies"):
        assert connection.execute(f"SELECT document FROM {table} EXCEPT SELECT id FROM documents").fetchall() == []  # noqa: S608
        missing = connection.execute(f"SELECT id FROM documents EXCEPT SELECT document FROM {table}").fetchall()  # noqa: S608
        without_text = connection.execute("SELECT id FROM documents WHERE has_text = 0").fetchall()
        assert missing == (without_text if table == "bodies" else [])


@given(steps=st.lists(step, max_size=6))
@settings(max_examples=60, deadline=None)
def test_statistics_equal_a_recount_after_any_sequence_of_changes(steps):
    with tempfile.TemporaryDirectory() as folder:
        writer = new_writer(Path(folder))
        for added, removed in steps:
            changed = {f"/home/me/{i}": some for i, some in added}
            batch = [indexed(writer, path, *some)._replace(named=not some) for path, some in changed.items()]
            gone = [file_number(writer, f"/home/me/{i}") for i in removed if f"/home/me/{i}" not in changed]
            writer.write(batch, gone)
            assert_exact(writer.store)
        writer.close()


def test_documents_of_which_only_the_name_is_known_count_in_no_statistic_of_texts(tmp_path):
    writer = new_writer(tmp_path)
    writer.write([indexed(writer, "/home/me/run.txt", Text("run", "run the run"))])
    before, stored = writer.store.statistics.total(), writer.store.collection()
    pictures = [indexed(writer, f"/home/me/run {i}.png")._replace(named=True) for i in range(50)]
    writer.write(pictures)
    assert_exact(writer.store)
    after, collection = writer.store.statistics, writer.store.collection()
    assert np.array_equal(after.document_frequency[before.stems], before.document_frequency)
    assert np.array_equal(after.field_frequency[before.stems], before.field_frequency)
    assert np.array_equal(after.collection_frequency[before.stems], before.collection_frequency)
    assert collection.documents == stored.documents == 1
    assert np.array_equal(collection.lengths, stored.lengths)
    assert np.array_equal(collection.with_field, stored.with_field)
    assert writer.store.count_names() == 50
    assert writer.store.query_text("run").terms[0].names == 50
    writer.write([], [result.file for result in pictures])
    assert_exact(writer.store)
    assert writer.store.count_names() == 0
    writer.close()


def test_statistics_of_a_term_by_eye(tmp_path):
    writer = new_writer(tmp_path)
    writer.write([indexed(writer, "/home/me/a", Text("run", "run the run", sender="runs"), Text(body="walk"))])
    (number,) = [n for n, s in writer.connection.execute("SELECT id, stem FROM stems") if s == "run"]
    counts = writer.store.statistics
    assert counts.document_frequency[number] == 1
    assert list(counts.field_frequency[number]) == [1, 1, 0, 0, 1, 0]
    assert counts.collection_frequency[number] == 4
    assert list(writer.store.collection().lengths) == [1, 3, 0, 0, 1, 0]  # "the", "a" and "me" are stop words
    assert list(writer.store.collection().with_field) == [1, 2, 0, 0, 1, 0]
    writer.close()


@given(st.lists(st.integers(0, 2**31 - 1), max_size=50), st.integers(0, 50))
def test_sequences_survive_encoding(numbers, first):
    lengths = [min(first, len(numbers)), max(0, len(numbers) - first), 0, 0, 0, 0]
    words, back = sequences.decode(sequences.encode(np.array(numbers, np.int64), np.array(lengths)))
    assert words.tolist() == numbers
    assert back.tolist() == lengths
