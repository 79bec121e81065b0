"""A federation of parties simulated from one corpus: sketches under a common key, cross-party pairs, training data.

Source: S3 sections III-A and VI-A: four parties; documents and queries are divided at random. Every term of a query is
asked of every other party (reverse top-K); the counts that come back are scored by BM25 (or as counts times IDF).
Features of own pairs are exact, those of cross-party pairs are read from sketches with the owner's noise.

All questions and answers are sealed messages of one group (`keys`, `envelopes`), in one process. The sums behind IDF
and the collection's language model, and the lengths of documents, are tables that every party releases once, under
keyed hashes of words (`statistics`): `exact` without noise, epsilon infinite, or `noisy`. Their event is in the ledgers
beside that of the answers. The simulator numbers the words of the whole corpus; no party is sent that list.

Tests are each party's own queries over the documents of all, with exact features: what a joint search would show.

The allowance is off: a training run asks for more words than an owner would answer (`entries_read` says how many
entries), which every table of such runs states.

Differs from the paper: parties answer from an index unless `lists` says otherwise (`index`). With sketches, the paper's
way, `lists` is "paper", "sound" or "sampled". The counts that `sound` reports are of the rows where a document was
found, so documents without any of a query's words get high scores: of those guessed to be highly relevant on Python's
docstrings (40 queries), 90 of 400 had none of them; with `sampled`, 0. How the terms of a query are combined is not
said in the paper; documents that were not found are added to the guessed pairs with grade 0 (`pairs`).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np

from foltr.errors import SpecError
from foltr.privacy import ledger as accounts
from foltr.rng import stream
from foltr.silo import noise, rtk
from foltr.silo.allowance import Limits, in_memory
from foltr.silo.index import build_index
from foltr.silo.keys import Membership, group_in_process
from foltr.silo.owners import NoiseChoice, Owner, make_owner, with_statistics
from foltr.silo.pairs import Parties, guessed, judged, ranked, split
from foltr.silo.protocol import (
    Asker,
    Query,
    Result,
    Target,
    ask_counts,
    ask_statistics,
    ask_top,
    make_asker,
    relay,
)
from foltr.silo.sketches import Family, Hashes, family, hash_terms, new_key, sketch_documents
from foltr.silo.statistics import look_up, release_statistics, statistics_event
from foltr.silo.training import Sgd, TrainingPairs
from foltr.text.analysis import ENGLISH, TextAnalysis
from foltr.text.corpus import Corpus, Pairs
from foltr.text.counts import Counts, Statistics, TextCounts, count_corpus, known_terms, sum_statistics, take
from foltr.text.features import Field, Labelled, dataset, exact, label
from foltr.text.search import Hits, best
from foltr.types import Array, Dataset

MAX_BYTES = 1 << 33  # of all sketches of documents together
UNLIMITED = Limits(1 << 60, 1 << 60)  # cells of an asker: parties of a simulation are not rationed
FIELDS = ("title", "body")
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
    real_rows: Count = 30  # z1 of questions to sketches
    noise: Literal["none", "paper", "one_shot"] = "none"
    epsilon: Annotated[float, msgspec.Meta(gt=0)] = 0.5  # of one word, all answers together
    statistics: Literal["exact", "noisy"] = "exact"  # of words and lengths; exact: epsilon is infinite
    statistics_epsilon: Annotated[float, msgspec.Meta(gt=0)] = 1.0  # of one word, where they are noisy
    lists: Literal["index", "paper", "sound", "sampled"] = "index"  # or sketches of that variant
    beta: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.1
    top: Count = 150  # K
    score: Literal["counts", "bm25"] = "bm25"  # combines the answers for a query's terms
    top_k: Count = 15  # guessed pairs of a query
    num_negatives: Count = 50  # further documents of a query, assumed to be irrelevant
    words: TextAnalysis = ENGLISH  # the text analysis of all parties
    tested: Literal["test", "dev"] = "test"  # which queries judge the rankers; choices are made on "dev"
    sgd: Sgd = Sgd()


class Reported(NamedTuple):
    """Statistics of one field, the tables of all parties together."""

    statistics: Statistics
    lengths: Array  # [documents] of the corpus; 0 of those that no party owns
    distinct: Array  # [documents]


class SiloFederation(NamedTuple):
    corpus: Corpus
    setup: Setup
    seed: int  # of the division
    train: Array  # queries to train on
    test: Array  # queries to test with
    held: Parties
    owned: list[Array]  # [parties] numbers of its documents
    counted: TextCounts
    words: list[str]  # the vocabulary in its order, for the simulator only
    terms: list[Array]  # [queries] numbers of their terms
    hashes: Hashes  # of the vocabulary
    askers: list[Asker]
    titles: list[Owner]  # replaced after every answer: the ledger grows
    bodies: list[Owner]
    reported: list[Reported]  # of titles and of bodies
    sent: Counter[str]  # bytes of all sealed messages so far, by kind of question


class Spent(NamedTuple):
    """The largest epsilon of one word against a member that asks (zero-out adjacency)."""

    answers: float
    statistics: float
    total: float


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

    Key, noise and the askers' secrets are the operating system's unless given; identities always are.
    """
    size = 8 * len(corpus.ids) * setup.rows * setup.columns
    if setup.lists != "index" and size > MAX_BYTES:
        raise SpecError(f"sketches of {len(corpus.ids):,} documents take {size:,} bytes; use fewer rows or columns")
    train, test = divide_queries(corpus, setup, seed=seed)
    held = _deal_evenly(split(corpus, shares_of(setup), seed=seed), (train, test), shares_of(setup), seed=seed)
    owned = [np.flatnonzero(held.documents == party) for party in range(setup.parties)]
    counted = count_corpus(corpus, setup.words)
    words = list(counted.vocabulary)
    members = group_in_process(setup.parties, key or new_key())
    functions = family(members[0].key, rows=setup.rows, columns=setup.columns)
    hashes = hash_terms(words, functions)
    choice = NoiseChoice(setup.noise, setup.epsilon, None, uniforms or noise.from_system)
    askers = [
        make_asker(member, functions, real_rows=None if setup.lists == "index" else setup.real_rows, secret=secret)
        for member, secret in zip(members, secrets or [None] * len(members), strict=True)
    ]
    terms = [known_terms(text, counted.vocabulary, setup.words) for text in corpus.query_texts]
    if setup.grades == "ranked":
        corpus = ranked(corpus, counted, terms, np.concatenate([train, test]))
    titles, bodies = (
        [
            _owner(member, field, take(counts, mine), setup=setup, hashed=(words, functions, hashes), choice=choice)
            for member, mine in zip(members, owned, strict=True)
        ]
        for field, counts in zip(FIELDS, (counted.title, counted.body), strict=True)
    )
    for owners, counts in ((titles, counted.title), (bodies, counted.body)):
        for party, mine in enumerate(owned):
            table = release_statistics(
                take(counts, mine), words, functions, noise=setup.statistics, epsilon=setup.statistics_epsilon,
                uniforms=choice.uniforms,
            )  # fmt: skip
            owners[party] = with_statistics(owners[party], table)
    sent: Counter[str] = Counter()
    collect = partial(_collect, askers[0], words, owned=owned, documents=len(corpus.ids), sent=sent)
    reported = [collect(owners) for owners in (titles, bodies)]
    return SiloFederation(
        corpus, setup, seed, train, test, held, owned, counted, words, terms, hashes, askers, titles, bodies, reported,
        sent,
    )  # fmt: skip


