"""Mail: fields of a message, parts of an mbox, Maildir, and messages that nobody sent."""

from datetime import UTC, datetime

import pytest
from sample_files import MESSAGE, document_of, mbox, plain_message, result_of, results

from foltr.node.extract import Failure, Limits


def test_the_fields_of_a_message(tmp_path):
    document = document_of(tmp_path, "a.eml", MESSAGE)
    assert document.kind == "mail"
    assert document.title == "Café on Friday"
    assert document.sender == "Zoë Example <zoe@example.org>"
    assert document.recipients == 'Max <max@example.com>, "Doe, Ann" <ann@example.com>, list@example.com'
    assert document.date == datetime(2020, 3, 3, 10, tzinfo=UTC).timestamp()
    assert document.body.split("\n\n") == ["Shall we meet at the café?", "menu.pdf"]
    assert document.part == ""


def test_a_message_that_is_a_page(tmp_path):
    page = b"From: a@b\nSubject: s\nContent-Type: text/html; charset=utf-8\n\n<p>caf\xc3\xa9</p><p>b</p>"
    assert document_of(tmp_path, "a.eml", page).body == "café b"


def test_alternatives_without_plain_text(tmp_path):
    message = MESSAGE.replace(b"Shall we meet at the caf=E9?\n", b"")
    assert "HTMLONLY" in document_of(tmp_path, "a.eml", message).body


def test_a_forwarded_message_is_part_of_the_text(tmp_path):
    outer = b"From: a@b\nSubject: Fwd\nContent-Type: message/rfc822\n\n" + plain_message(7)
    assert document_of(tmp_path, "a.eml", outer).body == "number 7\nhello 7\n"


def test_headers_in_raw_bytes(tmp_path):
    message = b"From: M\xfcller <m@x.de>\nSubject: Gr\xc3\xbc\xc3\x9fe\nDate: never\n\ntext"
    document = document_of(tmp_path, "a.eml", message)
    assert (document.sender, document.title, document.date) == ("Müller <m@x.de>", "Grüße", None)


def test_a_maildir(tmp_path):
    for folder in ("cur", "new", "tmp"):
        (tmp_path / "Maildir" / folder).mkdir(parents=True)
    paths = [tmp_path / "Maildir/cur/1583.M1P2.host:2,S", tmp_path / "Maildir/new/1584.M2P2.host"]
    for number, path in enumerate(paths):
        path.write_bytes(b"Return-Path: <x@y>\nDate: Tue, 03 Mar 2020 11:00:00 +0100\n" + plain_message(number))
    found = results(paths)
    assert [found[path].documents[0].title for path in paths] == ["number 0", "number 1"]
    assert {found[path].documents[0].kind for path in paths} == {"mail"}


def test_an_mbox_has_one_document_a_message(tmp_path):
    anonymous = b"From: a@b\nSubject: no identity\n\n>From here on\nFrom the start 10:30\nwords\n"
    messages = [plain_message(1), anonymous, plain_message(2), plain_message(2)]
    found = result_of(tmp_path, "a.mbox", mbox(*messages))
    assert [document.part for document in found.documents] == ["1@x", "2", "2@x", "4"]
    assert [document.body.strip() for document in found.documents][::2] == ["hello 1", "hello 2"]
    assert "From the start 10:30\nwords" in found.documents[1].body
    assert not found.truncated


def test_an_mbox_that_arrives_in_many_pieces(tmp_path):
    texts = ["x" * (100_003 * number % 300_000) for number in range(40)]  # borders at and across the ends of pieces
    messages = [plain_message(number, text) for number, text in enumerate(texts)]
    found = result_of(tmp_path, "big.mbox", mbox(*messages))
    assert [document.body.strip() for document in found.documents] == [
        f"{text} {number}".strip() for number, text in enumerate(texts)
    ]
    assert found.size == (tmp_path / "big.mbox").stat().st_size
    assert found.modified == (tmp_path / "big.mbox").stat().st_mtime_ns


