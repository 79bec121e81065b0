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
                       opened next, minus 1 (`node.learning.habits`): local, part of no message. Before a list is
                       ranked they are bounded by what the query says (`bounded_history`); for a single word of
                       bodies only (`is_body_word`) they count only what was opened by such words

A feature is one entry of FEATURES, with its function above the table; it ranks once weights name it. The brute force of
`tests/text` computes every feature a second time and fails for one that it does not know.

A term that no document has is not dropped: it has the idf of a term in one document, and one occurrence in p. Scaling:
`range` by minimum and maximum over the query's candidates, `none` as it is, `log` log(1 + x) / 10, `log1p` log(1 + x),
which may be negative, `saturating` x / (1 + x). A feature that is not finite counts as 0.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
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


class Matches:
    """A query, its candidates, and the values that several features share, each computed once."""

    def __init__(self, query: QueryText, found: Occurrences, collection: Collection, facts: Facts) -> None:
        self.query, self.found, self.collection, self.facts = query, found, collection, facts
        self.repeats = np.array([term.repeats for term in query.terms], dtype=np.float64)  # [terms]
        frequency = np.array([term.document_frequency for term in query.terms], dtype=np.float64)
        self.idf = idf(collection.documents, frequency)  # [terms]
        self.words = max(float(collection.lengths.sum()), 1.0)  # of the collection
        self.mean_lengths = collection.lengths / np.maximum(collection.with_field, 1)  # [fields]

    @cached_property
    def counts(self) -> Array:
        """[documents, terms] over all fields."""
        return self.found.counts.sum(axis=1)

    @cached_property
    def lengths(self) -> Array:
        """[documents] over all fields."""
        return self.found.lengths.sum(axis=1)

    @cached_property
    def field_frequency(self) -> Array:
        """[terms, fields]"""
        frequency = [term.field_frequency for term in self.query.terms]
        return np.array(frequency, dtype=np.float64).reshape(-1, len(FIELDS))

    @cached_property
    def has(self) -> Array:
        """[documents, fields, terms] 1 where the field has the term."""
        return (self.found.counts > 0).astype(np.float64)

    @cached_property
    def idf_shares(self) -> Array:
        """[terms] idf, which adds up to 1."""
        return self.idf / max(self.idf.sum(), 1e-9)

    @cached_property
    def coverage(self) -> Array:
        """[documents, fields] share of the terms."""
        return self.has.sum(axis=2) / max(len(self.query.terms), 1)

    @cached_property
    def idf_coverage(self) -> Array:
        """[documents, fields] share of the terms, weighted by idf."""
        return self.has @ self.idf_shares

    @cached_property
    def pairs(self) -> tuple[Array, Array]:
        """[documents] ordered and unordered proximity."""
        return occurrences.pairs(self.found, self.query.order)

    @cached_property
    def phrases(self) -> Array:
        """[documents, fields]"""
        return occurrences.phrase(self.found, self.query.order)

    @cached_property
    def begun(self) -> Array:
        """[documents, fields] share of the terms that a word of the field begins with."""
        return self.found.begun.sum(axis=2) / max(self.found.begun.shape[2], 1)


def _bm25(m: Matches) -> Array:
    return bm25(m.counts, m.lengths, m.words / max(m.collection.documents, 1), m.repeats * m.idf)


def _bm25_of(m: Matches, field: int) -> Array:
    weights = m.repeats * idf(m.collection.with_field[field], m.field_frequency[:, field])
    return bm25(m.found.counts[:, field], m.found.lengths[:, field], m.mean_lengths[field], weights)


def _bm25f(m: Matches) -> Array:
    return bm25f(m.found.counts, m.found.lengths, m.mean_lengths, m.repeats * m.idf)


def _query_likelihood(m: Matches) -> Array:
    occurring = np.array([max(term.collection_frequency, 1) for term in m.query.terms], dtype=np.float64)
    return np.log((m.counts + MU * occurring / m.words) / (m.lengths[:, None] + MU)) @ m.repeats


def _coverage_of(m: Matches, field: int) -> Array:
    return m.coverage[:, field]


def _idf_coverage_of(m: Matches, field: int) -> Array:
    return m.idf_coverage[:, field]


