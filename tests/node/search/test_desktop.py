"""What is opened is the file that was indexed; what could run is asked about, what hides what it is is only shown."""

import os
import sys
from pathlib import Path

import pytest
from fake_desktop import Desktop
from typer.testing import CliRunner

import foltr.node
from foltr.cli.node import app
from foltr.errors import InputError
from foltr.node.page import actions
from foltr.node.search import consents
from foltr.node.search.desktop import IndexedFile, Question, opening, revealing, start
from foltr.node.search.launchable import LAUNCHABLE, RISKS, ending_of, is_invisible

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at what xdg-open gets")

DANGEROUS = {
    "letter.desktop": (b"[Desktop Entry]\nExec=rm", "launchers"),
    "letter.txt": (b"\n\n[Desktop Entry]\nExec=rm", "launchers"),
    "address.txt": (b"[InternetShortcut]\nURL=file:///bin/sh", "launchers"),
    "script": (b"#!/bin/sh\nrm", "scripts"),
    "run.SH": (b"echo", "scripts"),
    "report.pdf.exe": (b"text", "programs"),
    "binary.pdf": (b"\x7fELF....", "programs"),
    "windows.txt": (b"MZ....", "programs"),
    "macro.docm": (b"PK", "macros"),
    "mac.txt": (b"\xcf\xfa\xed\xfe", "programs"),
    "setup.deb": (b"!<arch>", "packages"),
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


def open_file(file, **options):
    """Opens a file as the command line does; the reason where its folder is shown, the risk where it asks."""
    launch = opening(file, Path(file.path).parents[1] / "copies", **options)
    if isinstance(launch, Question):
        return launch.risk.kind
    start(launch)
    return launch.revealed


def show_folder(file):
    start(revealing(file))


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
def test_what_could_run_is_a_question_until_the_person_agreed(name, root, opened):
    content, risk = DANGEROUS[name]
    file = written(root, name, content)
    assert open_file(file) == risk
    others = [kind for kind in RISKS if kind != risk]
    assert open_file(file, allowed=others) == risk
    assert opened.nothing()
    assert open_file(file, allowed=[risk]) is None
    assert opened() == file.path


@pytest.mark.parametrize("ending", LAUNCHERS)
def test_what_launches_or_installs_is_a_question(ending, root, opened):
    for name in (f"letter{ending}", f"letter{ending.upper()}."):
        assert open_file(written(root, name)) in RISKS
    assert opened.nothing()


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
    assert open_file(written(root, f"letter.desktop{letter}"), allowed=[])
    assert opened.nothing() or opened() == str(root)


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
    odd = root / "x\nhttps:"
    file = written(odd, "letter.txt")
    for act in (open_file, show_folder):
        with pytest.raises(InputError, match="yourself") as refused:
            act(file)
        assert "\n" not in str(refused.value)
    assert opened.nothing()


# ---- permissions, text and the editor


def on_file_system(monkeypatch, tmp_path, folder, kind):
    """The mount table says that the device of a folder has a type."""
    device = folder.stat().st_dev
    line = f"36 35 {os.major(device)}:{os.minor(device)} / /media rw,noatime shared:1 - {kind} /dev/sdb1 rw\n"
    (tmp_path / "mountinfo").write_text(line)
    monkeypatch.setattr("foltr.node.search.desktop._MOUNTS", tmp_path / "mountinfo")


@pytest.mark.parametrize("kind", ["exfat", "vfat", "ntfs3", "fuseblk", "cifs", "smb3"])
def test_where_every_file_is_marked_as_executable_the_mark_says_nothing(kind, root, opened, monkeypatch, tmp_path):
    on_file_system(monkeypatch, tmp_path, root, kind)
    for name, content in (("notes.txt", b"text"), ("paper.pdf", b"%PDF-1.4"), ("numbers.dat", b"\1\0\2\0" * 9)):
        file = written(root, name, content)
        (root / name).chmod(0o777)
        assert open_file(file) is None
        assert opened() == file.path


def test_where_permissions_are_stored_a_mark_counts_for_text_and_for_what_nobody_knows(
    root, opened, monkeypatch, tmp_path
):
    on_file_system(monkeypatch, tmp_path, root, "ext4")
    risks = {}
    for name, content in (("notes.txt", b"text"), ("paper.pdf", b"%PDF-1.4"), ("numbers.dat", b"\1\0\2\0" * 9)):
        file = written(root, name, content)
        (root / name).chmod(0o755)
        risks[name] = open_file(file)
    assert risks == {"notes.txt": "scripts", "paper.pdf": None, "numbers.dat": "programs"}
    assert opened() == str(root / "paper.pdf")
    assert opened.nothing()


SOURCES = {
    "tool.py": b"import os", "run.sh": b"#!/bin/sh\necho", "notes.txt": b"text", "page.js": b"alert(1)",
    "app.desktop": b"[Desktop Entry]\nExec=rm", "unit.service": b"[Unit]", "script": b"#!/usr/bin/perl",
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("mode", [0o644, 0o777])
def test_text_and_source_code_open_in_the_editor_and_not_in_what_runs_them(name, mode, root, opened):
    """The default program for Python files is an interpreter here, as with the packages of some distributions."""
    opened.program("python3")
    opened.program("gedit")
    opened.entry("python", "python3 %f", "text/x-python;", default="text/x-python")
    opened.entry("gedit", "gedit %U", "text/plain;", Categories="GNOME;TextEditor;", default="text/plain")
    file = written(root, name, SOURCES[name])
    (root / name).chmod(mode)
    assert open_file(file._replace(line=3, kind="code")) is None
    assert opened() == f"gedit|+3|{file.path}"


def test_the_persons_own_editor_for_a_language_comes_before_that_for_text(root, opened):
    for name, types in (("gedit", "text/plain"), ("kate", "text/x-python")):
        opened.program(name)
        opened.entry(name, f"{name} %F", f"{types};", Categories="TextEditor;", default=types)
    file = written(root, "tool.py")
    assert open_file(file._replace(line=12)) is None
    assert opened() == f"kate|--line|12|{file.path}"


def test_without_an_editor_of_the_desktop_that_of_the_shell_is_used(root, opened, monkeypatch):
    opened.program("emacs")
    monkeypatch.setenv("EDITOR", "emacs --no-splash")
    file = written(root, "tool.py")
    assert open_file(file._replace(line=2)) is None
    assert opened() == f"emacs|+2|{file.path}"
    monkeypatch.setenv("EDITOR", "emacs 'unfinished")
    assert open_file(file) == "scripts"


# ---- pages and lines


AT_PAGE = {
    "evince": "--page-index=7|{file}", "okular": "--page|7|{file}", "zathura": "--page=7|{file}", "xpdf": "{file}|7",
    "firefox": "{uri}#page=7",
}  # fmt: skip
AT_LINE = {
    "gedit": "+7|{file}", "kate": "--line|7|{file}", "code": "--goto|{file}:7", "emacs": "+7|{file}",
}  # fmt: skip


@pytest.mark.parametrize("program", AT_PAGE)
def test_a_pdf_opens_at_the_page_of_the_match(program, root, opened):
    opened.program(program)
    opened.entry(program, f"{program} %U", "application/pdf;", default="application/pdf")
    file = written(root, "my $(touch x) {n} paper.pdf", b"%PDF-1.4")
    assert open_file(file._replace(kind="pdf", page=7)) is None
    uri = Path(file.path).as_uri()
    assert opened() == f"{program}|" + AT_PAGE[program].replace("{file}", file.path).replace("{uri}", uri)


@pytest.mark.parametrize("program", AT_LINE)
def test_a_text_opens_at_the_line_of_the_match(program, root, opened):
    opened.program(program)
    opened.entry(program, f"{program} %U", "text/plain;", default="text/plain")
    file = written(root, "my $(touch x) ; notes.txt")
    assert open_file(file._replace(kind="text", line=7)) is None
    assert opened() == f"{program}|" + AT_LINE[program].replace("{file}", file.path)


def test_a_terminal_editor_opens_in_a_terminal(root, opened):
    for name in ("vim", "x-terminal-emulator"):
        opened.program(name)
    opened.entry("vim", "vim %F", "text/plain;", Terminal="true", default="text/plain")
    file = written(root, "notes.txt")
    assert open_file(file._replace(line=7)) is None
    assert opened() == f"x-terminal-emulator|-e|vim|+7|{file.path}"


def test_a_colon_in_a_name_is_never_taken_for_a_line(root, opened):
    opened.program("code")
    opened.entry("code", "code --new-window %F", "text/plain;", default="text/plain")
    file = written(root, "notes:12.txt")
    assert open_file(file._replace(line=7)) is None
    assert opened() == f"code|--new-window|{file.path}"


def test_a_program_that_is_not_known_for_pages_is_left_to_the_desktop(root, opened):
    opened.program("strange")
    opened.entry("strange", "strange %f", "application/pdf;", default="application/pdf")
    file = written(root, "paper.pdf", b"%PDF-1.4")
    assert open_file(file._replace(page=7)) is None
    assert opened() == file.path


@pytest.mark.parametrize("command", ['sh -c "gedit %f"', "gedit --file=%f", "gedit '%U;id'", 'gedit "%f', "gone %f"])
def test_an_entry_that_wants_the_file_inside_of_another_argument_is_not_used(command, root, opened):
    """`sh -c` would read the name of the file as a command."""
    opened.program("gedit")
    opened.entry("gedit", command, "text/plain;", Categories="TextEditor;", default="text/plain")
    file = written(root, "$(touch attacked).py")
    assert open_file(file._replace(line=3)) == "scripts"
    assert opened.nothing()


# ---- a program that the person chooses


def test_a_chosen_program_opens_the_file_and_no_other_name_is_taken(root, opened):
    for name in ("gedit", "viewer"):
        opened.program(name)
        opened.entry(name, f"{name} --new %u", "text/plain;", Categories="TextEditor;" * (name == "gedit"))
    file = written(root, "a b.txt")
    assert open_file(file, application="viewer.desktop") is None
    assert opened() == f"viewer|--new|{Path(file.path).as_uri()}"
    for other in ("../viewer.desktop", "viewer", "/bin/sh", "viewer.desktop\0"):
        with pytest.raises(InputError, match="no such program"):
            open_file(file, application=other)


def test_a_chosen_program_that_is_no_editor_does_not_avoid_the_question(root, opened):
    for name in ("gedit", "python3"):
        opened.program(name)
        opened.entry(name, f"{name} %f", "text/x-python;text/plain;", Categories="TextEditor;" * (name == "gedit"))
    file = written(root, "tool.py")
    assert open_file(file, application="python3.desktop") == "scripts"
    assert opened.nothing()
    assert open_file(file, application="gedit.desktop") is None
    assert opened() == f"gedit|{file.path}"


# ---- a program that fails


def test_a_program_that_ends_with_an_error_is_an_error(root, opened):
    opened.program("xdg-open", code=4)
    with pytest.raises(InputError, match="exit code 4: the program failed"):
        open_file(written(root, "letter.txt"))


def test_a_program_that_was_killed_or_cannot_start_is_an_error(root, opened, tmp_path):
    program = tmp_path / "desktop" / "programs" / "xdg-open"
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    with pytest.raises(InputError, match="signal 9"):
        open_file(written(root, "letter.txt"))
    program.write_text("#!/does/not/exist\n")
    with pytest.raises(InputError, match="cannot be started"):
        open_file(written(root, "letter.txt"))


# ---- the file that was indexed


@pytest.fixture
def nothing_opened(opened):
    yield
    assert opened.nothing()


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
    assert open_file(file) == "scripts"
    assert opened.nothing()


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
    desktop = Desktop(tmp_path / "desktop", monkeypatch.setenv)
    desktop.program("open")
    return desktop


@pytest.mark.parametrize("bundle", ["X.app", "X.workflow", "X.prefPane", "X.pkg", "X.kext", "X.bundle"])
def test_showing_the_folder_of_a_file_in_a_bundle_starts_nothing(bundle, root, finder):
    file = written(root, f"{bundle}/letter.txt")
    show_folder(file)
    assert finder() == f"-R|{file.path}"
    assert open_file(file._replace(inode=None))
    assert finder() == f"-R|{file.path}"
    (root / bundle / "letter.txt").unlink()
    show_folder(file)
    assert finder() == f"-R|{root / bundle}"


def test_a_document_is_opened_on_macos_too(root, finder):
    file = written(root, "letter.txt")
    assert open_file(file) is None
    assert finder() == file.path
    file = written(root, "tool.command", b"#!/bin/sh\n")
    assert open_file(file) is None
    assert finder() == f"-t|{file.path}"  # in the text editor
    assert open_file(written(root, "Tool.app")) == "programs"


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
    refused = run.invoke(app, ["open", "1"])
    assert opened.nothing()
    assert isinstance(refused.exception, InputError)
    assert "symbolic link" in str(refused.exception)


def test_the_command_shows_the_folder_of_what_the_page_would_ask_about_until_it_was_allowed(
    root, tmp_path, opened, monkeypatch
):
    (root / "tool.js").write_text("apple")
    monkeypatch.setenv("FOLTR_NODE_HOME", str(tmp_path / "home"))
    with foltr.node.open() as node:
        node.add([root])
        list(node.index())
    run = CliRunner()
    run.invoke(app, ["search", "apple"])
    said = run.invoke(app, ["open", "1"])
    assert opened() == str(root)
    assert "the page asks once" in " ".join(said.output.split())
    with foltr.node.open() as node:
        consents.give(node.places, "scripts")
    run.invoke(app, ["open", "1"])
    assert opened() == str(root / "tool.js")


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
        assert all(choice.withdrawn for one in node.history() for choice in one.choices)
