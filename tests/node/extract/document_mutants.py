"""A good file of every format, and mutants of it: bytes, lengths, blocks, tokens, and what is packed inside.

Changes inside of zip and gzip files and of objects of a PDF are packed again with right checksums and offsets, so that
they reach the parsers behind.
"""

import gzip
import io
import json
import zipfile

from sample_files import CORE, MESSAGE, OFFICE, docx, epub, mbox, odt, pdf_of, plain_message

from foltr.rng import stream

WORDS = "the quick brown fox jumps over the lazy dog, and once more with accents: naïve café, 検索, ภาษา"
PROSE = "\n\n".join(f"Paragraph {n}. {WORDS}" for n in range(6))
MAN = (
    '.\\" a comment\n.TH FOX 1 "2024-01-01"\n.SH NAME\nfox \\- jumps \\fBover\\fR dogs\n.de Xx\n.br\n..\n.SH SYNOPSIS\n'
    f'.BR fox " [" -q ]\n.IP "item" 4\n{PROSE}\n\\(em \\[u00e9] \\*(lq\n'
)
PAGE = (
    "<!DOCTYPE html><html><head><meta charset=utf-8><title>The fox</title><style>p {}</style></head><body><h1>Fox</h1>"
    f"<p class='a b' id=c>{PROSE}</p><table><tr><td>1<td>2</table><script>x = '<p>'</script><!-- no --></body></html>"
)
NOTEBOOK = json.dumps({"cells": [{"source": ["# Fox\n", WORDS]}, {"source": WORDS}], "metadata": {}})
FLAT = (
    f'<?xml version="1.0"?><office:document {OFFICE}><office:meta><dc:title>Fox</dc:title></office:meta><office:body>'
    f"<office:text><text:h>Fox</text:h><text:p>{PROSE}</text:p></office:text></office:body></office:document>"
)
OBJECTS = [
    b"<< /Type /Catalog /Pages 2 0 R /Outlines << /Count 0 >> >>",
    b"<< /Type /Pages /Kids [4 0 R 6 0 R] /Count 2 >>",
    b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding /FirstChar 32 /LastChar 34 "
    b"/Widths [300 400 500] >>",
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> >> >>",
    b"<< /Length 70 >>\nstream\nBT /F1 24 Tf 72 720 Td 14 TL (The quick brown fox) Tj T* [(ju) -20 (mps)] TJ ET\n"
    b"endstream",
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 7 0 R /Rotate 90 /Resources << /Font << /F1 3 0 R "
    b">> /XObject << /X 8 0 R >> >> >>",
    b"<< /Length 40 >>\nstream\n1 0 0 1 0 0 cm /X Do BT /F1 9 Tf (over) ' ET\nendstream",
    b"<< /Type /XObject /Subtype /Form /BBox [0 0 99 99] /Length 30 /Resources << /Font << /F1 3 0 R >> >> >>\nstream\n"
    b"BT /F1 12 Tf (lazy dog) Tj ET\nendstream",
    b"<< /Title (The fox) /Producer (test) >>",
]

PLAIN = {  # the format decides nothing about how these are packed
    "txt": PROSE.encode(),
    "utf16.txt": PROSE.encode("utf-16"),
    "md": f"---\ntitle: Fox\n---\n# Fox\n\n{PROSE}\n\nTitle\n=====\n".encode(),
    "rst": f"Fox\n===\n\n{PROSE}".encode(),
    "py": f'"""{WORDS}"""\n\nclass FoxJumps:\n    def over_dogs(self): return 3.14\n'.encode() * 3,
    "ipynb": NOTEBOOK.encode(),
    "html": PAGE.encode(),
    "xml": f"<?xml version='1.0'?><doc><title>Fox</title><p a='b'>{PROSE}</p><![CDATA[fox]]></doc>".encode(),
    "fodt": FLAT.encode(),
    "1": MAN.encode(),
    "eml": MESSAGE,
    "mbox": mbox(plain_message(1), MESSAGE, plain_message(2, PROSE[:300])),
}
GOOD = {
    **PLAIN,
    "txt.gz": gzip.compress(PROSE.encode(), mtime=0),
    "1.gz": gzip.compress(MAN.encode(), mtime=0),
    "docx": docx([WORDS, "second paragraph"], title="Fox"),
    "odt": odt("Fox", [WORDS, "second paragraph"], title="Fox"),
    "epub": epub("Fox", [WORDS, "second chapter"]),
    "pdf": pdf_of(OBJECTS, "/Root 1 0 R /Info 9 0 R"),
}

