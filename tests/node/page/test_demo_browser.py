"""The demo in a real browser: the curve appears while the page stays open, and the numbers without JavaScript."""

import re
import signal

import pytest
from browser_window import PHONE, needs_chromium, violations
from demo_process import SMALL, Demo
from playwright.sync_api import expect

pytestmark = needs_chromium
STORY_MS = 400_000


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """One demo at a terminal for all tests of this module; the first test sees its beginning."""
    started = Demo(tmp_path_factory.mktemp("demo"), *SMALL, terminal=True)
    yield started
    started.process.send_signal(signal.SIGINT)
    started.rest()
    started.close()


@pytest.fixture
def visit(windows, demo):
    return lambda address, **options: windows.open(demo.fresh_address(), address, **options)


def test_the_curve_grows_while_the_page_stays_open(visit, demo):
    page = visit("/demo")
    loads = []
    page.on("framenavigated", lambda frame: loads.append(frame.url))
    page.locator("#demo-curve canvas").wait_for(timeout=STORY_MS)
    expect(page.locator("#story .note")).to_contain_text("Done: 10 rounds", timeout=STORY_MS)
    assert page.locator("#rounds tbody tr").count() == 11
    legend = page.locator("#demo-curve .u-legend").inner_text()
    shown = page.locator("#rounds tbody tr").first.locator("td").nth(1).inner_text()
    assert f"learned together {shown.partition(' ')[0]}" in legend  # the drawing has the last round
    assert loads == []
    assert page.problems == []
    assert page.contacted == {page.base}
    demo.until(r"goes on until Ctrl-C")
    assert re.search(r"learned together +(\S+ ± \S+)", demo.text)[1] == shown  # terminal and page agree


def test_the_numbers_without_javascript(visit, demo):
    demo.until(r"goes on until Ctrl-C")
    page = visit("/demo", java_script_enabled=False)
    assert page.locator("#rounds tbody tr").count() == 11
    assert page.locator("#story-curve").is_hidden()
    assert "Promise at this size" in page.locator("#story").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible(visit, demo, scheme):
    demo.until(r"goes on until Ctrl-C")
    page = visit("/demo", color_scheme=scheme)
    page.locator("#demo-curve canvas").wait_for()
    assert violations(page) == []
    assert page.problems == []


def test_nothing_is_wider_than_a_phone(visit, demo):
    demo.until(r"goes on until Ctrl-C")
    page = visit("/demo", viewport=PHONE)
    page.locator("#demo-curve canvas").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_documents_of_the_demo_are_found(visit, demo):
    """They are written while the page is served already, and appear without a reload."""
    page = visit("/")
    page.locator(".open").first.wait_for(timeout=STORY_MS)
    page.locator("#q").fill("json decoder")
    expect(page.locator(".open").first).to_have_text(re.compile("json.decoder"), timeout=STORY_MS)
    assert page.problems == []
