"""Every page in a real browser: accessible, on a phone, without JavaScript, in contact with nobody else."""

import json
import re
import time
from pathlib import Path
from urllib.parse import urlencode

import pytest
from browser_window import PHONE, needs_chromium, titles, violations
from playwright.sync_api import expect

import foltr.node

pytestmark = needs_chromium
PAGES = {
    "search": "/?q=json", "recent": "/", "nothing": "/?q=xqzzv+type:pdf", "history": "/history",
    "learning": "/learning", "leaves": "/leaves", "index": "/index", "settings": "/settings", "forget": "/forget",
    "help": "/help", "why": "/why?path=/tmp/nothing.txt",
}  # fmt: skip


def searched(server):
    """Queries of the history, newest first."""
    with foltr.node.open(server.home) as node:
        return [one.query for one in node.history()]


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
    assert violations(page) == []
    assert page.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_that_follow_from_others_are_accessible(visit, server, scheme):
    """Of one row, of errors, of a question and of signing out."""
    page = visit("/?q=hostile+launcher", color_scheme=scheme)
    here = {name: page.locator(f"#act input[name={name}]").input_value() for name in ("search_id", "q", "sort", "n")}
    address = urlencode(here | {"document": page.locator(".open").first.get_attribute("value")})
    for part in ("explain", "preview", "open-with"):
        page.goto(f"{server.base}/{part}?{address}")
        assert violations(page) == [], part
    for wrong in ("/nothing", "/explain?search_id=0&document=1", "/list?n=x"):
        page.goto(server.base + wrong)
        assert violations(page) == [], wrong
    page.goto(server.base + "/?q=hostile+launcher")
    page.evaluate("""() => {
        const form = document.getElementById("act"), row = document.querySelector(".open");
        form.append(Object.assign(document.createElement("input"), { name: "open", value: row.value }));
        form.submit();  // as without a script
    }""")
    expect(page.locator("h1")).to_have_text("Before it is opened")
    assert violations(page) == []
    page.goto(server.base + "/settings")
    page.get_by_role("button", name="Sign out this browser").click()
    expect(page.locator("h1")).to_have_text("This browser is signed out")
    assert violations(page) == []
    page.goto(server.base + "/")
    expect(page.locator("h1")).to_have_text("This page belongs to somebody")
    assert violations(page) == []


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wider_than_a_phone(visit, name):
    page = visit(PAGES[name], viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_dates_and_buttons_of_the_history_fit_on_a_phone(visit, server):
    with foltr.node.open(server.home) as node:
        results = node.search("zipfile path:zipfile is_zipfile")
        node.choose(results, results.rows[0].id)
    page = visit("/history", viewport=PHONE)
    row = page.locator("tbody tr").first
    lines = """cell => {
        const text = document.createRange();
        text.selectNodeContents(cell);
        return text.getClientRects().length;
    }"""
    assert row.locator("td").first.evaluate(lines) == 1
    button = row.get_by_role("button").bounding_box()
    assert button["x"] + button["width"] <= PHONE["width"]
    assert violations(page) == []


def test_a_title_from_right_to_left_ends_with_its_ending_on_the_left(visit):
    page = visit("/?q=json")
    places = """title => {
        title.textContent = "\u05d7\u05d5\u05d6\u05d4.txt";
        return [0, 5].map(i => {
            const letter = document.createRange();
            letter.setStart(title.firstChild, i);
            letter.setEnd(title.firstChild, i + 1);
            return letter.getBoundingClientRect().left;
        });
    }"""
    first, ending = page.locator(".open").first.evaluate(places)
    assert ending < first


def test_a_long_title_takes_three_lines_at_most(visit):
    page = visit("/?q=json", viewport=PHONE)
    title = page.locator(".open").first
    one = title.bounding_box()["height"]
    title.evaluate("title => { title.textContent = 'x'.repeat(200) }")
    assert 2.5 * one < title.bounding_box()["height"] < 3.5 * one


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
    assert searched(server)[0] == "csv reader"
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
        for then in ("", " module", " class", " function"):
            for word in ("json", "queue", "heapq"):
                results = node.search(word + then)
                node.choose(results, results.rows[-1].id)
    page = visit("/learning")
    assert "searches had the document first" in page.locator("h1 + p").inner_text()  # the page begins with it
    assert not page.locator("#curve-table").is_visible()  # ranks come behind "details"
    page.get_by_text("Details: how far down").click()
    page.locator("#curve canvas").wait_for()
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
    assert "glob pattern" not in searched(server)
    assert "bisect left" in searched(server)


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
