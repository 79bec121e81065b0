"""What is opened is the file that was indexed; what could run, or hides what it is, is only shown in its folder."""

import os
import sys

import pytest
from typer.testing import CliRunner

import foltr.node
from foltr.cli.node import app
from foltr.errors import InputError
from foltr.node.page import actions
from foltr.node.search.desktop import IndexedFile, open_file, show_folder
from foltr.node.search.launchable import LAUNCHABLE, ending_of, is_invisible

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at what xdg-open gets")

DANGEROUS = {
    "letter.desktop": b"[Desktop Entry]\nExec=rm",
    "letter.txt": b"\n\n[Desktop Entry]\nExec=rm",
    "address.txt": b"[InternetShortcut]\nURL=file:///bin/sh",
    "script": b"#!/bin/sh\nrm",
    "run.SH": b"echo",
    "report.pdf.exe": b"text",
    "report.exe. ": b"text",
    ".desktop": b"text",
    "binary.pdf": b"\x7fELF....",
    "windows.txt": b"MZ....",
    "macro.docm": b"PK",
    "mac.txt": b"\xcf\xfa\xed\xfe",
}
LAUNCHERS = [
    ".inetloc",
    ".fileloc",
    ".afploc",
    ".ftploc",
    ".mailloc",
    ".rdp",
    ".mobileconfig",
    ".ymp",
    ".oxt",
    ".xlam",
    ".xlsb",
    ".xla",
    ".xll",
    ".ppam",
    ".slk",
    ".iqy",
    ".prf",
    ".settingcontent-ms",
    ".diagcab",
    ".theme",
    ".flatpakref",
    ".appinstaller",
    ".msix",
    ".vsix",
    ".webarchive",
    ".url",
    ".website",
    ".lnk",
]
DOCUMENTS = [
    ".txt",
    ".md",
    ".html",
    ".pdf",
    ".docx",
    ".odt",
    ".epub",
    ".eml",
    ".mbox",
    ".tex",
    ".csv",
    ".json",
    ".xml",
    ".gz",
    ".xlsx",
    ".pptx",
    ".ps",
]
INVISIBLE = {
    "newline": "\n", "escape": "\x1b", "delete": "\x7f", "C1 control": "\x85", "soft hyphen": "\xad",
    "right-to-left override": "\u202e", "isolate": "\u2066", "left-to-right mark": "\u200e", "zero width": "\u200b",
    "joiner": "\u200d", "word joiner": "\u2060", "byte order mark": "\ufeff", "line separator": "\u2028",
    "tag": "\U000e0061", "variation selector": "\ufe0f", "variation selector 200": "\U000e01b7", "filler": "\u3164",
    "combining grapheme joiner": "\u034f", "braille blank": "\u2800", "no character": "\uffff", "private": "\ue000",
    "Mongolian separator": "\u180e", "no Unicode": "\udcff",
}  # fmt: skip


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """An xdg-open that writes down what it gets, into a pipe that is read to its end."""
    return desktop(tmp_path, monkeypatch, "xdg-open")


