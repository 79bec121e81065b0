"""What tests in a real browser share: which browser, what counts as a fault, what axe-core finds."""

import re
import shutil
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (apt install chromium)")
AXE = Path(__file__).with_name("vendor") / "axe.min.js"
PHONE = {"width": 360, "height": 740}


class Windows:
    """Opens addresses in fresh windows that were let in; a page tells what went wrong and who was contacted."""

    def __init__(self, browser):
        self._browser, self._contexts = browser, []

    def open(self, entrance, address, **options):
        """`entrance` is the address with the token."""
        context = self._browser.new_context(**options)
        context.set_default_timeout(30_000)
        self._contexts.append(context)
        page = context.new_page()
        page.problems, page.contacted, page.base = [], set(), entrance.partition("/?")[0]
        page.on("pageerror", lambda problem: page.problems.append(str(problem)))
        page.on("console", lambda message: page.problems.append(message.text) if is_wrong(message) else None)
        page.on("request", lambda request: page.contacted.add(re.match(r"[a-z]+://[^/]*", request.url)[0]))
        page.goto(entrance)
        page.wait_for_url(page.base + "/")
        page.goto(page.base + address)
        return page

    def close(self):
        for context in self._contexts:
            context.close()


def is_wrong(message):
    return message.type == "error"


def violations(page):
    """What axe-core finds at levels A and AA."""
    page.evaluate(AXE.read_text("utf-8") + ";undefined")
    found = page.evaluate(
        "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']}).then(r => r.violations)"
    )
    return [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]


def titles(page):
    return page.locator(".open").all_inner_texts()
