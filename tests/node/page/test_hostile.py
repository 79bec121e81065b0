"""What a hostile document, form or request can do: nothing."""

import httpx
import pytest
from page_client import HOST, IMAGE, form_of, numbers

from foltr.node.page import search

# ---- hostile documents


def test_documents_are_text_and_never_markup(browser_client):
    for address in ("/?q=hostile", "/list?q=hostile", "/?q=minutes", "/?q=type:eml", "/?q=path:hostile",
                    "/?q=from:ada+minutes"):  # fmt: skip
        text = browser_client.get(address).text
        assert numbers(text), address
        assert "<script>window" not in text
        assert "<img" not in text
        assert IMAGE not in text
    assert "&lt;script&gt;window.attacked=1&lt;/script&gt;" in browser_client.get("/?q=hostile").text


def test_highlights_do_not_break_escapes(browser_client):
    """Words of a query that occur in the escapes themselves: lt, gt, quot, script."""
    for words in ("hostile lt", "hostile gt amp quot", "script img src onerror", "hostile 39 34", "meeting"):
        text = browser_client.get("/list", params={"q": words}).text
        assert "<script>window" not in text
        assert "<img" not in text
        assert "&<mark>" not in text


def test_every_piece_around_a_highlight_is_escaped():
    text = "<a> word <b> word <c>"
    shown = search.marked(text, [(4, 8), (13, 17)])
    assert shown == "&lt;a&gt; <mark>word</mark> &lt;b&gt; <mark>word</mark> &lt;c&gt;"
    assert search.marked("<mark>", [(0, 6)]) == "<mark>&lt;mark&gt;</mark>"


def test_previews_and_explanations_are_text(browser_client):
    for words in ("hostile", "minutes"):
        text = browser_client.get("/", params={"q": words}).text
        for number in numbers(text):
            for part in ("/preview", "/explain"):
                for headers in ({}, {"x-part": "true"}):
                    query = {**form_of(text), "document": number}
                    answer = browser_client.get(part, params=query, headers=headers)
                    assert answer.status_code == 200
                    assert "<script>window" not in answer.text
                    assert "<img" not in answer.text


def test_a_query_is_text_and_never_markup(browser_client):
    for words in ('"><script>alert(1)</script>', "'onfocus=alert(1) autofocus='", "{{ 7 * 7 }}", "</title><script>"):
        for address in ("/", "/list", "/history?find=", "/why"):
            name = "find" if "find" in address else "q"
            text = browser_client.get(address.partition("?")[0], params={name: words, "path": words}).text
            assert "<script>alert" not in text
            assert "</title><script>" not in text
            assert "onfocus=alert(1) autofocus=" not in text.replace("&#39;onfocus=alert(1) autofocus=&#39;", "")
            assert ">49<" not in text


def test_history_index_and_why_show_hostile_names_as_text(browser_client, node, opened):
    results = node.search("hostile")
    for row in results.rows:
        node.choose(results, row.id)
    node.settle(node.search(f"hostile {IMAGE}"))
    for address in ("/history", "/learning", "/index", "/leaves", f"/why?path={IMAGE}"):
        text = browser_client.get(address).text
        assert "<img" not in text
        assert "<script>window" not in text


# ---- opening


@pytest.mark.parametrize("name", ["launcher.txt", "run.txt", "executable.txt"])
def test_what_could_run_is_asked_about(browser_client, opened, library, node, name):
    text = browser_client.get("/", params={"q": f"hostile path:{name}"}).text
    (number,) = numbers(text)
    answer = browser_client.post("/act", data={**form_of(text), "open": number}, headers={"x-part": "true"})
    assert "Opening it can run code" in answer.text
    assert opened.nothing()


def test_a_document_is_opened(browser_client, opened, library):
    text = browser_client.get("/", params={"q": "hostile path:letter.txt"}).text
    (number,) = numbers(text)
    answer = browser_client.post("/act", data={**form_of(text), "open": number})
    assert answer.status_code == 303
    assert opened() == str(library / "hostile" / "letter.txt")


@pytest.mark.parametrize(
    "value",
    ["/etc/passwd", "../../etc/passwd", "file:///etc/passwd", "0", "-1", "999999999", "9" * 40, "1;xdg-open", "٣", ""],
)
def test_nothing_outside_the_list_is_opened(browser_client, node, value, opened):
    text = browser_client.get("/", params={"q": "hostile"}).text
    for field in ("open", "folder", "with"):
        for program in ("", ":gedit.desktop", ":/bin/sh"):
            answer = browser_client.post("/act", data={**form_of(text), field: value + program})
            assert answer.status_code == 400
    assert node.history() == []
    assert opened.nothing()