def desktop(tmp_path, monkeypatch, program):
    programs = tmp_path / "programs"
    programs.mkdir()
    os.mkfifo(tmp_path / "pipe")
    (programs / program).write_text(f'#!/bin/sh\nprintf "%s|" "$@" > "{tmp_path}/pipe"\n')
    (programs / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return lambda: os.fsdecode((tmp_path / "pipe").read_bytes())[:-1]


@pytest.fixture
def root(tmp_path):
    (tmp_path / "files").mkdir()
    return tmp_path / "files"


def written(root, name, content=b"text"):
    """A file with the identity that the index would have stored."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return IndexedFile(str(path), str(root), path.stat().st_ino)


@pytest.mark.parametrize("name", DANGEROUS)
def test_what_could_run_is_revealed(name, root, opened):
    assert open_file(written(root, name, DANGEROUS[name]))
    assert opened() == str(root)


@pytest.mark.parametrize("ending", LAUNCHERS)
def test_what_launches_or_installs_is_revealed(ending, root, opened):
    for name in (f"letter{ending}", f"letter{ending.upper()}.", f"letter{ending} . "):
        assert open_file(written(root, name))
        assert opened() == str(root)


def test_documents_are_not_launchable():
    assert not LAUNCHABLE.intersection(DOCUMENTS)


@pytest.mark.parametrize("kind", INVISIBLE)
def test_names_with_what_is_not_seen_are_only_revealed(kind, root, opened):
    letter = INVISIBLE[kind]
    for name in (f"letter{letter}.txt", f"{letter}letter.txt", f"letter.txt{letter}"):
        assert "not seen" in open_file(written(root, name))
        assert opened() == str(root)


@pytest.mark.parametrize(
    "letter", ["\u200b", "\u202e", "\ufeff", "\u00a0", "\u3000", " ", ".", ". .\u2009", "\U000e0020"]
)
def test_an_ending_is_read_without_what_hides_it(letter, root, opened):
    assert ending_of(f"letter.desktop{letter}") == ".desktop"
    assert ending_of(f"letter.desktop{letter}{letter}") == ".desktop"
    assert open_file(written(root, f"letter.desktop{letter}"))
    assert opened() == str(root)


def test_an_ending_with_invisible_characters_in_it_is_the_one_without():
    assert ending_of("letter.des\u200bk\u00adtop") == ".desktop"
    assert not any(map(is_invisible, "Bericht über Käse, 検索 \u00a0 – 3½ €.txt"))


@pytest.mark.parametrize("letter", ["\u00a0", "\u3000", "\u2009", " "])
def test_a_space_at_the_end_of_a_name_is_only_revealed_and_one_in_it_is_not(letter, root, opened):
    assert "not seen" in open_file(written(root, f"letter{letter}"))
    assert opened() == str(root)
    assert open_file(written(root, f"my{letter}letter.txt")) is None
    assert opened() == str(root / f"my{letter}letter.txt")


def test_a_newline_in_a_folder_never_reaches_the_desktop(root, opened):
    file = written(root, "outer/x\nhttps:/example.org/letter.txt")
    assert "control characters" in open_file(file)
    assert opened() == str(root / "outer")
    show_folder(file)
    assert opened() == str(root / "outer")


def test_a_root_with_a_newline_is_not_handed_to_the_desktop(root, opened, monkeypatch):
    monkeypatch.setattr("foltr.node.search.desktop._launch", lambda arguments: pytest.fail(f"opened {arguments}"))
    odd = root / "x\nhttps:"
    file = written(odd, "letter.txt")
    for act in (open_file, show_folder):
        with pytest.raises(InputError, match="yourself") as refused:
            act(file)
        assert "\n" not in str(refused.value)


def test_an_executable_is_revealed(root, opened):
    file = written(root, "notes.txt")
    (root / "notes.txt").chmod(0o755)
    assert "executable" in open_file(file)
    assert opened() == str(root)


# ---- the file that was indexed


@pytest.fixture
def nothing_opened(monkeypatch):
    monkeypatch.setattr("foltr.node.search.desktop._launch", lambda arguments: pytest.fail(f"opened {arguments}"))


def test_a_file_that_became_a_link_is_not_opened(root, tmp_path, nothing_opened):
    file = written(root, "letter.txt")
    (tmp_path / "elsewhere.txt").write_text("outside of every root")
    for target in (tmp_path / "elsewhere.txt", root / "other.txt", root / "gone.txt"):
        (root / "letter.txt").unlink()
        (root / "letter.txt").symlink_to(target)
        with pytest.raises(InputError, match=r"replaced by a symbolic link .* index again"):
            open_file(file)


def test_nothing_is_opened_below_a_folder_that_became_a_link(root, tmp_path, nothing_opened):
    file = written(root, "a/b/letter.txt")
    (tmp_path / "elsewhere/b").mkdir(parents=True)
    os.link(file.path, tmp_path / "elsewhere/b/letter.txt")  # the same inode
    (root / "a").rename(root / "before")
    (root / "a").symlink_to(tmp_path / "elsewhere")
    for act in (open_file, show_folder):
        with pytest.raises(InputError, match=r"/a: was replaced by a symbolic link"):
            act(file)


def test_a_hard_link_to_another_file_is_only_revealed(root, tmp_path, opened):
    file = written(root, "letter.txt")
    (tmp_path / "elsewhere.txt").write_text("outside of every root")
    (root / "letter.txt").unlink()
    os.link(tmp_path / "elsewhere.txt", root / "letter.txt")
    assert "took its place" in open_file(file)
    assert opened() == str(root)


def test_a_file_with_several_names_from_the_beginning_is_opened(root, tmp_path, opened):
    file = written(root, "letter.txt")
    os.link(file.path, tmp_path / "second.txt")
    assert open_file(file) is None
    assert opened() == file.path


def test_a_file_that_an_editor_saved_by_renaming_is_opened(root, opened):
    file = written(root, "letter.txt")
    (root / ".letter.txt.new").write_text("edited")
    (root / ".letter.txt.new").rename(root / "letter.txt")
    assert (root / "letter.txt").stat().st_ino != file.inode
    assert open_file(file) is None
    assert opened() == file.path


def test_what_the_new_file_is_decides(root, opened):
    file = written(root, "letter.txt")
    (root / "new").write_bytes(b"#!/bin/sh\n")
    (root / "new").rename(root / "letter.txt")
    assert "script" in open_file(file)
    assert opened() == str(root)


def test_a_root_that_is_a_link_or_a_file_is_what_the_person_chose(root, tmp_path, opened):
    file = written(root, "sub/letter.txt")
    (tmp_path / "link").symlink_to(root)
    through = IndexedFile(str(tmp_path / "link/sub/letter.txt"), str(tmp_path / "link"), file.inode)
    assert open_file(through) is None
    assert opened() == file.path
    assert open_file(IndexedFile(file.path, file.path, file.inode)) is None
    assert opened() == file.path
    show_folder(through)
    assert opened() == str(root / "sub")


def test_paths_outside_of_roots_and_of_the_index(root, opened, tmp_path):
    file = written(root, "letter.txt")
    (tmp_path / "elsewhere.txt").write_text("text")
    for path in (str(tmp_path / "elsewhere.txt"), f"{root}/../elsewhere.txt", f"{root}/./letter.txt"):
        with pytest.raises(InputError):
            open_file(IndexedFile(path, None if "/files" not in path else str(root), None))
    assert "does not have it" in open_file(file._replace(inode=None))
    assert opened() == str(root)
    (root / "letter.txt").unlink()
    assert "cannot be read" in open_file(file)
    assert opened() == str(root)
    os.mkfifo(root / "letter.txt")
    assert "regular" in open_file(file)
    assert opened() == str(root)
    root.rename(tmp_path / "moved")
    with pytest.raises(InputError, match="folder cannot be opened"):
        show_folder(file)


def test_a_document_is_opened_by_its_absolute_path(root, opened, monkeypatch):
    monkeypatch.chdir(root)
    file = written(root, "--option $(id).txt")
    assert open_file(file) is None
    assert opened() == file.path


# ---- macOS


@pytest.fixture
def finder(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    return desktop(tmp_path, monkeypatch, "open")


@pytest.mark.parametrize("bundle", ["X.app", "X.workflow", "X.prefPane", "X.pkg", "X.kext", "X.bundle"])
def test_showing_the_folder_of_a_file_in_a_bundle_starts_nothing(bundle, root, finder):
    file = written(root, f"{bundle}/letter.txt")
    show_folder(file)
    assert finder() == f"-R|{file.path}"
    (root / bundle / "letter.txt").chmod(0o755)
    assert open_file(file)
    assert finder() == f"-R|{file.path}"
    (root / bundle / "letter.txt").unlink()
    show_folder(file)
    assert finder() == f"-R|{root / bundle}"


def test_a_document_is_opened_on_macos_too(root, finder):
    file = written(root, "letter.txt")
    assert open_file(file) is None
    assert finder() == file.path


# ---- page and command line


def test_the_command_opens_the_file_that_was_indexed_and_no_link(root, tmp_path, opened, monkeypatch):
    (root / "letter.txt").write_text("apple")
    monkeypatch.setenv("FOLTR_NODE_HOME", str(tmp_path / "home"))
    with foltr.node.open() as node:
        node.add([root])
        list(node.index())
        stored = node.indexed_file(str(root / "letter.txt"))
        assert stored == IndexedFile(str(root / "letter.txt"), str(root), (root / "letter.txt").stat().st_ino)
        assert node.indexed_file(str(root / "other.txt")).inode is None
        assert node.indexed_file(str(tmp_path / "x.txt")).root is None
    run = CliRunner()
    assert run.invoke(app, ["search", "apple"]).exit_code == 0
    assert run.invoke(app, ["open", "1"]).exit_code == 0
    assert opened() == str(root / "letter.txt")
    (root / "letter.txt").rename(tmp_path / "secret.txt")
    (root / "letter.txt").symlink_to(tmp_path / "secret.txt")
    monkeypatch.setattr("foltr.node.search.desktop._launch", lambda arguments: pytest.fail(f"opened {arguments}"))
    refused = run.invoke(app, ["open", "1"])
    assert isinstance(refused.exception, InputError)
    assert "symbolic link" in str(refused.exception)


@pytest.mark.parametrize("field", ["open", "folder"])
def test_the_page_opens_nothing_that_became_a_link_after_it_was_shown(field, root, tmp_path, nothing_opened):
    """The file itself for opening, the folder above it for showing the folder; such a choice is not remembered."""
    (root / "inner").mkdir()
    (root / "inner/letter.txt").write_text("apple")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/letter.txt").write_text("outside of every root")
    with foltr.node.open(tmp_path / "home") as node:
        node.add([root])
        list(node.index())
        results = node.search("apple")
        replaced = root / ("inner/letter.txt" if field == "open" else "inner")
        replaced.rename(tmp_path / "before")
        replaced.symlink_to(tmp_path / ("elsewhere/letter.txt" if field == "open" else "elsewhere"))
        with pytest.raises(InputError, match="symbolic link"):
            actions.act(node, {field: str(results.rows[0].id), "search_id": results.search_id, "q": "apple"})
        (choice,) = [choice for one in node.history() for choice in one.choices]
        assert choice.withdrawn
