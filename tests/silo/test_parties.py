"""Parties that learn from each other through sketches."""

import math
from functools import partial

import numpy as np
import pytest
from silos import KEY, seeded
from test_regimes import topical

from foltr.errors import SpecError
from foltr.lab.silo.evaluation import score_metrics
from foltr.lab.silo.training import MAIN, TITLES, compare
from foltr.silo import messages, noise
from foltr.silo.parties import Setup, build_federation, divide_queries, entries_read, prepare, spent
from foltr.silo.protocol import Target, ask_counts, relay
from foltr.silo.training import REGIMES, Sgd
from foltr.text import lexical
from foltr.text.counts import counts_of, statistics, take
from foltr.text.features import exact, of_query

TINY = {"parties": 3, "queries": 20, "columns": 400, "top": 20, "top_k": 12, "num_negatives": 20}


def federation(**changed):
    return build_federation(topical(), Setup(**(TINY | changed)), key=KEY, uniforms=seeded(1))


@pytest.fixture(scope="module")
def plain():
    return federation()


@pytest.fixture(scope="module")
def prepared(plain):
    return prepare(plain)


def test_cross_pairs_are_of_other_parties_and_own_ones_are_not(plain, prepared):
    for party in range(3):
        assert set(plain.held.documents[prepared.pairs.own[party].pairs.documents]) == {party}
        assert party not in plain.held.documents[prepared.pairs.cross[party].pairs.documents]
        assert set(plain.held.queries[prepared.pairs.cross[party].pairs.queries]) == {party}


def test_nothing_is_tested_that_was_learnt_from(plain, prepared):
    assert not set(prepared.train) & set(prepared.test)
    assert len(prepared.train) == len(prepared.test) == 16  # a third of 48 each
    for party, test in enumerate(prepared.tests):
        assert set(plain.held.queries[test.queries]) == {party}
        assert set(test.queries) <= set(prepared.test)


def test_gains_and_losses_are_reported_for_every_party(plain, prepared):
    result = compare(plain, prepared)
    differences = result.own["cs_f_ltr"] - result.own["local"]
    assert [gain.mean for gain in result.gains] == pytest.approx(differences[:, MAIN])
    assert list(result.own) == list(result.together) == list(TITLES)
    assert set(result.rankers) == set(TITLES) - {"bm25"}
    # one ranker for all parties has one quality on the queries of all
    assert np.ptp(result.together["cs_f_ltr"], axis=0).tolist() == [0, 0, 0]
    assert np.ptp(result.together["local"], axis=0).max() > 0


def test_shares_of_nobody_are_tested_on_and_nothing_else():
    alone = federation(parties=2, shares=3)
    ready = prepare(alone)
    assert len(alone.owned) == 2
    assert len(ready.tests) == 3
    learnt = [*ready.pairs.own, *ready.pairs.cross, ready.pairs.pooled]
    assert all(alone.held.documents[one.pairs.documents].max(initial=0) < 2 for one in learnt)
    assert all(alone.held.queries[one.pairs.queries].max(initial=0) < 2 for one in learnt)
    reported = alone.reported[1].statistics
    assert reported.documents == sum(len(mine) for mine in alone.owned) < len(alone.corpus.ids)


def test_few_labels_leave_the_cross_pairs_as_they_are(prepared):
    few = prepare(federation(labelled=0.25))
    for some, every in zip(few.pairs.own, prepared.pairs.own, strict=True):
        assert len(set(some.pairs.queries)) < len(set(every.pairs.queries))
        assert set(some.pairs.queries) < set(every.pairs.queries)
    for some, every in zip(few.pairs.cross, prepared.pairs.cross, strict=True):
        assert some.pairs.queries.tolist() == every.pairs.queries.tolist()


def test_grades_by_a_search_engine_are_places_of_its_list():
    federated = federation(grades="ranked")
    query = int(federated.test[0])
    rows = federated.corpus.judgments[federated.corpus.judgments[:, 0] == query]
    body, column = exact(federated.counted.body), lexical.NAMES.index("LMIR.DIR")
    scores = of_query(body, np.arange(len(federated.corpus.ids)), federated.terms[query])[:, column]
    grades = dict(zip(rows[:, 1].tolist(), rows[:, 2].tolist(), strict=True))
    assert sorted(grades.values()) == [1] * (len(grades) - 10) + [2] * 10
    assert min(scores[[d for d in grades if grades[d] == 2]]) >= max(scores[[d for d in grades if grades[d] == 1]])
    held = counts_of(federated.counted.body, np.array(list(grades)), federated.terms[query])
    assert (held.sum(axis=1) > 0).all()
    assert set(np.unique(federated.corpus.judgments[:, 0])) == {*federated.train, *federated.test}


def test_published_parts_are_used(plain):
    parted = plain.corpus._replace(parts={"train": np.arange(10), "test": np.arange(30, 40)})
    train, test = divide_queries(parted, plain.setup, seed=1)
    assert set(train) == set(range(10))
    assert set(test) == set(range(30, 40))


def test_what_was_found_really_has_a_word_of_the_query(plain, prepared):
    """Lists of the variant `sampled` are exact."""
    for cross in prepared.pairs.cross:
        high = cross.pairs.grades == 2
        for query, document in zip(cross.pairs.queries[high], cross.pairs.documents[high], strict=True):
            assert counts_of(plain.counted.body, np.array([document]), plain.terms[query]).sum() > 0


