"""Who gets in: the person's own browser, and no other user, name, site or frame."""

import json
import os
import socket
import subprocess
from pathlib import Path

import httpx
import pytest
from page_client import HOST, PORT, Client

from foltr.node.page import peers
from foltr.node.page.app import create_app
from foltr.node.page.peers import system_owner
from foltr.node.page.security import HEADERS, load_keys

PAGES = ("/", "/?q=hostile", "/list?q=hostile", "/history", "/learning", "/leaves", "/index", "/settings", "/forget",
         "/help", "/why")  # fmt: skip
CHANGES = ("/act", "/settle", "/history/delete", "/history/take-back", "/learning", "/index", "/settings", "/forget")


# ---- another local user, or anybody without the token


@pytest.mark.parametrize("address", [*PAGES, "/history/export", "/learning/curve.json", "/nothing"])
def test_without_the_cookie_there_is_only_an_explanation(stranger, address):
    answer = stranger.get(address)
    assert answer.status_code == 401
    assert "foltr node serve" in answer.text
    assert "hostile" not in answer.text
    assert "docs" not in answer.text


@pytest.mark.parametrize("address", CHANGES)
def test_without_the_cookie_nothing_changes(stranger, keys, address, node):
    answer = stranger.post(address, data={"csrf": keys.form_token, "confirmation": "forget me", "action": "pause"})
    assert answer.status_code == 401
    assert node.status().documents > 0
    assert not node.status().paused


@pytest.mark.parametrize("token", ["", "x", "é", "x" * 5000])
def test_a_wrong_token_does_not_open_the_page(stranger, token):
    assert stranger.get("/", params={"token": token}).status_code == 401
    assert not stranger.cookies


def test_a_wrong_cookie_does_not_open_the_page(stranger, keys):
    for value in ("", "x", keys.token, keys.form_token):
        assert stranger.get("/", headers={"cookie": f"{keys.cookie_name}={value}"}).status_code == 401


def test_the_token_gives_a_cookie_that_scripts_and_other_sites_do_not_get(stranger, keys):
    answer = stranger.get("/", params={"token": keys.token})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert keys.cookie not in answer.text
    assert stranger.get("/").status_code == 200


def test_the_cookie_outlives_a_restart_and_the_token_does_not(home, keys):
    again = load_keys(home / "config" / "page.json", PORT)
    assert again.cookie == keys.cookie
    assert again.token != keys.token
    assert (home / "config" / "page.json").stat().st_mode & 0o077 == 0


def test_a_damaged_key_file_locks_everybody_out_and_a_new_token_in(home):
    (home / "config" / "page.json").write_text('{"port": 1, "cookie": "", "token": ""}')
    assert len(load_keys(home / "config" / "page.json", PORT).cookie) >= 43


def test_a_connection_of_another_user_is_refused_even_with_the_cookie(node, keys):
    for owner in (os.getuid() + 1, None):
        app = create_app(node, keys, owner=lambda *_, owner=owner: owner)
        with Client(app, **{keys.cookie_name: keys.cookie}) as client:
            assert client.get("/").status_code == 403
            assert client.get("/", params={"token": keys.token}).status_code == 403
    app = create_app(node, keys, owner=lambda *_: 12345, allowed_users=[12345])
    with Client(app, **{keys.cookie_name: keys.cookie}) as client:
        assert client.get("/").status_code == 200


