"""Plain text, Markdown and source code: from bytes in an unknown encoding to text without control characters."""

import codecs
import contextlib
import encodings
import pkgutil
import re

import msgspec

from foltr.node.extract.formats import utf16_order
from foltr.node.extract.records import ExtractedDocument, Limits

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins as UTF-16 does, hence before it
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_BYTES_PER_CHARACTER = 4  # at most, in every encoding that is read

_HEADING = re.compile(r"(?m)^(?: {0,3}#{1,3}[ \t]+(?P<atx>\S.*)|(?P<setext>[^\s#>|`*-].*)\r?\n(?:=+|-{3,})[ \t]*$)")
_UNDERLINED = re.compile(r"(?m)^(?P<line>[^\s.:].*)\r?\n(?P<mark>[=\-~#*^\"'`+])(?P=mark){2,}[ \t]*$")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(?:.*\r?\n){0,40}?title:[ \t]*[\"']?(?P<title>[^\r\n\"']+)")
_SEARCHED = 20_000  # characters at the beginning of a text that may hold its title


class _Cell(msgspec.Struct):
    source: list[str] | str = ""


class _Notebook(msgspec.Struct):
    cells: list[_Cell] = []


def text_document(data: bytes, kind: str, name: str, limits: Limits) -> ExtractedDocument:
    """A text, Markdown or source file as a document."""
    body = decode(data[: limits.characters * _BYTES_PER_CHARACTER], cut=len(data) > limits.characters * 4)
    if name.endswith(".ipynb"):
        body = _notebook(body)
    title = ""
    if kind == "markdown":
        title = markdown_title(body[:_SEARCHED])
    elif name.removesuffix(".gz").endswith(".rst"):
        title = _underlined_title(body[:_SEARCHED])
    return ExtractedDocument(title, body, kind)


def decode(data: bytes, declared: str | None = None, *, cut: bool = False) -> str:
    """Text of bytes: by byte order mark, declared encoding, UTF-16 without a mark, UTF-8, else Windows-1252.

    A text that is UTF-8 but for a few bytes stays UTF-8 with replacement characters. `cut`: the bytes may end within a
    character.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return clean(data.decode(encoding, "replace"))
    order = utf16_order(data[:4096])
    if order:
        return clean(data.decode(order, "replace"))
    try:
        if declared and codecs.lookup(declared)._is_text_encoding:
            return clean(data.decode(declared, "replace"))
    except (LookupError, ValueError):  # unknown, or a name that no codec may have
        pass
    try:
        return clean(codecs.getincrementaldecoder("utf-8")("strict").decode(data, not cut))
    except UnicodeDecodeError:
        return clean(_legacy(data))


def load_encodings() -> None:
    """Imports every codec that a text, a page or a mail may name: a confined process cannot import it later."""
    for module in pkgutil.iter_modules(encodings.__path__):
        with contextlib.suppress(LookupError, ImportError):  # codecs of another operating system
            codecs.lookup(module.name)


def clean(text: str) -> str:
    """Text without control characters (terminal escapes, NUL) and lone surrogates: each becomes a space."""
    return _CONTROLS.sub(" ", text) if _CONTROLS.search(text) else text


def one_line(text: str, length: int = 300) -> str:
    """White space collapsed, at most `length` characters: for titles, names and addresses."""
    return " ".join(clean(text[: 8 * length]).split())[:length]


def markdown_title(text: str) -> str:
    """Title of the front matter, or the first heading."""
    found = _FRONT_MATTER.match(text)
    if found:
        return one_line(found["title"])
    found = _HEADING.search(text)
    return one_line((found["atx"] or found["setext"]).rstrip("# \t\r")) if found else ""


def _underlined_title(text: str) -> str:
    found = _UNDERLINED.search(text)
    return one_line(found["line"]) if found else ""


def _legacy(data: bytes) -> str:
    replaced = data.decode("utf-8", "replace")
    wrong = replaced.count("\ufffd")
    if wrong * 2 < len(replaced) - len(replaced.encode("ascii", "ignore")):  # most characters beyond ASCII are valid
        return replaced
    return data.decode("cp1252", "replace")


def _notebook(text: str) -> str:
    """The cells of a Jupyter notebook; its outputs are not indexed."""
    try:
        cells = msgspec.json.decode(text, type=_Notebook).cells
    except (msgspec.MsgspecError, RecursionError):
        return text
    return "\n\n".join(cell.source if isinstance(cell.source, str) else "".join(cell.source) for cell in cells)
