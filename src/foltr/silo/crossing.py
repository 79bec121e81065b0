"""Pairs across parties: documents of others for one's own queries, with features that their owners' sketches tell.

Source: S3 sections III-A and VI-A. Every term of a query is asked of every other party (reverse top-K); the counts that
come back are scored by BM25 (or as counts times IDF). Features of own pairs are exact, those of cross-party pairs are
read from sketches with the owner's noise.

The sums behind IDF and the collection's language model, and the lengths of documents, are told as they are: the events
in the ledgers do not cover them.

Tests are each party's own queries over the documents of all, with exact features: what a joint search would show.

Differs from the paper: how the terms of a query come together is not said there; documents that were not found are
added to the guessed pairs with grade 0 (`pairs`).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.silo import noise
from foltr.silo.answering import Owner, charged
from foltr.silo.asking import Asker, ask_top, asked
from foltr.silo.pairs import Answer, Pairs, guessed, judged
from foltr.silo.parties import Federation, shares_of
from foltr.silo.protocol import relay
from foltr.silo.train import Work
from foltr.text.counts import Counts, Statistics, statistics, take
from foltr.text.features import Field, Labelled, dataset, exact, label
from foltr.text.search import best
from foltr.types import Array, Dataset

_NOBODY = np.empty(0, np.int64)  # the documents of all others, where there is one party


class Prepared(NamedTuple):
    work: Work
    tests: list[Dataset]  # [shares] of the parties first, then of the shares that nobody holds
    train: Array
    test: Array


def prepare(federation: Federation) -> Prepared:
    """Pairs to learn from with their features, and what is tested."""
    corpus, setup, held = federation.corpus, federation.setup, federation.held
    train, test = federation.train, federation.test
    everything = np.arange(len(corpus.ids))
    judge = partial(judged, corpus, seed=federation.seed)
    title, body = (exact(counts, told) for counts, told in zip(_both(federation), told_by(federation), strict=True))

    def exactly(pairs: Pairs) -> Labelled:
        return label(pairs, title, body, federation.terms)

    labelled: list[Array] = []
    own, cross, tests = [], [], []
    for party, mine in enumerate(federation.owned):
        asks = train[held.queries[train] == party]
        labelled.append(asks[_spread(len(asks), setup.labelled)])
        own.append(exactly(judge(labelled[party], mine, others=setup.others)))
        cross.append(_crossed(federation, party, asks))
    for share in range(shares_of(setup)):
        tests.append(dataset(exactly(judge(test[held.queries[test] == share], everything, others=None))))
    _refuse_empty(own, tests)
    known, held_by_parties = np.concatenate(labelled), np.flatnonzero(held.documents < setup.parties)
    pooled = exactly(judge(known, held_by_parties, others=setup.others))
    return Prepared(Work(own, cross, pooled), tests, np.sort(known), test)


def _spread(count: int, share: float) -> Array:
    """As many places of `count` as the share makes, at even distances; one at least."""
    wanted = max(1, round(share * count)) if count else 0
    return np.arange(wanted) * count // max(wanted, 1)


def told_by(federation: Federation) -> tuple[Statistics, Statistics]:
    """What the parties together say about titles and about bodies."""
    theirs = np.concatenate(federation.owned)
    title, body = (statistics(take(counts, theirs)) for counts in _both(federation))
    return title, body


def _both(federation: Federation) -> tuple[Counts, Counts]:
    return federation.counted.title, federation.counted.body


def _crossed(federation: Federation, party: int, queries: Array) -> Labelled:
    """Own queries with documents of others: found by questions, features read from sketches."""
    setup, told = federation.setup, told_by(federation)
    owners = (federation.titles, federation.bodies)
    title, body = (
        exact(counts, said)._replace(look_up=_look_up(federation, party, asked))
        for counts, said, asked in zip(_both(federation), told, owners, strict=True)
    )
    theirs = np.sort(
        np.concatenate([mine for other, mine in enumerate(federation.owned) if other != party] or [_NOBODY])
    )
    search = partial(_ask_others, federation, party, told[1])
    pairs = guessed(queries, search, most=setup.most, others=setup.others, among=theirs, seed=federation.seed)
    return label(pairs, title, body, federation.terms)


def _ask_others(federation: Federation, party: int, told: Statistics, query: int) -> list[Answer]:
    """What every other party finds for a query, each of its terms asked for and scored together."""
    terms, setup = federation.terms[query], federation.setup
    sizes = federation.counted.body.lengths, np.diff(federation.counted.body.offsets)
    answers = []
    for other, owned in enumerate(federation.owned):
        if other != party:
            listed = _listed(federation, party, other, terms)
            field = Field(lambda _, __, counts=listed: counts, *sizes, told)  # type: ignore[misc]
            answers.append(best(field, owned, terms, most=setup.most, score=setup.score))
    return answers


def _listed(federation: Federation, party: int, other: int, terms: Array) -> Array:
    """[documents of the other, terms] counts as its lists tell them, 0 where they name no document."""
    counts = np.zeros((len(federation.owned[other]), len(terms)))
    for column, term in enumerate(terms.tolist()):
        who, word = federation.bodies[other], federation.words[term]
        exchange = relay(ask_top(federation.askers[party], word, top=who.most, beta=federation.setup.beta), who)
        federation.bodies[other] = exchange.owner
        listed = exchange.result.found
        counts[listed.documents, column] = np.maximum(listed.counts, 0)
    return counts


def _look_up(federation: Federation, party: int, owners: list[Owner]) -> Callable[[Array, Array], Array]:
    """Counts of any documents of other parties, as their owners tell them."""
    places = np.empty(len(federation.corpus.ids), np.int64)
    for owned in federation.owned:
        places[owned] = np.arange(len(owned))

    def look_up(documents: Array, terms: Array) -> Array:
        told = np.zeros((len(documents), len(terms)))
        for other in np.unique(federation.held.documents[documents]).tolist():
            theirs = np.flatnonzero(federation.held.documents[documents] == other)
            for column, term in enumerate(terms.tolist()):
                word = federation.words[term]
                owners[other], counts = tell(owners[other], federation.askers[party], word, places[documents[theirs]])
                told[theirs, column] = counts
        return told

    return look_up


def tell(who: Owner, asking: Asker, word: str, documents: Array) -> tuple[Owner, Array]:
    """[documents] what `ask_count` would bring of each, all at once."""
    if who.counts is None:
        raise SpecError("this party keeps no sketches of its documents; give it counts")
    question = asked(asking, word)
    cells = who.counts.cells[documents[:, None], np.arange(who.shape.rows), question.columns]
    told = noise.perturbed(cells, who.noise, who.epsilon, who.uniforms)
    signed = question.hashes.signs[0] * told
    return charged(who, documents), np.median(signed[:, question.rows], axis=1)


def _refuse_empty(own: Sequence[Labelled], tests: Sequence[Dataset]) -> None:
    for party, (pairs, test) in enumerate(zip(own, tests, strict=False)):
        if not len(pairs.pairs.queries) or len(test.queries) < 2:
            raise SpecError(
                f"party {party + 1} has no query with a relevant document to learn from, or fewer than two to test "
                "with; use more queries or fewer parties"
            )
