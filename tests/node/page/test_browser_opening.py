"""One Enter opens it, in a real browser: while somebody types, with other programs, after a question."""

import re

import pytest
from browser_window import needs_chromium, titles, violations
from playwright.sync_api import expect

import foltr.node
from foltr.node.search import consents

pytestmark = needs_chromium


@pytest.fixture(autouse=True)
def no_entries(server):
    """Tests share one server and its desktop."""
    yield
    server.opened.without_entries()


def history(server):
    with foltr.node.open(server.home) as node:
        return node.history()


def test_enter_while_typing_opens_what_is_displayed_and_that_list_is_the_impression(visit, server):
    page = visit("/?q=heapq+merge")
    first = titles(page)[0]
    held = []
    page.route("**/list?q=calendar&**", lambda route: held.append(route))
    box = page.locator("#q")
    with page.expect_request("**/list?q=calendar&**"):
        box.fill("calendar")
    with page.expect_response("**/act"):
        page.keyboard.press("Enter")  # the list of before is displayed
    assert server.opened().endswith(first.rpartition(".")[2] + ".md")
    last = history(server)[0]
    assert (last.query, [choice.position for choice in last.choices]) == ("heapq merge", [0])
    with page.expect_response("**/list?q=calendar&**"):
        held[0].continue_()
    expect(page.locator(".open").first).to_have_text(re.compile("^calendar"))
    assert page.evaluate("document.activeElement.id") == "q"
    assert history(server)[0].impression == last.impression  # nobody has looked at the list that came later


def test_enter_without_a_row_opens_nothing(visit, server):
    page = visit("/?q=qqqzzxv")
    page.locator("#q").press("Enter")
    page.locator("#q").press("Control+Enter")
    page.locator("#q").press("Shift+Enter")
    expect(page.locator("dialog")).to_have_count(0)
    assert server.opened.nothing()


def test_a_held_key_opens_once(visit, server):
    page = visit("/?q=queue")
    with page.expect_response("**/act"):
        page.locator("#q").press("Enter")
    page.evaluate("""document.getElementById("q").dispatchEvent(
        new KeyboardEvent("keydown", { key: "Enter", repeat: true, bubbles: true }))""")
    server.opened()
    page.evaluate("() => fetch('/help')")
    assert server.opened.nothing()


def test_a_search_that_found_nothing_is_in_the_history(visit, server):
    page = visit()
    with page.expect_response("**/settle"):
        page.locator("#q").fill("qqqxzvw")
    page.goto(server.base + "/history")
    row = page.locator("tbody tr").first
    expect(row).to_contain_text("qqqxzvw")
    expect(row).to_contain_text("nothing found")


# ---- keys on a row


def test_the_path_is_copied_with_a_key(visit, server):
    page = visit("/?q=textwrap+dedent", permissions=["clipboard-read", "clipboard-write"])
    expected = str(server.documents / "docs/textwrap/dedent.md")
    for where in ("#q", ".open >> nth=0"):
        page.evaluate("navigator.clipboard.writeText('before')")
        page.locator(where).focus()
        page.keyboard.press("End")
        page.keyboard.press("Control+c")
        expect(page.locator("#message")).to_have_text("Copied the path.")
        assert page.evaluate("navigator.clipboard.readText()") == expected
        page.evaluate("document.getElementById('message').replaceChildren()")
    page.locator("#q").select_text()
    page.keyboard.press("Control+c")  # the selected text, as everywhere
    assert page.evaluate("navigator.clipboard.readText()") == "textwrap dedent"
    page.locator(".row").first.locator("summary", has_text="More").click()
    page.get_by_role("button", name="Copy the path").first.click()
    expect(page.locator("#message")).to_have_text("Copied the path.")
    assert server.opened.nothing()


