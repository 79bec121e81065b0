"""What the pages show and change, without a browser."""

import ast
import contextlib
import re
import sqlite3
from pathlib import Path
from xml.etree import ElementTree

import pytest
from page_client import PORT, Client, form_of, numbers

import foltr.node
from foltr.errors import FoltrError
from foltr.node.index import schema
from foltr.node.learning import curations
from foltr.node.learning.versions import Opening
from foltr.node.page import actions, install, pages, search, sign_ins
from foltr.node.page.app import create_app
from foltr.node.page.search import Asked


def private_names(tree):
    """Attributes of other objects that begin with an underscore; NamedTuples have some that are public."""
    attributes = (one for one in ast.walk(tree) if isinstance(one, ast.Attribute) and one.attr.startswith("_"))
    names = [ast.unparse(one) for one in attributes if one.attr not in ("_asdict", "_replace") and one.attr[:2] != "__"]
    return [name for name in names if not name.startswith("self.")]


def test_the_page_uses_public_names_only():
    assert private_names(ast.parse("node._lock, self._lock, one._replace()")) == ["node._lock"]
    modules = sorted(Path(pages.__file__).parent.glob("*.py"))
    found = {one.name: private_names(ast.parse(one.read_text("utf-8"))) for one in modules}
    assert {name: used for name, used in found.items() if used} == {}
    assert "pages.py" in found


def listed(client, **query):
    return client.get("/", params=query).text


# ---- search


def test_the_query_is_in_address_title_and_box(browser_client):
    text = listed(browser_client, q="json loads")
    assert "<title>json loads – foltr</title>" in text
    assert 'value="json loads"' in text
    assert "<mark>json</mark>" in text


def test_an_empty_list_looks_again_and_sooner_while_files_are_to_be_read(browser_client, home):
    assert 'data-again="10"' in listed(browser_client, q="xylophonist")  # a new file may be on its way
    (index,) = home.glob("cache/index-*/index.sqlite")
    with contextlib.closing(sqlite3.connect(index)) as connection:
        connection.execute("UPDATE files SET state = 'waiting' WHERE id = (SELECT min(id) FROM files)")
        connection.commit()
    text = listed(browser_client, q="xylophonist")
    assert "1 file is still to be" in text
    assert 'data-again="2"' in text


def test_the_same_query_gives_the_same_bytes(browser_client):
    assert listed(browser_client, q="thread") == listed(browser_client, q="thread")


def test_rows_alone_are_the_rows_of_the_page(browser_client):
    whole = listed(browser_client, q="calendar")
    part = browser_client.get("/list", params={"q": "calendar"}, headers={"x-sequence": "7"})
    assert numbers(part.text) == numbers(whole)
    assert part.headers["x-sequence"] == "7"


def test_newest_first(browser_client, node, library):
    newest = library / "docs" / "json" / "loads.md"
    rows = search.list_view(node, Asked("json", newest_first=True, limit=50)).rows
    assert [row.day for row in rows] == sorted((row.day for row in rows), reverse=True)
    assert {row.id for row in rows} == {row.id for row in search.list_view(node, Asked("json", limit=50)).rows}
    assert newest.exists()


def test_more_rows_begin_with_the_same_rows(browser_client):
    few, many = listed(browser_client, q="the"), listed(browser_client, q="the", n=30)
    assert numbers(many)[:10] == numbers(few)
    assert len(numbers(many)) == 30
    assert "n=20" in few


def test_filters_have_the_counts_that_they_leave(browser_client, node):
    text = listed(browser_client, q="hostile json")
    view = search.list_view(node, Asked("hostile json"))
    groups = {group.name: group.choices for group in search.filters(node, view.asked)}
    assert {"Type", "Folder", "Person"} <= set(groups)
    for choices in groups.values():
        for one in choices:
            assert len(search.list_view(node, Asked(one.query, limit=100)).rows) == one.documents, one
    assert all(name in text for name in groups)


def test_a_chosen_filter_can_be_removed(node):
    view = search.list_view(node, Asked('type:markdown path:"/docs/json/" json'))
    assert [one.name for one in view.chosen] == ["type:markdown", 'path:"/docs/json/"']
    assert [one.query for one in view.chosen] == ['path:"/docs/json/" json', "type:markdown json"]


def test_nothing_found_offers_a_way_on(browser_client):
    text = listed(browser_client, q="type:pdf json")
    assert "Search without the filter type:pdf" in text
    assert "Why is my file not here?" in text
    assert "Did you mean" in listed(browser_client, q="jsonn") or numbers(listed(browser_client, q="jsonn"))


