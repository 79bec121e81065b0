"""RTK-sketch against NAIVE, measured: time, bytes kept and sent, speed of building, how much is found, how it grows.

Source: S3 section VI-B and figure 4. Its claim: a query falls from over 100 s to under 10 ms, space to about a fifth,
at 36,400 documents of about 1,000 terms, alpha = 5, beta = .1, w = 200, z = 30, K = 150.

Every figure is a row of plain numbers. Times are what one core spends, so that other programs on the machine hardly
count; a query's is the median over the terms asked for of the best of three tries. No message is on a wire: bytes sent
are both ways and of the numbers alone.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from foltr.experiments.silo_tasks import Task, made_up, text
from foltr.silo import naive, rtk_sketch
from foltr.silo.counts import Counts
from foltr.silo.cover import counts_by_term, cover, found_rate, postings
from foltr.silo.hashing import Family, Hashes, family, hash_terms, take_hashes
from foltr.silo.sketch import sketch_documents

KEY = bytes(range(32))  # of measurements only: everybody can read it
NAIVE = ("naive, one query a document", "naive, all at once", "naive, all at once, laid out by cell")
SHARES = (0.004, 0.014)  # K of the documents: about the paper's 150 of 36,400, and more
Row = dict[str, Any]


def head_to_head(*, smoke: bool = False) -> list[Row]:
    """Every variant and NAIVE, at the paper's size and defaults; MD5 as the paper's experiments have it."""
    task = made_up(300, vocabulary=2000) if smoke else made_up(36_400)
    top = 30 if smoke else 150
    rows = [_measure(task, top, variant) for variant in rtk_sketch.VARIANTS]
    for kind in ("keyed", "md5"):
        rows += _measure_naive(task, top, kind)
    return rows


def cover_rows(name: str = "nfcorpus", *, seeds: int = 2, asked: int = 600) -> list[Row]:
    """How much each variant finds at the paper's defaults, of terms of the corpus's queries."""
    task = text(name, asked)
    tops = [round(share * len(task.documents.lengths)) for share in SHARES]
    cases = ((seed, top, variant) for seed in range(seeds) for top in tops for variant in rtk_sketch.VARIANTS)
    return [{"data": name, "seed": seed, **_measure(task, top, variant, seed=seed)} for seed, top, variant in cases]


def growth_rows(*, smoke: bool = False) -> Iterator[Row]:
    """One thing varied at a time: documents, K and z."""
    fewest, top, words = (50, 30, 2000) if smoke else (2_275, 150, 200_000)
    for documents in (fewest, 16 * fewest, 4 * fewest):
        task = made_up(documents, vocabulary=words)
        yield {"vary": "documents", **_measure(task, top, "sound")}
    for best in (top // 3, top, 2 * top):
        yield {"vary": "K", **_measure(task, best, "sound")}
    for rows in (10, 30, 50):
        yield {"vary": "z", **_measure(task, top, "sound", rows=rows)}


def _measure(task: Task, top: int, variant: str, *, rows: int = 30, columns: int = 200, seed: int = 0) -> Row:
    functions = family(bytes([seed]) + KEY[1:], rows=rows, columns=columns)
    hashes, sketch, build = _build(task, top, variant, functions)
    documents = len(task.documents.lengths)
    return {
        "what": variant,
        "documents": documents,
        "K": top,
        "z": rows,
        "w": columns,
        **_ask(task, top, hashes, sketch),
        "documents_per_s": documents / build,
        "kept_bytes": rtk_sketch.kept_bytes(sketch),
        "sent_bytes": rows * (4 + 8 * sketch.entries.shape[2]),
    }


def _ask(task: Task, top: int, hashes: Hashes, sketch: rtk_sketch.RtkSketch) -> Row:
    """Rates and time over the terms asked for."""
    lists, documents = postings(task.documents), len(task.documents.lengths)
    covered, really_found, seconds = [], [], []
    for term, exact in zip(task.asked, counts_by_term(lists, task.asked, documents), strict=True):
        spent, found = _timed(rtk_sketch.query, sketch, take_hashes(hashes, np.array([term])), tries=3)
        seconds.append(spent)
        covered.append(cover(found.documents, exact, top))
        really_found.append(found_rate(found.documents, exact, top))
    return {
        "cover": float(np.mean(covered)),
        "found_rate": float(np.mean(really_found)),
        "query_ms": float(np.median(seconds) * 1e3),
    }


def _build(task: Task, top: int, variant: str, functions: Family) -> tuple[Hashes, rtk_sketch.RtkSketch, float]:
    """With the seconds that it took; hashing the vocabulary is part of it, machine code is not."""
    one = Counts(np.array([0, 1]), np.zeros(1, np.int32), np.ones(1, np.int32), np.ones(1, np.int64), 1)
    _sketched(Task(one, ["a"], np.zeros(1, np.int64)), top, variant, functions)
    seconds, (hashes, sketch) = _timed(_sketched, task, top, variant, functions)
    return hashes, sketch, seconds


def _sketched(task: Task, top: int, variant: str, functions: Family) -> tuple[Hashes, rtk_sketch.RtkSketch]:
    hashes = hash_terms(task.words, functions)
    sketch = rtk_sketch.empty(hashes.shape, variant=variant, top=top)
    rtk_sketch.add_documents(sketch, task.documents, hashes)
    rtk_sketch.query(sketch, take_hashes(hashes, np.zeros(1, np.int64)))
    return hashes, sketch


def _measure_naive(task: Task, top: int, hash: str) -> Iterator[Row]:
    functions = family(KEY, hash=hash)
    sketches = sketch_documents("count", task.documents, hash_terms(task.words, functions))
    word, documents = task.words[task.asked[0]], len(task.documents.lengths)
    for what, ask in zip(NAIVE, (naive.ask_each, naive.ask_all, naive.ask_all), strict=True):
        if what == NAIVE[2]:
            sketches = naive.by_cell(sketches)
        seconds, answer = _timed(ask, sketches, word, functions, top, tries=1 if what == NAIVE[0] else 5)
        yield {
            "what": what,
            "documents": documents,
            "K": top,
            "z": functions.rows,
            "w": functions.columns,
            "hash": hash,
            "query_ms": seconds * 1e3,
            "kept_bytes": sketches.cells.nbytes,
            "sent_bytes": answer.bytes,
        }


def _timed(work: Callable[..., Any], *given: Any, tries: int = 1) -> tuple[float, Any]:
    best = np.inf
    for _ in range(tries):
        began = time.process_time()
        result = work(*given)
        best = min(best, time.process_time() - began)
    return best, result
