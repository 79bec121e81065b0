"""Readers of the usual files of a corpus, each plain or compressed (.gz, .xz, .bz2). The caller chooses the format.

    json_documents    a JSON object a line: an id, a text, optionally a title (BEIR, ir_datasets)
    json_queries      a JSON object a line: an id, a text
    trec_documents    <DOC> <DOCNO>7</DOCNO> ... </DOC>; a title element is the title, the rest the body
    trec_topics       <top> <num>7 <title>words ... </top>, elements closed or not
    judgments         `query 0 document grade` (TREC) or `query document grade`, a grade of -1 for "not judged"; a first
                      line of column names is skipped

An error names file and line and says what was expected there.
"""

import html
import re
from collections.abc import Iterator

import msgspec

from foltr.errors import DataError
from foltr.lab.data.files import opened
from foltr.text.corpus import UNJUDGED, Document, Judgment, Place, Query, decoded_lines

IDS = ("_id", "id", "doc_id", "docid", "docno", "query_id", "qid")
TEXTS = ("text", "body", "contents", "abstract", "query")
HIGHEST_GRADE = 127
_NAMES = {"query-id", "query_id", "qid", "query"}  # how a first line of names begins
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_NUMBER = re.compile(r"<DOCNO>(.*?)</DOCNO>", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<(TITLE|HEADLINE|HEAD|TI|HL|TTL)>(.*?)</\1>", re.IGNORECASE | re.DOTALL)
_TOPIC_NUMBER = re.compile(r"<num>\s*(?:Number:)?\s*([^\s<]+)", re.IGNORECASE)
_TOPIC_TITLE = re.compile(r"<title>\s*(?:Topic:)?([^<]*)", re.IGNORECASE)


def _lines(source: str) -> Iterator[tuple[Place, str]]:
    with opened(source) as file:
        yield from decoded_lines(source, file)


def _objects(source: str) -> Iterator[tuple[Place, dict[str, object]]]:
    for place, line in _lines(source):
        try:
            found = msgspec.json.decode(line)
        except msgspec.DecodeError as error:
            raise DataError(f"{place}: not JSON ({error}); expected one object a line") from error
        if not isinstance(found, dict):
            raise DataError(f"{place}: expected a JSON object with an id and a text")
        yield place, found


def _field(found: dict[str, object], names: tuple[str, ...], what: str, place: Place) -> str:
    value = next((found[name] for name in names if found.get(name) is not None), None)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise DataError(f"{place}: no {what}; expected a string under one of {', '.join(names)}")
    return value


def json_documents(source: str) -> Iterator[Document]:
    for place, found in _objects(source):
        title = "" if found.get("title") is None else _field(found, ("title",), "title", place)
        yield Document(_field(found, IDS, "id", place), title, _field(found, TEXTS, "text", place), place)


def json_queries(source: str) -> Iterator[Query]:
    for place, found in _objects(source):
        yield Query(_field(found, IDS, "id", place), _field(found, TEXTS, "text", place), place)


def _elements(source: str, tag: str) -> Iterator[tuple[Place, str]]:
    """The text between <tag> and </tag>, with the place of the opening."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    begun: Place | None = None
    inside: list[str] = []
    for place, line in _lines(source):
        mark = line.strip().lower()
        if mark.startswith(opening):
            if begun:
                raise DataError(f"{place}: {opening} within the one that begins at {begun}; {closing} is missing")
            begun, inside = place, []
        if begun:
            inside.append(line)
        if mark.endswith(closing) and begun:
            text = "".join(inside).strip()
            yield begun, text[len(opening) : -len(closing)]
            begun = None
    if begun:
        raise DataError(f"{begun}: {opening} without {closing}; the file is cut short")


def trec_documents(source: str) -> Iterator[Document]:
    for place, text in _elements(source, "doc"):
        number = _NUMBER.search(text)
        if not number:
            raise DataError(f"{place}: a document without <DOCNO>")
        rest = text[: number.start()] + text[number.end() :]
        titles = [found.group(2) for found in _TITLE.finditer(rest)]
        yield Document(number.group(1).strip(), _plain(" ".join(titles)), _plain(_TITLE.sub(" ", rest)), place)


def _plain(marked: str) -> str:
    return html.unescape(_TAG.sub(" ", marked)).strip()


def trec_topics(source: str) -> Iterator[Query]:
    for place, text in _elements(source, "top"):
        number, title = _TOPIC_NUMBER.search(text), _TOPIC_TITLE.search(text)
        if not number or not title:
            raise DataError(f"{place}: a topic without {'<title>' if number else '<num>'}")
        yield Query(number.group(1), html.unescape(title.group(1)).strip(), place)


def judgments(source: str) -> Iterator[Judgment]:
    for place, line in _lines(source):
        columns = line.split()
        if place.line == 1 and columns[0].lower() in _NAMES:
            continue
        if len(columns) not in (3, 4):
            raise DataError(f"{place}: found {line[:80]!r}; expected `query 0 document grade`, the 0 perhaps left out")
        yield Judgment(columns[0], columns[-2], _grade(columns[-1], place), place)


def _grade(word: str, place: Place) -> int:
    if word == str(UNJUDGED):
        return UNJUDGED
    if not (word.isascii() and word.isdecimal() and int(word) <= HIGHEST_GRADE):
        raise DataError(
            f"{place}: the grade {word!r} is not a whole number from 0 to {HIGHEST_GRADE}, nor -1 for a pair that "
            "nobody judged; where a negative grade marks spam that was judged not relevant (TREC web tracks), write 0"
        )
    return int(word)
