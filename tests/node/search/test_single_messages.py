"""One mail of a mailbox opens as one message: a private copy, which does not stay."""

import os
import time
from pathlib import Path

import pytest

import foltr.node
from foltr.errors import InputError
from foltr.node.search import desktop, messages
from foltr.node.search.ranking import key_of

FIRST = """From ada@example.org Mon Jun  3 10:00:00 2024
From: Ada <ada@example.org>
Subject: the apple harvest
Message-ID: <first@example.org>
Date: Mon, 3 Jun 2024 10:00:00 +0000

Many apples.
>From the orchard, Ada
"""
SECOND = """From bob@example.org Tue Jun  4 10:00:00 2024
From: Bob <bob@example.org>
Subject: the pear harvest
Date: Tue, 4 Jun 2024 10:00:00 +0000

Many pears.
"""


@pytest.fixture
def mailbox(node_of):
    return node_of(**{"Inbox.mbox": f"{FIRST}\n{SECOND}\n"})


def launched(node, query):
    results = node.search(query)
    file = node.file_to_open(key_of(node.known_list(results).page.documents[0]), query)
    return desktop.opening(file, node.copies)


def copies(node):
    return sorted(node.copies.rglob("*.eml"))


@pytest.mark.parametrize(("query", "message"), [("apple", FIRST), ("pear", SECOND)])
def test_a_message_is_opened_alone_by_its_id_or_its_number(query, message, mailbox, opened):
    desktop.start(launched(mailbox, query))
    copy = Path(opened())
    assert copy.suffix == ".eml"
    expected = message.partition("\n")[2].replace(">From", "From")  # without what an mbox adds
    assert copy.read_text().strip() == expected.strip()


def test_the_copy_is_private_and_below_the_nodes_own_folders(mailbox, opened):
    mask = os.umask(0)
    try:
        copy = Path(launched(mailbox, "apple").command[1])
    finally:
        os.umask(mask)
    assert copy.stat().st_mode & 0o777 == 0o600
    for folder in (copy.parent, copy.parent.parent):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert copy.is_relative_to(mailbox.places.cache)


def test_copies_go_after_a_day_and_with_what_is_removed(mailbox, opened, folder):
    launched(mailbox, "apple")
    (old,) = copies(mailbox)
    os.utime(old.parent, (time.time() - 90_000,) * 2)
    launched(mailbox, "apple")
    assert old not in copies(mailbox)
    assert len(copies(mailbox)) == 1
    mailbox.remove(folder)
    assert copies(mailbox) == []


def test_copies_of_before_go_when_the_node_is_opened_again(mailbox, opened, tmp_path):
    launched(mailbox, "apple")
    os.utime(copies(mailbox)[0].parent, (0, 0))
    with foltr.node.open(tmp_path / "own") as again:
        assert copies(again) == []


def test_a_message_that_is_gone_is_an_error_and_no_other_is_opened(mailbox, opened, folder):
    (folder / "Inbox.mbox").write_text(SECOND)
    with pytest.raises(InputError, match="does not have this message any more"):
        launched(mailbox, "apple")
    assert opened.nothing()


def test_a_link_in_the_folder_of_copies_is_not_followed(mailbox, opened, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "letter.txt").write_text("mine")
    mailbox.copies.mkdir(mode=0o700)
    (mailbox.copies / "opened-link").symlink_to(tmp_path / "elsewhere")
    messages.clean_up(mailbox.copies, older_than=0)
    assert (tmp_path / "elsewhere" / "letter.txt").read_text() == "mine"


def test_a_mail_of_a_maildir_is_opened_as_a_mail_and_an_eml_file_itself(node_of, folder, opened):
    (folder / "cur").mkdir()
    node = node_of(**{"cur/1717.M1.host:2,S": FIRST.partition("\n")[2], "pear.eml": SECOND.partition("\n")[2]})
    desktop.start(launched(node, "apple"))
    assert Path(opened()).name == "message.eml"
    desktop.start(launched(node, "pear"))
    assert opened() == str(folder / "pear.eml")
