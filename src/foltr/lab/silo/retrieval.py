"""Reverse top-K measured: recall, time and space of RTK-sketches and of NAIVE.

Source: S3 definition 3 (reverse top-K), sections V-C and VI-B and figure 4. Its claim: a query falls from over 100 s to
under 10 ms, space to about a fifth, at 36,400 documents of about 1,000 terms, alpha = 5, beta = .1, w = 200, z = 30,
K = 150.

    index                    a keyed inverted index, which is exact (`silo.index`)
    paper, sound, sampled    the variants of `rtk`
    naive-each               NAIVE as printed: one exchange for every document
    naive                    NAIVE implemented well: hash once, read the same cells of all sketches as one array
    naive-by-cell            the same with all documents' values of a cell adjacent in memory

Where several documents have the K-th largest count, each of them is as good as another, so recall counts the returned
documents that have the term at least as often as the K-th best (tie-aware). Two metrics:

    recall@K   of K documents; the paper's "cover rate". Where fewer than K documents have the term the K-th count is 0,
               and any answer has recall 1: rare terms raise this metric.
    recall     of the min(K, documents that have the term) best: a document without the term never counts.

Times are CPU time of one core, so that other programs on the machine hardly matter; a query's is the median over terms
of the best of three tries. Nothing is sent over a network; "kB sent" are the bytes of the sealed question and answer
that would be (`envelopes`), "kB of numbers" those of the columns, documents and counts in them alone.

Differs from the paper: its NAIVE is not described further, its documents are not available, and it does not say how it
treats ties.
"""

import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np

from foltr.errors import SpecError
from foltr.lab.silo import naive
from foltr.lab.silo.tasks import RetrievalTask
from foltr.silo import rtk
from foltr.silo.allowance import Limits, in_memory
from foltr.silo.index import WORD_BYTES, Index, build_index, size_bytes
from foltr.silo.index import postings as postings_of
from foltr.silo.keys import group_in_process
from foltr.silo.owners import NoiseChoice, make_owner
from foltr.silo.protocol import Target, ask_counts, ask_top, make_asker, relay
from foltr.silo.sketches import Family, Hashes, Sketch, family, hash_terms, hash_words, sketch_documents, take_hashes
from foltr.text.counts import Counts
from foltr.types import Array

Count = Annotated[int, msgspec.Meta(ge=1)]
Ask = Callable[[int], tuple[Array, int]]  # a term's number -> documents found, and the bytes of the numbers exchanged
_TRIES = 3


class Retrieval(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="retrieval"):
    by: Literal["index", "paper", "sound", "sampled", "naive-each", "naive", "naive-by-cell"] = "sound"
    top: Count = 150  # K
    alpha: Annotated[float, msgspec.Meta(ge=1)] = 5.0
    beta: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.1
    rows: Count = 30  # z
    columns: Count = 200  # w
    hash: Literal["keyed", "md5"] = "keyed"
    asked: Count = 600  # terms at most
    deleted_fraction: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0  # of the documents, before the first query
    rebuilt: bool = False  # the sketch is rebuilt from the remaining documents instead of deleting from it


class Postings(NamedTuple):
    """Counts by term: term t is in documents[starts[t] : starts[t + 1]], the largest count first."""

    starts: Array  # [terms + 1] int64
    documents: Array  # [entries] int32
    counts: Array  # [entries] int32


def key_of(seed: int) -> bytes:
    """A key for measurements only: it is public."""
    return seed.to_bytes(32, "little")


def measure(task: RetrievalTask, setting: Retrieval, *, seed: int) -> dict[str, float]:
    """The metrics of one method."""
    functions = family(key_of(seed), rows=setting.rows, columns=setting.columns, hash=setting.hash)
    if setting.by == "index":
        return _measure_index(task, setting, functions)
    if setting.by in rtk.VARIANTS:
        return _measure_sketch(task, setting, functions)
    return _measure_naive(task, setting, functions)