def _owner(
    member: Membership, field: str, counts: Counts, *, setup: Setup, hashed: tuple[list[str], Family, Hashes],
    choice: NoiseChoice,
) -> Owner:  # fmt: skip
    """Titles and bodies are two owners; only bodies have lists. `hashed`: words, functions and hashes."""
    words, functions, hashes = hashed
    allowance, top = in_memory(UNLIMITED, member.context), min(setup.top, len(counts.lengths))
    if setup.lists == "index":
        index = build_index(counts, words, functions, top=top)
        return make_owner(member, field=field, lists=index, choice=choice, allowance=allowance)
    lists = None
    if field == "body":
        lists = rtk.empty(hashes.shape, variant=setup.lists, top=top)
        rtk.add_documents(lists, counts, hashes)
    sketches = sketch_documents("count", counts, hashes)
    return make_owner(member, field=field, counts=sketches, lists=lists, choice=choice, allowance=allowance)


def _collect(
    asker: Asker, words: list[str], owners: list[Owner], *, owned: list[Array], documents: int, sent: Counter[str]
) -> Reported:
    """The tables of all parties as the first one gets them: all members are told the same."""
    lengths, distinct, found = np.zeros(documents, np.int64), np.zeros(documents, np.int64), []
    for party, mine in enumerate(owned):
        target = Target(owners[party].membership.place, owners[party].field)
        table = _ask(ask_statistics(asker, target), owners, party, sent, "statistics")
        found.append(look_up(table, words, asker.family))
        lengths[mine], distinct[mine] = table.lengths, table.distinct
    return Reported(sum_statistics(found), lengths, distinct)


def _ask(query: Query[Result], owners: list[Owner], place: int, sent: Counter[str], what: str) -> Result:
    """The result of one exchange; the owner is replaced by the one that has paid, and the bytes are counted."""
    exchange = relay(query, owners[place])
    owners[place] = exchange.owner
    sent[what] += sum(len(message.content) for message in exchange.seen)
    return exchange.result


def entries_read(federation: SiloFederation) -> int:
    """The most entries that one party has read of another (`allowance`), of titles or of bodies."""
    owners = (*federation.titles, *federation.bodies)
    return max((account.total for owner in owners for account in owner.allowance.accounts.values()), default=0)


def _deal_evenly(held: Parties, parts: tuple[Array, ...], shares: int, *, seed: int) -> Parties:
    """Divides the queries of each part separately and leaves the documents, so that every party has some of each."""
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


