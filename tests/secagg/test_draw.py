"""Draws: the same result for all, repeated where somebody stays silent, and rounds of the cohort that was drawn."""

from collections import Counter

import numpy as np
import pytest
from small_draws import drawing, entrants, run
from small_rounds import RANKER, federation, plain_sum, vectors
from transports import Simulated

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg import groups, ring
from foltr.secagg.client import join
from foltr.secagg.deadlines import conduct
from foltr.secagg.in_process import run_in_memory
from foltr.secagg.lot import draw
from foltr.secagg.server import aggregate
from foltr.secagg.terms import Drawn, guaranteed

FED = federation(40, dropouts=0.1, corrupt=0.1, cohort=11)  # 4 colluders: fewer than 12 are drawn by lot


def test_all_who_are_drawn_have_the_same_result():
    states = entrants(FED)
    found = run(drawing(FED), states)
    assert len(found.drawn.cohort) == 11
    assert (found.attempts, found.struck, found.dropped) == (1, (), {})
    assert {name for name, state in states.items() if state.drawn} == found.drawn.cohort
    assert {state.drawn for state in states.values() if state.drawn} == {found.drawn}
    assert all(not state.value for state in states.values() if state.drawn)


def test_two_draws_have_different_results():
    """Equal by chance once in 2 10^9."""
    assert run(drawing(FED), entrants(FED)).drawn.cohort != run(drawing(FED), entrants(FED)).drawn.cohort


def test_every_client_is_drawn_as_often():  # chi-square of 12 cells, 11 degrees: 40 is once in 28,000
    fed, counts = federation(12, dropouts=0, corrupt=0.15, cohort=5), Counter()
    for round in range(1, 151):
        counts.update(run(drawing(fed, round), entrants(fed, round)).drawn.cohort)
    assert sum((counts[name] - 62.5) ** 2 / 62.5 for name in fed.identities) < 40


def test_whoever_is_absent_at_the_beginning_is_not_waited_for():
    away = set(list(FED.identities)[:4])
    found = run(drawing(FED), entrants(FED), drop={(0, 0): away})
    assert found.attempts == 1
    assert not found.drawn.cohort & away


@pytest.mark.parametrize("stage", [1, 2])
def test_one_value_may_be_missing_and_nobody_is_asked_again(stage):
    silent, states = list(FED.identities)[5], entrants(FED)
    found = run(drawing(FED), states, drop={(0, stage): [silent]})
    assert (found.attempts, found.struck) == (1, ())
    assert silent not in found.drawn.cohort
    assert {state.drawn for state in states.values() if state.drawn} == {found.drawn}


@pytest.mark.parametrize("stage", [1, 2])
def test_where_more_do_not_open_they_are_struck_and_the_draw_repeated(stage):
    names, states = list(FED.identities), entrants(FED)
    found = run(drawing(FED), states, drop={(0, stage): names[:2], (1, 2): names[2:4]})
    assert found.attempts == 3
    assert found.struck == tuple(names[:4])
    assert not found.drawn.cohort & set(names[:4])
    assert {state.attempt for name, state in states.items() if name not in names[:4]} == {2}


def test_too_few_end_the_draw():
    names = list(FED.identities)
    with pytest.raises(SecureAggregationError, match="35 clients committed to a value, at least 36"):
        run(drawing(FED), entrants(FED), drop={(0, 0): names[:5]})
    with pytest.raises(SecureAggregationError, match="35 clients committed to a value, at least 36"):
        run(drawing(FED), entrants(FED), drop={(0, 2): names[:3], (1, 2): names[3:5]})  # struck, struck


def test_no_more_than_eight_attempts():
    fed = federation(80, dropouts=0.25, corrupt=0.05, cohort=11)
    names = list(fed.identities)
    drop = {(attempt, 2): names[2 * attempt : 2 * attempt + 2] for attempt in range(8)}
    with pytest.raises(SecureAggregationError, match="8 draws failed"):
        run(drawing(fed), entrants(fed), drop=drop)


def test_a_server_asks_registered_clients_only():
    with pytest.raises(SpecError, match="not in the registry"):
        next(drawing(FED, clients=[*FED.identities, 5]))
    with pytest.raises(SpecError, match="not in the registry with this identity"):
        draw.enter(13, FED.identities[10], terms=FED.terms, registry=FED.registry, round=1, ranker=RANKER)


# over a transport


SILENT = set(list(FED.identities)[:2])  # open no value, so that there is a second attempt


def conducted(sends):
    """What the server returns within its deadlines, and the network afterwards."""
    network = Simulated(
        clients=entrants(FED), answer=draw.answer,
        sends=lambda stage, name, reply: [] if name in SILENT and "reveal" in stage else sends(name, reply),
    )  # fmt: skip
    longest = draw.most_bytes(draw.sizes_of(FED.terms, FED.registry))
    return conduct(drawing(FED), network, seconds=120.0, most_bytes=longest, clock=network.clock), network


def test_replies_of_an_earlier_attempt_that_come_again_drop_nobody():
    """A transport that delivers at least once."""
    before = {name: [] for name in FED.identities}

    def sends(name, reply):
        repeated = [(0.0, message) for message in before[name]]
        before[name].append(reply)
        return [*repeated, (0.0, reply), (0.0, reply)]

    found, _ = conducted(sends)
    assert (found.attempts, set(found.struck), set(found.dropped)) == (2, SILENT, SILENT)