def test_a_document_that_another_list_shows_is_not_opened(browser_client, node, opened):
    other = numbers(browser_client.get("/", params={"q": "json"}).text)[0]
    text = browser_client.get("/", params={"q": "minutes"}).text
    assert browser_client.post("/act", data={**form_of(text), "open": other}).status_code == 400
    assert opened.nothing()


def test_a_path_in_the_form_is_ignored(browser_client, opened, library):
    text = browser_client.get("/", params={"q": "hostile path:letter.txt"}).text
    data = {**form_of(text), "open": numbers(text)[0], "path": "/etc/passwd", "document": "1", "file": "/etc/passwd"}
    assert browser_client.post("/act", data=data).status_code == 303
    assert opened() == str(library / "hostile" / "letter.txt")


@pytest.mark.parametrize(
    "address",
    ["/static/../security.py", "/static/%2e%2e/security.py", "/static/..%2fsecurity.py", "/static//etc/passwd",
     "/static/vendor/../../app.py", "/static/....//security.py", "/static/%2fetc%2fpasswd"],
)  # fmt: skip
def test_static_files_end_at_their_folder(browser_client, address):
    answer = browser_client.get(httpx.URL(HOST + address))
    assert answer.status_code in (404, 401, 403, 405, 421)
    assert "import" not in answer.text


# ---- huge and strange requests


@pytest.mark.parametrize(
    "words",
    ["x" * 16_000, "(a+)+$" * 300, ".*" * 1000, "a " * 8_000, '"' * 5000, "-" * 5000, "OR " * 2000, "\0\0", "%00",
     "type:" * 500, "ａ" * 2000, "\u202e" * 100, "(" * 2000, "[a-z]{1,99999}", "😀" * 999, "\ud800"],
)  # fmt: skip
def test_huge_and_strange_queries_are_answered(browser_client, words):
    for address, name in (("/", "q"), ("/list", "q"), ("/history", "find"), ("/why", "path")):
        answer = browser_client.get(address, params={name: words.encode("utf-8", "replace")})
        assert answer.status_code == 200, address


def test_huge_forms_are_refused(browser_client, csrf):
    data = {"csrf": csrf, "roots": "x" * 300_000}
    assert browser_client.post("/settings", data=data).status_code == 413
    chunks = _chunks()
    content = {"content-type": "application/x-www-form-urlencoded"}
    answer = browser_client.post("/settings", content=chunks, headers=content)
    assert answer.status_code == 400
    assert "at most 256,000 bytes" in answer.text
    assert browser_client.post("/act", content=b"", headers={"content-length": "-5"}).status_code == 413


async def _chunks():
    for _ in range(20):
        yield b"x" * 50_000


def test_files_in_forms_are_refused(browser_client, csrf):
    answer = browser_client.post("/act", data={"csrf": csrf}, files={"open": b"x"})
    assert answer.status_code == 415


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode_escape", "x\0y"])
def test_a_form_in_another_encoding_is_refused(browser_client, csrf, charset):
    """Python has codecs that raise other errors than one expects of text."""
    body = f'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{csrf}\r\n--b--\r\n'.encode()
    kind = f"multipart/form-data; boundary=b; charset={charset}".encode()
    assert browser_client.post("/settings", content=body, headers={"content-type": kind}).status_code == 415


@pytest.mark.parametrize(
    "address", ["/history?before=1" + "0" * 30, "/why?path=~nosuchuser/x", "/history?deleted=-1e99"]
)
def test_numbers_and_names_beyond_all_bounds(browser_client, address):
    assert browser_client.get(address).status_code in (200, 422)


def test_a_settings_form_without_a_field_changes_nothing(browser_client, csrf, node):
    before = node.settings
    for missing in ("roots", "exclude", "language", "workers", "retention_days"):
        form = {"csrf": csrf, "roots": "", "exclude": "", "language": "en", "workers": "1", "retention_days": "30"}
        del form[missing]
        answer = browser_client.post("/settings", data=form)
        assert answer.status_code == 422
        assert f"no field {missing}" in answer.text
    assert node.settings == before


@pytest.mark.parametrize("query", [{"n": "-5"}, {"n": "999999999999"}, {"sort": "x" * 999}, {"said": "<b>x"}])
def test_strange_parameters(browser_client, query):
    answer = browser_client.get("/", params={"q": "json", **query})
    assert answer.status_code == 200
    assert len(numbers(answer.text)) <= 100
    assert "<b>x" not in answer.text


def test_no_answer_tells_a_traceback(browser_client):
    answer = browser_client.get("/list", params={"n": "x"})
    assert answer.status_code == 422
    assert "Traceback" not in answer.text
