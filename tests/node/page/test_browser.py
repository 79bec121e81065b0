"""What a person does, in a real browser: type, move, open, without a mouse."""

import re

from browser_window import needs_chromium, titles
from playwright.sync_api import expect

import foltr.node

pytestmark = needs_chromium


def history(server):
    with foltr.node.open(server.home) as node:
        return node.history()


# ---- typing


def test_the_list_follows_every_letter(visit):
    page = visit()
    page.locator("#q").press_sequentially("textwrap dedent")
    expect(page.locator(".open").first).to_have_text("textwrap.dedent")
    expect(page).to_have_title("textwrap dedent – foltr")
    assert page.url.endswith("/?q=textwrap+dedent")
    assert page.locator("mark").count() > 0
    assert page.problems == []


def test_a_slow_old_answer_never_replaces_a_newer_one(visit):
    page = visit()
    held = []
    page.route("**/list?q=zip&**", lambda route: held.append(route))
    box = page.locator("#q")
    with page.expect_request("**/list?q=zip&**"):
        box.fill("zip")
    box.fill("calendar")
    expect(page.locator(".open").first).to_have_text(re.compile("^calendar"))
    before = titles(page)
    held[0].continue_()
    page.evaluate("() => fetch('/help')")  # the old answer had time to come
    assert titles(page) == before


def test_an_old_answer_that_was_not_aborted_is_dropped(visit):
    """An answer may be on its way already when its request is aborted: the numbers of requests decide."""
    page = visit()
    page.evaluate("AbortController.prototype.abort = () => {}")
    held = []
    page.route("**/list?q=json&sort=", lambda route: held.append(route))
    with page.expect_request("**/list?q=json&sort="):
        page.locator("#q").fill("json")
    page.locator("#sort").select_option("date")
    expect(page.locator("#act input[name=sort]")).to_have_value("date")
    before = titles(page)
    with page.expect_response("**/list?q=json&sort="):
        held[0].continue_()
    page.evaluate("() => new Promise(requestAnimationFrame)")
    assert page.locator("#act input[name=sort]").input_value() == "date"
    assert titles(page) == before


def test_a_list_that_is_late_is_dimmed_until_the_next_one_is_there(visit):
    page = visit("/?q=zip")
    held = []
    page.route("**/list?q=calendar&**", lambda route: held.append(route))
    with page.expect_request("**/list?q=calendar&**"):
        page.locator("#q").fill("calendar")
    expect(page.locator("#results")).to_have_attribute("aria-busy", "true")
    expect(page.locator("#results")).to_have_css("opacity", "0.5")
    held[0].continue_()
    expect(page.locator(".open").first).to_have_text(re.compile("^calendar"))
    expect(page.locator("#results")).not_to_have_attribute("aria-busy", "true")


def test_no_row_moves_while_the_query_is_unchanged(visit, server):
    page = visit("/?q=thread")
    before = titles(page)
    requests = []
    page.on("request", lambda request: requests.append(request.url) if "/list" in request.url else None)
    page.locator("#q").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#live")).not_to_be_empty()  # settled, with filters
    page.locator("#filters h3").first.wait_for()
    assert requests == []
    assert titles(page) == before


def test_a_list_is_logged_when_it_has_settled_and_keystrokes_are_not(visit, server):
    page = visit()
    with page.expect_response("**/settle"):
        page.locator("#q").press_sequentially("heapq merge", delay=5)
    assert history(server)[0].query == "heapq merge"
    assert not any(one.query in ("heapq", "heapq m", "heap") for one in history(server))


# ---- keys


def test_everything_with_keys(visit, server):
    page = visit("/history")
    page.goto(server.base)
    page.keyboard.press("Tab")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.type("textwrap dedent")
    expect(page.locator(".open").first).to_have_text("textwrap.dedent")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == "textwrap.dedent"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.press("Enter")  # in the box: the first result
    assert server.opened() == str(server.documents / "docs/textwrap/dedent.md")
    expect(page.locator("#message")).to_have_text("Opened dedent.md.")
    page.keyboard.press("Control+Enter")
    assert server.opened() == str(server.documents / "docs/textwrap")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")  # on a result
    assert server.opened() == str(server.documents / "docs/textwrap/dedent.md")
    page.keyboard.press("Control+Enter")
    assert server.opened() == str(server.documents / "docs/textwrap")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.press("Escape")
    expect(page.locator("#count")).to_have_text("Recent documents")
    assert page.locator("#q").input_value() == ""
    page.keyboard.press("Tab")
    page.keyboard.press("?")
    page.locator("dialog[open]").wait_for()
    page.keyboard.press("Escape")
    page.locator("dialog[open]").wait_for(state="detached")
    assert page.problems == []