def test_deleted_messages_of_thunderbird_are_left_out(tmp_path):
    deleted = b"X-Mozilla-Status: 0009\n" + plain_message(1)
    found = result_of(tmp_path, "Inbox", mbox(deleted, b"X-Mozilla-Status: 0001\n" + plain_message(2)))
    assert [document.part for document in found.documents] == ["2@x"]


def test_limits_of_a_mailbox(tmp_path):
    content = mbox(*(plain_message(number, "y" * 1000) for number in range(10)))
    found = result_of(tmp_path, "a.mbox", content, limits=Limits(messages=3))
    assert (len(found.documents), found.truncated) == (3, True)
    found = result_of(tmp_path, "a.mbox", content, limits=Limits(total_characters=2500))
    assert (len(found.documents), found.truncated) == (3, True)
    found = result_of(tmp_path, "a.mbox", content, limits=Limits(message_bytes=500))
    assert {document.truncated for document in found.documents} == {True}
    assert result_of(tmp_path, "a.mbox", content, limits=Limits(mailbox_bytes=5000)).state == "skipped"


def test_a_message_longer_than_allowed_is_cut(tmp_path):
    content = mbox(plain_message(1, "z" * 3_000_000), plain_message(2))
    found = result_of(tmp_path, "a.mbox", content, limits=Limits(message_bytes=100_000))
    assert [document.part for document in found.documents] == ["1@x", "2@x"]
    assert [document.truncated for document in found.documents] == [True, False]
    assert len(found.documents[0].body) < 100_000


def test_a_key_in_one_message_hides_only_that_message(tmp_path):
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + ("b3BlbnNzaC1rZXktdjEAAAAA" * 3 + "\n") * 5
    found = result_of(tmp_path, "a.mbox", mbox(plain_message(1, key), plain_message(2)))
    assert [document.part for document in found.documents] == ["2@x"]
    assert found.secrets == 1


def nested(depth):
    """Parts in parts, each with a boundary of its own."""
    opening = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(depth))
    return f"From: a@b\nSubject: deep\n{opening}Content-Type: text/plain\n\nbottom\n".encode()


@pytest.mark.parametrize(
    "message",
    [
        nested(5_000),
        nested(45),
        b"From: a@b\nSubject: deep\nContent-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * 100_000,
        b"From: a@b\nSubject: deep\n" + b"Content-Type: message/rfc822\n\n" * 3_000 + b"bottom",
        b"From: a@b\nSubject: deep\nTo: " + b"a@b, " * 200_000 + b"\n\ntext",
        b"From: a@b\nSubject: deep\nTo: " + b"(" * 100_000 + b"\n\ntext",
        b"From: a@b\nSubject: deep\nContent-Type: text/plain; " + b"a*0*=x;" * 20_000 + b"\n\ntext",
        b"From: a@b\nSubject: deep\nContent-Type: text/plain; charset=rot13\n\ntext",
        b"From: a@b\nSubject: deep\nContent-Type: text/plain; charset=\"\\u0000\xff\"\n\ntext",
        b"From: a@b\nSubject: deep\nContent-Transfer-Encoding: base64\n\n!!!!" + b"=" * 1000,
        b"From: a@b\nSubject: deep\nContent-Transfer-Encoding: uuencode\n\nbegin 644 x\n\xff\xff\n",
        b"From: a@b\nSubject: deep\nContent-Disposition: attachment; filename*=x''%ff%00; filename*1=\xff\n\ntext",
        b"From: " + b"=?utf-8?q?" * 10_000 + b"\nSubject: deep\n\ntext",
        b"From: a@b\nSubject: deep\nDate: Tue, 99 Foo 99999 99:99:99 +99999\n\ntext",
    ],
)  # fmt: skip
def test_forged_messages_still_have_their_subject(tmp_path, message):
    document = document_of(tmp_path, "a.eml", message)
    assert document.title == "deep"
    assert len(document.recipients) <= 2000
    assert document.date is None


def test_an_mbox_of_nothing(tmp_path):
    found = result_of(tmp_path, "a.mbox", b"From a Tue 10:00\nx:\n" * 20_000)
    assert len(found.documents) == 20_000
    assert result_of(tmp_path, "b.mbox", bytes(100_000)) == Failure("skipped", "binary")
