"""Corpora by name: nfcorpus, vaswani, msmarco-sample, docstrings, or texts of your own.

A corpus is searched for where collections are (`places`): the folder or file that was added, FOLTR_DATA, ./data.
Known are, each plain or compressed (.gz, .xz, .bz2),

    BEIR         corpus.jsonl, queries.jsonl, and qrels.tsv or qrels/train.tsv, dev.tsv, test.tsv (.tsv, .qrel, .txt)
    TREC         doc-text.trec, query-text.trec, qrels
    one file     a .jsonl or .trec file of documents
    text files   a folder with .txt, .text, .md or .rst files in it: the path is the id, the name the title

Without queries a corpus can be searched, and nothing can be learned from it. A judgment of -1 is none (`corpus`).
Nothing is downloaded. `docstrings` needs no file: every machine with Python has it.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from foltr.errors import DataError, DataMissing, did_you_mean
from foltr.lab.data import corpus_formats as formats
from foltr.lab.data import docstrings, places
from foltr.lab.data.files import packed
from foltr.text.corpus import TEXT_FILES, Corpus, Document, Judgment, Query, assemble, text_folder

BUILT_IN = "docstrings"
WHERE = {
    "nfcorpus": "Boteva et al. publish it for academic use: https://www.cl.uni-heidelberg.de/statnlpgroup/nfcorpus/",
    "vaswani": "The University of Glasgow publishes it: http://ir.dcs.gla.ac.uk/resources/test_collections/npl/",
    "msmarco-sample": "Any sample of MS MARCO passages in BEIR's files: https://microsoft.github.io/msmarco/",
}
_OWN = "It is not a known name; a folder of that name with a corpus in it works too."
_COMPRESSED = ("", ".gz", ".xz", ".bz2")
_JUDGED = (".tsv", ".qrel", ".txt", "")
LOOKED_FOR = "corpus.jsonl, queries.jsonl and qrels (BEIR), or doc-text.trec, query-text.trec and qrels (TREC)"
_LAYOUTS = {"BEIR": ("corpus.jsonl", "queries.jsonl"), "TREC": ("doc-text.trec", "query-text.trec")}
_ENDINGS = {"BEIR": ".jsonl", "TREC": ".trec"}
_FEATURES = re.compile(rb"\s*\S+ +qid:\S+ +\d+:")  # the first line of a file of LETOR features


class TextFiles(NamedTuple):
    layout: str  # "BEIR", "TREC" or "text files"
    documents: Path
    queries: Path | None


class TextDescription(NamedTuple):
    name: str
    where: str
    documents: int
    queries: int
    judgments: int
    grade_counts: tuple[int, ...]  # judgments of grade 0, 1, ...
    parts: dict[str, int]  # judged queries of each
    unjudged: int  # judgments of -1, left out
    unknown: int  # judgments left out, since their query or their document is missing


def names() -> list[str]:
    """Every name that `load` knows."""
    return [*WHERE, BUILT_IN]


def load_corpus(name: str) -> Corpus:
    """The corpus of this name, or DataMissing with what to do."""
    if name == BUILT_IN:
        return docstrings.load_docstrings()
    for root in places.candidates(name):
        if root.exists():
            return load_folder(root, name=name)
    raise DataMissing(
        f"the corpus {name!r} is not on this machine; known are {', '.join(names())}.{_close(name)} "
        f"{WHERE.get(name, _OWN)}\n"
        f"Put {LOOKED_FOR} into {places.shelves(name)[0]}, leave the files in any PATH and run: foltr data add {name} "
        f"PATH, or set FOLTR_DATA to the folder that holds {name}/."
    )


def _close(name: str) -> str:
    return "" if name in WHERE else did_you_mean(name, [*names(), *places.remembered()])


def load_folder(root: str | Path, *, name: str | None = None) -> Corpus:
    """The corpus in a folder or file of a known layout."""
    place = Path(root)
    found = find(place)
    if found is None:
        raise DataError(
            f"{place}: no known layout; looked for {LOOKED_FOR} (each also as .gz, .xz, .bz2), for one .jsonl or .trec "
            f"file, and for text files ({', '.join(TEXT_FILES)})"
        )
    called = name or place.name
    judged = _judgments(place)
    if found.queries is None and judged:
        raise DataError(f"{place}: judgments without queries; expected queries.jsonl (BEIR) or query-text.trec (TREC)")
    if found.queries is None:
        return assemble(called, _documents(found))
    if not judged:
        raise DataError(f"{place}: no judgments; expected qrels.tsv or a folder qrels/ with train.tsv, test.tsv")
    return assemble(called, _documents(found), _queries(found.queries), judged)


def add(name: str, path: str | Path) -> Corpus:
    """Registers the place of a corpus after reading it."""
    if name == BUILT_IN:
        raise DataError(f"the name {name!r} belongs to a built-in corpus; choose another")
    root = Path(path).expanduser().resolve()
    corpus = load_folder(root, name=name)
    if not any(text.strip() for text in (*corpus.titles, *corpus.bodies)):
        raise DataError(f"{root}: there is no document with any text; expected titles or bodies")
    places.remember(name, places.Registered(str(root)))
    return corpus


def locate(name: str) -> tuple[Path, TextFiles] | None:
    """Where a corpus lies, and its files."""
    found = ((root, find(root)) for root in places.candidates(name) if root.exists())
    return next(((root, files) for root, files in found if files), None)


def find(root: Path) -> TextFiles | None:
    """The files of a corpus, by their names; nothing is parsed."""
    if root.is_file():
        layout = next((layout for layout, ending in _ENDINGS.items() if _is_packed(root, ending)), None)
        return TextFiles(layout, root, None) if layout else None
    for layout, (documents, queries) in _LAYOUTS.items():
        main = packed(root / documents)
        if main:
            return TextFiles(layout, main, packed(root / queries))
    first = next((path for path in root.rglob("*") if path.suffix.lower() in TEXT_FILES and path.is_file()), None)
    if first is None or _is_features(first):
        return None
    return TextFiles("text files", root, None)


def _is_packed(path: Path, ending: str) -> bool:
    return any(path.name.endswith(ending + packing) for packing in _COMPRESSED)


def _is_features(path: Path) -> bool:
    """A file of features for learning to rank, which is not a text."""
    try:
        with path.open("rb") as file:
            return _FEATURES.match(file.readline(10_000)) is not None
    except OSError:
        return False


def _documents(files: TextFiles) -> Iterable[Document]:
    if files.layout == "text files":
        return text_folder(files.documents)
    read = formats.json_documents if files.layout == "BEIR" else formats.trec_documents
    return read(str(files.documents))


def _queries(path: Path) -> Iterator[Query]:
    return (formats.json_queries if _is_packed(path, ".jsonl") else formats.trec_topics)(str(path))


def _judgments(folder: Path) -> dict[str, Iterator[Judgment]]:
    """Part -> its judgments: the files of qrels/, or one file for all; empty where there are none."""
    whole = next((found for ending in _JUDGED if (found := packed(folder / f"qrels{ending}"))), None)
    if whole:
        return {"all": formats.judgments(str(whole))}
    inside = sorted(path for path in (folder / "qrels").glob("*") if path.is_file())
    return {path.name.split(".")[0]: formats.judgments(str(path)) for path in inside}


def describe(name: str) -> TextDescription:
    """Counts of a corpus."""
    corpus = load_corpus(name)
    located = locate(name)
    return TextDescription(
        name,
        str(located[0]) if located else "built in",
        len(corpus.ids),
        len(corpus.query_ids),
        len(corpus.judgments),
        tuple(np.bincount(corpus.judgments[:, 2]).tolist()),
        {part: len(queries) for part, queries in corpus.parts.items()},
        corpus.unjudged,
        corpus.unknown,
    )
