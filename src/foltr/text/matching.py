"""Features of a query and its candidates, computed from word sequences.

With t of the query's T different terms, c_f occurrences in field f, |f| words without stop words, and idf of `bm25`:

    bm25               over all fields as one
    bm25_title ...     over one field; N and the mean length are over the documents that have the field
    bm25f              over the fields with weights
    ql                 query likelihood with Dirichlet smoothing, all fields as one: sum log((c + mu p) / (|d| + mu)),
                       p = occurrences / words of the collection, mu = 1,000
    cov_title ...      share of the terms that the field has
    idfcov_title ...   the same, terms weighted by idf; idfcov_any: in any field
    ordered, unordered, minspan, phrase_title, phrase_body     see `occurrences`
    title_cov_by_q     share of the title's words that are asked for
    title_exact        the title has the words of the query and no other, unstemmed and in order, whatever signs stand
                       between them ("json.loads" is "json loads"); name_exact: the file name is the query as typed,
                       with or without an ending
    prefix_title ...   share of the terms that the field has, or of which it has a word that begins with the term
    length             words of all fields; age in days; depth: folders above the file
    opened, folder     how many times likelier than chance the document within its folder, and its folder, are to be
                       opened next, minus 1 (`node.openings`): local, part of no message

A term that no document has is not dropped: it has the idf of a term in one document, and one occurrence in p. Scaling:
`range` by minimum and maximum over the query's candidates, `none` as it is, `log` log(1 + x) / 10, `log1p` log(1 + x),
which may be negative, `saturating` x / (1 + x). A feature that is not finite counts as 0.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.text import occurrences
from foltr.text.analysis import between_signs
from foltr.text.bm25 import bm25, bm25f, idf
from foltr.text.fields import FIELDS, Collection, Facts, QueryText, Tokens
from foltr.text.occurrences import Occurrences
from foltr.types import Array

MU = 1000.0
_LEAST = 1e-6 - 1.0  # of a feature whose logarithm log1p takes
_TITLE, _BODY, _NAME, _PATH = (FIELDS.index(field) for field in ("title", "body", "name", "path"))
_SHOWN = (_TITLE, _BODY, _NAME, _PATH)  # fields with features of their own


class Feature(NamedTuple):
    name: str
    scaling: str  # a key of SCALINGS
    group: str  # "lexical", "static", "history"


FEATURES: tuple[Feature, ...] = (
    *(Feature(name, "range", "lexical") for name in ("bm25", "bm25_title", "bm25_body", "bm25_name", "bm25_path")),
    *(Feature(name, "range", "lexical") for name in ("bm25f", "ql")),
    *(Feature(f"cov_{field}", "none", "lexical") for field in ("title", "body", "name", "path")),
    *(Feature(f"idfcov_{field}", "none", "lexical") for field in ("title", "body", "name", "path", "any")),
    *(Feature(name, "none", "lexical") for name in ("ordered", "unordered", "minspan", "phrase_title", "phrase_body")),
    *(Feature(name, "none", "lexical") for name in ("title_cov_by_q", "title_exact", "name_exact")),
    *(Feature(f"prefix_{field}", "none", "lexical") for field in ("title", "name", "path")),
    *(Feature(name, "log", "static") for name in ("length", "age", "depth")),
    Feature("opened", "log1p", "history"),
    Feature("folder", "log1p", "history"),
)
NAMES = tuple(feature.name for feature in FEATURES)


def features(query: QueryText, tokens: Tokens, collection: Collection, facts: Facts) -> Array:
    """[documents, FEATURES] raw features of the candidates whose words and facts are given."""
    return of_occurrences(query, occurrences.find(query, tokens, collection.stop_count), collection, facts)


def of_occurrences(query: QueryText, found: Occurrences, collection: Collection, facts: Facts) -> Array:
    """The same where the words were looked through already, such as block by block."""
    lexical = [*_scores(query, found, collection), *_coverage(query, found, collection), *_proximity(query, found)]
    rest = [*_names(query, facts), *_prefixes(found), found.lengths.sum(axis=1), facts.age_days, facts.depth]
    raw = np.stack([*lexical, *rest, facts.opened, facts.folder_opened], axis=1, dtype=np.float64, casting="unsafe")
    return np.nan_to_num(raw, copy=False, nan=0.0, posinf=0.0, neginf=0.0)


def _scores(query: QueryText, found: Occurrences, collection: Collection) -> list[Array]:
    repeats = np.array([term.repeats for term in query.terms], dtype=np.float64)
    frequency = np.array([term.document_frequency for term in query.terms], dtype=np.float64)
    by_field = np.array([term.field_frequency for term in query.terms], dtype=np.float64).reshape(-1, len(FIELDS))
    weights = repeats * idf(collection.documents, frequency)
    means = collection.lengths / np.maximum(collection.with_field, 1)
    counts, lengths = found.counts.sum(axis=1), found.lengths.sum(axis=1)
    words = max(float(collection.lengths.sum()), 1.0)
    one_field = bm25(counts, lengths, words / max(collection.documents, 1), weights)
    single = [
        bm25(
            found.counts[:, field], found.lengths[:, field], means[field],
            repeats * idf(collection.with_field[field], by_field[:, field]),
        )
        for field in _SHOWN
    ]  # fmt: skip
    occurring = np.array([max(term.collection_frequency, 1) for term in query.terms], dtype=np.float64)
    likelihood = np.log((counts + MU * occurring / words) / (lengths[:, None] + MU)) @ repeats
    return [one_field, *single, bm25f(found.counts, found.lengths, means, weights), likelihood]


def _coverage(query: QueryText, found: Occurrences, collection: Collection) -> list[Array]:
    has = (found.counts > 0).astype(np.float64)  # [documents, fields, terms]
    frequency = np.array([term.document_frequency for term in query.terms], dtype=np.float64)
    weights = idf(collection.documents, frequency)
    weights /= max(weights.sum(), 1e-9)
    plain = has.sum(axis=2) / max(len(query.terms), 1)
    weighted = has @ weights
    return [*plain[:, _SHOWN].T, *weighted[:, _SHOWN].T, has.max(axis=1, initial=0.0) @ weights]


def _proximity(query: QueryText, found: Occurrences) -> list[Array]:
    phrases = occurrences.phrase(found, query.order)
    asked_for = np.minimum(found.matched[:, _TITLE] / np.maximum(found.lengths[:, _TITLE], 1), 1.0)
    ordered, unordered = occurrences.pairs(found, query.order)
    return [ordered, unordered, occurrences.tightness(found), phrases[:, _TITLE], phrases[:, _BODY], asked_for]


def _names(query: QueryText, facts: Facts) -> list[Array]:
    typed = query.folded
    asked = between_signs(typed)
    titles = np.array([typed != "" and between_signs(title) == asked for title in facts.titles], dtype=np.float64)
    names = np.array([_is_name(typed, name) for name in facts.names], dtype=np.float64)
    return [titles, names]


def _is_name(typed: str, name: str) -> bool:
    """The file name, perhaps with an ending: "report" and "report.pdf"."""
    if not name or not typed.startswith(name):
        return False
    ending = typed[len(name) :]
    return not ending or (ending[0] == "." and " " not in ending)


def _prefixes(found: Occurrences) -> list[Array]:
    share = found.begun.sum(axis=2) / max(found.begun.shape[2], 1)
    return [share[:, field] for field in (_TITLE, _NAME, _PATH)]


def scale(raw: Array, chosen: Sequence[Feature] = FEATURES) -> Array:
    """[documents, features] as a ranker sees them; the columns of `raw` are those of `chosen`."""
    if raw.shape[1] != len(chosen):
        raise SpecError(f"{raw.shape[1]} columns for {len(chosen)} features; take the columns of the features first")
    if not len(raw):
        return raw.copy()
    scaled = raw.astype(np.float64, copy=True)
    for scaling in {feature.scaling for feature in chosen}:
        here = [place for place, feature in enumerate(chosen) if feature.scaling == scaling]
        scaled[:, here] = _scaling(scaling)(scaled[:, here])
    return scaled


def _by_range(values: Array) -> Array:
    low = values.min(axis=0)
    width = values.max(axis=0) - low
    return np.where(width > 0, (values - low) / np.where(width > 0, width, 1.0), 0.0)


def _as_it_is(values: Array) -> Array:
    return values


def _by_logarithm(values: Array) -> Array:
    return np.log1p(np.maximum(values, 0.0)) / 10.0


def _by_log1p(values: Array) -> Array:
    return np.log1p(np.maximum(values, _LEAST))


def _saturating(values: Array) -> Array:
    return np.maximum(values, 0.0) / (1.0 + np.maximum(values, 0.0))


def _scaling(name: str) -> Callable[[Array], Array]:
    if name not in SCALINGS:
        raise SpecError(f"scaling={name!r} is unknown; there are {', '.join(SCALINGS)}")
    return SCALINGS[name]


SCALINGS = {
    "range": _by_range, "none": _as_it_is, "log": _by_logarithm, "log1p": _by_log1p, "saturating": _saturating,
}  # fmt: skip


def columns(names: Sequence[str]) -> Array:
    """The places of named features in FEATURES."""
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        raise SpecError(f"unknown features {', '.join(unknown)}; there are {', '.join(NAMES)}")
    return np.array([NAMES.index(name) for name in names], dtype=np.int64)
