"""Tiny valid files of each format, written byte by byte or with zipfile, and a way to extract them."""

import io
import zipfile
import zlib

from foltr.node.extract import Extracted, Extractor

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0\x1f\x15\xc4\x89" + bytes(64)
ELF = b"\x7fELF\2\1\1" + bytes(9) + b"\3\0>\0\1\0\0\0" + bytes(200)
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500)


def zipped(members, *, first_stored=False):
    """A zip file of {name: text or bytes}."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (name, content) in enumerate(members.items()):
            stored = first_stored and number == 0
            archive.writestr(name, content, zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED)
    return stream.getvalue()


WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
CORE = (
    '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{}</dc:title></cp:coreProperties>'
)


def docx(paragraphs, *, title="", document=None):
    texts = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    members = {
        "[Content_Types].xml": "<Types/>",
        "word/document.xml": document or f"<w:document {WORD}><w:body>{texts}</w:body></w:document>",
    }
    return zipped(members | ({"docProps/core.xml": CORE.format(title)} if title else {}))


OFFICE = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/"'
)


def odt(heading, paragraphs, *, title="", content=None):
    texts = f"<text:h>{heading}</text:h>" + "".join(f"<text:p>{text}</text:p>" for text in paragraphs)
    body = f"<office:body><office:text>\n {texts}\n</office:text></office:body>"
    meta = (
        f"<office:document-meta {OFFICE}><office:meta><dc:title>{title}</dc:title></office:meta></office:document-meta>"
    )
    members = {
        "mimetype": "application/vnd.oasis.opendocument.text",
        "content.xml": content or f"<office:document-content {OFFICE}>{body}</office:document-content>",
        "META-INF/manifest.xml": "<manifest/>",
    }
    return zipped(members | ({"meta.xml": meta} if title else {}), first_stored=True)


def epub(title, chapters):
    items = "".join(
        f'<item id="c{n}" href="text/c%20{n}.xhtml" media-type="application/xhtml+xml"/>' for n in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata><dc:title>{title}</dc:title></metadata><manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
    )
    members = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": container,
        "OEBPS/book.opf": package,
    }
    pages = {f"OEBPS/text/c {n}.xhtml": f"<html><body><p>{text}</p></body></html>" for n, text in enumerate(chapters)}
    return zipped(members | pages, first_stored=True)


def pdf(pages, *, title="", count=None, stream=None, filters="/FlateDecode"):
    """A PDF with one line of text a page; `stream` replaces the drawing instructions of every page."""
    number = 4 + 2 * len(pages)
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count or len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for n, text in enumerate(pages):
        drawn = zlib.compress(f"BT /F1 24 Tf 72 720 Td ({text}) Tj ET".encode()) if stream is None else stream
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * n} 0 R"
        objects.append(f"{page} /Resources << /Font << /F1 3 0 R >> >> >>".encode())
        objects.append(f"<< /Length {len(drawn)} /Filter {filters} >>\nstream\n".encode() + drawn + b"\nendstream")
    objects.append(f"<< /Title ({title}) >>".encode())
    return pdf_of(objects, f"/Root 1 0 R /Info {number} 0 R")


def pdf_of(objects, trailer):
    """A PDF of given objects, with its table of offsets."""
    written = b"%PDF-1.5\n"
    offsets = []
    for n, content in enumerate(objects, start=1):
        offsets.append(len(written))
        written += f"{n} 0 obj\n".encode() + content + b"\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    end += f"trailer\n<< /Size {len(objects) + 1} {trailer} >>\nstartxref\n{len(written)}\n%%EOF\n"
    return written + end.encode()


MESSAGE = b"""\
Received: by example.org; Tue, 3 Mar 2020 10:00:00 +0000
From: =?utf-8?q?Zo=C3=AB_Example?= <zoe@example.org>
To: Max <max@example.com>, "Doe, Ann" <ann@example.com>
Cc: list@example.com
Subject: =?iso-8859-1?q?Caf=E9?= on
 Friday
Date: Tue, 03 Mar 2020 11:00:00 +0100
Message-ID: <one@example.org>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="B"

--B
Content-Type: multipart/alternative; boundary="A"

--A
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Shall we meet at the caf=E9?
--A
Content-Type: text/html; charset=utf-8

<p>Shall we <b>HTMLONLY</b> meet?</p>
--A--
--B
Content-Type: application/pdf; name="menu.pdf"
Content-Disposition: attachment; filename="menu.pdf"
Content-Transfer-Encoding: base64

JVBERi0=
--B--
"""


def mbox(*messages):
    return b"".join(b"From x@example.org Tue Mar  3 10:00:00 2020\n" + message + b"\n" for message in messages)


def plain_message(number, text="hello"):
    return f"From: a@example.org\nSubject: number {number}\nMessage-ID: <{number}@x>\n\n{text} {number}\n".encode()


def results(paths, **options):
    """{path: result}, from a pool of its own."""
    with Extractor(**options) as extractor:
        return dict(extractor.extract(paths))


def result_of(folder, name, content, **options):
    """The result of one file, after which a good file must still be extracted by the same pool."""
    path, good = folder / name, folder / "good.txt"
    path.write_bytes(content)
    good.write_text("still here")
    found = results([path, good], **options)
    assert found[good].documents[0].body == "still here"
    return found[path]


def document_of(folder, name, content, **options):
    """The only document of a file."""
    found = result_of(folder, name, content, **options)
    assert isinstance(found, Extracted), found
    (document,) = found.documents
    return document


def bodies(found):
    """{path: text} of the files that were extracted."""
    done = {path: result for path, result in found.items() if isinstance(result, Extracted)}
    return {path: document.body for path, result in done.items() for document in result.documents}
