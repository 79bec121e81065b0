"""Parties that learn from each other through sketches."""

import math

import numpy as np
import pytest
from silos import KEY, seeded
from test_regimes import topical

from foltr.errors import SpecError
from foltr.lab.silo.training import MAIN, TITLES, trained
from foltr.silo import noise
from foltr.silo.asking import ask_count
from foltr.silo.crossing import prepare, tell, told_by
from foltr.silo.parties import Setup, divided, found, spent
from foltr.silo.protocol import relay
from foltr.silo.quality import marks
from foltr.silo.train import REGIMES, Sgd
from foltr.text import lexical
from foltr.text.counts import counts_of
from foltr.text.features import NAMES, exact, of_query

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


def test_who_gains_and_who_loses_is_told_for_every_party(plain, prepared):
    made = trained(plain, prepared)
    gaps = made.own["cs_f_ltr"] - made.own["local"]
    assert [gain.mean for gain in made.gains] == pytest.approx(gaps[:, MAIN])
    assert list(made.rankers) == list(made.own) == list(made.together) == list(TITLES)
    # one ranker for all: on the queries of all it has one quality
    assert np.ptp(made.together["cs_f_ltr"], axis=0).tolist() == [0, 0, 0]
    assert np.ptp(made.together["local"], axis=0).max() > 0


def test_shares_of_nobody_are_tested_on_and_nothing_else():
    alone = federation(parties=2, shares=3)
    ready = prepare(alone)
    assert len(alone.owned) == 2
    assert len(ready.tests) == 3
    learnt = [*ready.work.own, *ready.work.cross, ready.work.pooled]
    assert all(alone.held.documents[one.pairs.documents].max(initial=0) < 2 for one in learnt)
    assert all(alone.held.queries[one.pairs.queries].max(initial=0) < 2 for one in learnt)
    told = told_by(alone)[1]
    assert told.documents == sum(len(mine) for mine in alone.owned) < len(alone.corpus.ids)


def test_few_labels_leave_the_questions_as_they_are(prepared):
    few = prepare(federation(labelled=0.25))
    for some, every in zip(few.work.own, prepared.work.own, strict=True):
        assert len(set(some.pairs.queries)) < len(set(every.pairs.queries))
        assert set(some.pairs.queries) < set(every.pairs.queries)
    for some, every in zip(few.work.cross, prepared.work.cross, strict=True):
        assert some.pairs.queries.tolist() == every.pairs.queries.tolist()


def test_grades_by_a_search_engine_are_places_of_its_list():
    made = federation(grades="ranked")
    query = int(made.test[0])
    rows = made.corpus.judgments[made.corpus.judgments[:, 0] == query]
    body, column = exact(made.counted.body), lexical.NAMES.index("LMIR.DIR")
    scores = of_query(body, np.arange(len(made.corpus.ids)), made.terms[query])[:, column]
    grades = dict(zip(rows[:, 1].tolist(), rows[:, 2].tolist(), strict=True))
    assert sorted(grades.values()) == [1] * (len(grades) - 10) + [2] * 10
    assert min(scores[[d for d in grades if grades[d] == 2]]) >= max(scores[[d for d in grades if grades[d] == 1]])
    held = counts_of(made.counted.body, np.array(list(grades)), made.terms[query])
    assert (held.sum(axis=1) > 0).all()
    assert set(np.unique(made.corpus.judgments[:, 0])) == {*made.train, *made.test}


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
