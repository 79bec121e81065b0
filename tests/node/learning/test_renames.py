"""What a person taught the node about a file goes along when the file is renamed or moved, and nowhere else."""

import os
import shutil

import pytest

import foltr.node
from foltr.node.learning import curations

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "documents").mkdir()
    for name in ("pear", "plum", "fig"):
        (tmp_path / f"documents/{name}.md").write_text(f"# About {name}\n\nfruit {name} " + name * 3)
    (tmp_path / "documents/apple.md").write_text("# About the apple\n\nfruit apple tree")
    (tmp_path / "documents/apple photo.png").write_bytes(PNG + b"apple")
    return tmp_path / "documents"


@pytest.fixture
def node(folder, tmp_path):
    with foltr.node.open(tmp_path / "home") as opened:
        opened.add([folder])
        list(opened.index())
        yield opened


def teach(node, name, query="fruit"):
    """Opens a file for a query, and pins it for another one."""
    results = node.search(query, 50)
    row = next(row for row in results.rows if row.path.endswith(f"/{name}"))
    node.choose(results, row.id)
    curations.put(node.log, "red", row.path, "pinned", 1e9)
    curations.put(node.log, "blue", row.path, "hidden", 1e9)
    return row.path


def taught(node):
    """Names of the files that memory, counts, pins and hidden results speak of."""

    def last(key):
        return key.rpartition("/")[2]

    return (
        {last(found.document) for found in node.log.lookup("fruit", 2e9)} or
        {last(use.document) for use in node.log.uses()},
        {last(key) for key in node.log.openings(2e9).documents},
        set(map(last, curations.of(node.log, "red").pinned)),
        set(map(last, curations.of(node.log, "blue").hidden)),
    )  # fmt: skip


def everywhere(name):
    return ({name},) * 4


@pytest.mark.parametrize("target", ["renamed.md", "inner/apple.md", "../elsewhere/apple.md"])
def test_memory_counts_pins_and_hidden_results_follow_a_file(node, folder, target, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    node.add([tmp_path / "elsewhere"])
    teach(node, "apple.md")
    (folder / target).parent.mkdir(exist_ok=True)
    (folder / "apple.md").rename(folder / target)
    list(node.index())
    assert taught(node) == everywhere(target.rpartition("/")[2])
    assert node.search("fruit").rows[0].path == os.path.normpath(folder / target)
    assert node.search("fruit").rows[0].remembered


def test_they_follow_a_folder_and_a_mailbox_with_its_parts(node, folder):
    (folder / "mail").mkdir()
    message = (
        "From ada@example.org Mon Jan  1 10:00:0{0} 2024\nFrom: ada@example.org\nSubject: fruit basket {0}\n\nyes\n\n"
    )
    (folder / "mail/box.mbox").write_text("".join(message.format(i) for i in range(3)))
    list(node.index())
    results = node.search("fruit basket 1")
    node.choose(results, results.rows[0].id)
    part = results.rows[0].part
    (folder / "mail").rename(folder / "post")
    list(node.index())
    (use,) = node.log.uses()
    assert use.document == f"{folder}/post/box.mbox\0{part}"
    assert node.search("fruit basket 1").rows[0].remembered


@pytest.mark.parametrize("name", ["apple.md", "apple photo.png"])
def test_they_follow_equal_content_where_the_inode_is_another(node, folder, name):
    """As a move to another disk leaves it: a new file, and the old one is gone."""
    teach(node, name, "apple")
    list(node.index())
    shutil.copy(folder / name, folder / f"copied {name}")
    keep = (folder / name).open("rb")  # its inode cannot be used again
    (folder / name).unlink()
    list(node.index())
    keep.close()
    assert taught(node)[1:] == everywhere(f"copied {name}")[1:]


def test_they_follow_equal_content_also_where_no_look_was_in_between(node, folder):
    teach(node, "apple.md")
    shutil.copy(folder / "apple.md", folder / "other.md")
    keep = (folder / "apple.md").open("rb")
    (folder / "apple.md").unlink()
    list(node.index())
    keep.close()
    assert taught(node) == everywhere("other.md")


@pytest.mark.parametrize("copy", [shutil.copy, shutil.copy2, os.link])
def test_a_copy_inherits_nothing_also_after_the_original_is_gone(node, folder, copy):
    teach(node, "apple.md")
    copy(folder / "apple.md", folder / "copy.md")
    list(node.index())
    assert taught(node) == everywhere("apple.md")
    (folder / "apple.md").unlink()
    list(node.index())
    assert taught(node) == everywhere("apple.md")


def test_with_two_matches_neither_inherits(node, folder):
    teach(node, "apple.md")
    list(node.index())
    content = (folder / "apple.md").read_bytes()
    (folder / "apple.md").unlink()
    for name in ("one.md", "two.md"):
        (folder / name).write_bytes(content)
        os.utime(folder / name, (1e9, 1e9))
    list(node.index())
    assert taught(node) == everywhere("apple.md")


def test_of_two_vanished_files_with_one_content_neither_is_the_new_one(node, folder):
    (folder / "twin.md").write_bytes((folder / "apple.md").read_bytes())
    list(node.index())
    for name in ("apple.md", "twin.md"):
        results = node.search("fruit", 50)
        node.choose(results, next(row.id for row in results.rows if row.path.endswith(f"/{name}")))
    list(node.index())
    content = (folder / "apple.md").read_bytes()
    (folder / "apple.md").unlink()
    (folder / "twin.md").unlink()
    (folder / "new.md").write_bytes(content)
    os.utime(folder / "new.md", (1e9, 1e9))
    list(node.index())
    assert {key.rpartition("/")[2] for key in node.log.openings(2e9).documents} == {"apple.md", "twin.md"}


def test_another_file_that_gets_the_inode_of_a_deleted_one_inherits_nothing(node, folder):
    teach(node, "apple.md")
    list(node.index())
    inode = (folder / "apple.md").stat().st_ino
    (folder / "apple.md").rename(folder / "stranger.md")  # the file system used the inode again
    (folder / "stranger.md").write_text("# Something else entirely, about cars")
    assert (folder / "stranger.md").stat().st_ino == inode
    list(node.index())
    assert taught(node) == everywhere("apple.md")


def test_a_file_that_becomes_a_secret_or_leaves_the_folders_takes_nothing_along(node, folder, tmp_path):
    teach(node, "apple.md")
    (folder / "apple.md").rename(folder / "apple.pem")
    list(node.index())
    assert taught(node) == everywhere("apple.md")
    (folder / "apple.pem").rename(tmp_path / "apple.md")
    list(node.index())
    assert taught(node) == everywhere("apple.md")


def test_a_disk_that_is_away_has_lost_no_file(node, folder, tmp_path):
    teach(node, "apple.md")
    (tmp_path / "other").mkdir()
    node.add([tmp_path / "other"])
    list(node.index())
    folder.rename(tmp_path / "unmounted")
    shutil.copy(tmp_path / "unmounted/apple.md", tmp_path / "other/apple copy.md")
    list(node.index())
    assert taught(node) == everywhere("apple.md")


def test_what_is_followed_is_forgotten_with_the_folder(node, folder, tmp_path):
    path = teach(node, "apple.md")
    list(node.index())
    node.remove(folder)
    for file in (tmp_path / "home").rglob("*"):
        assert not file.is_file() or os.fsencode(path) not in file.read_bytes()