def test_a_client_that_missed_an_attempt_takes_part_in_the_next():
    """A machine that wakes up answers all that it was sent: the reply of the first attempt comes before the second."""
    asleep, replies = list(FED.identities)[5], []

    def sends(name, reply):
        if name != asleep:
            return [(0.0, reply)]
        replies.append((0.0, reply))
        return [] if len(replies) == 1 else replies[:2] if len(replies) == 2 else replies[-1:]

    found, network = conducted(sends)
    assert found.attempts == 2
    assert asleep not in network.asked["close 1"]
    assert asleep in network.asked["close 2"]


# a round of the cohort


def cohort_round(fed, drawn, seen=None, clients=None, **faults):
    """`seen`: what clients drew, where it is not what the server says."""
    rows, known = vectors(fed), {"terms": fed.terms, "registry": fed.registry, "round": 1, "ranker": RANKER}
    states = {
        name: join(name, fed.identities[name], rows[name], **known, drawn=(seen or drawn))
        for name in (seen or drawn).cohort
    }
    return run_in_memory(
        aggregate(clients or drawn.cohort, **known, identity=fed.server, drawn=drawn), states, **faults
    )


def test_the_cohort_that_was_drawn_is_summed():
    drawn = run(drawing(FED), entrants(FED)).drawn
    for drop in ({}, {"mask": {min(drawn.cohort)}}):
        found = cohort_round(FED, drawn, drop=drop)
        assert found.included == tuple(sorted(drawn.cohort - drop.get("mask", set())))
        np.testing.assert_array_equal(found.total, plain_sum(FED, found.included))


def test_nobody_else_is_asked_or_joins():
    drawn = run(drawing(FED), entrants(FED)).drawn
    other = min(set(FED.identities) - drawn.cohort)
    known = {"terms": FED.terms, "registry": FED.registry, "round": 1, "ranker": RANKER}
    with pytest.raises(SpecError, match="not their turn"):
        cohort_round(FED, drawn, clients=[*drawn.cohort, other])
    with pytest.raises(SpecError, match="not the turn"):
        join(other, FED.identities[other], vectors(FED)[other], **known, drawn=drawn)
    with pytest.raises(SpecError, match="drawn by lot; take part"):
        join(other, FED.identities[other], vectors(FED)[other], **known)
    plain = federation(5)
    known |= {"terms": plain.terms, "registry": plain.registry}
    with pytest.raises(SpecError, match="not drawn by lot"):
        join(10, plain.identities[10], vectors(plain)[10], **known, drawn=drawn)


def test_results_of_two_attempts_cannot_be_summed_together():
    first, second = (run(drawing(FED), entrants(FED)).drawn for _ in range(2))
    same_cohort = Drawn(second.seed, first.cohort)
    with pytest.raises(SecureAggregationError, match="0 clients sent keys"):
        cohort_round(FED, first, seen=same_cohort)


@pytest.mark.slow
def test_a_cohort_of_300_of_1500():
    fed = federation(1500, length=3, dropouts=0.1, corrupt=0.1, cohort=300)  # 150 colluders
    found = run(drawing(fed), entrants(fed))
    sizes = guaranteed(fed.terms, fed.registry)
    assert 150 / 1343 * 300 < sizes.colluders < 150  # more than are expected, fewer than all
    total = cohort_round(fed, found.drawn)
    np.testing.assert_array_equal(total.total, plain_sum(fed, total.included))
    drawn, others = (sorted(found.down[name] for name in some) for some in (
        found.drawn.cohort, set(fed.identities) - found.drawn.cohort))  # fmt: skip
    assert others[-1] < 40_000 < 48_000 < drawn[0] < 90_000  # of 1,500 values of 32 bytes each


# groups


def test_the_seed_of_a_draw_makes_groups_and_every_client_computes_its_own():
    fed = federation(17, dropouts=0.2, corrupt=0.0)
    states = entrants(fed)
    found = run(drawing(fed), states)
    assert found.drawn.cohort == set(fed.identities)
    fixed = ring.Ring(clients=17, bits=fed.terms.bits)
    rows = {name: np.arange(fed.terms.length) - name / 8 for name in fed.identities}
    clients = {
        name: join(name, fed.identities[name], ring.encode(rows[name], fixed), terms=fed.terms, round=1, ranker=RANKER,
                   registry=groups.own_group(name, state.drawn.seed, fed.registry, 2))
        for name, state in states.items()
    }  # fmt: skip
    server = groups.group_means(
        groups.assign(found.drawn.seed, fed.registry.clients, 2), ring=fixed, terms=fed.terms, known=fed.registry,
        identity=fed.server, round=1, ranker=RANKER,
    )  # fmt: skip
    means = run_in_memory(server, clients)
    assert means.counts.sum() == 17
    for mean, one in zip(means.means, means.sums, strict=True):
        np.testing.assert_allclose(mean, np.mean([rows[name] for name in one.included], axis=0), rtol=1e-15)