def _measure_sketch(task: RetrievalTask, setting: Retrieval, functions: Family) -> dict[str, float]:
    one = Counts(np.array([0, 1]), np.zeros(1, np.int32), np.ones(1, np.int32), np.ones(1, np.int64), 1)
    _build(RetrievalTask(one, ["a"], np.zeros(1, np.int64)), setting, functions)  # compile before the clock starts
    seconds, (hashes, sketch) = _timed(_build, task, setting, functions)
    deleted = deleted_documents(task, setting)
    if setting.rebuilt:
        hashes, sketch = _build(without(task, deleted), setting, functions)
    else:
        for document in deleted.tolist():
            rtk.delete(sketch, document)
    numbers = setting.rows * (4 + 8 * sketch.entries.shape[2])

    def ask(term: int) -> tuple[Array, int]:
        found = rtk.query(sketch, take_hashes(hashes, np.array([term])), beta=setting.beta)
        return found.documents, numbers

    return _measure_queries(task, setting, ask) | {
        "documents a second": len(task.documents.lengths) / seconds,
        "size_mb": rtk.size_bytes(sketch) / 1e6,
        "kB sent": _bytes_sent(functions, lists=sketch) / 1e3,
    }


def _measure_index(task: RetrievalTask, setting: Retrieval, functions: Family) -> dict[str, float]:
    """An index is built again after deletions, which takes less time than a sketch does."""
    present = without(task, deleted_documents(task, setting)).documents
    seconds, index = _timed(lambda: build_index(present, task.words, functions, top=setting.top))

    def ask(term: int) -> tuple[Array, int]:
        word = int(hash_words([task.words[term]], functions)[0])
        return postings_of(index, word)[0][: setting.top], WORD_BYTES + 8 * setting.top

    return _measure_queries(task, setting, ask) | {
        "documents a second": len(task.documents.lengths) / seconds,
        "size_mb": size_bytes(index) / 1e6,
        "kB sent": _bytes_sent(functions, lists=index) / 1e3,
    }


def _bytes_sent(
    functions: Family, *, lists: rtk.RtkSketch | Index | None = None, counts: Sketch | None = None,
    documents: Array | None = None,
) -> int:  # fmt: skip
    """Bytes of one sealed question and its sealed answer, which do not depend on the term."""
    owns, asks = group_in_process(2, functions.key)
    limits = in_memory(Limits(1 << 60, 1 << 60), owns.context)
    owner = make_owner(owns, lists=lists, counts=counts, choice=NoiseChoice("none"), allowance=limits)
    asker = make_asker(asks, functions, real_rows=None if isinstance(lists, Index) else functions.rows)
    target = Target(owns.place)
    if documents is None:
        exchanged = relay(ask_top(asker, target, "a", top=1), owner).seen
    else:
        exchanged = relay(ask_counts(asker, target, "a", documents), owner).seen
    return sum(len(message.content) for message in exchanged)


def deleted_documents(task: RetrievalTask, setting: Retrieval) -> Array:
    """The numbers of the deleted documents, at even distances."""
    documents, fraction = len(task.documents.lengths), setting.deleted_fraction
    return np.unique((np.arange(round(fraction * documents)) / max(fraction, 1e-9)).astype(np.int64))


def without(task: RetrievalTask, deleted: Array) -> RetrievalTask:
    """Documents with the deleted ones empty."""
    counts = task.documents
    remains = np.ones(len(counts.lengths), bool)
    remains[deleted] = False
    entries = np.repeat(remains, np.diff(counts.offsets))
    sizes = np.where(remains, np.diff(counts.offsets), 0)
    left = counts._replace(
        offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), terms=counts.terms[entries],
        counts=counts.counts[entries], lengths=np.where(remains, counts.lengths, 0),
    )  # fmt: skip
    return task._replace(documents=left)


def _build(task: RetrievalTask, setting: Retrieval, functions: Family) -> tuple[Hashes, rtk.RtkSketch]:
    """Hashes of the vocabulary and the sketch: everything that a query needs."""
    hashes = hash_terms(task.words, functions)
    sketch = rtk.empty(hashes.shape, variant=setting.by, top=setting.top, alpha=setting.alpha)
    rtk.add_documents(sketch, task.documents, hashes)
    return hashes, sketch


