"""Disclosure of an owner's documents by its answers: what a member learns who asks some words and has a dictionary.

The member has the group's hash key, as every member has. It keeps all answers, hashes every word of a dictionary, and
claims (word, document, count) entries, also of words that it never asked. The dictionary is the owner's own vocabulary,
which is the worst case: with another one only words that are in both can be named.

    index      the asked words' lists, and nothing else
    sampled    an entry of a shown cell has a tag of 16 bits: with column and row it names the word
    sound,     a word's documents are in all of its cells; some of them are shown by answers for other words. Documents
    paper      are ranked by the shown cells that agree in sign, and as many are claimed as documents have the word,
               which the member reads in an exact table of statistics (`silo.statistics`): many claims are wrong

Metrics, after that many words were asked, of claims that are right:

    words known       share of the owner's vocabulary for which a document was named
    entries known     share of all (word, document, count)
    unasked known     share of the documents of words that were not asked; 'precision' is that of these claims
    recall            of the asked words: of the K best documents that have a word, those in its answer
    entries charged   what the allowance counts, as a share of all entries: an upper bound of 'entries known'

Differs from the paper: it does not consider a member that asks.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np

from foltr.errors import SpecError
from foltr.lab.silo.retrieval import Postings, counts_by_term, key_of, postings, recall
from foltr.lab.silo.tasks import RetrievalTask
from foltr.rng import stream
from foltr.silo import rtk
from foltr.silo.rtk import Cells
from foltr.silo.sketches import Hashes, family, hash_terms, take_hashes
from foltr.types import Array

Count = Annotated[int, msgspec.Meta(ge=1)]


class Disclosure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="disclosure"):
    by: Literal["index", "sound", "paper", "sampled"] = "index"
    asked: Count = 20  # words, of all members that collude together
    asks: Literal["queries", "frequent"] = "queries"  # words of the corpus's queries, or the most frequent ones
    top: Count = 150  # K
    rows: Count = 30  # z
    columns: Count = 200  # w
    beta: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.1


class Claims(NamedTuple):
    """Entries that a member believes the owner to have."""

    words: Array  # [claims] places in the dictionary
    documents: Array  # [claims]
    counts: Array  # [claims]


def measure(task: RetrievalTask, setting: Disclosure, *, seed: int) -> dict[str, float]:
    """The metrics for one owner of all documents."""
    truth, documents = postings(task.documents), len(task.documents.lengths)
    asked = _asked(task, setting, truth, seed=seed)
    if setting.by == "index":
        found = [_best(truth, term, setting.top) for term in asked.tolist()]
        claims = _listed(truth, asked, setting.top)
        numbers = setting.top
    else:
        hashes = hash_terms(task.words, family(key_of(seed), rows=setting.rows, columns=setting.columns))
        sketch = rtk.empty(hashes.shape, variant=setting.by, top=min(setting.top, documents))
        rtk.add_documents(sketch, task.documents, hashes)
        found = [
            rtk.query(sketch, take_hashes(hashes, np.array([term])), beta=setting.beta).documents
            for term in asked.tolist()
        ]
        answers = [(hashes.columns[term], rtk.read(sketch, hashes.columns[term])) for term in asked.tolist()]
        claims = claimed(setting.by, answers, hashes, np.diff(truth.starts))
        numbers = sketch.entries.shape[2] * setting.rows
    exact = counts_by_term(truth, asked, documents)
    recalls = [recall(documents_of, counts, setting.top) for documents_of, counts in zip(found, exact, strict=True)]
    charged = min(len(asked) * numbers / len(truth.documents), 1.0)
    return {"recall": float(np.mean(recalls)), **shares(claims, truth, asked), "entries charged": charged}


def shares(claims: Claims, truth: Postings, asked: Array) -> dict[str, float]:
    """The shares of words, entries and documents of unasked words that the claims name rightly."""
    words, documents = len(truth.starts) - 1, int(truth.documents.max(initial=0)) + 1
    owners = np.repeat(np.arange(words), np.diff(truth.starts))
    keys = owners * np.int64(documents) + truth.documents
    order = np.argsort(keys)
    claimed_keys = claims.words.astype(np.int64) * documents + claims.documents
    inside = claims.documents < documents
    places = np.minimum(np.searchsorted(keys[order], claimed_keys), len(keys) - 1)
    right = inside & (keys[order][places] == claimed_keys)
    exact = right & (truth.counts[order][places] == np.round(claims.counts))
    unasked_truth = ~np.isin(owners, asked)
    unasked = ~np.isin(claims.words, asked)
    return {
        "words known": len(np.unique(claims.words[right])) / words,
        "entries known": float(np.count_nonzero(exact)) / len(keys),
        "unasked known": float(np.count_nonzero(right & unasked)) / max(int(unasked_truth.sum()), 1),
        "precision": float(right[unasked].mean()) if unasked.any() else 1.0,
    }


def claimed(
    variant: str, answers: Sequence[tuple[Array, Cells]], dictionary: Hashes, frequencies: Array | None = None
) -> Claims:
    """Entries of a dictionary's words that answers from a sketch show; each answer with the columns it is for.

    `frequencies` [words]: documents that have each word, where the member knows them; otherwise every document that all
    shown cells of a word agree on is claimed.
    """
    cells = _distinct(answers)
    if variant == "sampled":
        found = list(_tagged(cells, dictionary))
    elif variant in rtk.VARIANTS:
        found = list(_agreed(cells, dictionary, frequencies, signed=variant == "sound"))
    else:
        raise SpecError(f"no variant {variant!r}; there are {', '.join(rtk.VARIANTS)}")
    if not found:
        return Claims(*(np.empty(0, np.int64) for _ in Claims._fields))
    merged = Claims(*(np.concatenate(part) for part in zip(*found, strict=True)))
    _, first = np.unique(np.stack([merged.words, merged.documents]), axis=1, return_index=True)
    return Claims(*(part[first] for part in merged))


def _distinct(answers: Sequence[tuple[Array, Cells]]) -> dict[tuple[int, int], tuple[Array, Array, Array]]:
    """Documents, counts and tags of every (row, column) that some answer shows."""
    shown = {}
    for columns, cells in answers:
        for row, (column, size) in enumerate(zip(columns.tolist(), cells.sizes.tolist(), strict=True)):
            tags = cells.tags[row, :size] if cells.tags.size else cells.tags[:0]
            shown[row, column] = cells.documents[row, :size], cells.counts[row, :size], tags
    return shown


def _tagged(cells: dict[tuple[int, int], tuple[Array, Array, Array]], dictionary: Hashes) -> Iterator[Claims]:
    """Every entry whose tag is that of a dictionary's word in this cell."""
    for (row, column), (documents, counts, tags) in cells.items():
        words = np.flatnonzero(dictionary.columns[:, row] == column)
        order = np.argsort(tags, kind="stable")
        low, high = (np.searchsorted(tags[order], dictionary.tags[words, row], side) for side in ("left", "right"))
        for word, first, last in zip(words.tolist(), low.tolist(), high.tolist(), strict=True):
            held = order[first:last]
            yield Claims(np.full(len(held), word, np.int64), documents[held].astype(np.int64), counts[held])


