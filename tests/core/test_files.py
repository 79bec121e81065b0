"""Files: a crash leaves the old one, private ones are private at once, locks exclude, planted links are harmless."""

import os
import subprocess
import sys

import pytest

from foltr import files
from foltr.errors import StorageError


@pytest.fixture
def loose_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path):
    return path.stat().st_mode & 0o777


def test_a_crash_between_write_and_rename_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    file = tmp_path / "state"
    files.write_durably(file, b"old")
    monkeypatch.setattr(type(file), "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        files.write_durably(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_process_that_is_killed_while_it_writes_leaves_the_old_file(tmp_path):
    file = tmp_path / "state"
    files.write_durably(file, b"old")
    code = (
        "import os, sys; from pathlib import Path; from foltr import files\n"
        "with files.atomic_write(Path(sys.argv[1])) as part: part.write_bytes(b'ne'); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(file)], check=False).returncode == 9
    assert file.read_bytes() == b"old"


def test_private_files_and_folders_are_private_under_a_loose_umask(tmp_path, loose_umask):
    deep = tmp_path / "a" / "b" / "state"
    files.write_durably(deep, b"x")
    files.create_private(tmp_path / "key", b"x")
    files.write_json(tmp_path / "json", {}, private=True)
    files.private_file(tmp_path / "empty")
    with files.locked(tmp_path / "c" / "state"):
        pass
    private = [deep, tmp_path / "key", tmp_path / "json", tmp_path / "empty", tmp_path / "c" / ".state.lock"]
    assert {mode(path) for path in private} == {0o600}
    assert {mode(tmp_path / name) for name in ("a", "a/b", "c")} == {0o700}


def test_a_private_file_is_private_before_its_content_is_written(tmp_path, loose_umask):
    with files.atomic_write(tmp_path / "secret", private=True) as temporary:
        assert mode(temporary) == 0o600
        temporary.write_text("x")


def test_folders_that_exist_are_not_changed_by_a_state_in_them(tmp_path):
    tmp_path.chmod(0o755)
    files.write_durably(tmp_path / "state", b"x")
    assert mode(tmp_path) == 0o755


def test_a_key_is_never_overwritten(tmp_path):
    files.create_private(tmp_path / "key", b"first")
    with pytest.raises(StorageError, match=r"key could not be written: File exists; give the path of a new file"):
        files.create_private(tmp_path / "key", b"second")
    assert (tmp_path / "key").read_bytes() == b"first"


def test_a_planted_link_redirects_no_write(tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    for name in ("state", ".state.lock", "key", "empty"):
        (tmp_path / name).symlink_to(target)
    files.write_durably(tmp_path / "state", b"x")  # replaces the link
    with pytest.raises(StorageError, match="cannot be written"):
        files.private_file(tmp_path / "empty")
    with pytest.raises(StorageError, match="could not be written"):
        files.create_private(tmp_path / "key", b"x")
    with pytest.raises(StorageError, match="a symbolic link stands where"), files.locked(tmp_path / "state"):
        pass
    assert target.read_bytes() == b"precious"
    assert (tmp_path / "state").read_bytes() == b"x"


def test_a_link_in_the_place_of_a_temporary_file_is_not_followed(tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    with files.atomic_write(tmp_path / "state") as temporary:
        name = temporary
        temporary.write_bytes(b"x")
    name.symlink_to(target)
    files.write_text(tmp_path / "state", "y")
    assert target.read_bytes() == b"precious"


HOLD = """
import sys; from pathlib import Path; from foltr import files
with {}: print("held", flush=True); sys.stdin.read()
"""


def holding(lock, path):
    command = [sys.executable, "-c", HOLD.format(lock), str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    return process


def test_a_lock_that_another_process_holds_is_refused_with_its_number(tmp_path):
    other = holding("files.held(Path(sys.argv[1]), 'x')", tmp_path / "lock")
    try:
        with (
            pytest.raises(StorageError, match=rf"process \(number {other.pid}\) is indexing; wait for it or end it"),
            files.held(tmp_path / "lock", "indexing"),
        ):
            pass
    finally:
        other.communicate("")
    with files.held(tmp_path / "lock", "indexing"):
        pass


@pytest.mark.parametrize("link", ["none", "symbolic", "hard", "folder"])
def test_all_names_of_a_file_have_one_lock(tmp_path, link):
    """`locked` waits, so the lock is tried from outside: while another process holds one name, no name is free."""
    import fcntl

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    file, other = tmp_path / "a" / "state", tmp_path / "b" / "name"
    file.write_bytes(b"x")
    if link == "symbolic":
        other.symlink_to(file)
    elif link == "hard":
        other.hardlink_to(file)
    elif link == "folder":
        (tmp_path / "c").symlink_to(tmp_path / "a")
        other = tmp_path / "c" / "state"
    else:
        other = file
    holder = holding("files.locked(Path(sys.argv[1]))", file)
    try:
        with other.open("rb") as stream, pytest.raises(BlockingIOError):
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        holder.communicate("")
    with files.locked(file, other):  # two names of one file: no deadlock with itself
        pass


def test_an_announcement_lives_as_long_as_its_writer(tmp_path):
    other = holding("files.announced(Path(sys.argv[1]), '{}')", tmp_path / "running")
    assert files.is_announced(tmp_path / "running")
    other.kill()
    other.communicate()
    assert not files.is_announced(tmp_path / "running")


def test_relative_xdg_folders_are_ignored(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("FOLTR_CACHE", raising=False)
    for value, cache in (("", tmp_path / ".cache"), ("relative", tmp_path / ".cache"), ("/x", "/x")):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert str(files.cache_home()) == f"{cache}/foltr"


def test_what_cannot_be_written_is_named_with_what_to_do(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match=r"file/state: cannot be written \(File exists\); choose another folder"):
        files.write_text(tmp_path / "file" / "state", "x")