def test_a_row_opens_with_a_program_that_is_chosen_by_keys(visit, server):
    for name in ("gedit", "reader"):
        server.opened.program(name)
        server.opened.entry(name, f"{name} %f", "text/markdown;", Categories="TextEditor;")
    page = visit("/?q=textwrap+dedent")
    page.locator("#q").press("Shift+Enter")
    dialog = page.get_by_role("dialog", name="Open with")
    expect(dialog.get_by_role("button", name="reader")).to_be_visible()
    assert violations(page) == []
    while page.evaluate("document.activeElement.textContent") != "reader":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert server.opened() == f"reader|{server.documents / 'docs/textwrap/dedent.md'}"
    expect(page.locator("#message")).to_have_text("Opened dedent.md.")
    expect(page.locator("dialog")).to_have_count(0)
    assert history(server)[0].choices[-1].document.endswith("dedent.md")


def test_a_program_that_fails_is_said_on_the_page_and_is_no_choice(visit, server):
    server.opened.program("xdg-open", code=3)
    try:
        page = visit("/?q=zipfile+badzipfile")
        page.locator("#q").press("Enter")
        expect(page.locator("#message .problem")).to_contain_text("exit code 3: no program for this kind of file")
        server.opened()
    finally:
        server.opened.program("xdg-open")
    assert all(choice.withdrawn for choice in history(server)[0].choices)


# ---- the question


@pytest.fixture
def launcher(visit, server):
    """A list whose first row could run code; nothing was agreed to."""
    with foltr.node.open(server.home) as node:
        for kind in consents.given(node.places):
            consents.revoke(node.places, kind)
    page = visit("/?q=hostile+launcher")
    assert titles(page)[0] == "launcher.txt"
    return page


def test_what_can_run_code_is_asked_about_once_and_settings_take_it_back(launcher, server):
    page = launcher
    page.locator("#q").press("Enter")
    dialog = page.get_by_role("dialog", name="Open it?")
    expect(dialog).to_contain_text("it is a launcher")
    assert violations(page) == []
    assert server.opened.nothing()
    dialog.get_by_role("button", name="Open, and do not ask again").click()
    assert server.opened().endswith("/hostile/launcher.txt")
    expect(page.locator("#message")).to_have_text("Opened launcher.txt.")
    page.locator("#q").press("Enter")
    assert server.opened().endswith("/hostile/launcher.txt")  # not asked again
    page.goto(server.base + "/settings")
    assert violations(page) == []
    page.get_by_role("button", name="Ask again about launchers").click()
    page.get_by_text("None is opened without a question").wait_for()
    page.goto(server.base + "/?q=hostile+launcher")
    page.locator("#q").press("Enter")
    expect(page.get_by_role("dialog", name="Open it?")).to_be_visible()
    assert server.opened.nothing()


def test_pressing_enter_again_and_again_is_no_consent(launcher, server):
    page = launcher
    for _ in range(6):
        page.keyboard.press("Enter")
        page.evaluate("() => fetch('/help')")
    assert server.opened.nothing()
    with foltr.node.open(server.home) as node:
        assert consents.given(node.places) == frozenset()


def test_a_double_click_is_no_consent(launcher, server):
    page = launcher
    page.locator("#q").press("Enter")
    button = page.get_by_role("dialog").get_by_role("button", name="Open, and do not ask again")
    button.dispatch_event("click", {"detail": 2})
    page.evaluate("() => fetch('/help')")
    assert server.opened.nothing()
    page.get_by_role("dialog").get_by_role("button", name="Show its folder").click()
    assert server.opened().endswith("/hostile")


def test_the_question_without_javascript(visit, server):
    with foltr.node.open(server.home) as node:
        consents.revoke(node.places, "launchers")
    page = visit("/?q=hostile+launcher", java_script_enabled=False)
    page.locator(".open").first.click()
    expect(page.locator("h1")).to_have_text("Before it is opened")
    assert server.opened.nothing()
    page.get_by_role("button", name="Open, and do not ask again").click()
    assert server.opened().endswith("/hostile/launcher.txt")
    with foltr.node.open(server.home) as node:
        consents.revoke(node.places, "launchers")
