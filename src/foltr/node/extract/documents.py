"""From an open file to its documents: the extractor of its kind, the limit on characters, the search for secrets."""

from collections.abc import Iterator

from foltr.node.extract.files import ReceivedFile, read_all
from foltr.node.extract.formats import BINARY, HEAD, binary_reason, kind_of
from foltr.node.extract.mail import mail_document, mbox_messages, message_id
from foltr.node.extract.man import man_document
from foltr.node.extract.markup import html_document
from foltr.node.extract.office import READERS, flat_odt_document
from foltr.node.extract.pdf import pdf_document
from foltr.node.extract.plain import clean, one_line, text_document
from foltr.node.extract.records import ExtractedDocument, Limits, Refused, Reply
from foltr.node.extract.secrets import PASSWORD_DATABASE, looks_secret
from foltr.node.extract.unpack import gunzip, gunzip_head


def documents_of(file: ReceivedFile, limits: Limits, reply: Reply) -> Iterator[ExtractedDocument]:
    """The documents of a file, in order; raises Refused where it has none. Notes in `reply` what is left out."""
    kind = kind_of(file.name, file.head)
    _refuse(kind, file.head)
    if kind == "mbox":
        yield from _mailbox(file, limits, reply)
        return
    name, data = file.name, b""
    if kind == "gzip":
        head = gunzip_head(file.head)
        kind = kind_of(name, head)
        _refuse(kind, head)
        data = gunzip(read_all(file, limits.file_bytes), limits)
        name = name.removesuffix(".gz")
    else:
        data = read_all(file, limits.file_bytes)
    document = bounded(_document(kind, data, name, limits), limits)
    reason = looks_secret(document.body) or looks_secret(document.title)
    if reason:
        raise Refused("skipped", reason, unnamed=True)
    yield document


def bounded(document: ExtractedDocument, limits: Limits) -> ExtractedDocument:
    """A document within the limit on characters."""
    if len(document.body) > limits.characters:
        document.body = document.body[: limits.characters]
        document.truncated = True
    return document


def cleaned(document: ExtractedDocument) -> ExtractedDocument:
    """A document that can be encoded: no lone surrogates anywhere."""
    document.title, document.body = one_line(document.title), clean(document.body)
    document.sender, document.recipients = one_line(document.sender), one_line(document.recipients, 2000)
    document.part = one_line(document.part)
    return document


def _refuse(kind: str, head: bytes) -> None:
    if kind == BINARY:
        raise Refused("skipped", binary_reason(head))
    if kind == "secret":
        raise Refused("skipped", PASSWORD_DATABASE, unnamed=True)


def _document(kind: str, data: bytes, name: str, limits: Limits) -> ExtractedDocument:
    """One file as one document."""
    match kind:
        case "html":
            return html_document(data, limits)
        case "man":
            return man_document(data, limits)
        case "pdf":
            return pdf_document(data, limits)
        case "docx" | "odt" | "epub":
            return READERS[kind](data, limits)
        case "mail" | "mbox":  # an mbox that was packed is one message
            return mail_document(data, limits)
        case "xml":
            return _xml_document(data, limits)
        case "gzip":
            raise Refused("skipped", "binary: an archive in an archive")
        case _:
            return text_document(data, kind, name, limits)


def _xml_document(data: bytes, limits: Limits) -> ExtractedDocument:
    if b"<office:document" in data[:HEAD]:
        return flat_odt_document(data, limits)
    return html_document(data, limits, "text")


def _mailbox(file: ReceivedFile, limits: Limits, reply: Reply) -> Iterator[ExtractedDocument]:
    """The messages of an mbox; those that look like secrets are counted and left out."""
    if file.size > limits.mailbox_bytes:
        raise Refused("skipped", f"larger than {limits.mailbox_bytes >> 20} MB")
    left, parts = limits.total_characters, set[str]()
    for number, (data, whole) in enumerate(mbox_messages(file, limits), start=1):
        if number > limits.messages or left < 0:
            reply.truncated = True
            return
        document = bounded(mail_document(data, limits), limits)
        if looks_secret(document.body) or looks_secret(document.title):
            reply.secrets += 1
            continue
        identity = message_id(data)
        document.part = identity if identity and identity not in parts else f"{number}"
        document.truncated |= not whole
        parts.add(document.part)
        left -= len(document.body)
        yield document
