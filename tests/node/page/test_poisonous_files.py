"""One file among fifty breaks one stage of indexing: the others are found, and what became of it is told."""

import os
import sqlite3
import zlib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from foltr.cli.node import app
from foltr.node.extract import Extractor
from foltr.node.index import candidates, entries, ignore, indexing, scan, vocabulary
from foltr.node.index.rules import FolderRules
from foltr.node.index.writing import Writer

FILES, POISON = 50, "poison17"


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path):
    """Fifty files; the name and the text of one have a word that no other has."""
    root = tmp_path / "docs"
    root.mkdir()
    for i in range(FILES):
        name = POISON if i == 17 else f"plain{i}"
        (root / f"{name}.txt").write_text(f"apple number{i} {name}")
    return root


def is_poison(new):
    return POISON.encode() in zlib.decompress(new.body)


def status_of_entry(monkeypatch):
    real = entries.entries_of
    problem = OverflowError("date too large")
    monkeypatch.setattr(scan, "entries_of", lambda here: {**real(here), f"{POISON}.txt": problem})


def rules(monkeypatch):
    real = FolderRules.verdict

    def verdict(here, name, **more):
        if POISON in name:
            raise RecursionError("maximum recursion depth exceeded")
        return real(here, name, **more)

    monkeypatch.setattr(FolderRules, "verdict", verdict)


def row_of_the_file(monkeypatch):
    real = scan._Scan._store

    def store(scanning, added, waiting):
        rows = scanning._connection.execute("SELECT id FROM files WHERE name = ?", (f"{POISON}.txt".encode(),))
        numbers = [number for (number,) in rows]
        new = any(POISON.encode() in entry.name and entry.size for _, entry in added)
        if new or any(file in numbers for *_, file in waiting):
            raise OverflowError("Python int too large to convert to SQLite INTEGER")
        real(scanning, added, waiting)

    monkeypatch.setattr(scan._Scan, "_store", store)


def extraction(monkeypatch):
    real = Extractor.extract

    def extract(pool, paths):
        for path, outcome in real(pool, paths):
            if POISON in path:
                raise MemoryError
            yield path, outcome

    monkeypatch.setattr(Extractor, "extract", extract)


def result_of_extraction(monkeypatch):
    real = indexing._result_of

    def result(file, outcome):
        if POISON in file.path:
            raise ValueError("year 292277026596 is out of range")
        return real(file, outcome)

    monkeypatch.setattr(indexing, "_result_of", result)


def analysis(monkeypatch):
    real = vocabulary.Numbering.sequence

    def sequence(numbering, text):
        found = real(numbering, text)  # its words are numbered by then
        if POISON in text:
            raise RecursionError("maximum recursion depth exceeded")
        return found

    monkeypatch.setattr(vocabulary.Numbering, "sequence", sequence)


def database(problem):
    def inject(monkeypatch):
        real = Writer._insert

        def insert(writer, added, generation):
            real(writer, added, generation)
            if any(map(is_poison, added)):
                raise problem

        monkeypatch.setattr(Writer, "_insert", insert)

    return inject


def number_of_poison(store):
    rows = store.connection.execute(
        "SELECT d.id FROM documents d JOIN files f ON f.id = d.file WHERE f.name = ?", (f"{POISON}.txt".encode(),)
    )
    return [number for (number,) in rows]


def document_for_tantivy(monkeypatch):
    real = candidates._document

    def document(store, number, name, content):
        if number in number_of_poison(store):
            raise ValueError("an integer that is no number of a word")
        return real(store, number, name, content)

    monkeypatch.setattr(candidates, "_document", document)


class Refusing:
    """A writer of tantivy that refuses one document, and a committed writer otherwise."""

    def __init__(self, writer, numbers):
        self._writer, self._numbers = writer, numbers

    def add_document(self, document):
        if set(document["id"]) & set(self._numbers):
            raise ValueError("the document was refused")
        self._writer.add_document(document)

    def __getattr__(self, name):
        return getattr(self._writer, name)


