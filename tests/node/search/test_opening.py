"""Files that could run are revealed, never opened."""

import os
import sys

import pytest

from foltr.node.opening import open_file, reason_not_to_open

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at what xdg-open gets")

DANGEROUS = {
    "letter.desktop": b"[Desktop Entry]\nExec=rm",
    "letter.txt": b"\n\n[Desktop Entry]\nExec=rm",
    "script": b"#!/bin/sh\nrm",
    "run.SH": b"echo",
    "report.pdf.exe": b"text",
    "report.exe. ": b"text",
    "binary.pdf": b"\x7fELF....",
    "windows.txt": b"MZ....",
    "macro.docm": b"PK",
    "mac.txt": b"\xcf\xfa\xed\xfe",
}


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """An xdg-open that writes down what it gets, into a pipe that is read to its end."""
    programs = tmp_path / "programs"
    programs.mkdir()
    os.mkfifo(tmp_path / "pipe")
    (programs / "xdg-open").write_text(f'#!/bin/sh\nprintf "%s" "$1" > "{tmp_path}/pipe"\n')
    (programs / "xdg-open").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return lambda: (tmp_path / "pipe").read_text()


@pytest.mark.parametrize("name", DANGEROUS)
def test_what_could_run_is_revealed(name, tmp_path, opened):
    file = tmp_path / "files" / name
    file.parent.mkdir()
    file.write_bytes(DANGEROUS[name])
    assert open_file(file)
    assert opened() == str(file.parent)


def test_an_executable_and_a_link_to_it_are_revealed(tmp_path, opened):
    file = tmp_path / "notes.txt"
    file.write_text("text")
    file.chmod(0o755)
    link = tmp_path / "link.txt"
    link.symlink_to(file)
    assert "executable" in open_file(link)
    assert opened() == str(tmp_path)


def test_a_link_does_not_hide_an_ending(tmp_path):
    (tmp_path / "x.sh").write_text("rm")
    (tmp_path / "x.txt").symlink_to(tmp_path / "x.sh")
    assert ".sh" in reason_not_to_open(tmp_path / "x.txt")


def test_a_document_is_opened_by_its_absolute_path(tmp_path, opened, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "--option $(id) \n.txt"
    (tmp_path / name).write_text("text")
    assert open_file(type(tmp_path)(name)) is None
    assert opened() == str(tmp_path / name)


def test_folders_and_missing_files(tmp_path):
    assert "regular" in reason_not_to_open(tmp_path)
    assert "cannot be read" in reason_not_to_open(tmp_path / "gone")
