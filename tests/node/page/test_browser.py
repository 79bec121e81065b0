"""What a person does, in a real browser: type, move, open, look at every page, without a mouse, without JavaScript."""

import json
import re
import shutil
import time
from pathlib import Path

import pytest
from page_client import Server, desktop
from playwright.sync_api import expect, sync_playwright

import foltr.node

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (apt install chromium)")

AXE = Path(__file__).with_name("vendor") / "axe.min.js"
PAGES = {
    "search": "/?q=json", "recent": "/", "nothing": "/?q=xqzzv+type:pdf", "history": "/history",
    "learning": "/learning", "leaves": "/leaves", "index": "/index", "settings": "/settings", "forget": "/forget",
    "help": "/help", "why": "/why?path=/tmp/nothing.txt",
}  # fmt: skip


@pytest.fixture(scope="module")
def chromium():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], headless=True)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(library, tmp_path_factory):
    """One server for all tests of this module, with a desktop that writes down what it opens."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(library / "home", folder / "home")
    variables = {}
    read = desktop(folder, variables.__setitem__)
    started = Server(folder / "home", **variables)
    started.opened, started.home, started.documents = read, folder / "home", library
    yield started
    started.end()


@pytest.fixture
def visit(chromium, server):
    """Opens an address in a fresh window that was let in; tells what went wrong and who was contacted."""
    contexts = []

    def open_page(address="/", **options):
        context = chromium.new_context(**options)
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        page.problems, page.contacted = [], set()
        page.on("pageerror", lambda problem: page.problems.append(str(problem)))
        page.on("console", lambda message: page.problems.append(message.text) if is_wrong(message) else None)
        page.on("request", lambda request: page.contacted.add(re.match(r"[a-z]+://[^/]*", request.url)[0]))
        page.goto(server.address)
        page.wait_for_url(server.base + "/")
        page.goto(server.base + address)
        return page

    yield open_page
    for context in contexts:
        context.close()


def is_wrong(message):
    """htmx writes down requests that a newer one replaced; anything else on the console is a fault."""
    return message.type == "error" and not message.text.startswith(("htmx:afterRequest", "htmx:sendAbort"))


def titles(page):
    return page.locator(".open").all_inner_texts()


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
    """Order and words are different elements, which do not abort each other: the numbers of requests decide."""
    page = visit()
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
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "textwrap.dedent"
    page.keyboard.press("Enter")
    assert server.opened() == str(server.documents / "docs/textwrap/dedent.md")
    page.locator("#message p").wait_for()
    assert "Opened dedent.md" in page.locator("#message").inner_text()
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
    page.locator("#message p").wait_for()
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
    page.locator("#message p").wait_for()
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


# ---- every page, without JavaScript, without a connection to anybody else


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible(visit, name, scheme):
    page = visit(PAGES[name], color_scheme=scheme)
    if name == "search":
        for tool in page.locator(".row").first.locator("summary").all():
            tool.click()
        page.locator(".loaded table").first.wait_for()
        page.locator(".loaded pre").first.wait_for()
    page.evaluate(AXE.read_text("utf-8") + ";undefined")
    found = page.evaluate(
        "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']}).then(r => r.violations)"
    )
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
    assert page.problems == []


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wider_than_a_phone(visit, name):
    page = visit(PAGES[name], viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_nobody_else_is_contacted(visit, server):
    page = visit()
    for address in PAGES.values():
        page.goto(server.base + address)
    page.goto(server.base)
    page.locator("#q").press_sequentially("json")
    expect(page.locator(".open").first).to_have_text(re.compile("^json"))
    assert page.contacted == {server.base}


def test_the_policy_blocks_what_a_page_might_be_made_to_load(visit):
    page = visit("/")
    page.evaluate("""() => {
        const script = document.createElement('script');
        script.textContent = 'window.attacked = 1';
        document.body.append(script);
        const image = document.createElement('img');
        image.src = 'http://127.0.0.1:9/x.png';
        document.body.append(image);
    }""")
    blocked = page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'blocked')")
    assert blocked == "blocked"
    assert page.evaluate("window.attacked") is None
    assert sum("Content Security Policy" in one for one in page.problems) >= 3


def test_search_and_open_without_javascript(visit, server):
    page = visit("/", java_script_enabled=False)
    page.locator("#q").fill("csv reader")
    page.locator("#search button").click()
    page.wait_for_url("**/?q=csv+reader*")
    first = titles(page)[0]
    page.locator(".open").first.click()
    assert server.opened().endswith(first.rpartition(".")[2] + ".md")
    page.locator(".note").wait_for()
    assert "Opened" in page.locator("#message").inner_text()
    assert page.locator("#q").input_value() == "csv reader"
    assert history(server)[0].query == "csv reader"
    page.locator(".row").first.locator("summary", has_text="Why here").click()
    page.get_by_text("What every feature adds").first.click()
    assert page.locator("tfoot").inner_text().startswith("Score")
    page.get_by_text("Back to the results").click()
    page.locator("#filters a").first.click()
    assert page.locator(".chips li").count() == 1


def test_a_frame_of_another_page_stays_empty(chromium, server, tmp_path):
    context = chromium.new_context()
    page = context.new_page()
    (tmp_path / "frame.html").write_text(f'<iframe src="{server.base}/forget"></iframe>')
    problems = []
    page.on("console", lambda message: problems.append(message.text))
    with page.expect_event("console"):
        page.goto((tmp_path / "frame.html").as_uri())
    assert any("frame" in one.lower() or "401" in one or "403" in one for one in problems)
    assert all("Forget" not in (frame.content() if frame is not page.main_frame else "") for frame in page.frames)
    context.close()


# ---- pages


def test_the_curve_is_drawn_and_versions_can_be_gone_back_to(visit, server):
    with foltr.node.open(server.home) as node:
        for _ in range(4):
            for words in ("json", "queue", "heapq"):
                results = node.search(words)
                node.choose(results, results.rows[-1].id)
    page = visit("/learning")
    page.locator("#curve canvas").wait_for()
    page.get_by_text("The numbers as a table").click()
    assert page.locator("#curve-table tbody tr").count() >= 12
    page.get_by_role("button", name="Fit now").click()
    page.locator(".note").wait_for()
    button = page.get_by_role("button", name="Use version 0")
    if button.count():
        button.click()
        page.get_by_text("that version ranks from now on").wait_for()
    with foltr.node.open(server.home) as node:
        assert node.status().version == 0
    assert page.problems == []


def test_history_is_searched_deleted_and_exported(visit, server):
    with foltr.node.open(server.home) as node:
        for words in ("glob pattern", "bisect left"):
            node.settle(node.search(words))
    page = visit("/history")
    page.get_by_label("Search in the history").fill("glob pat")
    page.keyboard.press("Enter")
    page.wait_for_url("**/history?find=*")
    assert page.locator("tbody tr").count() == 1
    with page.expect_download() as download:
        page.get_by_text("Export as JSON lines").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert json.loads(lines[0])["type"] == "header"
    page.get_by_role("button", name="Delete the search glob pattern").click()
    page.get_by_text("Deleted 1 search.").wait_for()
    assert "glob pattern" not in [one.query for one in history(server)]
    assert "bisect left" in [one.query for one in history(server)]


def test_the_index_page_counts_pauses_and_explains(visit, server):
    page = visit("/index")
    numbers = [int(one.replace(",", "")) for one in page.locator("#state td.n").all_inner_texts()]
    assert sum(numbers[:-1]) == numbers[-1]
    page.get_by_role("button", name="Pause").click()
    page.get_by_text("nothing is indexed until you resume").wait_for()
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Pause").wait_for()
    page.get_by_label("Path of the file").fill(str(server.documents / "docs" / "json" / "loads.md"))
    page.keyboard.press("Enter")
    page.get_by_text("It has 1 document in the index").wait_for()


def test_a_new_file_is_found_while_the_page_is_open(visit, server):
    (server.documents / "docs" / "json" / "fresh.md").write_text("# unheardof\n\nunheardof words\n")
    page = visit()
    last = time.monotonic() + 120
    while titles(page) != ["unheardof"] and time.monotonic() < last:
        page.goto(server.base + "/?q=unheardof")
    assert titles(page) == ["unheardof"]
