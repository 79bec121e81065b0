"""A disk that is away: its documents stay, are found and marked; files that were deleted are not shown."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

import foltr.node
from foltr.cli.node import app
from foltr.errors import InputError
from foltr.node.index import away
from foltr.node.search import desktop


@pytest.fixture
def disk(tmp_path):
    """A folder that stands for a disk, and one that is always there; both have apples."""
    for name in ("disk", "here"):
        (tmp_path / name / "sub").mkdir(parents=True)
        for number in range(3):
            (tmp_path / name / "sub" / f"{name}{number}.txt").write_text("apples from the garden")
    return tmp_path / "disk"


@pytest.fixture
def opened(disk, tmp_path):
    with foltr.node.open(tmp_path / "home") as node:
        node.add([disk, tmp_path / "here"])
        list(node.index())
        yield node


def shown(node):
    return {Path(row.path).name: row.away for row in node.search("apples").rows}


EVERY = {f"{name}{number}.txt" for name in ("disk", "here") for number in range(3)}


@pytest.fixture(params=["missing", "empty mount point"])
def unmounted(request, disk, tmp_path, monkeypatch):
    """Takes the disk away: nothing is where it was, or an empty folder on another device."""

    def take_away():
        disk.rename(tmp_path / "elsewhere")
        if request.param == "empty mount point":
            disk.mkdir()
            monkeypatch.setattr(away, "stored_device", lambda *_: 12345)

    return take_away


def test_documents_of_a_disk_that_is_away_are_found_and_marked(opened, unmounted, disk, tmp_path):
    assert shown(opened) == dict.fromkeys(EVERY, False)
    unmounted()
    for _ in range(2):
        assert shown(opened) == {name: name.startswith("disk") for name in EVERY}
        list(opened.index())  # a scan removes nothing
    (root, reason), = opened.status().away.items()  # fmt: skip
    assert root == str(disk)
    assert reason
    why = opened.why(disk / "sub" / "disk1.txt")
    assert (why.state, why.documents) == ("away", 1)
    assert "kept" in why.reason
    file = opened.indexed_file(str(disk / "sub" / "disk1.txt"))
    with pytest.raises(InputError, match="cannot be opened"):
        desktop.opening(file, tmp_path / "copies")
    if disk.exists():
        disk.rmdir()
    (tmp_path / "elsewhere").rename(disk)
    assert shown(opened) == dict.fromkeys(EVERY, False)


def test_an_exclusion_erases_documents_of_a_disk_that_is_away(opened, unmounted, disk, tmp_path):
    unmounted()
    opened.exclude(["disk1.txt"])
    assert shown(opened) == {name: name.startswith("disk") for name in EVERY - {"disk1.txt"}}
    assert opened.status().documents == 5


def test_deleted_files_of_a_disk_that_is_there_are_not_shown(opened, disk):
    (disk / "sub" / "disk1.txt").unlink()
    assert shown(opened) == dict.fromkeys(EVERY - {"disk1.txt"}, False)
    assert opened.status().away == {}


def test_a_disk_whose_files_were_all_deleted_is_not_away(opened, disk):
    for file in (disk / "sub").iterdir():
        file.unlink()
    (disk / "sub").rmdir()
    assert shown(opened) == {name: False for name in EVERY if name.startswith("here")}
    list(opened.index())
    assert opened.status().away == {}
    assert opened.status().documents == 3


def test_a_single_file_that_was_deleted_is_not_away(tmp_path):
    (tmp_path / "single.txt").write_text("apples")
    with foltr.node.open(tmp_path / "home") as node:
        node.add([tmp_path / "single.txt"])
        list(node.index())
        (tmp_path / "single.txt").unlink()
        assert node.search("apples").rows == ()
        assert node.status().away == {}


def test_a_folder_without_permission_is_not_away(opened, disk, monkeypatch):
    def refuses(folder):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuses)
    assert opened.status().away == {}


def test_commands_say_that_a_disk_is_away(opened, unmounted, disk, monkeypatch, tmp_path):
    unmounted()
    monkeypatch.setenv("FOLTR_NODE_HOME", str(tmp_path / "home"))
    ran = CliRunner().invoke(app, ["status"])
    assert f"searches {disk}, AWAY: it " in ran.output.replace("\n", " ")
    assert "its disk is away" in CliRunner().invoke(app, ["search", "apples"]).output.replace("\n", " ")
    assert ": away, the root" in CliRunner().invoke(app, ["why", str(disk / "sub" / "disk1.txt")]).output