def test_a_node_without_folders_says_so(tmp_path):
    with foltr.node.open(tmp_path / "new") as node, Client(create_app(node, PORT)) as client:
        client.get("/", params={"token": sign_ins.mint(tmp_path / "new" / "data" / "page")})
        assert "Choose folders" in client.get("/").text
        assert "No folder is searched yet" in client.get("/index").text


def test_an_address_that_is_none(browser_client):
    answer = browser_client.get("/nothing-here")
    assert answer.status_code == 404
    assert "There is no such page." in answer.text


def test_a_place_names_the_mail_in_a_mailbox_and_breaks_after_slashes():
    assert search.place("/mail/box", "7@example.org") == "/mail/box #7@example.org"
    assert search.place("/notes/tax.md", "") == "/notes/tax.md"
    assert search.breakable("/a<b/c") == "/<wbr>a&lt;b/<wbr>c"


def test_why_is_my_file_not_here(browser_client, library):
    for path, answer in (
        (library / "docs" / "json" / "loads.md", "indexed"),
        ("/etc/hostname", "outside"),
        (library / "docs" / "gone.md", "absent"),
    ):
        assert f"<strong>{answer}</strong>" in browser_client.get("/why", params={"path": str(path)}).text


def test_the_index_page_says_that_an_earlier_index_is_searched(browser_client, node, monkeypatch):
    assert "earlier one is searched" not in browser_client.get("/index").text
    monkeypatch.setattr(schema, "SCHEMA", schema.SCHEMA + 1)
    assert "The earlier one is searched" in browser_client.get("/index").text
    building = node.index()
    next(building)
    building.close()
    done, total = node.status().rebuilding
    assert done < total
    assert re.search(rf"complete:\s{done} of {total} files are done", browser_client.get("/index").text)
    assert numbers(listed(browser_client, q="json"))


def test_the_exact_contributions_add_up(browser_client):
    text = listed(browser_client, q="json loads")
    query = {**form_of(text), "document": numbers(text)[0]}
    shown = browser_client.get("/explain", params=query, headers={"x-part": "true"}).text
    points = [float(one) for one in re.findall(r'<td class="n">([+-][\d.]+)</td></tr>', shown)]
    assert sum(points[:-1]) == pytest.approx(points[-1], abs=1e-3)
    assert "words anywhere, rare ones counting more" in shown
    assert not re.search(r"idfcov|bm25|prefix_", shown)  # names of the code


def test_the_list_of_a_page_from_before_a_restart_is_made_again(browser_client, node, opened, library):
    text = listed(browser_client, q="hostile path:letter.txt")
    node._lists.clear()
    answer = browser_client.post("/act", data={**form_of(text), "open": numbers(text)[0]})
    assert answer.status_code == 303
    assert opened() == str(library / "hostile" / "letter.txt")
    assert node.history()[0].choices[0].document == str(library / "hostile" / "letter.txt")


def test_a_choice_is_not_kept_when_nothing_could_be_opened(browser_client, node, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    text = listed(browser_client, q="json")
    answer = browser_client.post("/act", data={**form_of(text), "open": numbers(text)[0]})
    assert answer.status_code == 400
    assert [choice.withdrawn for choice in node.history()[0].choices] == [1]
    assert not node.search("json").rows[0].remembered


def test_the_description_for_browsers(browser_client):
    root = ElementTree.fromstring(browser_client.get("/opensearch.xml").text)  # noqa: S314 - our own
    (address,) = [one.get("template") for one in root if one.tag.endswith("Url")]
    assert address == "http://127.0.0.1:8390/?q={searchTerms}"


# ---- pins


def pin(node, words, place):
    row = search.list_view(node, Asked(words)).rows[place]
    actions.act(node, {"q": words, "pin": str(row.id)})
    return row


def test_a_pin_is_durable_and_holds_for_its_query(home):
    with foltr.node.open(home) as node:
        row = pin(node, "json", 3)
    with foltr.node.open(home) as node:
        assert search.list_view(node, Asked("JSON  ")).rows[0].id == row.id
        assert search.list_view(node, Asked("JSON")).rows[0].pinned
        assert search.list_view(node, Asked("json -python")).rows[0].id != row.id
        assert all(one.id != row.id for one in search.list_view(node, Asked("type:html json")).rows)


def bytes_of(home):
    return b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())


