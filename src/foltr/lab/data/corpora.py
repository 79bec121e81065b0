"""Corpora by name: nfcorpus, vaswani, msmarco-sample, docstrings, or a folder of your own.

A corpus is searched for where collections are (`places`): the folder that was added, FOLTR_DATA, ./data. Its folder
holds, each plain or compressed (.gz, .xz, .bz2),

    BEIR    corpus.jsonl, queries.jsonl, and qrels.tsv or qrels/train.tsv, dev.tsv, test.tsv (.tsv, .qrel, .txt)
    TREC    doc-text.trec, query-text.trec, qrels

Nothing is downloaded. `docstrings` needs no file: every machine with Python has it.
"""

from collections.abc import Iterator
from pathlib import Path

from foltr.errors import DataError, DataMissing
from foltr.lab.data import corpus_formats as formats
from foltr.lab.data import docstrings, places
from foltr.text.corpus import Corpus, Judgment, assemble

BUILT_IN = "docstrings"
WHERE = {
    "nfcorpus": "Boteva et al. publish it for academic use: https://www.cl.uni-heidelberg.de/statnlpgroup/nfcorpus/",
    "vaswani": "The University of Glasgow publishes it: http://ir.dcs.gla.ac.uk/resources/test_collections/npl/",
    "msmarco-sample": "Any sample of MS MARCO passages in BEIR's files: https://microsoft.github.io/msmarco/",
}
_OWN = "It is not a known name; a folder of that name with a corpus in it works too."
_COMPRESSED = ("", ".gz", ".xz", ".bz2")
_JUDGED = (".tsv", ".qrel", ".txt", "")
_LOOKED_FOR = "corpus.jsonl, queries.jsonl and qrels (BEIR), or doc-text.trec, query-text.trec and qrels (TREC)"


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
    called = name or folder.name
    json_files = _file(folder, "corpus.jsonl"), _file(folder, "queries.jsonl")
    if all(json_files):
        documents, queries = json_files
        judged = _judgments(folder)
        return assemble(called, formats.json_documents(str(documents)), formats.json_queries(str(queries)), judged)
    trec_files = _file(folder, "doc-text.trec"), _file(folder, "query-text.trec")
    if all(trec_files):
        documents, queries = trec_files
        judged = _judgments(folder)
        return assemble(called, formats.trec_documents(str(documents)), formats.trec_topics(str(queries)), judged)
    raise DataError(f"{folder}: no known layout; looked for {_LOOKED_FOR} (each also as .gz, .xz, .bz2)")


def _file(folder: Path, name: str) -> Path | None:
    return next((path for ending in _COMPRESSED if (path := folder / f"{name}{ending}").is_file()), None)


def _judgments(folder: Path) -> dict[str, Iterator[Judgment]]:
    """Part -> its judgments: the files of qrels/, or one file for all."""
    whole = next((found for ending in _JUDGED if (found := _file(folder, f"qrels{ending}"))), None)
    if whole:
        return {"all": formats.judgments(str(whole))}
    inside = sorted(path for path in (folder / "qrels").glob("*") if path.is_file())
    if not inside:
        raise DataError(f"{folder}: no judgments; expected qrels.tsv or a folder qrels/ with train.tsv, test.tsv")
    return {path.name.split(".")[0]: formats.judgments(str(path)) for path in inside}