TOKENS = (
    b"<", b"<<", b">>", b"]]>", b"<!--", b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"&b;", b"\0", b"\xff\xfe", b"\xef\xbb\xbf",
    b"\xf0\x9f\x91\xa8\xe2\x80\x8d", b"\xcc\x81\xcc\xa3" * 50, b"\n.so man1/x.1\n", b"\n.de x\n", b"\\f[",
    b"\n\n", b"\r",
    b"\nFrom a@b Tue Mar  3 10:00:00 2020\n", b"\nContent-Type: multipart/mixed; boundary=B\n\n--B\n", b"=?utf-8?b?",
    b"\nContent-Transfer-Encoding: base64\n", b"charset=idna", b"charset=rot13", b"%PDF-1.7", b"endobj", b"endstream",
    b"/Length 99999999", b"5 0 R", b"/Filter /FlateDecode", b"/Filter [/ASCIIHexDecode /LZWDecode]", b"PK\x03\x04",
    b"\x1f\x8b\x08", b"-1", b"4294967296", b"1" * 300, b"(" * 500, b"[" * 500, b"<a>" * 300, b"<div>" * 300,
    CORE.encode(),
)  # fmt: skip
LENGTHS = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000000)


class Draws:
    """Numbers of one mutant."""

    def __init__(self, name, number):
        label = sum(ord(letter) * 31**place for place, letter in enumerate(name)) % 1_000_003
        self._numbers = iter(stream(7, round=number, client=label, purpose="attack").uniform(64))

    def below(self, limit):
        return int(next(self._numbers) * limit)

    def pick(self, options):
        return options[self.below(len(options))]


def flip(data, draws):
    for _ in range(1 + draws.below(4)):
        data[draws.below(len(data))] ^= 1 << draws.below(8)


def overwrite(data, draws):
    at = draws.below(len(data))
    data[at : at + 1 + draws.below(8)] = bytes(draws.below(256) for _ in range(1 + draws.below(8)))


def truncate(data, draws):
    del data[draws.below(len(data)) :]


def delete(data, draws):
    at = draws.below(len(data))
    del data[at : at + 1 + draws.below(200)]


def repeat(data, draws):
    at = draws.below(len(data))
    block = data[at : at + 1 + draws.below(60)]
    data[at:at] = bytes(block) * draws.pick((1, 3, 30, 300))


def length(data, draws):
    at, size = draws.below(len(data)), draws.pick((1, 2, 4))
    order = draws.pick(("little", "big"))
    data[at : at + size] = (draws.pick(LENGTHS) % (1 << 8 * size)).to_bytes(size, order)


def insert(data, draws):
    at = draws.below(len(data) + 1)
    data[at:at] = draws.pick(TOKENS) * draws.pick((1, 1, 1, 5))


CHANGES = (flip, overwrite, truncate, delete, repeat, length, insert, insert)


def changed(content, draws):
    """One to three changes."""
    data = bytearray(content)
    for _ in range(1 + draws.below(3)):
        if data:
            draws.pick(CHANGES)(data, draws)
    return bytes(data)


def zip_mutant(content, draws):
    """A zip file of which one member is changed, dropped or doubled; checksums are right."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(entry.filename, archive.read(entry), entry.compress_type) for entry in archive.infolist()]
    place, kind = draws.below(len(members)), draws.below(10)
    name, data, packing = members[place]
    if kind == 0:
        del members[place]
    elif kind == 1:
        members[place] = (name + "x", data, packing)
    else:
        members[place] = (name, changed(data, draws), packing)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, data, packing in members:
            archive.writestr(name, data, packing)
    return written.getvalue()


def pdf_mutant(draws):
    """A PDF of which one object is changed; its table of offsets is right."""
    objects = list(OBJECTS)
    place = draws.below(len(objects))
    objects[place] = changed(objects[place], draws)
    return pdf_of(objects, "/Root 1 0 R /Info 9 0 R")


def mutant(name, number):
    """Bytes of a mutant of a format: every second one is changed inside of what packs it."""
    draws, inside = Draws(name, number), number % 2
    if inside and name in ("docx", "odt", "epub"):
        return zip_mutant(GOOD[name], draws)
    if inside and name.endswith(".gz"):
        return gzip.compress(changed(gzip.decompress(GOOD[name]), draws), 1, mtime=0)
    if inside and name == "pdf":
        return pdf_mutant(draws)
    return changed(GOOD[name], draws)
