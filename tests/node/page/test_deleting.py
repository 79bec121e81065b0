"""Deleting a search, all searches and everything: the same by command, page and Python, down to the bytes."""

import os
import subprocess
import sys

import pytest

import foltr.node
from foltr.node.learning import curations
from foltr.node.page import actions, search
from foltr.node.page.search import Asked

WAYS = ("command", "page", "python")
TYPED, PINNED, HIDDEN = "heapq zyxtyped", "heapq zyxpinned", "heapq zyxhidden"
WORDS = (b"zyxtyped", b"zyxpinned", b"zyxhidden")


def use(node):
    """Types, opens, pins and hides; returns the path that was opened."""
    results = node.search(TYPED)
    node.choose(results, results.rows[0].id)
    for words, action in ((PINNED, "pin"), (HIDDEN, "never")):
        row = search.list_view(node, Asked(words)).rows[0]
        actions.act(node, {"q": words, action: str(row.id)})
    for number in range(10):  # enough choices for a fit: a text teaches once
        results = node.search(f"json decoder {number}")
        node.choose(results, results.rows[-1].id)
    return results.rows[-1].path


def command(home, *words):
    environment = {**os.environ, "FOLTR_NODE_HOME": str(home), "NO_COLOR": "1"}
    arguments = [sys.executable, "-m", "foltr", "node", *words]
    done = subprocess.run(arguments, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def contents(folder):
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file()).lower()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("reset", [False, True])
def test_deleting_all_searches_leaves_no_word(way, reset, browser_client, csrf, node, home):
    opened = use(node)
    journal = (home / "data" / "log.sqlite-wal").read_bytes()  # the bytes that are looked through include the journal
    assert all(word in journal and word in contents(home) for word in WORDS)
    assert opened.lower().encode() in contents(home / "data")
    learned = len(node.versions())
    assert learned
    if way == "command":
        told = command(home, "history", "--delete-all", *(["--reset-weights"] if reset else []))
    if way == "page":
        form = {"csrf": csrf, "everything": "yes"} | ({"reset_weights": "yes"} if reset else {})
        told = browser_client.get(browser_client.post("/history/delete", data=form).headers["location"]).text
    if way == "python":
        told = node.delete_history(reset_weights=reset).weights
    assert ("reset" if reset else "stay" if way != "python" else "unchanged") in told
    assert not [word for word in WORDS if word in contents(home)]
    assert opened.lower().encode() not in contents(home / "data")  # the index still has the file
    assert curations.every(node.log) == []
    assert node.history() == []
    assert len(node.versions()) == (0 if reset else learned)


@pytest.mark.parametrize("way", WAYS)
def test_deleting_one_search_leaves_no_word_of_it(way, browser_client, csrf, node, home):
    use(node)
    pinned = node.search(PINNED)
    node.choose(pinned, pinned.rows[0].id)
    (number,) = [shown.impression for shown in node.history() if shown.query == PINNED]
    if way == "command":
        command(home, "history", "--delete", str(number))
    if way == "page":
        browser_client.post("/history/delete", data={"csrf": csrf, "search": str(number)})
    if way == "python":
        assert node.delete_history([number]).searches == 1
    assert [word in contents(home) for word in WORDS] == [True, False, True]
    assert [curation.query for curation in curations.every(node.log)] == [HIDDEN]


@pytest.mark.parametrize("way", WAYS)
def test_forget_me_leaves_no_word_and_no_path(way, browser_client, csrf, node, home):
    opened = use(node)
    (home / "config" / "federation").mkdir()  # of a node that joined one: its ledger stays
    if way == "command":
        command(home, "forget", "--yes")
    if way == "page":
        assert "Erased" in browser_client.post("/forget", data={"csrf": csrf, "confirmation": "forget me"}).text
    if way == "python":
        node.forget()
    assert not [word for word in (*WORDS, opened.lower().encode(), b"json decoder") if word in contents(home)]
    with foltr.node.open(home) as new:
        assert (new.history(), new.versions(), curations.every(new.log), new.settings.roots) == ([], [], [], ())


def test_the_offer_to_reset_weights_is_made_where_there_are_learned_ones(browser_client, node):
    assert "reset_weights" not in browser_client.get("/history").text
    use(node)
    assert "reset_weights" in browser_client.get("/history").text