def spent(federation: SiloFederation) -> Spent:
    """Epsilon that the words of the worst document have spent; infinite where exact counts were released."""
    setup = federation.setup
    event = statistics_event(setup.statistics, setup.statistics_epsilon)
    figures = []
    for owner in (*federation.titles, *federation.bodies):
        of_statistics = np.array([one == event for one in owner.ledger.events], bool)
        parts = [~of_statistics, of_statistics, np.ones_like(of_statistics)]
        figures.append([_spent(owner.ledger, part) for part in parts])
    return Spent(*np.max(figures, axis=0).tolist())


def _spent(ledger: accounts.Ledger, events: Array) -> float:
    some = ledger._replace(
        events=tuple(event for event, wanted in zip(ledger.events, events, strict=True) if wanted),
        counts=ledger.counts[:, events],
    )
    return accounts.spent(some).epsilon if len(some.events) else 0.0


def prepare(federation: SiloFederation) -> TrainTest:
    """Training pairs with their features, and the test data."""
    corpus, setup, held = federation.corpus, federation.setup, federation.held
    train, test = federation.train, federation.test
    everything = np.arange(len(corpus.ids))
    judge = partial(judged, corpus, seed=federation.seed)
    title, body = (
        exact(counts, reported.statistics)
        for counts, reported in zip(_fields(federation), federation.reported, strict=True)
    )

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


def _fields(federation: SiloFederation) -> tuple[Counts, Counts]:
    return federation.counted.title, federation.counted.body


def _cross_pairs(federation: SiloFederation, party: int, queries: Array) -> Labelled:
    """Own queries with documents of others: found by reverse top-K, features read from sketches."""
    setup = federation.setup
    title, body = (
        Field(_sketch_look_up(federation, party, theirs), reported.lengths, reported.distinct, reported.statistics)
        for reported, theirs in zip(federation.reported, (federation.titles, federation.bodies), strict=True)
    )
    others = np.sort(
        np.concatenate([mine for other, mine in enumerate(federation.owned) if other != party] or [_NO_DOCUMENTS])
    )
    search = partial(_search_others, federation, party)
    sizes = {"top_k": setup.top_k, "num_negatives": setup.num_negatives}
    pairs = guessed(queries, search, **sizes, among=others, seed=federation.seed)
    return label(pairs, title, body, federation.terms)


def _search_others(federation: SiloFederation, party: int, query: int) -> list[Hits]:
    """The best documents of every other party for a query; each term is asked for, and scored together."""
    terms, setup, (_, reported) = federation.terms[query], federation.setup, federation.reported
    answers = []
    for other, owned in enumerate(federation.owned):
        if other != party:
            listed = _listed_counts(federation, party, other, terms)
            field = Field(lambda _, __, counts=listed: counts, reported.lengths, reported.distinct,  # type: ignore[misc]
                          reported.statistics)  # fmt: skip
            answers.append(best(field, owned, terms, top_k=setup.top_k, score=setup.score))
    return answers


def _listed_counts(federation: SiloFederation, party: int, other: int, terms: Array) -> Array:
    """[documents of the other, terms] counts that its lists report, 0 for documents that are not listed."""
    counts = np.zeros((len(federation.owned[other]), len(terms)))
    for column, term in enumerate(terms.tolist()):
        owner, word = federation.bodies[other], federation.words[term]
        target = Target(owner.membership.place, owner.field)
        query = ask_top(federation.askers[party], target, word, top=owner.top_k, beta=federation.setup.beta)
        listed = _ask(query, federation.bodies, other, federation.sent, "top").found
        counts[listed.documents, column] = np.maximum(listed.counts, 0)
    return counts


def _sketch_look_up(federation: SiloFederation, party: int, owners: list[Owner]) -> Callable[[Array, Array], Array]:
    """Counts of documents of other parties, as their owners' sketches report them."""
    places = np.empty(len(federation.corpus.ids), np.int64)
    for owned in federation.owned:
        places[owned] = np.arange(len(owned))

    def counts(documents: Array, terms: Array) -> Array:
        reported = np.zeros((len(documents), len(terms)))
        for other in np.unique(federation.held.documents[documents]).tolist():
            theirs = np.flatnonzero(federation.held.documents[documents] == other)
            target = Target(owners[other].membership.place, owners[other].field)
            for column, term in enumerate(terms.tolist()):
                query = ask_counts(federation.askers[party], target, federation.words[term], places[documents[theirs]])
                reported[theirs, column] = _ask(query, owners, other, federation.sent, "count").estimates
        return reported

    return counts


def _refuse_empty(own: Sequence[Labelled], tests: Sequence[Dataset]) -> None:
    for party, (pairs, test) in enumerate(zip(own, tests, strict=False)):
        if not len(pairs.pairs.queries) or len(test.queries) < 2:
            raise SpecError(
                f"party {party + 1} has no query with a relevant document to train on, or fewer than two to test "
                "with; use more queries or fewer parties"
            )
