"""Text and title of HTML, with Lexbor's parser (selectolax)."""

import re
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from foltr.node.extract.plain import clean, decode, one_line
from foltr.node.extract.records import ExtractedDocument, Limits

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
