"""DOCX, ODT and EPUB: zip files of XML, read with zipfile and expat; chapters of an EPUB as HTML."""

import posixpath
from typing import NamedTuple
from urllib.parse import unquote

from foltr.node.extract.markup import Enough, decoded_page, html_text, metadata, parse_xml
from foltr.node.extract.plain import clean, one_line
from foltr.node.extract.records import ExtractedDocument, Limits, Refused
from foltr.node.extract.unpack import Archive

_NOTES = ("word/footnotes.xml", "word/endnotes.xml", "word/comments.xml")
_TITLE_STYLES = ("title", "heading1", "titel", "titre", "berschrift1", "titre1")


class ElementNames(NamedTuple):
    """Meanings of the elements of an office format."""

    texts: frozenset[str]  # hold text
    lines: frozenset[str]  # end a line
    spaces: frozenset[str]
    hidden: frozenset[str]  # left out with all they hold


_DOCX = ElementNames(
    texts=frozenset(("t",)),
    lines=frozenset(("p",)),
    spaces=frozenset(("tab", "br", "cr")),
    hidden=frozenset(("Fallback",)),  # the same text again, for old programs
)
_ODT = ElementNames(
    texts=frozenset(("p", "h")),
    lines=frozenset(("p", "h")),
    spaces=frozenset(("s", "tab", "line-break")),
    hidden=frozenset(("tracked-changes", "automatic-styles", "styles", "meta", "settings", "scripts", "binary-data")),
)


def docx_document(data: bytes, limits: Limits) -> ExtractedDocument:
    archive = Archive(data, limits)
    if "word/document.xml" not in archive.names:
        raise Refused("failed", "a zip file without word/document.xml, hence no DOCX")
    heading, body = _paragraphs(archive.read("word/document.xml"), _DOCX, limits)
    for name in _NOTES:
        if len(body) <= limits.characters and name in archive.names:
            body += "\n" + _paragraphs(archive.read(name), _DOCX, limits)[1]
    title = metadata(archive.read("docProps/core.xml"), limits).get("title", "")
    return ExtractedDocument(one_line(title) or one_line(heading), body, "docx")


def odt_document(data: bytes, limits: Limits) -> ExtractedDocument:
    archive = Archive(data, limits)
    if "content.xml" not in archive.names:
        raise Refused("failed", "a zip file without content.xml, hence no ODT")
    if b"encryption-data" in archive.read("META-INF/manifest.xml"):
        raise Refused("skipped", "encrypted")
    heading, body = _paragraphs(archive.read("content.xml"), _ODT, limits)
    title = metadata(archive.read("meta.xml"), limits).get("title", "")
    return ExtractedDocument(one_line(title) or one_line(heading), body, "odt")


def flat_odt_document(data: bytes, limits: Limits) -> ExtractedDocument:
    """An ODT that is one XML file (.fodt)."""
    heading, body = _paragraphs(data, _ODT, limits)
    return ExtractedDocument(one_line(metadata(data, limits).get("title", "")) or one_line(heading), body, "odt")


def epub_document(data: bytes, limits: Limits) -> ExtractedDocument:
    """The chapters of a book in reading order."""
    archive = Archive(data, limits)
    package = _Container.package(archive, limits)
    contents = _Package()
    xml = archive.read(package)
    parse_xml(xml, contents, limits)
    chapters: list[str] = []
    left = limits.characters
    for address in contents.chapters():
        if left < 0:
            break
        path = posixpath.join(posixpath.dirname(package), unquote(address.partition("#")[0]))
        chapters.append(html_text(decoded_page(archive.read(posixpath.normpath(path))))[1])
        left -= len(chapters[-1])
    if not any(chapters):
        raise Refused("failed", "an EPUB without chapters")
    return ExtractedDocument(one_line(metadata(xml, limits).get("title", "")), "\n".join(chapters), "epub")


def _paragraphs(xml: bytes, elements: ElementNames, limits: Limits) -> tuple[str, str]:
    """The first title or heading, and the text, one paragraph a line."""
    reader = _Paragraphs(elements, limits.characters)
    parse_xml(xml, reader, limits)
    return clean(reader.heading), clean("".join(reader.pieces))


class _Paragraphs:
    """Collects the text of an office document."""

    def __init__(self, elements: ElementNames, characters: int) -> None:
        self.pieces: list[str] = []
        self.heading = ""
        self._elements = elements
        self._left = characters
        self._inside = 0  # elements that hold text, around what is read
        self._hidden = 0
        self._paragraph = 0  # where the paragraph began in `pieces`
        self._is_title = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._inside += name in self._elements.texts
        self._hidden += name in self._elements.hidden
        if name in self._elements.lines:
            self._paragraph, self._is_title = len(self.pieces), name == "h"
        elif name == "pStyle":
            self._is_title = attributes.get("val", "").lower().replace(" ", "").strip("ü") in _TITLE_STYLES
        elif name in self._elements.spaces:
            self.pieces.append(" ")

    def end(self, name: str) -> None:
        self._inside -= name in self._elements.texts
        self._hidden -= name in self._elements.hidden
        if name in self._elements.lines:
            if self._is_title and not self.heading:
                self.heading = "".join(self.pieces[self._paragraph :])
            self.pieces.append("\n")

    def text(self, text: str) -> None:
        if self._inside and not self._hidden:
            self.pieces.append(text)
            self._left -= len(text)
            if self._left < 0:
                raise Enough


class _Container:
    """META-INF/container.xml of an EPUB: where its package file is."""

    def __init__(self) -> None:
        self.path = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "rootfile" and not self.path:
            self.path = attributes.get("full-path", "")

    def end(self, name: str) -> None: ...
    def text(self, text: str) -> None: ...

    @classmethod
    def package(cls, archive: Archive, limits: Limits) -> str:
        reader = cls()
        parse_xml(archive.read("META-INF/container.xml") or b"<none/>", reader, limits)
        if reader.path not in archive.names:
            raise Refused("failed", "a zip file without a package file, hence no EPUB")
        return reader.path


class _Package:
    """The package file of an EPUB: its parts, and which of them are chapters, in order."""

    def __init__(self) -> None:
        self._addresses: dict[str, str] = {}
        self._spine: dict[str, None] = {}  # ordered; a hostile book repeats one chapter a million times

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "item" and "html" in attributes.get("media-type", ""):
            self._addresses[attributes.get("id", "")] = attributes.get("href", "")
        elif name == "itemref":
            self._spine[attributes.get("idref", "")] = None

    def end(self, name: str) -> None: ...
    def text(self, text: str) -> None: ...

    def chapters(self) -> list[str]:
        """Addresses of the chapters, relative to the package file."""
        return [self._addresses[item] for item in self._spine if item in self._addresses]


READERS = {"docx": docx_document, "odt": odt_document, "epub": epub_document}
