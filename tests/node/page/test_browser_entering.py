"""Getting in and out in a real browser: no address of its history has a token."""

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


def test_a_browser_is_started_with_a_file_and_no_address_has_the_token(window, server, monkeypatch, tmp_path):
    """The started program only gets the name of a file, which only the owner can read."""
    started = []
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setattr("webbrowser.open", lambda address: started.append(address) or True)
    places = find(server.home)
    assert entrance.open_browser(places, Served(server.port, "127.0.0.1"))
    (file,) = started
    assert file.startswith("file:///")
    assert Path(file.removeprefix("file://")).stat().st_mode & 0o077 == 0
    (token,) = re.findall(r'value="([^"]+)"', entrance.leading_page(sign_ins.page_folder(places)).read_text())
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
