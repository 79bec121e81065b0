"""Texts that simulated people search: documents with fields and folders, and judged queries where there are any.

    machine             files of this machine (`machine`); or the absolute path of a folder with text files
    docstrings          of Python's standard library; a folder is a module
    nfcorpus, ...       the corpora of `lab.data.corpora`; they have no folders: neighbouring ids are one

Documents of one topic were often numbered together, so that blocks of ids stand for the folders of a person. As mail,
documents have senders instead (`by_senders`): few send much, most send little, and a sender has no topic.
"""

import hashlib
import platform
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from foltr.lab.data import corpora
from foltr.lab.people.machine import FEWEST, FOLDERS, LIMIT, machine_documents
from foltr.rng import stream
from foltr.text.corpus import Corpus
from foltr.types import Array

MACHINE = "machine"
BLOCK = 25  # documents of a folder, where a collection has none


class Texts(NamedTuple):
    """Documents with their folders; judged queries, if there are any."""

    name: str
    note: str
    titles: tuple[str, ...]  # [documents]
    bodies: tuple[str, ...]
    names: tuple[str, ...]  # file names without their ending; empty strings where there are no files
    paths: tuple[str, ...]  # folders, with "/"
    folders: Array  # [documents] number of the folder
    judged: Corpus | None


@lru_cache(maxsize=2)
def load_texts(name: str, limit: int = LIMIT) -> Texts:
    """The corpus of this name; DataMissing where it is not on this machine."""
    if name == MACHINE or Path(name).is_absolute():
        return _of_files(name, FOLDERS if name == MACHINE else (name,), limit)
    corpus = corpora.load_corpus(name)
    docstrings = name == corpora.BUILT_IN
    paths = tuple(map(_module, corpus.ids)) if docstrings else ("",) * len(corpus.ids)
    folders = _numbered(paths) if docstrings else np.arange(len(corpus.ids)) // BLOCK
    note = f"docstrings of Python {platform.python_version()}" if docstrings else "a corpus of text"
    names = tuple(one.rpartition(".")[2] for one in corpus.ids) if docstrings else ("",) * len(corpus.ids)
    return Texts(name, note, corpus.titles, corpus.bodies, names, paths, folders, corpus)


def _of_files(name: str, folders: tuple[str, ...], limit: int) -> Texts:
    files = machine_documents(folders, limit, fewest=FEWEST if name == MACHINE else 0)
    places = [PurePosixPath(file.path) for file in files]
    paths = tuple(place.parent.as_posix() for place in places)
    roots = ", ".join(sorted({place.parts[0] for place in places}))
    return Texts(
        name, f"{len(files):,} files of this machine ({roots})",
        tuple(file.title for file in files), tuple(file.body for file in files),
        tuple(place.stem for place in places), paths, _numbered(paths), None,
    )  # fmt: skip


def _module(qualified: str) -> str:
    """All but the last part of a qualified name, as a path."""
    return qualified.rpartition(".")[0].replace(".", "/")


def _numbered(names: tuple[str, ...]) -> Array:
    return np.unique(np.array(names, dtype=str), return_inverse=True)[1].astype(np.int64)


def subset(texts: Texts, chosen: Array) -> Texts:
    """Some of the documents, without judged queries."""

    def some(values: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(values[number] for number in chosen.tolist())

    return texts._replace(
        titles=some(texts.titles), bodies=some(texts.bodies), names=some(texts.names), paths=some(texts.paths),
        folders=texts.folders[chosen], judged=None,
    )  # fmt: skip


def by_senders(texts: Texts) -> Texts:
    """The documents as mail: a folder is a sender, the r-th of whom sent in proportion to 1 / r; drawn once for all."""
    count = max(2, len(texts.titles) // BLOCK)
    share = np.cumsum(1 / np.arange(1, count + 1))
    drawn = stream(0, purpose="partition").uniform(len(texts.titles))
    senders = np.searchsorted(share / share[-1], drawn, side="right")
    return texts._replace(folders=np.unique(senders, return_inverse=True)[1].astype(np.int64))


def shortened(texts: Texts, limit: int) -> Texts:
    """Whole folders in an order drawn once for all, until there are `limit` documents; the last one may lose some."""
    if len(texts.titles) <= limit:
        return texts
    order = stream(1, purpose="partition").permutation(int(texts.folders.max()) + 1)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    chosen = subset(texts, np.sort(np.argsort(place[texts.folders], kind="stable")[:limit]))
    return chosen._replace(folders=np.unique(chosen.folders, return_inverse=True)[1].astype(np.int64))


def checksum(texts: Texts) -> str:
    digest = hashlib.sha256()
    for values in (texts.titles, texts.bodies, texts.names, texts.paths):
        for one in values:
            digest.update(one.encode("utf-8", "surrogatepass") + b"\0")
    digest.update(np.ascontiguousarray(texts.folders).tobytes())
    if texts.judged is not None:
        digest.update("\0".join(texts.judged.query_texts).encode("utf-8", "surrogatepass"))
        digest.update(np.ascontiguousarray(texts.judged.judgments).tobytes())
    return digest.hexdigest()[:16]
