"""A federation of parties simulated from one corpus: sketches under a common key, cross-party pairs, training data.

Source: S3 sections III-A and VI-A: four parties; documents and queries are divided at random. Every term of a query is
asked of every other party (reverse top-K); the counts that come back are scored by BM25 (or as counts times IDF).
Features of own pairs are exact, those of cross-party pairs are read from sketches with the owner's noise.

The sums behind IDF and the collection's language model, and the lengths of documents, are shared without noise: the
events in the ledgers do not cover them.

Tests are each party's own queries over the documents of all, with exact features: what a joint search would show.

Differs from the paper: lists are of the variant `sampled`. The counts that `sound` reports are of the rows where a
document was found, so documents without any of a query's words get high scores: of those guessed to be highly relevant
on Python's docstrings (40 queries), 90 of 400 had none of them; with `sampled`, 0. How the terms of a query are
combined is not said in the paper; documents that were not found are added to the guessed pairs with grade 0 (`pairs`).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np

from foltr.errors import SpecError
from foltr.privacy import ledger as accounts
from foltr.rng import stream
from foltr.silo import noise, rtk
from foltr.silo.pairs import Parties, guessed, judged, ranked, split
from foltr.silo.protocol import Asker, Owner, ask_counts, ask_top, make_asker, make_owner, relay
from foltr.silo.sketches import Hashes, family, hash_terms, new_key, sketch_documents
from foltr.silo.training import Sgd, TrainingPairs
from foltr.text.analysis import ENGLISH, TextAnalysis
from foltr.text.corpus import Corpus, Pairs
from foltr.text.counts import Counts, Statistics, TextCounts, count_corpus, known_terms, statistics, take
from foltr.text.features import Field, Labelled, dataset, exact, label
from foltr.text.search import Hits, best
from foltr.types import Array, Dataset

MAX_BYTES = 1 << 33  # of all sketches of documents together
Count = Annotated[int, msgspec.Meta(ge=1)]
_NO_DOCUMENTS = np.empty(0, np.int64)  # of all others, where there is one party


class Setup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="train"):
    """The parties, what they ask and report, and how the ranker is trained."""

    parties: Count = 4
    shares: Count | None = None  # equal parts of the corpus; those beyond the parties' are only tested on
    queries: Count = 200  # to train on, at most, of all parties together
    labelled: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0  # share of a party's queries that it has grades for
    tests: Count = 200  # queries to test with, at most
    grades: Literal["judged", "ranked"] = "judged"  # human judgments; or as S3 made its own (`pairs.ranked`)
    rows: Count = 30  # z
    columns: Count = 200  # w
    real_rows: Count = 30  # z1
    noise: Literal["none", "paper", "per_query", "one_shot"] = "none"
    epsilon: Annotated[float, msgspec.Meta(gt=0)] = 0.5
    lists: Literal["paper", "sound", "sampled"] = "sampled"  # variant of the RTK-sketches
    beta: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.1
    top: Count = 150  # K of the sketches
    score: Literal["counts", "bm25"] = "bm25"  # combines the answers for a query's terms
    top_k: Count = 15  # guessed pairs of a query
    num_negatives: Count = 50  # further documents of a query, assumed to be irrelevant
    words: TextAnalysis = ENGLISH  # the text analysis of all parties
    tested: Literal["test", "dev"] = "test"  # which queries judge the rankers; choices are made on "dev"
    sgd: Sgd = Sgd()


class SiloFederation(NamedTuple):
    corpus: Corpus
    setup: Setup
    seed: int  # of the division
    train: Array  # queries to train on
    test: Array  # queries to test with
    held: Parties
    owned: list[Array]  # [parties] numbers of its documents
    counted: TextCounts
    words: list[str]  # the vocabulary in its order
    terms: list[Array]  # [queries] numbers of their terms
    hashes: Hashes  # of the vocabulary
    askers: list[Asker]
    titles: list[Owner]  # replaced after every answer: the ledger grows
    bodies: list[Owner]


class TrainTest(NamedTuple):
    pairs: TrainingPairs
    tests: list[Dataset]  # [shares] of the parties first, then of the shares that nobody holds
    train: Array  # queries with grades
    test: Array  # queries


def build_federation(
    corpus: Corpus, setup: Setup, *, seed: int = 1, key: bytes | None = None, uniforms: noise.Uniforms | None = None,
    secrets: Sequence[bytes | None] | None = None,
) -> SiloFederation:  # fmt: skip
    """Parties with sketches of their documents, under one key.

    Key, noise and the askers' secrets are the operating system's unless given.
    """
    size = 8 * len(corpus.ids) * setup.rows * setup.columns
    if size > MAX_BYTES:
        raise SpecError(f"sketches of {len(corpus.ids):,} documents take {size:,} bytes; use fewer rows or columns")
    train, test = divide_queries(corpus, setup, seed=seed)
    held = _deal_evenly(split(corpus, shares_of(setup), seed=seed), (train, test), shares_of(setup), seed=seed)
    owned = [np.flatnonzero(held.documents == party) for party in range(setup.parties)]
    counted = count_corpus(corpus, setup.words)
    words = list(counted.vocabulary)
    functions = family(key or new_key(), rows=setup.rows, columns=setup.columns)
    hashes = hash_terms(words, functions)
    owner_of = partial(_owner, setup=setup, hashes=hashes, uniforms=uniforms or noise.from_system)
    asker_of = partial(make_asker, functions, real_rows=setup.real_rows, decoys=words)
    askers = [asker_of(secret=secret) for secret in secrets or [None] * len(owned)]
    terms = [known_terms(text, counted.vocabulary, setup.words) for text in corpus.query_texts]
    if setup.grades == "ranked":
        corpus = ranked(corpus, counted, terms, np.concatenate([train, test]))
    titles = [owner_of(take(counted.title, mine), listed=False) for mine in owned]
    bodies = [owner_of(take(counted.body, mine), listed=True) for mine in owned]
    return SiloFederation(
        corpus, setup, seed, train, test, held, owned, counted, words, terms, hashes, askers, titles, bodies
    )


def _owner(counts: Counts, *, listed: bool, setup: Setup, hashes: Hashes, uniforms: noise.Uniforms) -> Owner:
    lists = None
    if listed:
        lists = rtk.empty(hashes.shape, variant=setup.lists, top=min(setup.top, len(counts.lengths)))
        rtk.add_documents(lists, counts, hashes)
    sketches = sketch_documents("count", counts, hashes)
    return make_owner(counts=sketches, lists=lists, noise_kind=setup.noise, epsilon=setup.epsilon, uniforms=uniforms)


def _deal_evenly(held: Parties, parts: tuple[Array, ...], shares: int, *, seed: int) -> Parties:
    """The same documents; the queries of each part are divided separately, so that every party has some of each."""
    owners = held.queries.copy()
    for number, part in enumerate(parts):
        order = stream(seed, round=5 + number, purpose="partition").permutation(len(part))
        owners[part[order]] = np.arange(len(part)) % shares
    return held._replace(queries=owners)


def shares_of(setup: Setup) -> int:
    shares = setup.shares or setup.parties
    if shares < setup.parties:
        raise SpecError(f"shares = {shares} for {setup.parties} parties; use at least {setup.parties}, or leave it out")
    return shares


def divide_queries(corpus: Corpus, setup: Setup, *, seed: int) -> tuple[Array, Array]:
    """Queries to train on and to test with: the published parts, or thirds (train, dev, test) where there are none."""
    if {"train", setup.tested} <= set(corpus.parts):
        train, test = corpus.parts["train"], corpus.parts[setup.tested]
    else:
        judged_queries = np.unique(corpus.judgments[:, 0]).astype(np.int64)
        shuffled = judged_queries[stream(seed, round=2, purpose="partition").permutation(len(judged_queries))]
        train, dev, test = np.array_split(shuffled, 3)
        test = test if setup.tested == "test" else dev
    order = partial(stream, seed, purpose="choice")
    train = train[order(round=3).permutation(len(train))][: setup.queries]
    test = test[order(round=4).permutation(len(test))][: setup.tests]
    return np.sort(train), np.sort(test)


def spent(federation: SiloFederation) -> float:
    """The largest epsilon of any word, against the askers."""
    return max(accounts.spent(one.ledger).epsilon for one in (*federation.titles, *federation.bodies))


def prepare(federation: SiloFederation) -> TrainTest:
    """Training pairs with their features, and the test data."""
    corpus, setup, held = federation.corpus, federation.setup, federation.held
    train, test = federation.train, federation.test
    everything = np.arange(len(corpus.ids))
    judge = partial(judged, corpus, seed=federation.seed)
    reported = shared_statistics(federation)
    title, body = (exact(counts, sums) for counts, sums in zip(_fields(federation), reported, strict=True))

    def with_features(pairs: Pairs) -> Labelled:
        return label(pairs, title, body, federation.terms)

    labelled: list[Array] = []
    own, cross, tests = [], [], []
    for party, mine in enumerate(federation.owned):
        queries = train[held.queries[train] == party]
        labelled.append(queries[_evenly_spaced(len(queries), setup.labelled)])
        own.append(with_features(judge(labelled[party], mine, num_negatives=setup.num_negatives)))
        cross.append(_cross_pairs(federation, party, queries))
    for share in range(shares_of(setup)):
        queries = test[held.queries[test] == share]
        tests.append(dataset(with_features(judge(queries, everything, num_negatives=None))))
    _refuse_empty(own, tests)
    known, held_by_parties = np.concatenate(labelled), np.flatnonzero(held.documents < setup.parties)
    pooled = with_features(judge(known, held_by_parties, num_negatives=setup.num_negatives))
    return TrainTest(TrainingPairs(own, cross, pooled), tests, np.sort(known), test)


def _evenly_spaced(count: int, share: float) -> Array:
    """That share of `count` places, at even distances; at least one."""
    wanted = max(1, round(share * count)) if count else 0
    return np.arange(wanted) * count // max(wanted, 1)


def shared_statistics(federation: SiloFederation) -> tuple[Statistics, Statistics]:
    """The sums over all parties, of titles and of bodies."""
    theirs = np.concatenate(federation.owned)
    title, body = (statistics(take(counts, theirs)) for counts in _fields(federation))
    return title, body


def _fields(federation: SiloFederation) -> tuple[Counts, Counts]:
    return federation.counted.title, federation.counted.body


def _cross_pairs(federation: SiloFederation, party: int, queries: Array) -> Labelled:
    """Own queries with documents of others: found by reverse top-K, features read from sketches."""
    setup, reported = federation.setup, shared_statistics(federation)
    owners = (federation.titles, federation.bodies)
    title, body = (
        exact(counts, sums)._replace(look_up=_sketch_look_up(federation, party, theirs))
        for counts, sums, theirs in zip(_fields(federation), reported, owners, strict=True)
    )
    others = np.sort(
        np.concatenate([mine for other, mine in enumerate(federation.owned) if other != party] or [_NO_DOCUMENTS])
    )
    search = partial(_search_others, federation, party, reported[1])
    sizes = {"top_k": setup.top_k, "num_negatives": setup.num_negatives}
    pairs = guessed(queries, search, **sizes, among=others, seed=federation.seed)
    return label(pairs, title, body, federation.terms)


def _search_others(federation: SiloFederation, party: int, reported: Statistics, query: int) -> list[Hits]:
    """The best documents of every other party for a query; each term is asked for, and scored together."""
    terms, setup = federation.terms[query], federation.setup
    sizes = federation.counted.body.lengths, np.diff(federation.counted.body.offsets)
    answers = []
    for other, owned in enumerate(federation.owned):
        if other != party:
            listed = _listed_counts(federation, party, other, terms)
            field = Field(lambda _, __, counts=listed: counts, *sizes, reported)  # type: ignore[misc]
            answers.append(best(field, owned, terms, top_k=setup.top_k, score=setup.score))
    return answers


def _listed_counts(federation: SiloFederation, party: int, other: int, terms: Array) -> Array:
    """[documents of the other, terms] counts that its lists report, 0 for documents that are not listed."""
    counts = np.zeros((len(federation.owned[other]), len(terms)))
    for column, term in enumerate(terms.tolist()):
        owner, word = federation.bodies[other], federation.words[term]
        exchange = relay(ask_top(federation.askers[party], word, top=owner.top_k, beta=federation.setup.beta), owner)
        federation.bodies[other] = exchange.owner
        listed = exchange.result.found
        counts[listed.documents, column] = np.maximum(listed.counts, 0)
    return counts


def _sketch_look_up(federation: SiloFederation, party: int, owners: list[Owner]) -> Callable[[Array, Array], Array]:
    """Counts of documents of other parties, as their owners' sketches report them."""
    places = np.empty(len(federation.corpus.ids), np.int64)
    for owned in federation.owned:
        places[owned] = np.arange(len(owned))

    def look_up(documents: Array, terms: Array) -> Array:
        reported = np.zeros((len(documents), len(terms)))
        for other in np.unique(federation.held.documents[documents]).tolist():
            theirs = np.flatnonzero(federation.held.documents[documents] == other)
            for column, term in enumerate(terms.tolist()):
                word, wanted = federation.words[term], places[documents[theirs]]
                owners[other], counts = ask_counts(owners[other], federation.askers[party], word, wanted)
                reported[theirs, column] = counts
        return reported

    return look_up


def _refuse_empty(own: Sequence[Labelled], tests: Sequence[Dataset]) -> None:
    for party, (pairs, test) in enumerate(zip(own, tests, strict=False)):
        if not len(pairs.pairs.queries) or len(test.queries) < 2:
            raise SpecError(
                f"party {party + 1} has no query with a relevant document to train on, or fewer than two to test "
                "with; use more queries or fewer parties"
            )