@pytest.mark.parametrize("way", ["remove", "exclude", "delete", "forget", "take back"])
def test_a_pin_leaves_no_bytes(browser_client, home, node, library, csrf, way):
    pin(node, "fractions zebra", 0)
    assert b"fractions zebra" in bytes_of(home)
    if way == "remove":
        node.remove(library / "docs")
    if way == "exclude":
        node.exclude(["fractions/"])
    if way == "delete":
        browser_client.post("/history/delete", data={"csrf": csrf, "everything": "yes"})
    if way == "forget":
        node.forget()
    if way == "take back":
        (one,) = curations.every(node.log)
        browser_client.post("/history/take-back", data={"csrf": csrf, "number": str(one.time)})
    assert curations.every(node.log) == []
    assert b"fractions zebra" not in bytes_of(home)


def test_other_pins_stay(node, library):
    pin(node, "fractions", 1)
    other = pin(node, "hostile", 1)
    node.remove(library / "docs")
    assert [one.query for one in curations.every(node.log)] == ["hostile"]
    assert search.list_view(node, Asked("hostile")).rows[0].id == other.id


# ---- history, learning


def test_history_is_deleted_by_time_and_all(browser_client, node, csrf):
    for words in ("json", "queue", "heapq"):
        node.settle(node.search(words))
    data = {"csrf": csrf}
    assert browser_client.post("/history/delete", data=data).status_code == 400
    assert browser_client.post("/history/delete", data={**data, "since": "yesterday"}).status_code == 400
    answer = browser_client.post("/history/delete", data={**data, "until": "2020-01-01"})
    assert answer.headers["location"] == "/history?deleted=0&weights=none&complete=1"
    number = node.history()[1].impression
    browser_client.post("/history/delete", data={**data, "search": str(number)})
    assert [one.query for one in node.history()] == ["heapq", "json"]
    answer = browser_client.post("/history/delete", data={**data, "since": "2020-01-01"})
    assert answer.headers["location"] == "/history?deleted=2&weights=none&complete=1"
    node.settle(node.search("json"))
    browser_client.post("/history/delete", data={**data, "everything": "yes"})
    assert node.history() == []


def test_learning_begins_with_how_often_the_document_was_first(browser_client, node):
    assert '<h1>Learning</h1>\n<p class="success">Nothing was opened yet.</p>' in browser_client.get("/learning").text
    results = node.search("json")
    node.choose(results, results.rows[1].id)
    results = node.search("json")  # memory puts it first
    node.choose(results, results.rows[0].id)
    shown = browser_client.get("/learning").text
    assert '<p class="success">1 of your last 2 searches had the document first; 1 of them by memory.</p>' in shown


def test_the_curve_is_the_mean_of_the_last_openings():
    openings = [Opening(float(i), 1 if i % 2 else 2, 0) for i in range(40)]
    points = pages.curve(openings)
    assert [one.reciprocal_rank for one in points[:3]] == [0.5, 1.0, 0.5]
    assert [one.mean for one in points[:3]] == [0.5, 0.75, pytest.approx(2 / 3)]
    assert points[-1].mean == 0.75
    assert pages.curve([]) == []


def test_going_back_to_a_version_that_is_not_there(browser_client, csrf):
    for version in ("7", "x", "-1"):
        data = {"csrf": csrf, "back_to": version}
        assert browser_client.post("/learning", data=data).status_code == 400


# ---- settings, forgetting


def settings_form(client):
    text = client.get("/settings").text
    areas = dict(re.findall(r'<textarea id="(\w+)".*?>(.*?)</textarea>', text, re.DOTALL))
    inputs = dict(re.findall(r'id="(workers|retention_days)".*?value="(.*?)"', text))
    inputs["language"] = re.search(r'<option value="(\w+)" selected>', text)[1]
    switches = dict.fromkeys(re.findall(r'name="(\w+)" value="on" checked', text), "on")
    return {**areas, **inputs, **switches, "csrf": form_of(text)["csrf"]}


def test_settings_are_saved(browser_client, node, library, home):
    form = settings_form(browser_client)
    assert form["roots"].splitlines() == [str(library / "docs"), str(library / "hostile")]
    del form["learning"]
    form |= {"retention_days": "30", "roots": str(library / "docs"), "erase": str(library / "hostile")}
    answer = browser_client.post("/settings", data=form)
    assert answer.headers["location"] == "/settings?saved=1"
    assert node.settings.roots == (str(library / "docs"),)
    assert node.settings.retention_days == 30
    assert not node.settings.learning
    assert numbers(listed(browser_client, q="hostile")) == []
    with foltr.node.open(home) as again:
        assert again.settings == node.settings