def _measure_naive(task: RetrievalTask, setting: Retrieval, functions: Family) -> dict[str, float]:
    sketches = sketch_documents("count", task.documents, hash_terms(task.words, functions))
    if setting.by == "naive-by-cell":
        sketches = naive.by_cell(sketches)
    exchange = naive.ask_each if setting.by == "naive-each" else naive.ask_all

    def ask(term: int) -> tuple[Array, int]:
        answer = exchange(sketches, task.words[term], functions, setting.top)
        return answer.documents, answer.bytes

    every = np.arange(len(task.documents.lengths))
    exchanges = len(every) if setting.by == "naive-each" else 1
    sent = exchanges * _bytes_sent(functions, counts=sketches, documents=every[: len(every) // exchanges])
    return _measure_queries(task, setting, ask) | {"size_mb": sketches.cells.nbytes / 1e6, "kB sent": sent / 1e3}


def _measure_queries(task: RetrievalTask, setting: Retrieval, ask: Ask) -> dict[str, float]:
    """Recall, time and bytes over the terms asked for."""
    present = without(task, deleted_documents(task, setting)).documents
    lists, documents, terms = postings(present), len(present.lengths), task.asked[: setting.asked]
    recalls, seconds, sent = [], [], 0
    ask(int(terms[0]))
    for term, exact in zip(terms, counts_by_term(lists, terms, documents), strict=True):
        spent, (found, sent) = _timed(ask, int(term), tries=1 if setting.by == "naive-each" else _TRIES)
        seconds.append(spent)
        recalls.append((recall_at_k(found, exact, setting.top), recall(found, exact, setting.top)))
    at_k, of_present = np.mean(recalls, axis=0).tolist()
    return {
        "recall@K": at_k,
        "recall": of_present,
        "ms a query": float(np.median(seconds) * 1e3),
        "kB of numbers": sent / 1e3,
    }


def _timed(work: Callable[..., Any], *given: Any, tries: int = 1) -> tuple[float, Any]:
    best = np.inf
    for _ in range(tries):
        began = time.process_time()
        result = work(*given)
        best = min(best, time.process_time() - began)
    return best, result


def postings(documents: Counts) -> Postings:
    """Inverted lists; of equal counts the earlier document comes first."""
    owners = np.repeat(np.arange(len(documents.lengths), dtype=np.int32), np.diff(documents.offsets))
    order = np.lexsort((owners, -documents.counts.astype(np.int64), documents.terms))
    starts = np.searchsorted(documents.terms[order], np.arange(documents.vocabulary_size + 1))
    return Postings(starts, owners[order], documents.counts[order])


def recall_at_k(found: Array, counts: Array, top: int) -> float:
    """Of K documents, those found. found: documents returned; counts [documents]: exact, of the term."""
    _check(found, counts, top)
    kth = np.partition(counts, len(counts) - top)[len(counts) - top]
    return float(np.count_nonzero(counts[found[:top]] >= kth) / top) if kth > 0 else 1.0


def recall(found: Array, counts: Array, top: int) -> float:
    """Of the K best documents that have the term, those found; 1 where no document has it."""
    _check(found, counts, top)
    relevant = min(top, int(np.count_nonzero(counts)))
    if relevant == 0:
        return 1.0
    kth = np.partition(counts, len(counts) - relevant)[len(counts) - relevant]
    return min(int(np.count_nonzero(counts[found[:top]] >= kth)), relevant) / relevant


def counts_by_term(lists: Postings, terms: Array, documents: int) -> Iterator[Array]:
    """[documents] exact counts of one term after the other."""
    for term in terms:
        held = slice(lists.starts[term], lists.starts[term + 1])
        counts = np.zeros(documents, np.int64)
        counts[lists.documents[held]] = lists.counts[held]
        yield counts


def _check(found: Array, counts: Array, top: int) -> None:
    if not 1 <= top <= len(counts):
        raise SpecError(f"top = {top} of {len(counts)} documents; use 1 to {len(counts)}")
    if len(np.unique(found)) != len(found):
        raise SpecError("an answer names a document twice; give each once")
