"""From an open file to its documents: the extractor of its kind, the limit on characters, the search for secrets."""

from collections.abc import Callable, Iterator

from foltr.node.extract.files import OpenFile, check_unchanged, read_all
from foltr.node.extract.formats import BINARY, binary_reason, kind_of
from foltr.node.extract.html import html_document
from foltr.node.extract.plain import clean, one_line, text_document
from foltr.node.extract.records import ExtractedDocument, Limits, Refused
from foltr.node.extract.secrets import looks_secret

Reader = Callable[[bytes, str, str, Limits], ExtractedDocument]  # bytes, kind, name, limits


def documents_of(file: OpenFile, limits: Limits) -> Iterator[ExtractedDocument]:
    """The documents of a file, in order; raises Refused where it has none, also after some were given."""
    kind = kind_of(file.name, file.head)
    if kind == BINARY:
        raise Refused("skipped", binary_reason(file.head))
    if kind == "secret":
        raise Refused("skipped", "a password database")
    data = read_all(file, limits.file_bytes)
    check_unchanged(file)
    yield bounded(_READERS[kind](data, kind, file.name, limits), limits)


def bounded(document: ExtractedDocument, limits: Limits) -> ExtractedDocument:
    """A document within the limit on characters, its fields as single lines; raises Refused for a secret."""
    if len(document.body) > limits.characters:
        document.body = document.body[: limits.characters]
        document.truncated = True
    reason = looks_secret(document.body) or looks_secret(document.title)
    if reason:
        raise Refused("skipped", reason)
    return document


def cleaned(document: ExtractedDocument) -> ExtractedDocument:
    """A document that can be encoded: no lone surrogates anywhere."""
    document.title, document.body = one_line(document.title), clean(document.body)
    document.sender, document.recipients = one_line(document.sender), one_line(document.recipients, 2000)
    document.part = one_line(document.part)
    return document


def _text(data: bytes, kind: str, name: str, limits: Limits) -> ExtractedDocument:
    return text_document(data, kind, name, limits)


def _html(data: bytes, kind: str, name: str, limits: Limits) -> ExtractedDocument:  # noqa: ARG001
    return html_document(data, limits)


def _xml(data: bytes, kind: str, name: str, limits: Limits) -> ExtractedDocument:  # noqa: ARG001
    return html_document(data, limits, "text")


_READERS: dict[str, Reader] = {
    "text": _text,
    "markdown": _text,
    "code": _text,
    "man": _text,
    "html": _html,
    "xml": _xml,
}
