"""Secrets on the Index page: counted by rule and folder, named where a rule is opened, indexed where they are none."""

import re

import pytest

KEY = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEA\n" * 4


@pytest.fixture
def folder(node, tmp_path):
    files = {"id_rsa": "x", "id_rsa.old": "x", "keys/server [1].pem": "zebracorn words", "keys/other.pem": "x"}
    for name, text in {**files, "noted secret.txt": KEY, "kept.txt": "kept"}.items():
        (tmp_path / "mine" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mine" / name).write_text(text)
    node.add([tmp_path / "mine"])
    list(node.index())
    return tmp_path / "mine"


def rows(text):
    """Rule, folder and count of the table of secrets."""
    table = text.partition("Left out as secrets</h2>")[2].partition("</table>")[0]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", table, re.DOTALL)
    plain = [re.sub(r"<[^>]*>", "", cell).strip() for cell in cells]
    return {tuple(plain[place : place + 3]) for place in range(0, len(plain), 3)}


def test_secrets_are_counted_by_rule_and_folder_and_not_named(browser_client, folder):
    text = browser_client.get("/index").text
    assert rows(text) >= {
        ("secrets: id_rsa", str(folder), "1"), ("secrets: id_rsa.*", str(folder), "1"),
        ("secrets: *.pem", f"{folder}/keys", "2"), ("looks like a private key", str(folder), "1"),
    }  # fmt: skip
    for name in ("id_rsa.old", "other.pem", "server [1]", "noted secret"):
        assert name not in text


def test_names_appear_where_the_rule_is_opened(browser_client, folder):
    text = browser_client.get("/rule", params={"reason": "secrets: *.pem", "folder": f"{folder}/keys"}).text
    assert re.findall(r"(\w+(?: \[1\])?\.pem)<", re.sub(r"<wbr>", "", text)) != []
    assert text.count("Index anyway<") == 2
    content = browser_client.get("/rule", params={"reason": "looks like a private key", "folder": str(folder)}).text
    assert "noted secret" in re.sub(r"<wbr>", "", content)
    assert "Index anyway<" not in content


def test_what_is_no_secret_is_indexed_anyway_and_nothing_else(browser_client, csrf, node, folder):
    assert node.search("zebracorn").rows == ()
    text = browser_client.get("/rule", params={"reason": "secrets: *.pem", "folder": f"{folder}/keys"}).text
    numbers = re.findall(r'name="file" value="(\d+)"', text)  # in the order of names
    assert browser_client.post("/rule", data={"csrf": "wrong", "file": numbers[1]}).status_code == 403
    assert browser_client.post("/rule", data={"csrf": csrf, "file": numbers[1]}).status_code == 303
    list(node.index())
    assert [row.path for row in node.search("zebracorn").rows] == [f"{folder}/keys/server [1].pem"]
    assert node.why(folder / "keys/other.pem").state == "excluded"
    assert node.why(folder / "id_rsa").state == "excluded"
    for other in (numbers[1], "0", "999999", "x", ""):
        assert browser_client.post("/rule", data={"csrf": csrf, "file": other}).status_code == 400


def test_a_key_that_is_allowed_by_its_name_stays_out_by_its_content(browser_client, csrf, node, folder):
    (folder / "keys/other.pem").write_text(KEY)
    text = browser_client.get("/rule", params={"reason": "secrets: *.pem", "folder": f"{folder}/keys"}).text
    number = re.findall(r'name="file" value="(\d+)"', text)[0]
    browser_client.post("/rule", data={"csrf": csrf, "file": number})
    list(node.index())
    assert (node.why(folder / "keys/other.pem").state, node.search("other.pem").rows) == ("skipped", ())
