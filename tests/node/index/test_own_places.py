"""The node's own folders are never indexed, by whatever path they are reached and whatever the settings say."""

import os
import subprocess
import sys

import pytest
from small_index import node_at, run, searched

import foltr.node
from foltr.files import write_json
from foltr.node import places as node_places
from foltr.node.index import indexing
from foltr.node.index.layout import Reader
from foltr.node.index.rules import GROUPS, OWN, Rules
from foltr.node.page import sign_ins
from foltr.node.settings import Settings

WORD = "quetzalcoatlus"  # stands for a cookie and a token
EVERYTHING_ALLOWED = (*GROUPS, "*", "config", "data", "cache", "state", "home")


def with_secrets(tmp_path):
    """A node whose home is in a folder that is searched, with the files that a server leaves there."""
    home = tmp_path / "docs/home"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/plain.txt").write_text(f"{WORD} in a document")
    places = node_places.create(node_places.find(home))
    sign_ins.mint(sign_ins.page_folder(places))
    write_json(places.data / "page_running.json", {"token": WORD}, private=True)
    for place in places.folders:
        for name in ("page.txt", "copy.json", "open_page.html"):
            (place / name).write_text(f"<p>{WORD} token</p>")
        (place / "inner").mkdir()
        (place / "inner/deep.txt").write_text(f"{WORD} token")
    return places


def found_by(places, settings):
    run(places, settings)
    reader = Reader(places)
    names = searched(reader, WORD)
    rows = reader.store.connection.execute(
        "SELECT count(*) FROM folders WHERE CAST(path AS TEXT) LIKE '%/home/%/inner'"
    ).fetchone()
    reader.close()
    return names, rows[0]


def test_cookie_and_token_are_not_found_where_the_home_is_below_a_root(tmp_path):
    places = with_secrets(tmp_path)
    roots = (str(tmp_path / "docs"),)
    for settings in (
        Settings(roots=roots),
        Settings(roots=roots, allow=EVERYTHING_ALLOWED),
        Settings(roots=roots, exclude=("!*", "!config/", "!home/**"), allow=EVERYTHING_ALLOWED),
    ):
        assert found_by(places, settings) == ({"plain.txt"}, 0)
    folder = sign_ins.page_folder(places)
    cookie, token = sign_ins.redeem(folder, sign_ins.mint(folder)), sign_ins.mint(folder)
    stored = [file.name for file in folder.rglob("*") if file.is_file()]
    assert len(stored) > 1
    with foltr.node.open(tmp_path / "docs/home") as node:
        node.add(roots)
        for secret in (WORD, cookie, token, *stored):
            assert all("/home/" not in row.path for row in node.search(secret, limit=100).rows)
        state = node.why(places.config / "page.txt")
        assert (state.state, state.reason) == ("excluded", f"it is in {places.config}: {OWN}")
        assert node.why(places.config).reason == f"the whole folder, by {OWN}"


@pytest.mark.parametrize(
    "root", ["config", "data", "cache", "state", "config/inner", "data/page_running.json", "cache/page.txt"]
)
def test_a_root_that_is_or_lies_in_such_a_folder_is_excluded(root, tmp_path):
    places = with_secrets(tmp_path)
    path = str(tmp_path / "docs/home" / root)
    settings = Settings(roots=(path, str(tmp_path / "docs")), allow=EVERYTHING_ALLOWED)
    assert found_by(places, settings) == ({"plain.txt"}, 0)
    assert Rules(settings, places).root_verdict(path) == OWN
    reader = Reader(places)
    row = reader.store.connection.execute("SELECT state, reason FROM roots WHERE path = ?", (os.fsencode(path),))
    assert row.fetchone() == ("excluded", OWN)
    reader.close()


def test_links_to_the_folders_and_above_them_lead_nowhere(tmp_path):
    places = with_secrets(tmp_path)
    (tmp_path / "to_data").symlink_to(places.data)
    (tmp_path / "to_home").symlink_to(tmp_path / "docs/home")
    (tmp_path / "to_inner").symlink_to(places.config / "inner")
    for link in ("to_data", "to_home", "to_home/config", "to_inner", "to_data/page.txt"):
        settings = Settings(roots=(str(tmp_path / link),), allow=EVERYTHING_ALLOWED)
        assert found_by(places, settings) == (set(), 0)


def test_a_home_that_is_reached_through_a_link_is_known_by_its_real_path(tmp_path):
    with_secrets(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "docs/home")
    linked = node_places.create(node_places.find(tmp_path / "link"))
    assert found_by(linked, Settings(roots=(str(tmp_path / "docs"),), allow=EVERYTHING_ALLOWED)) == ({"plain.txt"}, 0)


MOUNTED = """
import sys
from pathlib import Path
from small_index import run, searched
from foltr.node import places as node_places
from foltr.node.index.layout import Reader
from foltr.node.settings import Settings
places = node_places.find(Path(sys.argv[1]))
run(places, Settings(roots=tuple(sys.argv[3:]), allow=("hidden folders",)))
reader = Reader(places)
print(sorted(searched(reader, sys.argv[2])))
"""


def test_folders_that_are_mounted_elsewhere_are_known(tmp_path):
    """In a mount namespace of its own, where the system lets this user make one."""
    places = with_secrets(tmp_path)
    script = 'mkdir "$1/m" "$1/n"; mount --bind "$2" "$1/m" && mount --bind "$3" "$1/n" && shift 3 && exec "$@"'
    roots = (tmp_path / "m", tmp_path / "n", tmp_path / "m/inner", tmp_path / "docs")
    try:
        ended = subprocess.run(
            ["unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh", tmp_path, places.data,
             places.config / "inner", sys.executable, "-c", MOUNTED, tmp_path / "docs/home", WORD, *map(str, roots)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("unshare is not installed")
    if "unshare" in ended.stderr or "mount:" in ended.stderr:
        pytest.skip("this user may not mount")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == "['plain.txt']"


def test_what_was_indexed_there_before_is_removed_by_the_next_scan(tmp_path, monkeypatch):
    places = with_secrets(tmp_path)
    settings = Settings(roots=(str(tmp_path / "docs"), str(places.data / "inner")), allow=EVERYTHING_ALLOWED)
    with monkeypatch.context() as before:  # as a program did that knew no such rule
        before.setattr(indexing, "Rules", lambda settings, places: Rules(settings))
        names, folders = found_by(places, settings)
        assert "deep.txt" in names
        assert folders == 4
    assert found_by(places, settings) == ({"plain.txt"}, 0)


def test_a_folder_of_the_node_that_is_made_anew_while_it_runs_is_known(tmp_path):
    """Somebody deletes the folder and the node creates it again: another inode."""
    places = with_secrets(tmp_path)
    settings = Settings(roots=(str(tmp_path / "docs"),), allow=EVERYTHING_ALLOWED)
    with indexing.indexer(places, settings) as opened:
        list(opened.run())
        places.config.rename(tmp_path / "kept")
        node_places.create(places)
        (places.config / "page.txt").write_text(f"{WORD} token")
        list(opened.run([str(tmp_path / "docs"), str(tmp_path / "docs/home")]))
        list(opened.run())
    assert found_by(places, settings) == ({"plain.txt"}, 0)


def test_other_folders_of_the_same_names_are_indexed(tmp_path):
    root = tmp_path / "docs"
    for name in ("config", "data", "home/config"):
        (root / name).mkdir(parents=True)
        (root / name / "a.txt").write_text(WORD)
    places, settings = node_at(tmp_path, root)
    run(places, settings)
    reader = Reader(places)
    assert reader.store.collection().documents == 3
    reader.close()
