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
    """Title and visible text of a page in UTF-8."""
    tree: Any = LexborHTMLParser(_BLOCKS.sub(b" <", page))
    tree.strip_tags(_INVISIBLE)
    body = tree.body
    text = body.text() if body is not None else tree.root.text() if tree.root is not None else ""
    return _title(tree), clean(" ".join(text.split()))


def _title(tree: Any) -> str:
    for selector in ("title", "h1", "h2"):
        found = tree.css_first(selector)
        title = one_line(found.text()) if found is not None else ""
        if not _TITLE.match(title):
            return title
    return ""