@pytest.mark.parametrize("erase", [None, "", "yes", "/another/folder"])
def test_a_folder_is_erased_only_after_a_question_that_names_it(erase, browser_client, node, library):
    form = settings_form(browser_client) | {"roots": str(library / "docs"), "retention_days": "31"}
    answer = browser_client.post("/settings", data=form if erase is None else {**form, "erase": erase})
    assert answer.status_code == 409
    assert f"<li>{library}/hostile</li>" in answer.text
    assert str(library / "hostile") in node.settings.roots
    assert node.settings.retention_days != 31
    assert numbers(listed(browser_client, q="hostile"))


def test_the_language_is_chosen_from_a_list_and_any_case_is_understood(browser_client, node):
    text = browser_client.get("/settings").text
    assert '<option value="german">German</option>' in text
    assert '<option value="english" selected>English</option>' in text
    form = settings_form(browser_client)
    assert browser_client.post("/settings", data={**form, "language": " German"}).status_code == 303
    assert node.settings.language == "german"
    answer = browser_client.post("/settings", data={**form, "language": "Klingon"})
    assert answer.status_code == 422
    assert "klingon" in answer.text
    assert node.settings.language == "german"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [("roots", "notes", "relative"), ("roots", "/nowhere/at/all", "no such"), ("workers", "0", "workers"),
     ("workers", "many", "workers"), ("retention_days", "-1", "retention_days"), ("retention_days", "", "whole")],
)  # fmt: skip
def test_wrong_settings_are_explained_and_change_nothing(browser_client, node, field, value, words):
    before = node.settings
    answer = browser_client.post("/settings", data={**settings_form(browser_client), field: value})
    assert answer.status_code == 422
    assert words in answer.text
    assert node.settings == before


def test_an_exclusion_removes_what_is_indexed(browser_client, node):
    assert numbers(listed(browser_client, q="path:json json"))
    browser_client.post("/settings", data={**settings_form(browser_client), "exclude": "json/\n*.log"})
    assert node.settings.exclude == ("json/", "*.log")
    assert numbers(listed(browser_client, q="path:json json")) == []


def test_forgetting_needs_the_words_and_erases(browser_client, node, csrf, home):
    node.settle(node.search("json loads"))
    for words in ("", "forget", "yes"):
        answer = browser_client.post("/forget", data={"csrf": csrf, "confirmation": words})
        assert answer.status_code == 422
    assert node.status().documents > 0
    answer = browser_client.post("/forget", data={"csrf": csrf, "confirmation": "Forget me "})
    assert "Erased" in answer.text
    assert node.status().documents == 0
    assert node.history() == []
    assert browser_client.get("/").status_code == 200
    found = [file for file in home.rglob("*") if file.is_file() and b"json loads" in file.read_bytes()]
    assert found == []


def test_what_leaves_is_nothing_and_files_are_listed(browser_client, home):
    text = browser_client.get("/leaves").text
    assert '<p class="answer">Nothing.</p>' in text
    assert "log.sqlite" in text
    assert "settings.toml" in text


# ---- serving


def test_unit_and_desktop_entry(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    places = install.install(8400, home="/home/me/my node")
    unit, entry = places.unit.read_text(), places.entry.read_text()
    assert "--port 8400 --no-browser" in unit
    assert 'Environment="FOLTR_NODE_HOME=/home/me/my node"' in unit
    assert "Nice=" in unit
    assert "[Desktop Entry]" in entry
    assert '"FOLTR_NODE_HOME=/home/me/my node"' in entry
    assert install.remove() == list(places)
    assert install.remove() == []
    with pytest.raises(FoltrError, match="line breaks"):
        install.install(8400, home="/home/me\nExecStart=/bin/attack")


# ---- a disk that is away


def test_the_pages_say_that_a_disk_is_away(tmp_path):
    (tmp_path / "disk" / "sub").mkdir(parents=True)
    (tmp_path / "disk" / "sub" / "a.txt").write_text("apples")
    with foltr.node.open(tmp_path / "home") as node:
        node.add([tmp_path / "disk"])
        list(node.index())
        (tmp_path / "disk").rename(tmp_path / "elsewhere")
        with Client(create_app(node, PORT)) as client:
            client.get("/", params={"token": sign_ins.mint(tmp_path / "home" / "data" / "page")})
            assert "<strong>away</strong>, it cannot be reached" in client.get("/index").text
            assert "<strong>Its disk is away.</strong>" in listed(client, q="apples")
            assert "away" in client.get("/why", params={"path": str(tmp_path / "disk" / "sub" / "a.txt")}).text
