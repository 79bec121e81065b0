"""Forged files: each ends in its named state, and the next good file is extracted by the same pool."""

import gzip
import zlib

import pytest
from sample_files import (
    OFFICE,
    WORD,
    document_of,
    docx,
    epub,
    mbox,
    odt,
    pdf,
    pdf_of,
    plain_message,
    result_of,
    results,
    zipped,
)

from foltr.node.extract import Extracted, Failure, Limits
from foltr.rng import stream


def packed(megabytes, block=bytes(1 << 20)):
    """A deflate stream of many equal blocks."""
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(block) for _ in range(megabytes)) + packer.flush()


# ---- bombs


def test_a_gzip_bomb(tmp_path):
    bomb = gzip.compress(b"aaaa aaa " * 1_000_000, 9)
    allowed = 250 * len(bomb) / (1 << 20)
    assert result_of(tmp_path, "a.txt.gz", bomb) == Failure("skipped", f"unpacks to more than {allowed:.3g} MB")


def test_a_gzip_file_within_the_ratio_but_too_large(tmp_path):
    found = result_of(
        tmp_path, "a.txt.gz", gzip.compress(b"aaaa aaa " * 200_000, 1), limits=Limits(unpacked_bytes=1 << 20)
    )
    assert found == Failure("skipped", "unpacks to more than 1 MB")


@pytest.mark.parametrize("name", ["word/document.xml", "docProps/core.xml", "word/footnotes.xml"])
def test_a_zip_bomb(tmp_path, name):
    members = {"word/document.xml": f"<w:document {WORD}/>"} | {name: bytes(20 << 20)}
    found = result_of(tmp_path, "a.docx", zipped(members))
    assert (found.state, found.reason[:20]) == ("skipped", "unpacks to more than")


def test_a_zip_file_with_a_lying_directory(tmp_path):
    """The directory says that a member has 10 bytes; zipfile must not be led to read on."""
    content = bytearray(docx(["x" * 5000]))
    entry = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02") + 4)
    content[entry + 24 : entry + 28] = (10).to_bytes(4, "little")
    assert result_of(tmp_path, "a.docx", bytes(content)).state == "failed"


def test_a_zip_file_with_too_many_members(tmp_path):
    content = zipped({f"{n}": "" for n in range(300)} | {"word/document.xml": f"<w:document {WORD}/>"})
    found = result_of(tmp_path, "a.docx", content, limits=Limits(zip_members=200))
    assert found == Failure("skipped", "a zip file with more than 200 members")


def test_zip_files_in_zip_files_are_not_opened(tmp_path):
    inner = zipped({"a": bytes(1 << 20)})
    for _ in range(20):
        inner = zipped({"word/nested.docx": inner})
    assert result_of(tmp_path, "a.docx", inner).state == "failed"
    outer = zipped({"word/document.xml": f"<w:document {WORD}><w:t>outer</w:t></w:document>", "x.zip": inner})
    assert document_of(tmp_path, "b.docx", outer).body == "outer"


def test_an_encrypted_member(tmp_path):
    content = bytearray(docx(["x"]))
    for signature, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        at = content.rindex(signature)
        content[at + flags] |= 1
    assert result_of(tmp_path, "a.docx", bytes(content)) == Failure("skipped", "encrypted")


LAUGHS = '<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
FILE_ENTITY = '<!ENTITY a11 SYSTEM "file:///etc/passwd">'


@pytest.mark.parametrize("entities", [LAUGHS, FILE_ENTITY, '<!ENTITY % p SYSTEM "http://localhost/x"> %p;'])
def test_entities_are_refused(tmp_path, entities):
    word = f"<!DOCTYPE x [{entities}]><w:document {WORD}><w:t>&a11;</w:t></w:document>"
    assert result_of(tmp_path, "a.docx", docx([], document=word)) == Failure("failed", "XML that declares entities")
    content = f"<!DOCTYPE x [{entities}]><office:body {OFFICE}><text:p>&a11;</text:p></office:body>"
    assert result_of(tmp_path, "a.odt", odt("h", [], content=content)) == Failure(
        "failed", "XML that declares entities"
    )
    book = epub("book", [f"<!DOCTYPE x [{entities}]> &a11; chapter"])
    assert "chapter" in document_of(tmp_path, "a.epub", book).body
    assert "root:" not in document_of(tmp_path, "a.epub", book).body


def test_deep_xml(tmp_path):
    deep = f"<w:document {WORD}>" + "<w:p>" * 100_000
    found = result_of(tmp_path, "a.docx", docx([], document=deep))
    assert found == Failure("failed", "XML nested more than 500 levels deep")


def test_deep_html_of_inline_elements(tmp_path):
    assert document_of(tmp_path, "a.html", b"<span>" * 100_000 + b"bottom").body == "bottom"


@pytest.mark.parametrize(
    "page",
    [
        b"<div>" * 200_000 + b"bottom",
        b"<b>" * 100_000 + b"</p>" * 100_000 + b"bottom",
        b"<rt>" * 200_000 + b"bottom",
        b"<a " + b"".join(b"a%d=b " % n for n in range(100_000)) + b">bottom",
    ],
    ids=["blocks", "inline", "ruby", "attributes"],
)
def test_html_on_which_the_parser_takes_quadratic_time_is_read_without_it(tmp_path, page):
    assert document_of(tmp_path, "a.html", page, limits=Limits(cpu_seconds=1)).body == "bottom"


