"""Getting in and out in a real browser: no address of its history has a token."""

import os
import re
from pathlib import Path

import pytest
from browser_window import needs_chromium, violations

from foltr.node.page import entrance, sign_ins
from foltr.node.page.entrance import Served
from foltr.node.places import find

pytestmark = needs_chromium


@pytest.fixture
def window(chromium):
    contexts = []

    def open_window(**options):
        contexts.append(chromium.new_context(**options))
        return contexts[-1].new_page()

    yield open_window
    for context in contexts:
        context.close()


def history(page):
    """The addresses that the window can go back to."""
    session = page.context.new_cdp_session(page)
    return [entry["url"] for entry in session.send("Page.getNavigationHistory")["entries"]]


@pytest.mark.parametrize("script", [True, False])
def test_the_address_with_the_token_is_replaced(window, server, script):
    page = window(java_script_enabled=script)
    page.goto(server.fresh_address())
    page.wait_for_url(server.base + "/")
    assert page.locator("#q").count() == 1
    assert not any("token" in address for address in history(page))


@pytest.fixture
def started(monkeypatch):
    """What a browser is started with."""
    addresses = []
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setattr("webbrowser.open", lambda address: addresses.append(address) or True)
    return addresses


def test_a_browser_is_started_with_an_address_that_lets_one_in_within_a_minute(window, server, started):
    """A browser in a sandbox cannot read a file of ours; other users who read its arguments are not let in (`Door`)."""
    places = find(server.home)
    assert entrance.open_browser(places, Served(server.port, "127.0.0.1"))
    (address,) = started
    assert address.startswith(server.base + "/?token=")
    page = window()
    page.goto(address)
    page.wait_for_url(server.base + "/")
    assert page.locator("#q").count() == 1
    assert not any("token" in visited for visited in history(page))
    other = window()
    assert other.goto(address).status == 401
    assert list(sign_ins.page_folder(places).glob("*.html")) == []


def test_the_address_of_a_started_browser_expires_after_a_minute(window, server, started):
    places = find(server.home)
    entrance.open_browser(places, Served(server.port, "127.0.0.1"))
    for file in (sign_ins.page_folder(places) / "tokens").iterdir():
        os.utime(file, (0, file.stat().st_mtime - 61))
    assert window().goto(started[0]).status == 401


def test_where_owners_of_connections_are_unknown_a_browser_is_started_with_a_file(window, server, started, monkeypatch):
    """The started program only gets the name of a file, which only the owner can read."""
    monkeypatch.setattr(entrance, "tells_owners", lambda: False)
    places, served = find(server.home), Served(server.port, "127.0.0.1")
    assert entrance.open_browser(places, served)
    (file,) = started
    assert file.startswith("file:///")
    assert Path(file.removeprefix("file://")).stat().st_mode & 0o077 == 0
    (token,) = re.findall(r'value="([^"]+)"', entrance.leading_page(sign_ins.page_folder(places), served).read_text())
    assert token not in file
    page, asked = window(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file)
    page.wait_for_url(server.base + "/")
    assert page.locator("#q").count() == 1
    assert not any(token in address for address in [*history(page), *asked])


def test_signing_out_by_the_button(window, server):
    page = window()
    page.goto(server.fresh_address())
    page.wait_for_url(server.base + "/")
    page.goto(server.base + "/settings")
    assert violations(page) == []
    page.get_by_role("button", name="Sign out this browser").click()
    page.get_by_role("heading", name="This browser is signed out").wait_for()
    assert violations(page) == []
    page.goto(server.base + "/")
    assert page.get_by_role("heading", name="This page belongs to somebody").is_visible()
    assert page.context.cookies() == []
