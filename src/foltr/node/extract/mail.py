"""Mail: EML files, messages of a Maildir, and mbox files, which are read message by message.

Headers are taken as they stand and decoded here: the header objects of `email.policy.default` parse every address
again, also of a forged header, where plain text is enough to search.
"""

import email.header
import email.utils
import os
import re
from collections.abc import Iterator
from email.errors import HeaderParseError
from email.message import Message
from email.parser import BytesParser
from email.policy import Compat32

from foltr.node.extract.files import ReceivedFile
from foltr.node.extract.markup import decoded_page, html_text
from foltr.node.extract.plain import clean, decode, one_line
from foltr.node.extract.records import ExtractedDocument, Limits

_BORDER = re.compile(rb"From [^\r\n]{0,300}\d\d:\d\d[^\r\n]{0,100}\r?\n(?=[!-9;-~]{1,80}:|>From )")
_OVERLAP = 1000  # bytes that a border may reach across two pieces of a file
_PIECE = 1 << 20
_BOUNDARY = re.compile(rb"(?i)boundary\s*=\s*\"?([^\"\r\n;]{1,100})")
_DELETED = re.compile(rb"(?m)^X-Mozilla-Status: [0-9A-Fa-f]{3}[89A-Fa-f]\r?$")  # marked, not yet removed from the mbox
_HEADER_LENGTH = 4000
_DEPTH = 10  # of parts in parts


class _ShortHeaders(Compat32):
    """Cuts every header where it is parsed: `email` reads parameters and encoded words in quadratic time."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:_HEADER_LENGTH]


_parser = BytesParser(policy=_ShortHeaders())


def mail_document(data: bytes, limits: Limits) -> ExtractedDocument:
    """One message as a document."""
    message, whole = _parsed(data, limits)
    body = _Body(limits)
    if whole:
        body.add(message)
    else:
        body.text(decode(data[: limits.characters]))
    attachments = "\n".join(body.attachments)
    return ExtractedDocument(
        title=one_line(_header(message, "Subject")),
        body="\n".join(body.texts) + (f"\n\n{attachments}" if attachments else ""),
        kind="mail",
        date=_date(message),
        sender=one_line(_header(message, "From")),
        recipients=one_line(", ".join(filter(None, (_header(message, "To"), _header(message, "Cc")))), 2000),
        truncated=not whole,
    )


def message_id(data: bytes) -> str:
    """The Message-ID of a message without its brackets; "" where it has none."""
    found = re.search(rb"(?im)^Message-ID:\s*<?([^\s<>]{1,250})", data[:20_000])
    return one_line(decode(found[1])) if found else ""


def mbox_messages(file: ReceivedFile, limits: Limits) -> Iterator[tuple[bytes, bool]]:
    """Each message of an mbox and whether it is whole; deleted ones are left out."""
    for data, whole in _split(file, limits.message_bytes):
        if not _DELETED.search(data[:4096]):
            yield data[: limits.message_bytes], whole and len(data) <= limits.message_bytes


def _split(file: ReceivedFile, longest: int) -> Iterator[tuple[bytes, bool]]:
    pending = bytearray(file.head)
    searched, whole = 1, True  # the first line is the border of the first message
    done = len(file.head)
    while done < file.size and (piece := os.pread(file.descriptor, min(_PIECE, file.size - done), done)):
        done += len(piece)
        pending += piece
        start = 0
        for border in _borders(pending, searched):
            yield bytes(pending[start:border]), whole
            start, whole = border, True
        del pending[:start]
        if len(pending) > longest + _OVERLAP:
            del pending[longest : len(pending) - _OVERLAP]
            whole = False
        searched = max(1, len(pending) - _OVERLAP)
    start = 0
    for border in _borders(pending, 1):
        yield bytes(pending[start:border]), whole
        start, whole = border, True
    yield bytes(pending[start:]), whole


def _borders(data: bytearray, start: int) -> Iterator[int]:
    """Where messages begin, from `start` on."""
    at = data.find(b"\nFrom ", start - 1)
    while at >= 0:
        if _BORDER.match(data, at + 1):
            yield at + 1
        at = data.find(b"\nFrom ", at + 1)


def _parsed(data: bytes, limits: Limits) -> tuple[Message, bool]:
    """A message, and whether its parts were parsed; of a message with too many parts only the headers are."""
    if data.startswith((b"From ", b">From ")):
        data = data.partition(b"\n")[2]
    boundaries = set(_BOUNDARY.findall(data))
    few = len(boundaries) <= limits.mime_parts // 4
    if few and sum(data.count(b"--" + boundary) for boundary in boundaries) <= limits.mime_parts * 2:
        try:
            return _parser.parsebytes(data), True
        except RecursionError:
            pass
    return _parser.parsebytes(data, headersonly=True), False


class _Body:
    """Texts and names of attachments of a message."""

    def __init__(self, limits: Limits) -> None:
        self.texts: list[str] = []
        self.attachments: list[str] = []
        self._left = limits.characters + 1

    def text(self, text: str) -> None:
        if self._left > 0:
            self.texts.append(text[: self._left])
            self._left -= len(text)

    def add(self, part: Message, depth: int = 0) -> None:
        """A part and those inside it; of alternatives the plain text, or else the page."""
        name = _file_name(part)
        if name:
            self.attachments.append(name)
        if depth > _DEPTH or name or part.get_content_disposition() == "attachment":
            return
        if part.is_multipart():
            for inner in _chosen(part):
                if part.get_content_type() == "message/rfc822":  # forwarded
                    self.text(one_line(_header(inner, "Subject")))
                self.add(inner, depth + 1)
        elif part.get_content_maintype() == "text":
            self.text(_part_text(part))


def _chosen(part: Message) -> list[Message]:
    parts = [inner for inner in part.get_payload() if isinstance(inner, Message)]
    if part.get_content_type() != "multipart/alternative":
        return parts
    plain = [inner for inner in parts if inner.get_content_type() == "text/plain" and inner.get_payload(decode=True)]
    return plain[:1] or parts[-1:]


def _part_text(part: Message) -> str:
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        return ""
    charset = part.get_param("charset")
    declared = charset if isinstance(charset, str) else None
    if part.get_content_subtype() == "html":
        page = decode(payload, declared).encode("utf-8") if declared else decoded_page(payload)
        return html_text(page)[1]
    return decode(payload, declared)


def _file_name(part: Message) -> str:
    try:
        return one_line(_decoded(part.get_filename() or ""))
    except Exception:  # a forged parameter
        return ""


def _header(message: Message, name: str) -> str:
    raw = next((value for key, value in message.raw_items() if key.lower() == name.lower()), "")
    return _decoded(str(raw)[:_HEADER_LENGTH])


def _decoded(raw: str) -> str:
    """Encoded words (=?utf-8?q?...?=) and bytes beyond ASCII as text."""
    text = raw
    if "=?" in raw:
        try:
            text = str(email.header.make_header(email.header.decode_header(raw)))
        except (ValueError, LookupError, HeaderParseError):
            text = raw
    try:  # bytes that the parser found beyond ASCII
        return text if text.isascii() else decode(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return clean(text)


def _date(message: Message) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(_header(message, "Date")).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError, OSError):
        return None
