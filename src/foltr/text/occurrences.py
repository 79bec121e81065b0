"""Where the terms of a query occur in the candidates, and how near each other.

Only occurrences are looked at after one pass over the words. Positions count words without stop words (with them where
the query consists of stop words), so that "state art" is a phrase in "state of the art"; positions in different fields
or documents are at least GAP apart, so that no window spans two.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from foltr.text.fields import FIELDS, QueryText, Tokens
from foltr.types import Array

WINDOW = 8  # words, both ends included: Metzler and Croft's unordered window
GAP = 2 * WINDOW
_LARGEST_TABLE = 1 << 22  # word numbers


class Occurrences(NamedTuple):
    counts: Array  # [documents, fields, terms]
    begun: Array  # [documents, fields, terms] bool: an occurrence, or a word that begins with the term
    matched: Array  # [documents, fields] words that are an occurrence of any term
    lengths: Array  # [documents, fields] words without stop words
    positions: Array  # [hits] rising
    groups: Array  # [hits] document * fields + field
    member: Array  # [terms, hits] bool: the hit is an occurrence of the term


def find(query: QueryText, tokens: Tokens, stop_count: int) -> Occurrences:
    """All occurrences in the documents of `tokens`."""
    shape = (len(tokens.offsets) // len(FIELDS), len(FIELDS))
    counted = np.zeros(len(tokens.words) + 1, dtype=np.int32)  # [i] words before place i
    np.cumsum((tokens.words >= stop_count).view(np.int8), dtype=np.int32, out=counted[1:])
    places = _hits(query, tokens.words)
    groups = np.searchsorted(tokens.offsets, places, side="right") - 1
    with_stop = any(len(term.words) and term.words[0] < stop_count for term in query.terms)
    positions = (places if with_stop else counted[places]) + groups * GAP
    words = tokens.words[places]
    member = np.empty((len(query.terms), len(places)), dtype=bool)
    begun = np.empty_like(member)
    for number, term in enumerate(query.terms):
        member[number], begun[number] = _is_one_of(term.words, words), _is_one_of(term.beginning, words)
    return Occurrences(
        _by_group(member, groups, shape),
        _by_group(member | begun, groups, shape) > 0,
        np.bincount(groups[member.any(axis=0)], minlength=shape[0] * shape[1]).reshape(shape),
        np.diff(counted[tokens.offsets]).reshape(shape),
        positions,
        groups,
        member,
    )


def joined(parts: Sequence[Occurrences], terms: int) -> Occurrences:
    """The occurrences of several stretches of documents as if they had been looked for at once."""
    none = np.zeros((0, len(FIELDS), terms))
    flat = np.zeros((0, len(FIELDS)), np.int64)
    sizes = np.array([len(part.lengths) * len(FIELDS) for part in parts], np.int64)
    spans = np.array([part.positions[-1] + GAP if len(part.positions) else 0 for part in parts], np.int64)
    before, apart = np.cumsum(sizes) - sizes, np.cumsum(spans) - spans
    empty = np.empty(0, np.int64)
    return Occurrences(
        np.concatenate([none, *(part.counts for part in parts)]),
        np.concatenate([none > 0, *(part.begun for part in parts)]),
        np.concatenate([flat, *(part.matched for part in parts)]),
        np.concatenate([flat, *(part.lengths for part in parts)]),
        np.concatenate([empty, *(part.positions + shift for part, shift in zip(parts, apart, strict=True))]),
        np.concatenate([empty, *(part.groups + shift for part, shift in zip(parts, before, strict=True))]),
        np.concatenate([np.zeros((terms, 0), bool), *(part.member for part in parts)], axis=1),
    )


def _hits(query: QueryText, words: Array) -> Array:
    """Places of all words that any term names."""
    named = [array for term in query.terms for array in (term.words, term.beginning) if len(array)]
    if not named:
        return np.empty(0, dtype=np.int64)
    asked = np.concatenate(named) if len(named) > 1 else named[0]
    return np.flatnonzero(_is_one_of(asked, words))


def _is_one_of(asked: Array, words: Array) -> Array:
    """[words] bool: whether each word is one of those that are asked for."""
    if len(asked) < 2:
        return words == asked[0] if len(asked) else np.zeros(len(words), dtype=bool)
    largest = int(asked.max())
    if largest >= _LARGEST_TABLE:
        return _contains(np.unique(asked), words)
    table = np.zeros(largest + 2, dtype=bool)  # several times faster than a search for each word
    table[asked] = True
    return table.take(words, mode="clip")  # beyond the table is its last entry, which nobody asked for


def _contains(rising: Array, values: Array) -> Array:
    """[values] bool: whether the rising array has each value."""
    if not len(rising):
        return np.zeros(len(values), dtype=bool)
    places = np.searchsorted(rising, values)
    return rising[np.minimum(places, len(rising) - 1)] == values


def _by_group(hit: Array, groups: Array, shape: tuple[int, int]) -> Array:
    """[documents, fields, terms] number of hits, from [terms, hits]."""
    size = shape[0] * shape[1]
    counts = np.zeros((len(hit), size))
    for term, here in enumerate(hit):
        counts[term] = np.bincount(groups[here], minlength=size)
    return np.ascontiguousarray(counts.T).reshape(*shape, len(hit))  # one layout: sums round alike for any blocks


def pairs(found: Occurrences, order: Array) -> tuple[Array, Array]:
    """[documents] ordered and unordered proximity, from 0 to 1: the mean over neighbouring words of the query of
    c / (1 + c), where c occurrences of the first are directly followed by the second, or have it within WINDOW."""
    documents = len(found.lengths)
    ordered, unordered = np.zeros(documents), np.zeros(documents)
    for first, second in pairwise(order.tolist()):
        here, there = found.positions[found.member[first]], found.positions[found.member[second]]
        owner = found.groups[found.member[first]] // len(FIELDS)
        near = np.searchsorted(there, here + WINDOW) - np.searchsorted(there, here - WINDOW, side="right")
        near -= _contains(there, here)
        for total, hit in ((ordered, _contains(there, here + 1)), (unordered, near > 0)):
            c = np.bincount(owner[hit], minlength=documents)
            total += c / (1 + c)
    number = max(len(order) - 1, 1)
    return ordered / number, unordered / number


def phrase(found: Occurrences, order: Array) -> Array:
    """[documents, fields] 1 where the words of the query stand in the field one after the other; 0 for one word."""
    documents, fields = found.lengths.shape
    if len(order) < 2:
        return np.zeros((documents, fields))
    starts, groups = found.positions[found.member[order[0]]], found.groups[found.member[order[0]]]
    for place, term in enumerate(order[1:], start=1):
        follows = _contains(found.positions[found.member[term]], starts + place)
        starts, groups = starts[follows], groups[follows]
    return (np.bincount(groups, minlength=documents * fields) > 0).reshape(documents, fields).astype(float)


def tightness(found: Occurrences) -> Array:
    """[documents] the best field's k / terms * k / span, where k >= 2 different terms of the query occur in the field
    and span is the length of its shortest window with all of them; 0 without such a field."""
    documents, fields = found.lengths.shape
    number = len(found.member)
    inside = found.member.any(axis=0)
    positions, groups, member = found.positions[inside], found.groups[inside], found.member[:, inside]
    best = np.zeros(documents * fields)
    if number < 2 or not len(positions):
        return best.reshape(documents, fields).max(axis=1)
    has = (found.counts > 0).reshape(-1, number)  # [groups, terms]
    last = np.maximum.accumulate(np.where(member, positions, -1), axis=1)  # [terms, hits]
    begin = np.where(has[groups].T, last, positions).min(axis=0)
    starts = np.flatnonzero(np.diff(groups, prepend=-1))  # first hit of each group
    first = np.repeat(positions[starts], np.diff(starts, append=len(groups)))
    span = np.where(begin >= first, positions - begin + 1, np.iinfo(np.int64).max)  # a window must not leave its group
    shortest = np.minimum.reduceat(span, starts)
    k = has[groups[starts]].sum(axis=1)
    best[groups[starts]] = np.where(k >= 2, k / number * k / np.maximum(shortest, k), 0.0)
    return best.reshape(documents, fields).max(axis=1)
