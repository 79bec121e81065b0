"""Several parties made of one corpus, each with sketches of its own documents under a common key.

Source: S3 section VI-A: four parties; documents and queries are dealt out at random.

Differs from the paper: lists are of the variant `sampled`. The counts that `sound` tells are of the rows where a
document was found, which makes documents without any of a query's words look good: of those guessed to be highly
relevant on Python's docstrings (40 queries), 90 of 400 had none of them; with `sampled`, 0.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np

from foltr.errors import SpecError
from foltr.privacy import ledger as accounts
from foltr.rng import stream
from foltr.silo import noise, rtk_sketch
from foltr.silo.answering import Owner, owner
from foltr.silo.asking import Asker, asker
from foltr.silo.hashing import Hashes, family, hash_terms, new_key
from foltr.silo.pairs import Parties, split
from foltr.silo.ranked_grades import ranked
from foltr.silo.sketch import sketch_documents
from foltr.silo.train import Sgd
from foltr.text.analysis import PLAIN, Rules
from foltr.text.corpus import Corpus
from foltr.text.counts import Counts, TextCounts, count_corpus, known_terms, take
from foltr.types import Array

MOST_BYTES = 1 << 33  # of all sketches of documents together
Count = Annotated[int, msgspec.Meta(ge=1)]


class Setup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="train"):
    """Who takes part, what is asked and told, and how the ranker learns from it."""

    parties: Count = 4
    shares: Count | None = None  # into which the corpus is dealt; those of no party are tested on only. None: no more
    queries: Count = 200  # to learn from, at most, of all parties together
    labelled: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0  # share of a party's queries that it has grades for
    tests: Count = 200  # queries to test with, at most
    grades: Literal["judged", "ranked"] = "judged"  # as people gave them; or as S3 made its own (`ranked_grades`)
    rows: Count = 30
    columns: Count = 200
    true_rows: Count = 30  # z1
    noise: Literal["none", "paper", "cells", "once"] = "none"
    epsilon: Annotated[float, msgspec.Meta(gt=0)] = 0.5
    lists: Literal["paper", "sound", "sampled"] = "sampled"  # variant of the RTK-sketches
    beta: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.1
    top: Count = 150  # K of the sketches
    score: Literal["counts", "bm25"] = "bm25"  # by which the answers for a query's terms come together
    most: Count = 15  # guessed pairs of a query
    others: Count = 50  # further documents of a query, taken to be irrelevant
    words: Rules = PLAIN  # how texts are cut into terms, the same at all parties
    tested: Literal["test", "dev"] = "test"  # which queries judge the rankers; choices are made on "dev"
    sgd: Sgd = Sgd()


class Federation(NamedTuple):
    corpus: Corpus
    setup: Setup
    seed: int  # of who gets what
    train: Array  # queries to learn from
    test: Array  # queries to test with
    held: Parties
    owned: list[Array]  # [parties] numbers of its documents
    counted: TextCounts
    words: list[str]  # the vocabulary in its order
    terms: list[Array]  # [queries] numbers of their terms
    hashes: Hashes  # of the vocabulary
    askers: list[Asker]
    titles: list[Owner]  # change with every answer
    bodies: list[Owner]


def found(
    corpus: Corpus, setup: Setup, *, seed: int = 1, key: bytes | None = None, uniforms: noise.Uniforms | None = None,
    secrets: Sequence[bytes | None] | None = None,
) -> Federation:  # fmt: skip
    """Parties with sketches of what they have, under one key.

    Key, noise and the askers' secrets are the operating system's unless given.
    """
    size = 8 * len(corpus.ids) * setup.rows * setup.columns
    if size > MOST_BYTES:
        raise SpecError(f"sketches of {len(corpus.ids):,} documents take {size:,} bytes; use fewer rows or columns")
    train, test = divided(corpus, setup, seed=seed)
    held = _evenly(split(corpus, shares_of(setup), seed=seed), (train, test), shares_of(setup), seed=seed)
    owned = [np.flatnonzero(held.documents == party) for party in range(setup.parties)]
    counted = count_corpus(corpus, setup.words)
    words = list(counted.vocabulary)
    functions = family(key or new_key(), rows=setup.rows, columns=setup.columns)
    hashes = hash_terms(words, functions)
    made = partial(_owner, setup=setup, hashes=hashes, uniforms=uniforms or noise.from_system)
    asking = partial(asker, functions, true_rows=setup.true_rows, decoys=words)
    askers = [asking(secret=secret) for secret in secrets or [None] * len(owned)]
    terms = [known_terms(text, counted.vocabulary, setup.words) for text in corpus.query_texts]
    if setup.grades == "ranked":
        corpus = ranked(corpus, counted, terms, np.concatenate([train, test]))
    titles = [made(take(counted.title, mine), listed=False) for mine in owned]
    bodies = [made(take(counted.body, mine), listed=True) for mine in owned]
    return Federation(
        corpus, setup, seed, train, test, held, owned, counted, words, terms, hashes, askers, titles, bodies
    )


def _evenly(held: Parties, parts: tuple[Array, ...], shares: int, *, seed: int) -> Parties:
    """The same documents; the queries of each part are dealt for themselves, so that nobody is left without any."""
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


def divided(corpus: Corpus, setup: Setup, *, seed: int) -> tuple[Array, Array]:
    """Queries to learn from and queries to test with: as published where they are, else thirds, one for each use."""
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


def spent(federation: Federation) -> float:
    """Epsilon of the word that has been told most about, to whoever asked."""
    return max(accounts.spent(one.ledger).epsilon for one in (*federation.titles, *federation.bodies))


def _owner(counts: Counts, *, listed: bool, setup: Setup, hashes: Hashes, uniforms: noise.Uniforms) -> Owner:
    lists = None
    if listed:
        lists = rtk_sketch.empty(hashes.shape, variant=setup.lists, top=min(setup.top, len(counts.lengths)))
        rtk_sketch.add_documents(lists, counts, hashes)
    sketches = sketch_documents("count", counts, hashes)
    return owner(counts=sketches, lists=lists, noise_kind=setup.noise, epsilon=setup.epsilon, uniforms=uniforms)
