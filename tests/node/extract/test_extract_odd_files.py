"""Files that are none, or that are not what they were."""

import gzip
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from sample_files import (
    mbox,
    plain_message,
    results,
)

from foltr.node.extract import Extracted, Extractor, Failure, Limits
from foltr.node.extract.files import check_unchanged, open_regular, read_all, received_file
from foltr.node.extract.records import Refused

HEADS = {
    "a.txt": b"words ", "a.html": b"<html>", "a.pdf": b"%PDF-1.4\n", "a.docx": b"PK\3\4",
    "a.txt.gz": gzip.compress(b"x"),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADS)
def test_a_sparse_file_of_2_gb(tmp_path, name):
    path, good = tmp_path / name, tmp_path / "good.txt"
    good.write_text("good")
    path.write_bytes(HEADS[name] * 10_000)
    os.truncate(path, 2 << 30)
    found = results([path, good])
    path.unlink()
    assert found[path] == Failure("skipped", "larger than 64 MB")
    assert isinstance(found[good], Extracted)


def test_a_sparse_mbox_is_read_piece_by_piece(tmp_path):
    path = tmp_path / "a.mbox"
    path.write_bytes(mbox(plain_message(1), plain_message(2, "long " * 3000)))
    os.truncate(path, 256 << 20)
    found = results([path], memory=256 << 20, limits=Limits(message_bytes=1 << 20))[path]
    path.unlink()
    assert [(document.part, document.truncated) for document in found.documents] == [("1@x", False), ("2@x", True)]


def test_links_pipes_sockets_devices_and_folders(tmp_path, monkeypatch):
    (tmp_path / "real.txt").write_text("words")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    (tmp_path / "loop1").symlink_to(tmp_path / "loop2")
    (tmp_path / "loop2").symlink_to(tmp_path / "loop1")
    (tmp_path / "self").symlink_to(tmp_path / "self")
    os.mkfifo(tmp_path / "fifo.txt")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tmp_path)  # the path of a socket is short
        listener.bind("socket.txt")
        found = results(
            [tmp_path / name for name in ("link.txt", "loop1", "self", "self/a.txt", "fifo.txt", "socket.txt", ".")]
            + ["/dev/null", "/dev/zero", "/dev/tty", tmp_path / "real.txt"]
        )
    reasons = [result.reason for result in found.values() if isinstance(result, Failure)]
    assert reasons[:4] == ["a symbolic link"] * 4
    assert set(reasons[4:]) == {"not a regular file"}
    assert {result.state for result in found.values() if isinstance(result, Failure)} == {"skipped"}
    assert found[tmp_path / "real.txt"].documents[0].body == "words"


@pytest.mark.parametrize(
    "name",
    [
        b"two\nlines.txt",
        b"\x1b[31mred\x1b[0m.txt",
        b"invalid\xff\xfe.txt",
        "\u202egpj.txt".encode(),
        b" ",
        b"-rf",
        b"\\x",
    ],
)
def test_names_pass_unchanged(tmp_path, name):
    path = os.fsencode(tmp_path) + b"/" + name
    Path(os.fsdecode(path)).write_bytes(b"words")
    for given in (path, os.fsdecode(path)):
        ((returned, result),) = results([given]).items()
        assert returned == given
        assert result.documents[0].body == "words"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/nowhere/at/all.txt", "vanished before it was read"),
        ("/etc/passwd/a.txt", "vanished before it was read"),
        ("/" + "a" * 300, "cannot be read (File name too long)"),
        ("/" + "a/" * 5000, "not a path that can be opened"),
        ("/etc/a\0b", "not a path that can be opened"),
    ],
)  # fmt: skip
def test_paths_that_cannot_be_opened(tmp_path, path, reason):
    good = tmp_path / "good.txt"
    good.write_text("good")
    found = results([path, str(good)])
    assert found[path] == Failure("failed", reason)
    assert isinstance(found[str(good)], Extracted)


def test_relative_paths(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("relative")
    monkeypatch.chdir(tmp_path)
    assert results(["a.txt"])["a.txt"].documents[0].body == "relative"


NO_PERMISSION = """
import ctypes, struct, sys
from foltr.node.extract import Extractor
if sys.platform == "linux":  # without the privileges of root
    ctypes.CDLL(None).capset(struct.pack("=Ii", 0x20080522, 0), bytes(24))
with Extractor() as extractor:
    for path, result in extractor.extract(sys.argv[1:]):
        print(getattr(result, "reason", "read"))
"""


def test_files_and_folders_without_permission(tmp_path):
    secret, folder, good = tmp_path / "secret.txt", tmp_path / "folder", tmp_path / "good.txt"
    folder.mkdir()
    for path in (secret, folder / "inside.txt", good):
        path.write_text("words")
    for path in (secret, folder):
        if os.geteuid() == 0:
            os.chown(path, 12345, 12345)
        path.chmod(0)
    try:
        done = subprocess.run(
            [sys.executable, "-c", NO_PERMISSION, secret, folder / "inside.txt", good],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    finally:
        folder.chmod(0o700)
    if sys.platform != "linux" and os.geteuid() == 0:
        pytest.skip("root reads everything here")
    assert done.stdout.splitlines() == ["no permission to read it", "no permission to read it", "read"]


def refusal(act, path):
    """What reading says after `act` has happened to an open file."""
    file = open_regular(os.fsencode(path))
    try:
        act()
        check_unchanged(file)
    except Refused as refused:
        return refused.failure
    finally:
        os.close(file.descriptor)
    return None


@pytest.mark.parametrize("size", [100, 100_000])
def test_a_file_that_changes_between_opening_and_reading(tmp_path, size):
    path = tmp_path / "a.txt"

    def append():
        with path.open("ab") as more:
            more.write(b"more")

    def rewrite():
        status = path.stat()
        path.write_bytes(b"y" * size)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # hides the change from the time of modification

    changes = {
        append: Failure("waiting", "changed while it was read"),
        rewrite: Failure("waiting", "changed while it was read"),
        lambda: os.truncate(path, 10): Failure("waiting", "changed while it was read"),
        path.unlink: Failure("failed", "vanished while it was read"),
    }
    for act, expected in changes.items():
        path.write_bytes(b"x" * size)
        assert refusal(act, path) == expected


@pytest.mark.parametrize("size", [100, 100_000])
def test_a_child_does_not_parse_a_file_that_grew_or_shrank(tmp_path, size):
    path = tmp_path / "a.txt"
    for change in (-1, 1):
        path.write_bytes(b"x" * size)
        opened = open_regular(os.fsencode(path))
        os.truncate(path, size + change)
        received = received_file(opened.descriptor, b"a.txt", opened.size)
        with pytest.raises(Refused, match="changed while it was read"):
            read_all(received, 1 << 30)
        os.close(opened.descriptor)


def test_the_version_that_was_read_is_told(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("words")
    os.utime(path, ns=(1, 1_600_000_000_123_456_789))
    with Extractor() as extractor:
        ((_, result),) = extractor.extract([path])
    assert (result.size, result.modified) == (5, 1_600_000_000_123_456_789)
