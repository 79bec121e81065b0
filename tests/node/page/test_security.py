"""Who gets in: the person's own browser, and no other user, name, site or frame."""

import pytest
from page_client import HOST, PORT, Client

from foltr.node.page import sign_ins
from foltr.node.page.security import HEADERS

PAGES = ("/", "/?q=hostile", "/list?q=hostile", "/history", "/learning", "/leaves", "/index", "/settings", "/forget",
         "/help", "/why", "/rule")  # fmt: skip
CHANGES = ("/act", "/settle", "/history/delete", "/history/take-back", "/learning", "/index", "/settings", "/forget",
           "/rule")  # fmt: skip


# ---- another local user, or anybody without the token


@pytest.mark.parametrize("address", [*PAGES, "/history/export", "/learning/curve.json", "/nothing"])
def test_without_the_cookie_there_is_only_an_explanation(stranger, address):
    answer = stranger.get(address)
    assert answer.status_code == 401
    assert "foltr node page" in answer.text
    assert "hostile" not in answer.text
    assert "docs" not in answer.text


@pytest.mark.parametrize("address", CHANGES)
def test_without_the_cookie_nothing_changes(browser_client, application, csrf, address, node):
    with Client(application) as stranger:
        answer = stranger.post(address, data={"csrf": csrf, "confirmation": "forget me", "action": "pause"})
    assert answer.status_code == 401
    assert node.status().documents > 0
    assert not node.status().paused


def test_a_wrong_cookie_does_not_open_the_page(stranger, page_folder):
    for value in ("", "x", "../tokens", sign_ins.mint(page_folder), "\N{LATIN SMALL LETTER E WITH ACUTE}", "x" * 5000):
        cookie = f"foltr_{PORT}={value}".encode()
        assert stranger.get("/", headers={"cookie": cookie}).status_code == 401


# ---- DNS rebinding, other sites, frames


@pytest.mark.parametrize(
    "host",
    ["attacker.example", f"attacker.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.attacker.example:{PORT}",
     f"localhost.attacker.example:{PORT}", f"0.0.0.0:{PORT}", f"[::]:{PORT}", "", f"127.0.0.1:{PORT}@attacker.example"],
)  # fmt: skip
def test_other_names_for_this_machine_are_refused(browser_client, host, page_folder):
    for address in ("/", "/static/page.css", f"/?token={sign_ins.mint(page_folder)}"):
        assert browser_client.get(address, headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
def test_names_of_loopback_are_accepted(browser_client, host):
    cookie = f"foltr_{PORT}={browser_client.cookies[f'foltr_{PORT}']}"
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
def test_another_site_cannot_change_anything(browser_client, csrf, node, headers, address):
    data = {"csrf": csrf, "confirmation": "forget me", "action": "pause", "everything": "yes"}
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
def test_changes_need_a_post(browser_client, node, csrf, address):
    query = {"csrf": csrf, "confirmation": "forget me", "action": "pause", "everything": "yes"}
    assert browser_client.get(address, params=query).status_code in (200, 404, 405)
    assert node.status().documents > 0
    assert not node.status().paused


def test_our_own_forms_are_accepted(browser_client, csrf, node):
    """With Referrer-Policy: no-referrer a browser sends `Origin: null` with a form of ours."""
    for headers in ({"sec-fetch-site": "same-origin", "origin": "null"}, {"origin": HOST}, {}):
        data = {"csrf": csrf, "action": "pause"}
        assert browser_client.post("/index", data=data, headers=headers).status_code == 303
        assert node.status().paused
        node.resume()


def test_a_reverse_proxy_that_replaces_the_headers_is_answered(browser_client, csrf):
    """As docs/how-to-reach-the-page.md sets it up: our Host, no Origin, the browser's own Sec-Fetch-Site."""
    headers = {"sec-fetch-site": "same-origin", "x-forwarded-host": "search.example.org"}
    assert browser_client.get("/", headers=headers).status_code == 200
    data = {"csrf": csrf, "action": "resume"}
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