def tantivy(monkeypatch):
    real = candidates.Candidates._the_writer

    def the_writer(opened):
        path = opened.cache / "index.sqlite"
        connection = sqlite3.connect(path)
        rows = connection.execute(
            "SELECT d.id FROM documents d JOIN files f ON f.id = d.file WHERE f.name = ?", (f"{POISON}.txt".encode(),)
        ).fetchall()
        connection.close()
        return Refusing(real(opened), [number for (number,) in rows])

    monkeypatch.setattr(candidates.Candidates, "_the_writer", the_writer)


STAGES = {
    "status of the file": status_of_entry,
    "rules": rules,
    "row of the file": row_of_the_file,
    "extraction": extraction,
    "result of extraction": result_of_extraction,
    "analysis": analysis,
    "database, number": database(OverflowError("Python int too large to convert to SQLite INTEGER")),
    "database, text": database(UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")),
    "database, size": database(sqlite3.DataError("string or blob too big")),
    "database, memory": database(MemoryError()),
    "document for tantivy": document_for_tantivy,
    "tantivy": tantivy,
}


@pytest.mark.parametrize("stage", STAGES)
def test_one_poisonous_file_among_fifty(stage, folder, node, home, browser_client, monkeypatch):
    with monkeypatch.context() as injected:
        STAGES[stage](injected)
        node.add([folder])
        assert list(node.index())[-1].phase == "done"
        assert list(node.index())[-1].phase == "done"  # and every time
    names = {Path(row.path).stem for row in node.search("apple", limit=100).rows}
    assert names == {f"plain{i}" for i in range(FILES)} - {"plain17"}
    for i in range(FILES):
        assert i == 17 or node.search(f"number{i}").rows[0].path.endswith(f"/plain{i}.txt")
    assert node.status().states == {"waiting": 0, "indexed": FILES - 1, "excluded": 0, "skipped": 0, "failed": 1}
    answer = CliRunner().invoke(app, ["why", str(folder / f"{POISON}.txt")], env={"FOLTR_NODE_HOME": str(home)})
    assert f"{POISON}.txt: failed, an error that was not expected (" in answer.output.replace("\n", " ")
    page = browser_client.get("/index").text
    assert f"{POISON}.txt" in page
    assert "an error that was not expected (" in page
    os.utime(folder / f"{POISON}.txt", (1.7e9, 1.7e9))  # the cause is gone, and the file has changed
    list(node.index())
    assert node.status().states["indexed"] == FILES


def test_a_folder_whose_rules_cannot_be_read_fails_and_no_other(folder, node, browser_client, monkeypatch):
    (folder / "inner/deep").mkdir(parents=True)
    (folder / "inner/.gitignore").write_text("hostile")
    (folder / "inner/deep/lost.txt").write_text("apple")
    real = ignore.read

    def read(content):
        if content == b"hostile":
            raise RecursionError("maximum recursion depth exceeded")
        return real(content)

    node.add([folder])
    with monkeypatch.context() as injected:
        injected.setattr(ignore, "read", read)
        for _ in range(2):
            assert list(node.index())[-1].phase == "done"
    assert node.status().states == {"waiting": 0, "indexed": FILES, "excluded": 0, "skipped": 0, "failed": 1}
    found = node.why(folder / "inner/deep/lost.txt")
    assert found.state == "failed"
    assert "RecursionError" in found.reason
    assert "RecursionError" in browser_client.get("/index").text
    list(node.index())
    assert node.status().states["indexed"] == FILES + 2  # with the ignore file
    assert node.status().states["failed"] == 0


def test_a_root_that_cannot_be_scanned_fails_and_no_other(folder, node, browser_client, tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/b.txt").write_text("apple")
    real = scan._why_unscanned

    def problem(connection, number, root):
        if root == str(tmp_path / "other"):
            raise ValueError("embedded null byte")
        return real(connection, number, root)

    monkeypatch.setattr(scan, "_why_unscanned", problem)
    node.add([tmp_path / "other", folder])
    list(node.index())
    assert node.status().states["indexed"] == FILES
    with node.reading() as reader:
        states = dict(reader.store.connection.execute("SELECT path, state FROM roots").fetchall())
    assert states == {os.fsencode(tmp_path / "other"): "failed", os.fsencode(folder): "indexed"}
    assert "embedded null byte" in browser_client.get("/index").text
    found = node.why(tmp_path / "other/b.txt")
    assert found.state == "failed"
    assert "embedded null byte" in found.reason
