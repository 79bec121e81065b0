"""The home of a node of an earlier version works: settings, index, log, memory, pins and weights."""

import json
import shutil
from pathlib import Path

import pytest

import foltr.node
from foltr.node.learning import curations

BEFORE = Path(__file__).with_name("before")
ANSWERS = json.loads((BEFORE / "node.json").read_text())
ROOT = Path(ANSWERS["settings"]["roots"][0])
LATER = 1_760_000_000.0 + 3600.0  # an hour after the files were written


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setattr("time.time", lambda: LATER)
    shutil.copytree(BEFORE / "node", tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def stored(home):
    with foltr.node.open(home) as node:
        yield node


def test_lists_have_the_same_documents_and_what_memory_placed_is_first(stored):
    """Scores may be others: a later version may weigh features in another way."""
    for query, expected in ANSWERS["lists"].items():
        rows = stored.search(query).rows
        assert {row.path: row.remembered for row in rows} == {path: remembered for path, _, remembered in expected}
        assert rows[0].path == expected[0][0]
        assert all(row.away for row in rows)


def test_settings_are_those_of_before(stored):
    assert stored.problem is None
    for name, value in ANSWERS["settings"].items():
        assert getattr(stored.settings, name) == (tuple(value) if isinstance(value, list) else value)


def test_the_index_is_searched_without_a_rebuild(stored):
    status = stored.status()
    assert (status.documents, status.rebuilding) == (6, None)
    assert list(status.away) == [str(ROOT)]


def test_log_memory_pins_and_weights_are_those_of_before(stored):
    searches = [[search.query, [choice.document for choice in search.choices]] for search in stored.history()]
    assert searches == ANSWERS["searches"]
    assert sorted([use.typed, use.document] for use in stored.log.uses()) == ANSWERS["remembered"]
    assert stored.status().version == ANSWERS["version"]
    assert curations.of(stored.log, "Tree") == curations.Curations(
        (str(ROOT / "spruce.md"),), frozenset([str(ROOT / "cedar.md")])
    )


def test_it_goes_on_from_there(stored, home):
    """Searches and choices are added, the index is written, and everything can be erased."""
    results = stored.search("hazel")
    stored.choose(results, results.rows[0].id)
    assert stored.history()[0].query == "hazel"
    assert list(stored.index())[-1].phase == "done"  # the disk is away: its documents stay
    assert [row.path for row in stored.search("maple").rows] == [path for path, *_ in ANSWERS["lists"]["maple"]]
    stored.exclude(["willow.md"])
    assert stored.status().documents == 5
    assert str(ROOT / "willow.md") not in [row.path for row in stored.search("tree").rows]
    stored.forget()
    assert stored.history() == []
    assert not list((home / "cache").glob("index-*"))
