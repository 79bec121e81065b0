"""A confined child reads every format and every encoding as one without confinement does."""

import codecs
import encodings
import os
import pkgutil
import sys

import pytest
from sample_files import MESSAGE, docx, epub, mbox, odt, pdf, pdf_of, plain_message, results, zipped

from foltr.node.extract import Extracted, Limits, worker
from foltr.node.extract.files import open_regular
from foltr.node.extract.records import Request

TEXT = "Grüße naïve Привет Ελλάδα 世界 日本語 한국어 שלום سلام ไทย"
CHARSETS = sorted({module.name for module in pkgutil.iter_modules(encodings.__path__)} - {"mbcs", "oem", "aliases"})
CHARSETS += ["x-unknown", "ISO-8859-1", "Windows-1252", "ks_c_5601-1987", "GB_2312-80", "big5-hkscs", "x-sjis", "UTF8"]


def encoded(charset):
    """Text in an encoding, or bytes that are none where it is no encoding of text."""
    try:
        return TEXT.encode(charset, "ignore") if codecs.lookup(charset)._is_text_encoding else b"caf\xe9"
    except (LookupError, UnicodeError):
        return b"caf\xe9 \x81\x82"


def mail(charset, body):
    headers = f"From: a@example.org\nSubject: =?{charset}?b?Y2Fm6Q==?=\nDate: Tue, 3 Mar 2020 10:00:00 -0000\n"
    kind = f"MIME-Version: 1.0\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n"
    return (headers + kind).encode() + body


def contents():
    """{name: bytes} of all formats, and of pages, mails and XML in all encodings."""
    files = {
        "a.txt": b"words", "a.md": b"# Title\n\nwords", "a.rst": b"Title\n=====\n\nwords", "a.py": b"import this\n",
        "a.ipynb": b'{"cells": [{"source": ["a", "b"]}, {"source": "c"}]}', "a.html": b"<title>t</title><p>a<p>b",
        "a.1": b".TH A 1\n.SH NAME\na \\- b\n", "a.pdf": pdf(["some page", "another"], title="t"),
        "font.pdf": pdf(["some page"]).replace(b"Helvetica", b"SimSunABC"),
        "broken.pdf": pdf_of([b"<< /Type /Catalog /Pages 2 0 R >>"], "/Root 1 0 R"),
        "a.docx": docx(["some text"], title="t"), "a.odt": odt("head", ["text"], title="t"),
        "a.epub": epub("book", ["one", "two"]), "a.zip": zipped({"a": "b"}), "a.eml": MESSAGE,
        "a.mbox": mbox(MESSAGE, *(plain_message(number) for number in range(20))),
        "a.fodt": b'<office:document xmlns:office="urn:o" xmlns:text="urn:t"><text:p>flat</text:p></office:document>',
        "uu.eml": b"From: a@b\nContent-Type: text/plain\nContent-Transfer-Encoding: x-uuencode\n\n"
                  b"begin 644 a\n#0V%T\n`\nend\n",
        "rfc2231.eml": b"From: a@b\nContent-Type: text/plain; name*=utf-16''%e2%82\n\nx\n",
        "date.eml": b"From: a@b\nSubject: s\nDate: Tue, 3 Mar 2020 10:00:00\n\nx\n",
    }  # fmt: skip
    for charset in CHARSETS:
        body = encoded(charset)
        files[f"{charset}.eml"] = mail(charset, body)
        files[f"{charset}.html"] = f'<meta charset="{charset}"><p>'.encode() + body
        xml = f'<?xml version="1.0" encoding="{charset}"?><w:document xmlns:w="urn:w"><w:t>'.encode()
        files[f"{charset}.docx"] = docx([], document=xml + body + b"</w:t></w:document>")
    return files


def extracted_here(path):
    """The documents or the failure of a file, in this process."""
    file = open_regular(bytes(path))
    try:
        reply = worker._reply(Request(0, path.name.encode(), file.size), file.descriptor, Limits(), pytest.fail)
    finally:
        os.close(file.descriptor)
    return reply.failure or reply.documents


@pytest.mark.filterwarnings("ignore")  # of codecs, which a child does not turn into errors
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines children")
def test_every_format_and_encoding_is_read_as_without_confinement(tmp_path):
    paths = []
    for name, content in contents().items():
        (tmp_path / name).write_bytes(content)
        paths.append(tmp_path / name)
    confined = results(paths)
    for path in paths:
        result = confined[path]
        assert (result.documents if isinstance(result, Extracted) else result) == extracted_here(path), path.name
    read = [path for path in paths if isinstance(confined[path], Extracted)]
    assert len(read) > 300  # the others are encodings that expat does not know, or no encodings of text
    assert "Привет" in confined[tmp_path / "koi8_r.eml"].documents[0].body
    assert "日本語" in confined[tmp_path / "iso2022_jp.html"].documents[0].body
