"""Parties that learn from each other through sketches."""

import math

import numpy as np
import pytest
from silos import KEY, seeded
from test_regimes import topical

from foltr.errors import SpecError
from foltr.silo import noise
from foltr.silo.asking import ask_count
from foltr.silo.counts import counts_of
from foltr.silo.crossing import prepare, tell
from foltr.silo.features import NAMES
from foltr.silo.parties import Setup, divided, found, spent
from foltr.silo.protocol import relay
from foltr.silo.quality import marks
from foltr.silo.train import REGIMES, Sgd

TINY = {"parties": 3, "queries": 20, "columns": 400, "top": 20, "most": 12, "others": 20}


def federation(**changed):
    return found(topical(), Setup(**(TINY | changed)), key=KEY, uniforms=seeded(1))


@pytest.fixture(scope="module")
def plain():
    return federation()


@pytest.fixture(scope="module")
def prepared(plain):
    return prepare(plain)


def test_cross_pairs_are_of_other_parties_and_own_ones_are_not(plain, prepared):
    for party in range(3):
        assert set(plain.held.documents[prepared.work.own[party].pairs.documents]) == {party}
        assert party not in plain.held.documents[prepared.work.cross[party].pairs.documents]
        assert set(plain.held.queries[prepared.work.cross[party].pairs.queries]) == {party}


def test_nothing_is_tested_that_was_learnt_from(plain, prepared):
    assert not set(prepared.train) & set(prepared.test)
    assert len(prepared.train) == len(prepared.test) == 16  # a third of 48 each
    for party, test in enumerate(prepared.tests):
        assert set(plain.held.queries[test.queries]) == {party}
        assert set(test.queries) <= set(prepared.test)


def test_published_parts_are_kept(plain):
    parted = plain.corpus._replace(parts={"train": np.arange(10), "test": np.arange(30, 40)})
    train, test = divided(parted, plain.setup, seed=1)
    assert set(train) == set(range(10))
    assert set(test) == set(range(30, 40))


def test_what_was_found_really_has_a_word_of_the_query(plain, prepared):
    """Lists of the variant `sampled` are exact."""
    for cross in prepared.work.cross:
        high = cross.pairs.grades == 2
        for query, document in zip(cross.pairs.queries[high], cross.pairs.documents[high], strict=True):
            assert counts_of(plain.counted.body, np.array([document]), plain.terms[query]).sum() > 0


def test_every_regime_learns_something(prepared):
    for regime in REGIMES.values():
        rankers = regime(prepared.work, Sgd(epochs=5), seed=1)
        for ranker, test in zip(rankers, prepared.tests, strict=True):
            nothing = marks(np.zeros(len(NAMES)), test, top_grade=2)[:, 1].mean()
            assert marks(ranker, test, top_grade=2)[:, 1].mean() > nothing


@pytest.mark.parametrize("kind", noise.VARIANTS)
def test_many_counts_at_once_are_what_one_question_each_would_bring(kind):
    """With noise that is too small to matter, but paid for all the same."""
    made = federation(noise=kind, epsilon=1e6, true_rows=7)
    who, asking, word = made.bodies[1], made.askers[0], made.words[3]
    after, told = tell(who, asking, word, np.arange(9))
    one_by_one = []
    for document in range(9):
        exchange = relay(ask_count(asking, word, document), who)
        who = exchange.owner
        one_by_one.append(exchange.result.estimate)
    assert told == pytest.approx(one_by_one, abs=1e-3)
    assert np.array_equal(after.ledger.counts, who.ledger.counts)


def test_answers_are_paid_for(plain, prepared):
    assert prepared is not None
    assert spent(plain) == math.inf
    assert spent(federation(noise="once", epsilon=0.5)) == pytest.approx(0.5, rel=0.01)


def test_a_party_alone_has_nobody_to_ask():
    alone = prepare(federation(parties=1))
    assert len(alone.work.cross[0].pairs.queries) == 0
    local, crossed = (REGIMES[name](alone.work, Sgd(epochs=2), seed=1) for name in ("local", "cs_f_ltr"))
    assert np.array_equal(local, crossed)


def test_sketches_beyond_memory_are_refused_before_they_are_made():
    with pytest.raises(SpecError, match="use fewer rows or columns"):
        federation(columns=1 << 24)


def test_parties_without_queries_are_refused():
    with pytest.raises(SpecError, match="more queries or fewer parties"):
        prepare(federation(parties=12, queries=2))