@pytest.mark.skipif(system_owner() is None, reason="the system does not tell who owns a connection")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_system_tells_who_owns_a_connection(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server, socket.socket(family) as client:
        client.connect(server.getsockname()[:2])
        accepted, _ = server.accept()
        with accepted:
            ends = client.getsockname()[:2], server.getsockname()[:2]
            for way in (peers._asked, peers._looked_up, peers.owner_of_connection):
                assert way(*ends) == os.getuid()
                assert way((host, 1), ends[1]) is None
            client.shutdown(socket.SHUT_WR)  # half closed: still owned
            for way in (peers._asked, peers._looked_up):
                assert way(*ends) == os.getuid()


@pytest.mark.skipif(
    os.getuid() != 0 or system_owner() is None or not Path("/usr/bin/python3").exists(),
    reason="needs root to become another user, and a Python that everybody may run",
)
def test_another_user_of_the_machine_with_a_stolen_cookie(serve, home):
    server = serve("--no-index")
    keys = (home / "config" / "page.json").read_text()
    cookie = f"foltr_{server.port}={json.loads(keys)['cookie']}"
    assert httpx.get(server.base, headers={"cookie": cookie}).status_code == 200
    program = (
        "import http.client, sys; c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]));"
        "c.request('GET', '/', headers={'Cookie': sys.argv[2]}); print(c.getresponse().status)"
    )
    found = subprocess.run(
        ["/usr/bin/python3", "-I", "-S", "-c", program, str(server.port), cookie],
        user=65534, capture_output=True, text=True, cwd="/",
    )  # fmt: skip
    assert found.stdout.strip() == "403", found.stderr


# ---- DNS rebinding, other sites, frames


@pytest.mark.parametrize(
    "host",
    ["attacker.example", f"attacker.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.attacker.example:{PORT}",
     f"localhost.attacker.example:{PORT}", f"0.0.0.0:{PORT}", f"[::]:{PORT}", "", f"127.0.0.1:{PORT}@attacker.example"],
)  # fmt: skip
def test_other_names_for_this_machine_are_refused(browser_client, host, keys):
    for address in ("/", "/static/page.css", f"/?token={keys.token}"):
        assert browser_client.get(address, headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
def test_names_of_loopback_are_accepted(browser_client, host, keys):
    cookie = f"{keys.cookie_name}={keys.cookie}"
    assert browser_client.get("/", headers={"host": host, "cookie": cookie}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("address", ["/?q=hostile", "/list?q=x", "/history/export", "/learning/curve.json"])
def test_requests_that_another_site_causes_are_refused(browser_client, site, address):
    assert browser_client.get(address, headers={"sec-fetch-site": site}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site", "origin": "https://attacker.example"},
        {"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "same-origin", "origin": "https://attacker.example"},
        {"origin": "https://attacker.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": f"http://127.0.0.1:{PORT}.attacker.example"},
        {"origin": "null"},
    ],
)
@pytest.mark.parametrize("address", CHANGES)
def test_another_site_cannot_change_anything(browser_client, keys, node, headers, address):
    data = {"csrf": keys.form_token, "confirmation": "forget me", "action": "pause", "everything": "yes"}
    assert browser_client.post(address, data=data, headers=headers).status_code == 403
    assert node.status().documents > 0
    assert not node.status().paused


@pytest.mark.parametrize("token", ["", "x", "é"])
@pytest.mark.parametrize("address", CHANGES)
def test_a_form_without_our_token_is_refused(browser_client, node, address, token):
    data = {"csrf": token, "confirmation": "forget me", "action": "pause", "everything": "yes", "search_id": "x",
            "number": "1"}  # fmt: skip
    assert browser_client.post(address, data=data).status_code == 403
    assert node.status().documents > 0
    assert not node.status().paused


@pytest.mark.parametrize("address", CHANGES)
def test_changes_need_a_post(browser_client, node, keys, address):
    query = {"csrf": keys.form_token, "confirmation": "forget me", "action": "pause", "everything": "yes"}
    assert browser_client.get(address, params=query).status_code in (200, 404, 405)
    assert node.status().documents > 0
    assert not node.status().paused


def test_our_own_forms_are_accepted(browser_client, keys, node):
    """With Referrer-Policy: no-referrer a browser sends `Origin: null` with a form of ours."""
    for headers in ({"sec-fetch-site": "same-origin", "origin": "null"}, {"origin": HOST}, {}):
        data = {"csrf": keys.form_token, "action": "pause"}
        assert browser_client.post("/index", data=data, headers=headers).status_code == 303
        assert node.status().paused
        node.resume()


def test_a_reverse_proxy_that_replaces_the_headers_is_answered(browser_client, keys):
    """As docs/how-to-reach-the-page.md sets it up: our Host, no Origin, the browser's own Sec-Fetch-Site."""
    headers = {"sec-fetch-site": "same-origin", "x-forwarded-host": "search.example.org"}
    assert browser_client.get("/", headers=headers).status_code == 200
    data = {"csrf": keys.form_token, "action": "resume"}
    assert browser_client.post("/index", data=data, headers=headers).status_code == 303
    foreign = {**headers, "sec-fetch-site": "cross-site"}
    assert browser_client.post("/index", data=data, headers=foreign).status_code == 403


@pytest.mark.parametrize("address", [*PAGES, "/nothing", "/static/page.css", "/opensearch.xml", "/history/export"])
def test_every_answer_has_the_headers(browser_client, stranger, address):
    for client in (browser_client, stranger):
        answer = client.get(address)
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-frame-options"] == "DENY"


def test_answers_to_strangers_have_the_headers(stranger):
    for answer in (stranger.get("/"), stranger.get("/", headers={"host": "x"})):
        assert all(answer.headers[name] == value for name, value in HEADERS.items())


@pytest.mark.parametrize("address", PAGES)
def test_no_page_has_script_or_style_in_it(browser_client, address):
    text = browser_client.get(address).text
    assert " style=" not in text
    assert "<style" not in text
    assert "<script>" not in text
    assert " onclick" not in text
    assert "javascript:" not in text
    assert "//" not in text.replace("http://127.0.0.1", "").replace("https://", "").split("<main")[0]