def _idf_coverage_of_any(m: Matches) -> Array:
    return m.has.max(axis=1, initial=0.0) @ m.idf_shares


def _ordered(m: Matches) -> Array:
    return m.pairs[0]


def _unordered(m: Matches) -> Array:
    return m.pairs[1]


def _minspan(m: Matches) -> Array:
    return occurrences.tightness(m.found)


def _phrase_in(m: Matches, field: int) -> Array:
    return m.phrases[:, field]


def _title_covered(m: Matches) -> Array:
    return np.minimum(m.found.matched[:, _TITLE] / np.maximum(m.found.lengths[:, _TITLE], 1), 1.0)


def _title_exact(m: Matches) -> Array:
    typed = m.query.folded
    query = between_signs(typed)
    return np.array([typed != "" and between_signs(title) == query for title in m.facts.titles], dtype=np.float64)


def _name_exact(m: Matches) -> Array:
    return np.array([_is_name(m.query.folded, name) for name in m.facts.names], dtype=np.float64)


def _prefix_of(m: Matches, field: int) -> Array:
    return m.begun[:, field]


def _length(m: Matches) -> Array:
    return m.lengths


def _age(m: Matches) -> Array:
    return m.facts.age_days


def _depth(m: Matches) -> Array:
    return m.facts.depth


def _opened(m: Matches) -> Array:
    return m.facts.opened


def _folder_opened(m: Matches) -> Array:
    return m.facts.folder_opened


def _is_name(typed: str, name: str) -> bool:
    """The file name, perhaps with an ending: "report" and "report.pdf"."""
    if not name or not typed.startswith(name):
        return False
    ending = typed[len(name) :]
    return not ending or (ending[0] == "." and " " not in ending)


class Feature(NamedTuple):
    """A ranking feature: all there is to say about it stands in its entry of FEATURES."""

    name: str
    scaling: str  # a key of SCALINGS
    group: str  # "lexical", "static", "history"
    compute: Callable[[Matches], Array]  # -> [documents] raw values
    words: str  # what a person reads where the contribution to a score is shown


FEATURES: tuple[Feature, ...] = (
    Feature("bm25", "range", "lexical", _bm25, "how well the words match, all text as one"),
    Feature("bm25_title", "range", "lexical", partial(_bm25_of, field=_TITLE), "how well the words match the title"),
    Feature("bm25_body", "range", "lexical", partial(_bm25_of, field=_BODY), "how well the words match the text"),
    Feature("bm25_name", "range", "lexical", partial(_bm25_of, field=_NAME), "how well the words match the name"),
    Feature("bm25_path", "range", "lexical", partial(_bm25_of, field=_PATH), "how well the words match the path"),
    Feature("bm25f", "range", "lexical", _bm25f, "how well the words match, title and name counting more"),
    Feature("ql", "range", "lexical", _query_likelihood, "how likely the document is to have the words"),
    Feature("cov_title", "none", "lexical", partial(_coverage_of, field=_TITLE), "share of the words in the title"),
    Feature("cov_body", "none", "lexical", partial(_coverage_of, field=_BODY), "share of the words in the text"),
    Feature("cov_name", "none", "lexical", partial(_coverage_of, field=_NAME), "share of the words in the name"),
    Feature("cov_path", "none", "lexical", partial(_coverage_of, field=_PATH), "share of the words in the path"),
    Feature(
        "idfcov_title", "none", "lexical", partial(_idf_coverage_of, field=_TITLE), "words in the title, by rarity"
    ),
    Feature("idfcov_body", "none", "lexical", partial(_idf_coverage_of, field=_BODY), "words in the text, by rarity"),
    Feature("idfcov_name", "none", "lexical", partial(_idf_coverage_of, field=_NAME), "words in the name, by rarity"),
    Feature("idfcov_path", "none", "lexical", partial(_idf_coverage_of, field=_PATH), "words in the path, by rarity"),
    Feature("idfcov_any", "none", "lexical", _idf_coverage_of_any, "words anywhere, rare ones counting more"),
    Feature("ordered", "none", "lexical", _ordered, "words next to each other, in order"),
    Feature("unordered", "none", "lexical", _unordered, "words near each other"),
    Feature("minspan", "none", "lexical", _minspan, "all words close together"),
    Feature("phrase_title", "none", "lexical", partial(_phrase_in, field=_TITLE), "the words as a phrase in the title"),
    Feature("phrase_body", "none", "lexical", partial(_phrase_in, field=_BODY), "the words as a phrase in the text"),
    Feature("title_cov_by_q", "none", "lexical", _title_covered, "share of the title that you typed"),
    Feature("title_exact", "none", "lexical", _title_exact, "the title is what you typed"),
    Feature("name_exact", "none", "lexical", _name_exact, "the name is what you typed"),
    Feature("prefix_title", "none", "lexical", partial(_prefix_of, field=_TITLE), "beginnings of words in the title"),
    Feature("prefix_name", "none", "lexical", partial(_prefix_of, field=_NAME), "beginnings of words in the name"),
    Feature("prefix_path", "none", "lexical", partial(_prefix_of, field=_PATH), "beginnings of words in the path"),
    Feature("length", "log", "static", _length, "length of the document"),
    Feature("age", "log", "static", _age, "age of the document"),
    Feature("depth", "log", "static", _depth, "number of folders above it"),
    Feature("opened", "log1p", "history", _opened, "how often you open it"),
    Feature("folder", "log1p", "history", _folder_opened, "how often you open files of its folder"),
)
NAMES = tuple(feature.name for feature in FEATURES)


