"""Nothing is contacted, and what is forgotten is in no file."""

import os
import subprocess
import sys

import foltr.node

# Python imports a module of this name at its start; a hook hears of every socket there is
WATCH = """\
import os
import socket
import sys

OUTWARDS = ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname")


def hook(event, arguments):
    if event in OUTWARDS and getattr(arguments[0], "family", None) != socket.AF_UNIX:
        with open(os.environ["WATCH_REPORT"], "a") as report:
            report.write(f"{event} {arguments}\\n")
        raise PermissionError(f"an outgoing connection: {event}")


with open(os.environ["WATCH_REPORT"] + ".on", "a") as witness:
    witness.write("here\\n")
sys.addaudithook(hook)
"""


def test_a_node_contacts_nobody(tmp_path, foltr_node, monkeypatch):
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "sitecustomize.py").write_text(WATCH)
    known = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "watch"), *([known] if known else [])]))
    monkeypatch.setenv("WATCH_REPORT", str(tmp_path / "report.txt"))
    attempt = subprocess.run(
        [sys.executable, "-c", "import socket; socket.create_connection(('localhost', 9))"], capture_output=True
    )
    assert b"an outgoing connection" in attempt.stderr
    (tmp_path / "report.txt").unlink()
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "page.html").write_text("<title>Page</title><img src='http://localhost:9/x.png'><p>some words")
    (documents / "mail.eml").write_text("From: a@localhost\nSubject: Hello\n\nsome words http://localhost:9/")
    home = tmp_path / "own"
    story = [
        ("init",), ("add", documents), ("index",), ("search", "some words"), ("open", "1", "--print"), ("status",),
        ("why", documents / "page.html"), ("history",), ("learn", "--now"), ("export", tmp_path / "x.json"),
        ("import", tmp_path / "x.json"), ("remove", documents), ("forget", "--yes"),
    ]  # fmt: skip
    for words in story:
        said = foltr_node(*words, home=home)
        assert said.returncode == 0, (words, said.stderr)
    assert len((tmp_path / "report.txt.on").read_text().splitlines()) > len(story)  # children that extract, too
    assert not (tmp_path / "report.txt").exists()


def files_with(word, *folders):
    found = subprocess.run(["grep", "-rlaiF", word, *map(str, folders)], capture_output=True, text=True)
    return found.stdout.splitlines()


UNIQUE = "zyxxyquuxle"


def used_node(tmp_path, folder):
    (folder / "keep.txt").write_text("a document that stays")
    (folder / "private").mkdir()
    (folder / "private" / f"{UNIQUE} name.md").write_text(f"# {UNIQUE} title\n\nbody with {UNIQUE} in it\n")
    node = foltr.node.open(tmp_path / "own")
    node.add([folder / "private", folder / "keep.txt"])
    list(node.index())
    for number in range(12):
        results = node.search(f"{UNIQUE} {number}" if number else UNIQUE)
        node.choose(results, results.rows[0].id)
    return node


def test_forget_me_leaves_no_bytes(tmp_path, folder):
    with used_node(tmp_path, folder) as node:
        assert files_with(UNIQUE, tmp_path / "own")
        node.forget()
        assert files_with(UNIQUE, tmp_path / "own") == []
        assert node.search(UNIQUE).rows == ()
        assert node.status().roots == ()
    assert files_with(UNIQUE, tmp_path / "own") == []


def test_a_removed_folder_leaves_no_bytes(tmp_path, folder):
    with used_node(tmp_path, folder) as node:
        node.remove(folder / "private")
        assert files_with(UNIQUE, tmp_path / "own") == []
        kept = [row.path for row in node.search("document").rows]
        assert kept
        assert not any("/private/" in path for path in kept)
    assert files_with(UNIQUE, tmp_path / "own") == []


def test_files_are_readable_by_their_owner_only(tmp_path, folder):
    with used_node(tmp_path, folder):
        own = tmp_path / "own"
        for place in (
            own / "config",
            own / "data",
            own / "cache",
            *(own / "data").iterdir(),
            *(own / "config").iterdir(),
        ):
            assert place.stat().st_mode & 0o077 == 0, place


def test_importing_the_node_is_light():
    code = "import sys, foltr.node; print(sorted({'numpy', 'tantivy', 'sqlite3', 'msgspec'} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said.stdout.strip() == "[]", said.stderr


def test_the_surface_is_what_it_says():
    assert foltr.node.__all__ == ["Contribution", "Node", "Results", "Row", "Snippet", "Status", "open"]
    for name in foltr.node.__all__:
        assert getattr(foltr.node, name)