def test_a_page_with_a_large_picture_and_many_words_is_parsed(tmp_path):
    picture = b"<img src='data:image/png;base64," + b"QUJD/+" * 20_000 + b"'>"
    page = b"<title>Cats</title><script>no text</script>" + picture + b"<p>word " * 3_000 + b"<pre>" + b"text " * 30_000
    document = document_of(tmp_path, "a.html", page)
    assert (document.title, document.body[:9], document.body[-4:]) == ("Cats", "word word", "text")
    assert "no text" not in document.body


def test_html_that_needs_too_much_memory(tmp_path):
    found = result_of(tmp_path, "a.html", b"<p><b>x</b>" * 1_000_000, memory=256 << 20)
    assert found == Failure("failed", "needs more memory than is allowed")


def test_a_pdf_that_promises_a_billion_pages(tmp_path):
    assert document_of(tmp_path, "a.pdf", pdf(["the only page"], count=10**9)).body == "the only page"


def test_a_pdf_with_more_pages_than_are_read(tmp_path):
    document = document_of(tmp_path, "a.pdf", pdf([f"page {n}" for n in range(30)]), limits=Limits(pages=10))
    assert (document.body.split("\f")[-1], document.truncated) == ("page 9", True)


def forms(levels):
    """Each form draws the next one ten times."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /XObject << /X 5 0 R >> >> >>",
        b"<< /Length 5 >>\nstream\n/X Do\nendstream",
    ]
    for level in range(levels):
        resources = b"<< /XObject << /X %d 0 R >> >>" % (6 + level)
        head = b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Length 60 /Resources " + resources
        objects.append(head + b" >>\nstream\n" + b"/X Do " * 10 + b"\nendstream")
    return pdf_of(objects, "/Root 1 0 R")


@pytest.mark.parametrize(
    "content",
    [
        pdf(["x"], stream=zlib.compress(packed(600)), filters="[/FlateDecode /FlateDecode]"),
        forms(25),
    ],
    ids=["deflate", "forms"],
)
def test_pdf_bombs_kill_no_more_than_their_child(tmp_path, content):
    found = result_of(tmp_path, "a.pdf", content, memory=300 << 20, limits=Limits(cpu_seconds=5))
    assert found.state == "failed"


OBJECTS = zlib.compress(b" ".join(b"%d %d" % (n + 100, n * 3) for n in range(20_000)) + b"<<>>" * 20_000)


@pytest.mark.parametrize(
    "objects",
    [
        [b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Parent 2 0 R /Count 1000 >>"],
        [b"<< /Type /Pages /Kids [9 0 R] /Count 4000000000 >>"],
        [b"[" * 100_000],
        [
            b"<< /Type /Pages /Kids [] /Count 1 >>",
            b"<< /Type /ObjStm /N 1000000000 /First 10 /Filter /FlateDecode /Length %d >>\nstream\n" % len(OBJECTS)
            + OBJECTS
            + b"\nendstream",
        ],
    ],
    ids=["cycle", "missing", "deep", "object stream"],
)
def test_forged_pdf_objects(tmp_path, objects):
    content = pdf_of([b"<< /Type /Catalog /Pages 2 0 R >>", *objects], "/Root 1 0 R")
    found = result_of(tmp_path, "a.pdf", content)
    assert found.state == "failed"
    assert found.reason.startswith("damaged PDF")


def test_an_encrypted_pdf(tmp_path):
    key = b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <" + b"00" * 32 + b"> /U <" + b"11" * 32 + b"> >>"
    trailer = "/Root 1 0 R /ID [<00> <00>] " + key.decode()
    content = pdf_of([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [] /Count 0 >>"], trailer)
    assert result_of(tmp_path, "a.pdf", content) == Failure("skipped", "encrypted")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.pdf", pdf(["some page"], title="t")),
        ("a.docx", docx(["some text"], title="t")),
        ("a.odt", odt("head", ["some text"], title="t")),
        ("a.epub", epub("book", ["some text"])),
        ("a.mbox", mbox(plain_message(1), plain_message(2))),
        ("a.1.gz", gzip.compress(b".TH A 1\n.SH NAME\na \\- b\n" * 20, mtime=0)),
        ("a.html", b"<html><title>t</title><body><p>x</p></body></html>"),
    ],
)
def test_damaged_bytes_never_stop_the_pool(tmp_path, name, content):
    """60 copies with random bytes replaced or the end cut off: each has exactly one result, and the last is good."""
    paths = []
    for number in range(60):
        damaged = bytearray(content)
        changes = 1 + number // 4
        draws = stream(5, round=number, client=len(content), purpose="attack").uniform(2 * changes + 1)
        for place, value in zip(draws[:changes], draws[changes:], strict=False):
            damaged[int(place * len(damaged))] = int(value * 256)
        path = tmp_path / f"{number}{name}"
        path.write_bytes(damaged[: int(draws[-1] * len(damaged))] if number % 3 == 0 else damaged)
        paths.append(path)
    good = tmp_path / f"good{name}"
    good.write_bytes(content)
    found = results([*paths, good])
    assert list(found) == [*paths, good]
    assert all(isinstance(result, Extracted | Failure) for result in found.values())
    assert isinstance(found[good], Extracted)
