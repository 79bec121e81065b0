"""Corpora by name: nfcorpus, vaswani, msmarco-sample, docstrings, or a folder of your own.

A corpus is searched for where collections are (`places`): the folder that was added, FOLTR_DATA, ./data. Its folder
holds, each plain or compressed (.gz, .xz, .bz2),

    BEIR    corpus.jsonl, queries.jsonl, and qrels.tsv or qrels/train.tsv, dev.tsv, test.tsv (.tsv, .qrel, .txt)
    TREC    doc-text.trec, query-text.trec, qrels

Nothing is downloaded. `docstrings` needs no file: every machine with Python has it. The readers of single files:

    json_documents    a JSON object a line: an id, a text, optionally a title (BEIR, ir_datasets)
    json_queries      a JSON object a line: an id, a text
    trec_documents    <DOC> <DOCNO>7</DOCNO> ... </DOC>; a title element is the title, the rest the body
    trec_topics       <top> <num>7 <title>words ... </top>, elements closed or not
    judgments         `query 0 document grade` (TREC) or `query document grade`; a first line of column names is skipped

An error names file and line and says what was expected there.
"""

import html
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from foltr.errors import DataError, DataMissing
from foltr.lab.data import docstrings, places
from foltr.lab.data.files import opened, packed
from foltr.text.corpus import Corpus, Document, Judgment, Place, Query, assemble, decoded_lines

BUILT_IN = "docstrings"
WHERE = {
    "nfcorpus": "Boteva et al. publish it for academic use: https://www.cl.uni-heidelberg.de/statnlpgroup/nfcorpus/",
    "vaswani": "The University of Glasgow publishes it: http://ir.dcs.gla.ac.uk/resources/test_collections/npl/",
    "msmarco-sample": "Any sample of MS MARCO passages in BEIR's files: https://microsoft.github.io/msmarco/",
}
_OWN = "It is not a known name; a folder of that name with a corpus in it works too."
_JUDGED = (".tsv", ".qrel", ".txt", "")
_LOOKED_FOR = "corpus.jsonl, queries.jsonl and qrels (BEIR), or doc-text.trec, query-text.trec and qrels (TREC)"
IDS = ("_id", "id", "doc_id", "docid", "docno", "query_id", "qid")
TEXTS = ("text", "body", "contents", "abstract", "query")
HIGHEST_GRADE = 127
_NAMES = {"query-id", "query_id", "qid", "query"}  # how a first line of names begins
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_NUMBER = re.compile(r"<DOCNO>(.*?)</DOCNO>", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<(TITLE|HEADLINE|HEAD|TI|HL|TTL)>(.*?)</\1>", re.IGNORECASE | re.DOTALL)
_TOPIC_NUMBER = re.compile(r"<num>\s*(?:Number:)?\s*([^\s<]+)", re.IGNORECASE)
_TOPIC_TITLE = re.compile(r"<title>\s*(?:Topic:)?([^<]*)", re.IGNORECASE)


def names() -> list[str]:
    """Every name that `load` knows."""
    return [*WHERE, BUILT_IN]


def load_corpus(name: str) -> Corpus:
    """The corpus of this name, or DataMissing with what to do."""
    if name == BUILT_IN:
        return docstrings.load_docstrings()
    for root in places.candidates(name):
        if root.is_dir():
            return load_folder(root, name=name)
    raise DataMissing(
        f"the corpus {name!r} is not on this machine; known are {', '.join(names())}. {WHERE.get(name, _OWN)}\n"
        f"Put {_LOOKED_FOR} into {places.shelves(name)[0]}, or set FOLTR_DATA to the folder that holds {name}/."
    )


def load_folder(root: str | Path, *, name: str | None = None) -> Corpus:
    """The corpus in a folder of one of the two layouts."""
    folder = Path(root)
    for files, read_documents, read_queries in _LAYOUTS:
        documents, queries = (packed(folder / file) for file in files)
        if documents and queries:
            judged = _judgments(folder)
            return assemble(name or folder.name, read_documents(str(documents)), read_queries(str(queries)), judged)
    raise DataError(f"{folder}: no known layout; looked for {_LOOKED_FOR} (each also as .gz, .xz, .bz2)")


def _judgments(folder: Path) -> dict[str, Iterator[Judgment]]:
    """Part -> its judgments: the files of qrels/, or one file for all."""
    whole = next((found for ending in _JUDGED if (found := packed(folder / f"qrels{ending}"))), None)
    if whole:
        return {"all": judgments(str(whole))}
    inside = sorted(path for path in (folder / "qrels").glob("*") if path.is_file())
    if not inside:
        raise DataError(f"{folder}: no judgments; expected qrels.tsv or a folder qrels/ with train.tsv, test.tsv")
    return {path.name.split(".")[0]: judgments(str(path)) for path in inside}


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
    """What stands between <tag> and </tag>, with the place of the opening."""
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
    if not (word.isascii() and word.isdecimal() and int(word) <= HIGHEST_GRADE):
        raise DataError(f"{place}: the grade {word!r} is not a whole number from 0 to {HIGHEST_GRADE}")
    return int(word)


_LAYOUTS = (
    (("corpus.jsonl", "queries.jsonl"), json_documents, json_queries),
    (("doc-text.trec", "query-text.trec"), trec_documents, trec_topics),
)