def test_every_regime_learns_something(prepared):
    for regime in REGIMES.values():
        rankers = regime(prepared.pairs, Sgd(epochs=5), seed=1)
        for ranker, test in zip(rankers, prepared.tests, strict=True):
            nothing = score_metrics(np.zeros(len(test.labels)), test, top_grade=2)[:, 1].mean()
            assert score_metrics(test.features @ ranker, test, top_grade=2)[:, 1].mean() > nothing


@pytest.mark.parametrize("kind", noise.VARIANTS)
@pytest.mark.parametrize("lists", ["index", "sound"])
def test_many_counts_at_once_are_what_one_query_each_would_return(kind, lists):
    if (kind, lists) == ("paper", "index"):
        pytest.skip("the paper's noise is of sketches")
    federated = federation(noise=kind, lists=lists, real_rows=30 if lists == "index" else 7)
    owner, word = federated.bodies[1], federated.words[3]
    query = partial(ask_counts, federated.askers[0], Target(owner.membership.place, "body"), word)
    together = relay(query(np.arange(9)), owner).result.estimates
    one_by_one = [relay(query(np.array([document])), owner).result.estimates[0] for document in range(9)]
    assert together.tolist() == one_by_one


def test_answers_and_statistics_are_paid_for(plain, prepared):
    assert prepared is not None
    assert spent(plain) == (math.inf, math.inf, math.inf)
    noisy = federation(noise="one_shot", epsilon=0.5, statistics="noisy", statistics_epsilon=2.0)
    assert spent(noisy) == pytest.approx((0.5, 2.0, 2.5), rel=0.01)


def test_exact_statistics_make_valid_noise_of_answers_infinite_in_total():
    figures = spent(federation(noise="one_shot", epsilon=0.5))
    assert figures.answers == pytest.approx(0.5, rel=0.01)
    assert figures.statistics == figures.total == math.inf


def test_exact_tables_are_the_statistics_of_all_documents(plain):
    theirs = np.concatenate(plain.owned)
    for counted, reported in zip((plain.counted.title, plain.counted.body), plain.reported, strict=True):
        truth = statistics(take(counted, theirs))
        assert reported.statistics.documents == truth.documents
        assert np.array_equal(reported.statistics.document_frequency, truth.document_frequency)
        assert np.array_equal(reported.lengths[theirs], counted.lengths[theirs])


def test_noise_in_the_statistics_reaches_the_features(plain, prepared):
    """A word's noise has scale 4 at epsilon 1: the features of cross-party pairs differ, those of tests as well."""
    noisy = federation(statistics="noisy")
    off = noisy.reported[1].statistics.document_frequency - plain.reported[1].statistics.document_frequency
    assert 2 < np.abs(off).mean() / 3 < 8  # three parties, each of scale 4 and mean size 4, some cancel
    assert not np.array_equal(prepare(noisy).tests[0].features, prepared.tests[0].features)


def test_no_party_gets_the_words_of_another():
    """Every document has a word of its own. Before, every asker had all words as decoys: 160 that only others have."""
    texts = topical()
    own_words = texts._replace(bodies=tuple(f"{body} secret{place}" for place, body in enumerate(texts.bodies)))
    federated = build_federation(own_words, Setup(**TINY), key=KEY, uniforms=seeded(1))
    fields = federated.counted.title, federated.counted.body
    for mine, asker in zip(federated.owned, federated.askers, strict=True):
        own = set(np.concatenate([take(one, mine).terms for one in fields]).tolist())
        foreign = {word for number, word in enumerate(federated.words) if number not in own}
        assert len(foreign) >= 160
        assert not foreign & set(asker.decoys)
    for owner in (*federated.titles, *federated.bodies):
        content = messages.encode(messages.statistics_answer(owner.statistics))
        assert b"secret" not in content


def test_a_party_alone_has_nobody_to_ask():
    alone = prepare(federation(parties=1))
    assert len(alone.pairs.cross[0].pairs.queries) == 0
    local, crossed = (REGIMES[name](alone.pairs, Sgd(epochs=2), seed=1) for name in ("local", "cs_f_ltr"))
    assert np.array_equal(local, crossed)


def test_sketches_beyond_memory_are_refused_before_they_are_made():
    with pytest.raises(SpecError, match="use fewer rows or columns"):
        federation(lists="sound", columns=1 << 24)


def test_parties_without_queries_are_refused():
    with pytest.raises(SpecError, match="more queries or fewer parties"):
        prepare(federation(parties=12, queries=2))


def test_parties_with_an_index_get_exact_counts_and_send_less_than_with_sketches(plain, prepared):
    sampled = federation(lists="sampled")
    prepare(sampled)
    assert prepared is not None
    assert plain.sent["top"] < 0.2 * sampled.sent["top"]
    assert plain.sent["count"] < 0.5 * sampled.sent["count"]
    owner, word = plain.bodies[1], plain.words[3]
    every = np.arange(len(plain.owned[1]))
    result = relay(ask_counts(plain.askers[0], Target(owner.membership.place, "body"), word, every), owner).result
    truth = counts_of(plain.counted.body, plain.owned[1], np.array([3]))[:, 0]
    assert result.estimates.tolist() == truth.tolist()


def test_entries_that_a_run_reads_are_counted_though_its_allowance_is_off(plain, prepared):
    assert prepared is not None
    asked = [account.total for owner in plain.bodies for account in owner.allowance.accounts.values()]
    assert entries_read(plain) == max(asked) > 20 * 20  # more than 20 lists of K = 20
