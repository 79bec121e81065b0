"""The log of a node names no query, path, title or click, at any level and whatever fails."""

import io
import logging

import pytest

from foltr.errors import InputError
from foltr.node.page.server_log import Short, limited_log

MARKS = ("zanzibarword", "marrakeshfolder", "timbuktutitle")


@pytest.fixture
def output(monkeypatch):
    """Everything that is logged, at the most talkative level."""
    written = io.StringIO()
    monkeypatch.setattr("sys.stderr", written)
    monkeypatch.setenv("FOLTR_LOG", "debug")
    with limited_log():
        yield written


def test_searches_openings_and_errors_leave_no_word_in_the_log(
    output, node, browser_client, csrf, opened, tmp_path, monkeypatch
):
    folder = tmp_path / MARKS[1]
    folder.mkdir()
    (folder / "notes.txt").write_text(f"{MARKS[2]}\n\nabout {MARKS[0]}", "utf-8")
    node.add([folder])
    list(node.index())
    results = node.search(MARKS[0])
    assert results.rows
    known = {"q": MARKS[0], "search_id": results.search_id}
    asked = [
        browser_client.get("/", params={"q": MARKS[0]}),
        browser_client.get("/list", params={"q": f'"{MARKS[0]}'}),
        browser_client.get("/preview", params={**known, "document": results.rows[0].id}),
        browser_client.get("/explain", params={**known, "document": 2**40}),
        browser_client.get("/why", params={"path": str(folder / "notes.txt")}),
        browser_client.post("/act", data={**known, "csrf": csrf, "document": results.rows[0].id, "action": "open"}),
        browser_client.get(f"/{MARKS[0]}"),
    ]
    assert {answer.status_code for answer in asked} & {200}
    assert {answer.status_code for answer in asked} & {400, 404}

    def failing(query, *_more, **_options):
        try:
            raise KeyError(MARKS[1])
        except KeyError as problem:
            raise RuntimeError(f"no list for {query} in {folder}") from problem

    monkeypatch.setattr(node, "search", failing)
    try:
        browser_client.get("/", params={"q": MARKS[0]})
    except RuntimeError:  # as uvicorn logs it
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application\n")
    text = output.getvalue()
    assert "Exception in ASGI application" in text
    assert "RuntimeError" in text
    assert "in failing" in text  # whoever mends it learns where it happened
    assert "KeyError" in text
    assert not [mark for mark in MARKS if mark in text]


def test_the_message_of_an_exception_does_not_come_back_through_another_handler():
    record = logging.LogRecord("foltr", logging.ERROR, "", 1, "failed", None, None)
    try:
        raise ValueError(MARKS[0])
    except ValueError as problem:
        record.exc_info = (type(problem), problem, problem.__traceback__)
    first = logging.Formatter().format(record)
    assert MARKS[0] in first
    assert MARKS[0] not in Short().format(record)


@pytest.mark.parametrize("level", ["", "loud"])
def test_a_wrong_level_is_refused_with_the_right_ones(level, monkeypatch):
    monkeypatch.setenv("FOLTR_LOG", level)
    with pytest.raises(InputError, match="use one of debug, info, warning, error"), limited_log():
        pass
