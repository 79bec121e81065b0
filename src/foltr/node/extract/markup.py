"""XML through expat: no entities, limited depth, element names without their namespaces."""

from typing import Protocol
from xml.parsers import expat

from foltr.node.extract.records import Limits, Refused


class Handler(Protocol):
    """What is called while XML is parsed."""

    def start(self, name: str, attributes: dict[str, str]) -> None: ...
    def end(self, name: str) -> None: ...
    def text(self, text: str) -> None: ...


class Enough(Exception):
    """Raised by a handler that has all it wants."""


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
