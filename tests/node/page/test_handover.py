"""Commands that change what is searched, while the page is served: the server does it."""

import json
import os
import subprocess
import sys

import httpx
import pytest

import foltr.node
from foltr.errors import InputError
from foltr.node.page import sign_ins
from foltr.node.page.handover import hand_over


def command(home, *arguments):
    variables = {**os.environ, "FOLTR_NODE_HOME": str(home), "NO_COLOR": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "foltr", "node", *arguments], env=variables, capture_output=True, text=True, check=False
    )
    return ran.returncode, ran.stdout, ran.stderr


@pytest.fixture
def notes(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "plum.md").write_text("plums are ripe in september")
    return tmp_path / "notes"


def titles(server, words):
    with httpx.Client(base_url=server.base, timeout=60) as client:
        client.get(server.fresh_address())
        return client.get("/list", params={"q": words}).text


def test_commands_hand_their_work_to_the_server(serve, home, notes, library):
    server = serve()
    code, said, problem = command(home, "add", str(notes))
    assert (code, problem) == (0, "")
    assert f"served at {server.base}/ indexes now" in said
    with foltr.node.open(home) as node:
        assert str(notes) in node.settings.roots
        node.settle(node.search("zipfile"))
        assert node.search("hostile").rows
    code, said, problem = command(home, "exclude", "zipfile/")
    assert (code, problem) == (0, "")
    assert "docs/zipfile" not in titles(server, "zipfile")
    code, said, problem = command(home, "remove", str(library / "hostile"))
    assert (code, problem) == (0, "")
    assert "Nothing found" in titles(server, "path:hostile hostile")
    with foltr.node.open(home) as node:
        assert str(library / "hostile") not in node.settings.roots
        assert node.status().following.running
    assert command(home, "index")[0] == 0
    assert sign_ins.last_uses(home / "data" / "page") != []  # of the browser; sessions of commands have ended
    assert len(list((home / "data" / "page" / "browsers").iterdir())) == 2


def test_a_server_that_does_not_follow_changes_knows_the_new_folder_and_the_command_indexes(serve, home, notes):
    server = serve("--no-index")
    code, said, _ = command(home, "add", "--json", str(notes))
    assert code == 0
    assert str(notes) in json.loads(said)["roots"]
    assert "plum.md" in titles(server, "plums")


def test_problems_of_a_change_are_told_as_without_a_server(serve, home, notes):
    serve("--no-index")
    for arguments in (("add", str(notes / "nowhere")), ("remove", str(notes))):
        code, said, problem = command(home, *arguments)
        assert code == 2
        assert "no such folder" in problem or "is not searched by itself" in problem
        assert said == ""


def test_nothing_is_taken_out_of_the_settings_while_another_process_indexes(node, library):
    from foltr.errors import StorageError
    from foltr.files import held

    before = node.settings
    with held(node.places.cache / "index.lock", "indexing"):
        for change in (lambda: node.remove(library / "hostile"), lambda: node.exclude(["*.md"])):
            with pytest.raises(StorageError, match="is indexing"):
                change()
    assert node.settings == before
    with foltr.node.open(node.places.data.parent) as again:
        assert again.settings == before


def test_an_open_node_follows_settings_that_another_process_changes(node, home, notes, library):
    with foltr.node.open(home) as other:
        other.add([notes])
    assert str(notes) in node.settings.roots
    node.places.settings_file.write_text("language = [")
    assert not node.settings.learning  # the strictest
    with pytest.raises(foltr.errors.SpecError, match="not valid TOML"):
        node.exclude(["*.md"])
    node.places.settings_file.unlink()
    assert node.settings.learning


def test_without_a_server_nothing_is_handed_over(node, notes):
    assert hand_over(node.places, "add", [str(notes)]) is None


# ---- who may ask


@pytest.mark.parametrize(
    ("form", "status"),
    [({"action": "remove", "values": "[]"}, 403), ({"csrf": "0" * 64, "action": "remove", "values": "[]"}, 403)],
)
def test_another_page_cannot_hand_anything_over(browser_client, node, form, status):
    before = node.settings
    assert browser_client.post("/folders", data=form).status_code == status
    assert node.settings == before


def test_a_stranger_cannot_hand_anything_over(stranger):
    assert stranger.post("/folders", data={"action": "add", "values": '["/"]'}).status_code == 401


@pytest.mark.parametrize(
    "values", ["", "{}", "[1]", '"/"', "[" * 10_000, '["relative"]', '["/a\\u0000b"]', '["/\\udc80"]']
)
def test_values_that_are_no_list_of_paths_are_refused(browser_client, csrf, node, values):
    before = node.settings
    answer = browser_client.post("/folders", data={"csrf": csrf, "action": "add", "values": values})
    assert answer.status_code == 400
    assert answer.json()["problem"]
    assert node.settings == before


def test_an_unknown_action_is_refused(browser_client, csrf):
    answer = browser_client.post("/folders", data={"csrf": csrf, "action": "format", "values": "[]"})
    assert answer.status_code == 400
    assert "add, remove, exclude, scan" in answer.json()["problem"]


def test_an_answer_of_something_else_on_the_port_is_an_error(node, monkeypatch):
    import http.server
    import threading

    from foltr.node.page import handover
    from foltr.node.page.entrance import Served

    class Else(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>")

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Else) as other:
        threading.Thread(target=other.handle_request, daemon=True).start()
        monkeypatch.setattr(handover, "served_pages", lambda _: [Served(other.server_port, "127.0.0.1")])
        with pytest.raises(InputError, match="does not answer as the page"):
            hand_over(node.places, "scan", [])
