"""Text and title of HTML with Lexbor's parser (selectolax); XML through expat, no entities, limited depth."""

import re
from typing import Any, Protocol
from xml.parsers import expat

from selectolax.lexbor import LexborHTMLParser

from foltr.node.extract.plain import clean, decode, one_line
from foltr.node.extract.records import ExtractedDocument, Limits, Refused

# A space before each tag that ends a line on the screen, since the parser joins texts without one: "<p>a</p><p>b</p>"
# must not become "ab". Inline tags get none: "H<sub>2</sub>O" is one word. The first letters suffice.
_BLOCKS = re.compile(
    rb"<(?=/?(?:[pP]|[dD][dDiIlLtT]|[lL][iI]|[uU][lL]|[oO][lLpP]|[hH][1-6rR]|[tT][aAdDhHrR]|[bB][lLrR]|[sS][eE]|"
    rb"[aA][rRsSdD]|[hH][eE]|[fF][iIoO]|[nN][aA]|[mM][aA]|[dD][eE][tT]|[sS][uU][mM]))"
)
_CHARSET = re.compile(rb"(?i)<(?:meta|\?xml)[^>]{0,300}?(?:charset|encoding)\s*=\s*[\"']?\s*([\w:.-]{2,40})")
_INVISIBLE = ["script", "style", "template", "svg", "object", "noscript"]
_TITLE = re.compile(r"(?i)^(?:title|index|untitled.*|no title|document)?$")  # says nothing

# The parser looks through all open elements at many tags, and through all attributes of an element at each of them,
# hence in quadratic time. Pages beyond these bounds are read without it.
_DEPTH = 5_000  # elements in elements
_ATTRIBUTES = 5_000  # of an element
_BLOCK = 10_000  # bytes: fewer than _ATTRIBUTES attributes have
_ELEMENT = re.compile(rb"<(/?)([a-zA-Z][a-zA-Z0-9:-]{0,30})")
_NEVER_DEEP = frozenset(
    b"p li dt dd option optgroup tr td th tbody thead tfoot colgroup html head body area base basefont bgsound br "
    b"col command embed frame hr image img input keygen link meta param source track wbr".split()
)  # elements that need no closing tag
_TAG = re.compile(rb"<[^<>]*+>")


def html_document(data: bytes, limits: Limits, kind: str = "html") -> ExtractedDocument:
    """A page as a document; its title is <title>, or the first heading."""
    title, body = html_text(decoded_page(data))
    return ExtractedDocument(title, body[: limits.characters + 1], kind)


def decoded_page(data: bytes) -> bytes:
    """A page in UTF-8, from the encoding that it declares; valid UTF-8 needs no declaration and stays as it is."""
    if not data.startswith((b"\xff\xfe", b"\xfe\xff")) and b"\0" not in data[:1024]:
        declared = _CHARSET.search(data[:2048])
        if not declared or declared[1].lower() in (b"utf-8", b"utf8", b"us-ascii"):
            try:
                data.decode("utf-8")
            except UnicodeDecodeError:
                return decode(data).encode("utf-8", "replace")
            return data
        return decode(data, declared[1].decode("ascii")).encode("utf-8", "replace")
    return decode(data).encode("utf-8", "replace")


def html_text(page: bytes) -> tuple[str, str]:
    """Title and visible text of a page in UTF-8; of a forged one, all text between tags."""
    if _is_too_deep(page) or _has_huge_tag(page):
        return "", clean(" ".join(_TAG.sub(b" ", page).decode("utf-8", "replace").split()))
    tree: Any = LexborHTMLParser(_BLOCKS.sub(b" <", page))
    tree.strip_tags(_INVISIBLE)
    body = tree.body
    text = body.text() if body is not None else tree.root.text() if tree.root is not None else ""
    return _title(tree), clean(" ".join(text.split()))


def _is_too_deep(page: bytes) -> bool:
    """Whether more than _DEPTH elements are open at once, by counting opening and closing tags of each name."""
    tags = page.count(b"<")
    if tags <= _DEPTH or tags - page.count(b"</") <= _DEPTH:
        return False
    depth, opened = 0, dict[bytes, int]()
    for closing, raw_name in _ELEMENT.findall(page):
        name = raw_name.lower()
        if name in _NEVER_DEEP:
            continue
        if not closing:
            opened[name] = opened.get(name, 0) + 1
            depth += 1
        elif opened.get(name):
            opened[name] -= 1
            depth -= 1
        if depth > _DEPTH:
            return True
    return False


def _has_huge_tag(page: bytes) -> bool:
    """Whether an element has more than _ATTRIBUTES attributes. Only around blocks without a closing bracket there may
    be one, and ordinary pages have few: large pictures as text in an attribute, which are one piece."""
    last = 0  # everything before it has been looked at
    for block in range(0, len(page) - _BLOCK + 1, _BLOCK):
        if block >= last and page.find(b">", block, block + _BLOCK) < 0:
            begin, closing = page.rfind(b">", last, block) + 1 or last, page.find(b">", block)
            last = closing if closing >= 0 else len(page)
            tag = _ELEMENT.search(page, begin, last)
            if tag and len(page[tag.start() : last].split(maxsplit=_ATTRIBUTES + 1)) > _ATTRIBUTES:
                return True
    return False


def _title(tree: Any) -> str:
    for selector in ("title", "h1", "h2"):
        found = tree.css_first(selector)
        title = one_line(found.text()) if found is not None else ""
        if not _TITLE.match(title):
            return title
    return ""


class Handler(Protocol):
    """Receives elements and text while XML is parsed."""

    def start(self, name: str, attributes: dict[str, str]) -> None: ...
    def end(self, name: str) -> None: ...
    def text(self, text: str) -> None: ...


class Enough(Exception):
    """Raised by a handler that needs no more of the file."""


def parse_xml(xml: bytes, handler: Handler, limits: Limits) -> None:
    """Runs `handler` over XML; raises Refused for XML that is damaged, nested too deeply, or declares entities."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > limits.xml_depth:
            raise Refused("failed", f"XML nested more than {limits.xml_depth} levels deep")
        handler.start(local(name), {local(key): value for key, value in attributes.items()} if attributes else {})

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        handler.end(local(name))

    def entity(*_: object) -> None:  # expansions, also of files on this machine
        raise Refused("failed", "XML that declares entities")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = handler.text
    parser.EntityDeclHandler = entity
    try:
        parser.Parse(xml, True)
    except Enough:
        return
    except (expat.ExpatError, ValueError) as problem:  # ValueError: an encoding that Python does not map
        raise Refused("failed", f"damaged XML ({problem})") from None


def local(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition(" ")[2]


class Metadata:
    """The first text of each element of a small XML file: dc:title and so on."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._open: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:  # noqa: ARG002
        self._open.append("" if name in self.texts else name)

    def end(self, name: str) -> None:  # noqa: ARG002
        self._open.pop()

    def text(self, text: str) -> None:
        if self._open and self._open[-1] and len(self.texts) < 200:
            name = self._open[-1]
            self.texts[name] = (self.texts.get(name, "") + text)[:2000]


def metadata(xml: bytes, limits: Limits) -> dict[str, str]:
    """Texts by element; nothing where the XML is damaged, because the document itself may be sound."""
    reader = Metadata()
    try:
        parse_xml(xml, reader, limits)
    except Refused:
        return {}
    return reader.texts
