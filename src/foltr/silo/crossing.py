"""Pairs across parties: documents of others for one's own queries, with features that their owners' sketches tell.

Source: S3 sections III-A and VI-A. Every term of a query is asked of every other party (reverse top-K); counts times
IDF are added up over the terms. Features of own pairs are exact, those of cross-party pairs are read from sketches with
the owner's noise.

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

from foltr.data.dataset import Dataset
from foltr.errors import SpecError
from foltr.silo import noise
from foltr.silo.answering import Owner, charged
from foltr.silo.asking import Asker, ask_top, asked
from foltr.silo.counts import Statistics, statistics
from foltr.silo.features import Labelled, dataset, exact, label
from foltr.silo.lexical import term_facts
from foltr.silo.pairs import Answer, Pairs, guessed, judged
from foltr.silo.parties import Federation, divided
from foltr.silo.protocol import relay
from foltr.silo.train import Work
from foltr.types import Array


class Prepared(NamedTuple):
    work: Work
    tests: list[Dataset]  # [parties]
    train: Array
    test: Array


def prepare(federation: Federation) -> Prepared:
    """Pairs to learn from with their features, and what is tested."""
    corpus, setup, held = federation.corpus, federation.setup, federation.held
    train, test = divided(corpus, setup)
    everything = np.arange(len(corpus.ids))
    judge = partial(judged, corpus, seed=setup.seed)
    title, body = exact(federation.counted.title), exact(federation.counted.body)

    def exactly(pairs: Pairs) -> Labelled:
        return label(pairs, title, body, federation.terms)

    own, cross, tests = [], [], []
    for party, mine in enumerate(federation.owned):
        asks = train[held.queries[train] == party]
        own.append(exactly(judge(asks, mine, others=setup.others)))
        cross.append(_crossed(federation, party, asks))
        tests.append(dataset(exactly(judge(test[held.queries[test] == party], everything, others=None))))
    _refuse_empty(own, tests)
    return Prepared(Work(own, cross, exactly(judge(train, everything, others=setup.others))), tests, train, test)


def _crossed(federation: Federation, party: int, queries: Array) -> Labelled:
    """Own queries with documents of others: found by questions, features read from sketches."""
    setup, told = federation.setup, statistics(federation.counted.body)
    title, body = (
        field._replace(look_up=_look_up(federation, party, owners))
        for field, owners in (
            (exact(federation.counted.title), federation.titles),
            (exact(federation.counted.body), federation.bodies),
        )
    )
    theirs = np.flatnonzero(federation.held.documents != party)
    search = partial(_ask_others, federation, party, told)
    pairs = guessed(queries, search, most=setup.most, others=setup.others, among=theirs, seed=setup.seed)
    return label(pairs, title, body, federation.terms)


def _ask_others(federation: Federation, party: int, told: Statistics, query: int) -> list[Answer]:
    """What every other party finds for a query, scored by count times IDF over its terms."""
    terms = federation.terms[query]
    idf = term_facts(told, terms).idf
    answers = []
    for other, owned in enumerate(federation.owned):
        if other == party:
            continue
        scores = np.zeros(len(owned))
        for term, weight in zip(terms.tolist(), idf, strict=True):
            who, word = federation.bodies[other], federation.words[term]
            exchange = relay(ask_top(federation.askers[party], word, top=who.most, beta=federation.setup.beta), who)
            federation.bodies[other] = exchange.owner
            listed = exchange.result.found
            scores[listed.documents] += weight * np.maximum(listed.counts, 0)
        best = np.argsort(-scores, kind="stable")[: federation.setup.most]
        best = best[scores[best] > 0]
        answers.append(Answer(owned[best], scores[best]))
    return answers


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
    for party, (pairs, test) in enumerate(zip(own, tests, strict=True)):
        if not len(pairs.pairs.queries) or len(test.queries) < 2:
            raise SpecError(
                f"party {party + 1} has no query with a relevant document to learn from, or fewer than two to test "
                "with; use more queries or fewer parties"
            )