def test_menus_open_with_the_keyboard(visit):
    page = visit("/?q=json")
    page.locator(".open").first.focus()
    for name, loaded in (("Preview", ".loaded pre"), ("Why here", ".loaded table"), ("More", ".choices")):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent").startswith(name)
        page.keyboard.press("Enter")
        page.locator(loaded).first.wait_for()
        page.keyboard.press("Tab")  # into what was opened: it can be scrolled with the keyboard
        assert page.evaluate("document.activeElement.matches('pre, .scroll, button[name=folder]')")


# ---- opening


def test_opening_logs_a_choice_and_the_document_is_first_next_time(visit, server):
    page = visit("/?q=statistics")
    chosen = titles(page)[3]
    page.locator(".open").nth(3).click()
    assert server.opened().endswith(chosen.rpartition(".")[2] + ".md")
    last = history(server)[0]
    assert last.query == "statistics"
    assert [choice.position for choice in last.choices] == [3]
    page.goto(server.base + "/?q=statistics")
    assert titles(page)[0] == chosen
    assert "you opened this once for 'statistics'" in page.locator(".reason").first.inner_text()


def test_a_quick_return_takes_the_choice_back_when_something_else_is_opened(visit, server):
    page = visit("/?q=shutil")
    page.locator(".open").nth(1).click()
    server.opened()
    expect(page.locator("#message")).to_contain_text("Opened")
    page.evaluate("window.dispatchEvent(new Event('focus'))")  # the page is visible again
    with page.expect_response("**/act"):
        page.locator(".open").nth(2).click()
    server.opened()
    last = history(server)[0]
    assert [(choice.position, bool(choice.withdrawn)) for choice in last.choices] == [(1, True), (2, False)]


def test_a_late_return_takes_nothing_back(visit, server):
    page = visit("/?q=tempfile")
    page.locator(".open").nth(1).click()
    server.opened()
    expect(page.locator("#message")).to_contain_text("Opened")
    page.evaluate("const now = Date.now(); Date.now = () => now + 11000; window.dispatchEvent(new Event('focus'))")
    with page.expect_response("**/act"):
        page.locator(".open").nth(2).click()
    server.opened()
    assert [bool(choice.withdrawn) for choice in history(server)[0].choices] == [False, False]


def test_pin_never_here_and_forget(visit, server):
    page = visit("/?q=fractions")
    first, third = titles(page)[0], titles(page)[2]

    def press(row, name):
        item = page.locator(".row").nth(row)
        if item.locator(".menu[open]").count() == 0:
            item.locator("summary", has_text="More").click()
        with page.expect_response("**/act"):
            item.get_by_role("button", name=name).click()

    press(2, "Pin")
    assert titles(page)[0] == first  # nothing moves while somebody looks
    page.goto(server.base + "/?q=fractions")
    assert titles(page)[0] == third
    press(0, "Unpin")
    press(0, "Never here")
    page.goto(server.base + "/?q=fractions")
    assert third not in titles(page)
    page.goto(server.base + "/?q=fractions+number")
    assert third in titles(page)
    page.goto(server.base + "/history")
    page.get_by_role("button", name="Take back").click()
    page.goto(server.base + "/?q=fractions")
    assert third in titles(page)
    press(1, "Forget")
    expect(page.locator("#message")).to_contain_text("no choice to forget")


def test_everything_that_is_opened_at_once_is_loaded(visit):
    page = visit("/?q=json")
    rows = page.locator(".row").count()
    assert rows >= 5
    page.evaluate("document.querySelectorAll('.row details').forEach((one) => { one.open = true; })")
    expect(page.locator(".loaded pre")).to_have_count(rows)
    expect(page.locator(".loaded table")).to_have_count(rows)


def test_hostile_documents_do_not_run(visit):
    page = visit("/?q=hostile")
    assert page.locator(".row").count() >= 5
    for number in range(page.locator(".row").count()):
        page.locator(".row").nth(number).locator("summary", has_text="Preview").click()
    expect(page.locator(".loaded pre")).to_have_count(page.locator(".row").count())
    page.locator("#q").fill("minutes")
    expect(page.locator(".open").first).to_have_text(re.compile("^Minutes"))
    assert "<script>" in page.locator(".open").first.inner_text()
    assert page.evaluate("window.attacked") is None
    assert page.problems == []