def features(query: QueryText, tokens: Tokens, collection: Collection, facts: Facts) -> Array:
    """[documents, FEATURES] raw features of the candidates whose words and facts are given."""
    return of_occurrences(query, occurrences.find(query, tokens, collection.stop_count), collection, facts)


def of_occurrences(query: QueryText, found: Occurrences, collection: Collection, facts: Facts) -> Array:
    """[documents, FEATURES] raw features where the occurrences were found already, such as block by block."""
    matches = Matches(query, found, collection, facts)
    columns = [feature.compute(matches) for feature in FEATURES]
    raw = np.stack(columns, axis=1, dtype=np.float64, casting="unsafe")
    return np.nan_to_num(raw, copy=False, nan=0.0, posinf=0.0, neginf=0.0)


def named(raw: Array) -> Array:
    """[documents] bool: the title has all words of the query, or the name has."""
    return raw[:, (NAMES.index("cov_title"), NAMES.index("cov_name"))].max(axis=1, initial=0.0) >= 1.0


def is_body_word(typed: str, features: Array, names: Sequence[str] = NAMES) -> bool:
    """Whether a query is a single word that no candidate has in title or name, nor as the beginning of a word there.

    `features` [documents, names] may be raw or as a ranker sees them; without the two features that say so: False.
    """
    prefixes = [names.index(name) for name in ("prefix_title", "prefix_name") if name in names]
    return len(typed.split()) == 1 and len(prefixes) == 2 and bool((features[:, prefixes] < 1.0).all())


def bounded_history(opened: Array, folder: Array, is_named: Array) -> tuple[Array, Array]:
    """[documents] the two features of what was opened, bounded so that a person's habits do not outvote the query.

    Where documents have all words of the query in title or name, others get no more than the least of these.
    """
    if is_named.any():
        opened, folder = (np.where(is_named, one, np.minimum(one, one[is_named].min())) for one in (opened, folder))
    return opened, folder


def with_bounded_history(raw: Array) -> Array:
    """[documents, FEATURES] raw features of the candidates of a query, after `bounded_history`."""
    bounded, (opened, folder) = raw.copy(), (NAMES.index("opened"), NAMES.index("folder"))
    bounded[:, opened], bounded[:, folder] = bounded_history(raw[:, opened], raw[:, folder], named(raw))
    return bounded


def scale(raw: Array, selected: Sequence[Feature] = FEATURES) -> Array:
    """[documents, features] as a ranker sees them; the columns of `raw` are those of `selected`."""
    if raw.shape[1] != len(selected):
        raise SpecError(f"{raw.shape[1]} columns for {len(selected)} features; take the columns of the features first")
    if not len(raw):
        return raw.copy()
    scaled = raw.astype(np.float64, copy=True)
    for scaling in {feature.scaling for feature in selected}:
        here = [place for place, feature in enumerate(selected) if feature.scaling == scaling]
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
