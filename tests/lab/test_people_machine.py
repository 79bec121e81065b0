"""Documents of a machine, for simulated people."""

import gzip

import pytest

from foltr.errors import DataMissing
from foltr.lab.people import machine


def test_the_same_files_make_the_same_documents_whatever_their_order(tmp_path):
    for name in ("b.txt", "a.md", "c/d.rst"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"Heading of {name}\n" + f"text of {name} " * 40)
    first = machine.machine_documents([tmp_path], limit=3)
    (tmp_path / "b.txt").rename(tmp_path / "z")
    (tmp_path / "z").rename(tmp_path / "b.txt")
    assert machine.machine_documents([tmp_path], limit=3) == first
    assert [file.path.partition("/")[2] for file in first] == ["a.md", "b.txt", "c/d.rst"]
    assert first[0].title == "Heading of a.md"


def test_files_that_are_no_text_and_texts_that_occur_twice_are_left_out(tmp_path):
    text = "A text that is long enough to be asked for. " * 10
    (tmp_path / "one.txt").write_text(text)
    (tmp_path / "copy.txt").write_text(text)
    (tmp_path / "binary.txt").write_bytes(b"\0" * 500)
    (tmp_path / "latin.txt").write_bytes("Straße ".encode("latin-1") * 100)
    (tmp_path / "short.txt").write_text("short")
    (tmp_path / "broken.txt.gz").write_bytes(b"\x1f\x8b" + b"x" * 300)
    (tmp_path / "link.txt").symlink_to(tmp_path / "one.txt")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = [machine.read_file(path, path.name) for path in sorted(tmp_path.iterdir())]
    assert [file.path for file in found if file is not None] == ["copy.txt", "one.txt"]


def test_manual_pages_and_html_lose_their_markup(tmp_path):
    page = (
        b".TH LS 1\n.SH NAME\nls \\- list \\fBdirectory\\fR contents\n.SH DESCRIPTION\nLists files.\n"
        + b"More text.\n" * 40
    )
    (tmp_path / "ls.1.gz").write_bytes(gzip.compress(page))
    manual = machine.read_file(tmp_path / "ls.1.gz", "man1/ls.1.gz")
    assert manual.title == "ls - list directory contents"
    assert manual.path == "man1/ls.1"
    assert "\\f" not in manual.body
    assert ".SH" not in manual.body
    (tmp_path / "p.html").write_text(
        "<html><title>A &amp; B</title><script>x()</script><p>" + "words <b>of</b> it " * 30
    )
    site = machine.read_file(tmp_path / "p.html", "p.html")
    assert site.title == "A & B"
    assert "x()" not in site.body
    assert "<" not in site.body


def test_a_machine_with_few_files_adds_the_standard_library(tmp_path):
    (tmp_path / "only.txt").write_text("One document of a small machine. " * 20)
    found = machine.machine_documents([tmp_path], limit=40, fewest=30)
    assert len(found) == 40
    assert any(file.path.endswith("only.txt") for file in found)


def test_a_folder_that_is_not_there_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(machine.sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path / "none")})
    with pytest.raises(DataMissing, match="name a folder with documents"):
        machine.machine_documents([tmp_path / "nothing"])
