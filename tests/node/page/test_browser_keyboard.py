"""A whole visit without a mouse: search, move, open, pin, hide, history, settings, learning, sign out."""

from browser_window import needs_chromium, titles
from playwright.sync_api import expect

import foltr.node

pytestmark = needs_chromium

FOCUSED = """() => {
    const here = document.activeElement, box = here.getBoundingClientRect();
    const outline = getComputedStyle(here).outlineStyle !== "none" || here.matches("input, select, textarea");
    return { text: here.textContent.trim(), name: here.id || here.name || "", visible: box.width > 0 && outline };
}"""


def tab_to(page, text="", *, name=""):
    """Presses Tab until an element with this text or name has the focus, which must be seen."""
    for _ in range(150):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if (text and focused["text"].startswith(text)) or (name and focused["name"] == name):
            assert focused["visible"], focused
            return
    raise AssertionError(f"Tab never reaches {text or name}")


def press_in_menu(page, row, name):
    """Opens the menu of a row and presses one of its buttons."""
    page.keyboard.press("/")
    for _ in range(row + 1):
        page.keyboard.press("ArrowDown")
    tab_to(page, "More")
    page.keyboard.press("Enter")
    tab_to(page, name)
    with page.expect_response("**/act"):
        page.keyboard.press("Enter")


def test_a_whole_visit_without_a_mouse(visit, server):
    page = visit()
    expect(page.locator("input[autofocus]")).to_be_focused()
    page.keyboard.type("fractions")
    expect(page.locator("#act input[name=q]")).to_have_value("fractions")
    first, second, third = titles(page)[:3]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert server.opened().endswith(second.rpartition(".")[2] + ".md")

    press_in_menu(page, 2, "Pin to the top")
    expect(page.locator("#message")).to_contain_text("Pinned")
    press_in_menu(page, 0, "Never here")
    expect(page.locator("#message")).to_contain_text("not be shown")
    page.keyboard.press("/")
    page.keyboard.type("fractions ")
    expect(page.locator("#act input[name=q]")).to_have_value("fractions ")
    assert titles(page)[0] == third
    assert first not in titles(page)

    tab_to(page, "History")  # Tab goes round
    page.keyboard.press("Enter")
    page.wait_for_url("**/history")
    tab_to(page, "Take back")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Take back")).to_have_count(1)

    tab_to(page, "Learning")
    page.keyboard.press("Enter")
    page.wait_for_url("**/learning")
    tab_to(page, "Fit now")
    page.keyboard.press("Enter")
    page.locator(".note").first.wait_for()

    tab_to(page, "Settings")
    page.keyboard.press("Enter")
    page.wait_for_url("**/settings")
    tab_to(page, name="exploration")
    page.keyboard.press("Space")
    tab_to(page, "Save")
    page.keyboard.press("Enter")
    expect(page.locator(".note").first).to_have_text("Saved.")
    with foltr.node.open(server.home) as node:
        assert node.settings.exploration

    tab_to(page, "Help")
    page.keyboard.press("?")
    page.locator("dialog[open]").wait_for()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    assert page.evaluate(FOCUSED)["text"] == "Help"  # back where it was

    tab_to(page, "Sign out this browser")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("This browser is signed out")
    assert page.problems == []
