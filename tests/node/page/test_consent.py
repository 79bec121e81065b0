"""Consent to open what can run code: by a form of the page with its token, for one kind, and not by anything else."""

import os

import pytest
from page_client import form_of, numbers

from foltr.node.search import consents

LAUNCHER = {"q": "hostile launcher"}


@pytest.fixture
def form(browser_client):
    """The form around a list whose first row is a launcher."""
    text = browser_client.get("/", params=LAUNCHER).text
    assert "launcher.txt" in text
    return {**form_of(text), "open": str(numbers(text)[0])}


def test_opening_asks_first_and_logs_no_choice(browser_client, node, form, opened):
    asked = browser_client.post("/act", data=form)
    assert asked.status_code == 200
    assert "it is a launcher" in asked.text
    assert opened.nothing()
    assert [one.choices for one in node.history()] in ([], [()])
    assert consents.given(node.places) == frozenset()


def test_consent_opens_and_is_remembered_for_this_kind_only(browser_client, node, form, opened):
    assert browser_client.post("/act", data={**form, "consent": "launchers"}).status_code == 303
    assert opened().endswith("/hostile/launcher.txt")
    assert consents.given(node.places) == {"launchers"}
    text = browser_client.get("/", params={"q": "hostile program"}).text  # run.txt, a script
    asked = browser_client.post("/act", data={**form_of(text), "open": str(numbers(text)[0])})
    assert "it begins as a script does" in asked.text
    assert opened.nothing()


@pytest.mark.parametrize("kind", ["programs", "macros", "", "everything", "launchers,programs", "LAUNCHERS"])
def test_consent_to_another_kind_opens_nothing(kind, browser_client, node, form, opened):
    browser_client.post("/act", data={**form, "consent": kind})
    assert opened.nothing()
    assert consents.given(node.places) == frozenset()


@pytest.mark.parametrize("change", [{"csrf": ""}, {"csrf": "0" * 64}])
def test_consent_without_the_token_of_the_page_is_refused(change, browser_client, node, form, opened):
    assert browser_client.post("/act", data={**form, "consent": "launchers", **change}).status_code == 403
    assert browser_client.get("/act", params={**form, "consent": "launchers"}).status_code == 405
    foreign = {"origin": "https://example.org", "sec-fetch-site": "cross-site"}
    assert browser_client.post("/act", data={**form, "consent": "launchers"}, headers=foreign).status_code == 403
    assert opened.nothing()
    assert consents.given(node.places) == frozenset()


def test_consent_is_revoked_with_the_token_only(browser_client, node, csrf):
    consents.give(node.places, "packages")
    assert "packages, disk images" in browser_client.get("/settings").text
    assert browser_client.post("/settings/ask-again", data={"kind": "packages"}).status_code == 403
    assert consents.given(node.places) == {"packages"}
    assert browser_client.post("/settings/ask-again", data={"kind": "nothing", "csrf": csrf}).status_code == 400
    assert browser_client.post("/settings/ask-again", data={"kind": "packages", "csrf": csrf}).status_code == 303
    assert consents.given(node.places) == frozenset()


def test_neither_an_export_nor_a_damaged_file_gives_consent(node, tmp_path):
    consents.give(node.places, "programs")
    node.export(tmp_path / "export.json")
    assert "programs" not in (tmp_path / "export.json").read_text()
    file = node.places.data / "consents.json"
    assert file.stat().st_mode & 0o777 == 0o600
    for content in ("", "{}", '["everything"]', '"programs"', "[1]"):
        file.write_text(content)
        assert consents.given(node.places) == frozenset()


def test_forgetting_everything_forgets_consent(node):
    consents.give(node.places, "programs")
    node.forget()
    assert consents.given(node.places) == frozenset()


def test_a_path_that_a_terminal_may_misread_is_not_offered_for_copying(browser_client, node, tmp_path):
    folder = tmp_path / "odd"
    folder.mkdir()
    for name in ("xylophone\nrm.md", "xylophone \u202egpj.md", "xylophone plain.md"):
        (folder / name).write_text("xylophone")
    (folder / os.fsdecode(b"xylophone\xff.md")).write_text("xylophone")
    node.add([folder])
    list(node.index())
    text = browser_client.get("/", params={"q": "xylophone"}).text
    assert len(numbers(text)) == 4
    assert text.count('data-path=""') == 3
    assert f'data-path="{folder}/xylophone plain.md"' in text
