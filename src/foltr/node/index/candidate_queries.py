"""Queries of tantivy that find candidates for the terms of a query.

A term may have several stems: a beginning of a word has those of its completions. They count as one term: each gets the
weight of all of them, since a rare completion is no better than a frequent one. The most frequent ones are scored by
their occurrences, the others by their presence. Thousands of rare ones cost more than everything else and hardly change
a list that is full without them, so the caller decides whether to search for them. After one or two letters they are
never searched for, because more letters will follow.

Terms are remembered: while somebody types, all words but the last stay the same.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from foltr.node.index.store import Store
from foltr.text.fields import QueryText, Term
from foltr.types import Array

_ALPHABET = np.frombuffer(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_", np.uint8)
_DIGITS = 5  # of 6 bits: numbers below 2^30
_SHIFTS = 6 * np.arange(_DIGITS - 1, -1, -1)
_SCORED = 64  # stems of a term that are scored one by one, the most frequent ones; the others count alike
_FREQUENT = 512  # stems that are asked for where rare ones are not
SHORTEST_IN_BODIES = 3  # letters of a beginning that is looked for everywhere
_REMEMBERED = 8  # terms; one with thousands of stems has a megabyte


@lru_cache(maxsize=1)
def schema() -> Any:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("id", indexed=True, fast=True)
    for field, option in (("stem", "freq"), ("head", "freq"), ("stop", "basic"), ("whole", "basic")):
        builder.add_text_field(field, tokenizer_name="whitespace", index_option=option)
    return builder.build()


def codes(numbers: Array) -> str:
    """Numbers as text of fixed width, separated by spaces."""
    text = np.full((len(numbers), _DIGITS + 1), ord(" "), np.uint8)
    text[:, :_DIGITS] = _ALPHABET[(np.asarray(numbers, np.int64)[:, None] >> _SHIFTS) & 63]
    return text.tobytes().decode("ascii")


def name_code(words: Sequence[str]) -> str:
    """The words of a whole name as one term: a digest, since the index holds no word."""
    return hashlib.blake2b(" ".join(words).encode("utf-8", "replace"), digest_size=8).hexdigest()


def with_name(names: Sequence[Sequence[str]]) -> Any:
    """Documents whose whole name is one of these."""
    import tantivy

    return tantivy.Query.term_set_query(schema(), "whole", sorted({name_code(words) for words in names}))


class _Stems(NamedTuple):
    """The stems of a term in a field, the most frequent first."""

    codes: list[str]
    boosts: list[float]  # of the first ones, which are scored one by one


class _Known(NamedTuple):
    """A term as the index has it."""

    term: Term
    stop: list[str]  # codes of its stop words
    number: int  # of its other stems
    fields: dict[str, _Stems]  # "head": those that titles and names have
    weight: float  # of all stems together
    parts: dict[tuple[str, bool], list[Any]]  # by field, and whether rare stems are asked for


class Queries:
    """Queries for terms, which are remembered; `names`: of documents of which only the name is known."""

    def __init__(self, *, names: bool = False) -> None:
        self._names = names
        self._known: dict[int, _Known] = {}  # by identity of the term, which the store remembers too

    def query(
        self, store: Store, query: QueryText, field: str, must: Sequence[Term], must_not: Sequence[Term], *, rare: bool
    ) -> Any:
        """The query that tantivy runs; None where no document can match."""
        import tantivy

        should = tantivy.Occur.Should
        parts = [(should, one) for term in query.terms for one in self._parts(store, term, field, rare=rare)]
        if not parts and not must:
            return None
        scored = tantivy.Query.boolean_query(parts) if parts else tantivy.Query.all_query()
        required = [(tantivy.Occur.Must, scored)]
        for occur, terms in ((tantivy.Occur.Must, must), (tantivy.Occur.MustNot, must_not)):
            required += [(occur, _any_of(store, term)) for term in terms]
        return tantivy.Query.boolean_query(required) if len(required) > 1 else scored

    def every_term(self, store: Store, query: QueryText, must: Sequence[Term], must_not: Sequence[Term]) -> Any:
        """Documents with every term, without a score; None for a query without terms."""
        import tantivy

        if not query.terms:
            return None
        required = [(tantivy.Occur.Must, self._any_of(store, term)) for term in query.terms]
        for occur, terms in ((tantivy.Occur.Must, must), (tantivy.Occur.MustNot, must_not)):
            required += [(occur, _any_of(store, term)) for term in terms]
        return tantivy.Query.const_score_query(tantivy.Query.boolean_query(required), 0.0)

    def _any_of(self, store: Store, term: Term) -> Any:
        known = self._of(store, term)
        if ("any", True) not in known.parts:
            few = not known.stop and 0 < known.number <= _SCORED
            known.parts["any", True] = [_any_stem(known.fields["stem"].codes) if few else _any_of(store, term)]
        return known.parts["any", True][0]

    def has_several_stems(self, store: Store, query: QueryText) -> bool:
        """Whether some term has several stems; titles and names are then searched separately."""
        return any(len(known.stop) + known.number > 1 for known in self._all(store, query))

    def has_rare_stems(self, store: Store, query: QueryText) -> bool:
        return any(_has_rare(known) for known in self._all(store, query))

    def _all(self, store: Store, query: QueryText) -> Iterator[_Known]:
        return (self._of(store, term) for term in query.terms)

    def _of(self, store: Store, term: Term) -> _Known:
        found = self._known.get(id(term))
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.pop(next(iter(self._known)))  # the oldest
            found = self._known[id(term)] = _known(store, term, names=self._names)
        return found

    def _parts(self, store: Store, term: Term, field: str, *, rare: bool) -> list[Any]:
        """The queries of one term, to be added up."""
        known = self._of(store, term)
        rare = rare and _has_rare(known)
        if (field, rare) not in known.parts:
            known.parts[field, rare] = list(_queries(known, field, None if rare else _FREQUENT))
        return known.parts[field, rare]


def _any_stem(stems: list[str]) -> Any:
    """Documents with one of a few stems; faster than a set of them."""
    import tantivy

    each = [tantivy.Query.term_query(schema(), "stem", stem, "basic") for stem in stems]
    return each[0] if len(each) == 1 else tantivy.Query.boolean_query([(tantivy.Occur.Should, stem) for stem in each])


def _any_of(store: Store, term: Term) -> Any:
    """Documents with an occurrence of a term, without a score."""
    import tantivy

    make, fields = tantivy.Query, zip(("stop", "stem"), _split(store, term), strict=True)
    sets = [make.term_set_query(schema(), field, codes(some).split()) for field, some in fields if len(some)]
    if not sets:
        return make.empty_query()
    return make.const_score_query(make.boolean_query([(tantivy.Occur.Should, one) for one in sets]), 0.0)


def _has_rare(known: _Known) -> bool:
    return known.number > _FREQUENT and len(known.term.text) >= SHORTEST_IN_BODIES


def _queries(known: _Known, field: str, most: int | None) -> Iterator[Any]:
    import tantivy

    make, stems = tantivy.Query, known.fields[field]
    if known.stop:
        yield make.term_set_query(schema(), "stop", known.stop)
    for stem, boost in zip(stems.codes, stems.boosts, strict=False):
        yield make.boost_query(make.term_query(schema(), field, stem, "freq"), boost)
    others = stems.codes[_SCORED:most]
    if others:
        yield make.const_score_query(make.term_set_query(schema(), field, others), known.weight)


def _known(store: Store, term: Term, *, names: bool) -> _Known:
    stop, stems = _split(store, term)
    counts = store.statistics
    if names:
        stems = stems[counts.names[stems] > 0]
    frequency = (counts.names if names else counts.document_frequency)[stems]
    indexed = store.count_names() if names else store.collection().documents
    documents = max(indexed, int(frequency.max(initial=0)), 1)
    weight = _idf(min(int(frequency.sum()), documents), documents)
    order = np.argsort(-frequency, kind="stable")
    stems, frequency = stems[order], frequency[order]
    most = None if len(term.text) >= SHORTEST_IN_BODIES else _FREQUENT
    fields = {}
    in_heads = slice(None) if names else counts.in_heads(stems)
    for field, chosen in (("stem", slice(None)), ("head", in_heads)):
        boosts = [weight / _idf(int(own), documents) for own in frequency[chosen][:_SCORED]]
        fields[field] = _Stems(codes(stems[chosen][:most]).split(), boosts)
    return _Known(term, codes(stop).split(), len(stems), fields, weight, {})


def _split(store: Store, term: Term) -> tuple[Array, Array]:
    """The stop words and the other stems of a term, rising."""
    stems = _stems_of(store, term)
    return stems[stems < store.stop_count], stems[stems >= store.stop_count]


def _stems_of(store: Store, term: Term) -> Array:
    """The stems of a term's words, rising."""
    stems = store.statistics.stem_of[term.words]
    if not len(stems):
        return stems
    there = np.zeros(int(stems.max()) + 1, bool)  # ten times faster than sorting the words of one letter
    there[stems] = True
    return np.flatnonzero(there)


def _idf(frequency: int, documents: int) -> float:
    return math.log(1.0 + (documents - frequency + 0.5) / (frequency + 0.5))