def _agreed(
    cells: dict[tuple[int, int], tuple[Array, Array, Array]], dictionary: Hashes, frequencies: Array | None,
    *, signed: bool,
) -> Iterator[Claims]:  # fmt: skip
    """For every word the documents on whose presence most of its shown cells agree."""
    shown = np.zeros(dictionary.shape[:2], bool)
    for row, column in cells:
        shown[row, column] = True
    rows_of = shown[np.arange(dictionary.shape.rows), dictionary.columns]  # [words, z]
    for word in np.flatnonzero(rows_of.any(axis=1)).tolist():
        rows = np.flatnonzero(rows_of[word]).tolist()
        held = [cells[row, int(dictionary.columns[word, row])] for row in rows]
        signs = dictionary.signs[word, rows].tolist() if signed else [1] * len(rows)
        documents = np.concatenate([part[0] for part in held])
        counts = np.concatenate([sign * part[1] for sign, part in zip(signs, held, strict=True)])
        yield _most_agreed(word, documents, counts, len(rows), None if frequencies is None else int(frequencies[word]))


def _most_agreed(word: int, documents: Array, counts: Array, rows: int, frequency: int | None) -> Claims:
    different, places = np.unique(documents, return_inverse=True)
    agreement = np.bincount(places, weights=np.sign(counts))
    totals, listed = np.bincount(places, weights=counts), np.bincount(places)
    order = np.lexsort((different, -totals, -agreement))
    order = order[agreement[order] >= rows] if frequency is None else order[agreement[order] > 0][:frequency]
    return Claims(np.full(len(order), word, np.int64), different[order].astype(np.int64), (totals / listed)[order])


def _asked(task: RetrievalTask, setting: Disclosure, truth: Postings, *, seed: int) -> Array:
    if setting.asks == "frequent":
        return np.argsort(-np.diff(truth.starts), kind="stable")[: setting.asked]
    order = stream(seed, round=1, purpose="choice").permutation(len(task.asked))
    return task.asked[order][: setting.asked]


def _best(truth: Postings, term: int, top: int) -> Array:
    return truth.documents[truth.starts[term] : min(truth.starts[term] + top, truth.starts[term + 1])]


def _listed(truth: Postings, asked: Array, top: int) -> Claims:
    """The answers of an index."""
    ends = np.minimum(truth.starts[asked] + top, truth.starts[asked + 1])
    spans = [np.arange(first, last) for first, last in zip(truth.starts[asked], ends, strict=True)]
    places = np.concatenate([np.empty(0, np.int64), *spans]).astype(np.int64)
    words = list(itertools.chain.from_iterable([term] * len(span) for term, span in zip(asked, spans, strict=True)))
    return Claims(np.array(words, np.int64), truth.documents[places].astype(np.int64), truth.counts[places])
