"""A Maildir through the whole pipeline: found by its fields, flags change names, messages move, arrive and go."""

import pytest

import foltr.node

MESSAGE = """From: {sender}
To: me@example.org
Subject: {subject}
Date: Mon, 02 Mar 2026 10:00:00 +0000
Message-ID: <{number}@example.org>

{body}
"""


@pytest.fixture
def mailbox(tmp_path):
    for folder in ("cur", "new", "tmp"):
        (tmp_path / "Mail" / folder).mkdir(parents=True)
    deliver(tmp_path / "Mail/cur/1.host:2,S", 1, "Ana <ana@example.org>", "Budget of spring", "the sheets are attached")
    deliver(tmp_path / "Mail/cur/2.host:2,", 2, "Ben <ben@example.org>", "Budget of autumn", "zirconia in the sheets")
    deliver(tmp_path / "Mail/new/3.host", 3, "Cleo <cleo@example.org>", "Lunch", "budget cuts at the canteen")
    return tmp_path / "Mail"


@pytest.fixture
def node(tmp_path, mailbox):
    with foltr.node.open(tmp_path / "home") as opened:
        opened.add([mailbox])
        list(opened.index())
        yield opened


def deliver(path, number, sender, subject, body):
    path.write_text(MESSAGE.format(number=number, sender=sender, subject=subject, body=body))


def found(node, text):
    """Titles and file names of a list."""
    return [(row.title, row.path.rpartition("/")[2]) for row in node.search(text).rows]


SPRING, AUTUMN, LUNCH = ("Budget of spring", "1.host:2,S"), ("Budget of autumn", "2.host:2,"), ("Lunch", "3.host")


def test_messages_are_found_by_text_and_by_their_fields(node, mailbox):
    assert node.status().states["indexed"] == 3
    assert set(found(node, "budget")) == {SPRING, AUTUMN, LUNCH}
    assert found(node, "budget")[-1] == LUNCH  # subjects weigh more
    assert found(node, "from:ben budget") == [AUTUMN]
    assert set(found(node, "subject:budget sheets")) == {SPRING, AUTUMN}
    assert set(found(node, "to:me@example.org type:mail sheets")) == {SPRING, AUTUMN}
    assert found(node, "after:2026-03-03 budget") == []
    assert {row.kind for row in node.search("budget").rows} == {"mail"}
    assert node.why(mailbox / "cur/1.host:2,S").state == "indexed"


def test_a_message_whose_flags_change_is_found_once_under_its_new_name(node, mailbox):
    (mailbox / "cur/2.host:2,").rename(mailbox / "cur/2.host:2,RS")
    assert AUTUMN not in found(node, "autumn")  # the old name is gone: never shown, also before it is indexed again
    list(node.index())
    assert found(node, "from:ben autumn") == [("Budget of autumn", "2.host:2,RS")]
    assert node.status().documents == 3


def test_a_message_that_is_read_moves_from_new_to_cur(node, mailbox):
    (mailbox / "new/3.host").rename(mailbox / "cur/3.host:2,S")
    deliver(mailbox / "new/4.host", 4, "Dora <dora@example.org>", "Budget of winter", "snow")
    list(node.index())
    assert found(node, "canteen") == [("Lunch", "3.host:2,S")]
    assert found(node, "from:dora") == [("Budget of winter", "4.host")]
    assert node.status().documents == 4


def test_a_deleted_message_is_gone_from_lists_and_bytes(node, mailbox, tmp_path):
    assert found(node, "zirconia") == [AUTUMN]
    (mailbox / "cur/2.host:2,").unlink()
    assert found(node, "zirconia") == []
    list(node.index())
    assert node.status().documents == 2
    node.close()
    held = [path for path in (tmp_path / "home").rglob("*") if path.is_file() and b"zirconia" in path.read_bytes()]
    assert held == []


def test_messages_that_are_still_being_delivered_are_not_shown(node, mailbox):
    deliver(mailbox / "tmp/5.host", 5, "Ed <ed@example.org>", "Halfway", "undelivered")
    list(node.index())
    assert found(node, "undelivered") == []
    (mailbox / "tmp/5.host").rename(mailbox / "new/5.host")
    list(node.index())
    assert found(node, "undelivered") == [("Halfway", "5.host")]
