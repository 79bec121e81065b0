"""Groups by a public rule: everybody computes the same, nobody chooses, and every group hides its members."""

import hashlib
from collections import Counter
from math import comb

import numpy as np
import pytest
from small_rounds import RANKER, federation

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg import groups, ring
from foltr.secagg.client import join
from foltr.secagg.guarantee import guarantee
from foltr.secagg.in_process import run_in_memory
from foltr.secagg.terms import Terms, cohort_of, guaranteed, new_federation, registry

SEED = bytes(range(32))


@pytest.mark.parametrize(("clients", "count"), [(100, 7), (9, 3), (10, 1), (11, 2)])
def test_groups_part_the_clients_evenly(clients, count):
    parts = groups.assign(SEED, range(clients), count)
    assert sorted(client for group in parts for client in group) == list(range(clients))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert parts == groups.assign(SEED, reversed(range(clients)), count)  # a function of the set and the seed


def test_another_seed_gives_other_groups():
    """Equal by chance once in 10^70."""
    assert groups.assign(SEED, range(100), 7) != groups.assign(bytes(32), range(100), 7)


def test_any_two_clients_meet_as_often_as_chance_has_it():
    """1,000 seeds, 9 clients in 3 groups: each of 36 pairs meets in a quarter; a false alarm once in 300,000."""
    met = Counter()
    for number in range(1000):
        for group in groups.assign(number.to_bytes(32, "big"), range(9), 3):
            met.update((a, b) for a in group for b in group if a < b)
    assert len(met) == 36
    assert max(abs(count - 250) for count in met.values()) < 5.3 * (1000 * 0.25 * 0.75) ** 0.5


@pytest.mark.parametrize("count", [0, 4])
def test_groups_too_small_to_hide_in_are_refused(count):
    with pytest.raises(SpecError, match="use 1 to 3"):
        groups.assign(SEED, range(11), count)


# how many colluders are in a group


def test_colluders_in_a_group_follow_the_hypergeometric_tail():
    """1,000 clients, 100 corrupt, 10 groups of 100: the tail at 2^-80 over ten groups and all results, by hand."""
    results = 8 * sum(comb(1000, missing) for missing in range(6))
    found = groups.group_guarantee(1000, 10, dropouts=0.1, corrupt=0.1, failure=2**-80)

    def tail(above):
        return sum(comb(100, k) * comb(900, 100 - k) for k in range(above + 1, 101)) * 10 * results

    whole = comb(1000, 100)
    assert tail(found.colluders) * 2**80 <= whole < tail(found.colluders - 1) * 2**80
    assert found == (100, 90, found.colluders, 90 - found.colluders)


def test_all_colluders_may_be_in_one_small_group():
    assert groups.group_guarantee(100, 2, dropouts=0.1, corrupt=0.1, failure=2**-80).colluders == 10


def test_groups_in_which_the_server_may_know_everybody_else_are_refused():
    with pytest.raises(SpecError, match="up to 10 of 10 in a group"):
        groups.group_guarantee(100, 10, dropouts=0.1, corrupt=0.1, failure=2**-80)


def test_the_terms_of_a_group_give_its_guarantee():
    fed = federation(60, dropouts=0.1, corrupt=0.02)
    terms = groups.group_terms(fed.terms, 60, 3)
    sizes = groups.group_guarantee(60, 3, dropouts=0.1, corrupt=0.02, failure=fed.terms.failure)
    assert guarantee(20, dropouts=terms.dropouts, corrupt=terms.corrupt) == sizes


@pytest.mark.parametrize(
    ("clients", "count", "dropouts", "corrupt", "cohort"),
    [(9, 2, 0.2, 0, 0), (100, 3, 0.1, 0.02, 0), (2400, 2, 0.1, 0.1, 0), (40, 2, 0.1, 0.1, 11), (400, 2, 0.1, 0.1, 150)],
)
def test_what_is_promised_holds_in_every_group(clients, count, dropouts, corrupt, cohort):
    """Groups that differ by one, groups of more than 1,000, and federations whose own cohorts are small: a sum asks
    all of a group, and a client of any group counts as many colluders as the promise."""
    known = registry(b"s" * 32, {k: hashlib.sha256(str(k).encode()).digest() for k in range(clients)})
    terms = Terms(new_federation(), 2, dropouts=dropouts, corrupt=corrupt, cohort=cohort)
    promised = groups.group_guarantee(clients, count, dropouts=dropouts, corrupt=corrupt, failure=terms.failure)
    own = groups.group_terms(terms, clients, count)
    for group in groups.assign(SEED, known.clients, count):
        part = groups.within(known, group)
        sizes = guaranteed(own, part)
        assert (sizes.cohort, sizes.colluders) == (len(group), promised.colluders)
        assert sizes.honest >= promised.honest
        assert cohort_of(own, part, 7) == set(group)


def test_a_promise_that_the_larger_groups_cannot_keep_is_refused():
    """Two colluders in four clients leave two; of five, one of which may drop out, all would have to survive."""
    assert guarantee(4, dropouts=0.2, corrupt=0.5).honest == 2
    with pytest.raises(SpecError, match="5 clients cannot tolerate 1 dropouts and 2 corrupt"):
        groups.group_guarantee(13, 3, dropouts=0.2, corrupt=0.1, failure=2**-80)


# sums in groups, one server


def grouped(fed, count, **faults):
    fixed = ring.Ring(clients=len(fed.identities), bits=fed.terms.bits)
    rows = {name: np.arange(fed.terms.length) - name / 8 for name in fed.identities}
    seed = SEED
    parts = groups.assign(seed, fed.registry.clients, count)
    clients = {
        name: join(name, fed.identities[name], ring.encode(rows[name], fixed), terms=fed.terms,
                   registry=groups.own_group(name, seed, fed.registry, count), round=1, ranker=RANKER)
        for name in fed.identities
    }  # fmt: skip
    server = groups.group_means(
        parts, ring=fixed, terms=fed.terms, known=fed.registry, identity=fed.server, round=1, ranker=RANKER
    )
    return run_in_memory(server, clients, **faults), rows


@pytest.mark.parametrize("drop", [{}, {"mask": {10}}, {"unmask": {10}}], ids=str)
def test_group_means_are_those_of_their_members(drop):
    found, rows = grouped(federation(17, dropouts=0.2, corrupt=0.0), 2, drop=drop)
    assert found.counts.sum() == (16 if "mask" in drop else 17)
    for mean, count, one in zip(found.means, found.counts, found.sums, strict=True):
        assert count == len(one.included)
        np.testing.assert_allclose(mean, np.mean([rows[name] for name in one.included], axis=0), rtol=1e-15)


def test_a_group_that_fails_stops_all():
    fed = federation(16, dropouts=0.2, corrupt=0.0)
    group = groups.assign(SEED, fed.registry.clients, 2)[0]
    with pytest.raises(SecureAggregationError, match="needed"):
        grouped(fed, 2, drop={"mask": set(group[:5])})


def test_a_client_takes_part_in_the_group_that_it_computed_only():
    """A server that moves a victim among its colluders is refused: the victim's registry is that of its own group."""
    fed = federation(18, dropouts=0.2, corrupt=0.0)
    seed = SEED
    mine = groups.own_group(10, seed, fed.registry, 3)
    others = next(group for group in groups.assign(seed, fed.registry.clients, 3) if 10 not in group)
    chosen = groups.within(fed.registry, [10, *others[:5]])
    victim = join(
        10, fed.identities[10], np.zeros(5, np.uint32), terms=fed.terms, registry=mine, round=1, ranker=RANKER
    )
    server = groups.group_means(
        [chosen.clients], ring=ring.Ring(18), terms=fed.terms, known=fed.registry, identity=fed.server, round=1,
        ranker=RANKER,
    )  # fmt: skip
    from foltr.secagg.client import answer

    with pytest.raises(SecureAggregationError, match="signature"):
        answer(victim, next(server)[10])
    with pytest.raises(SpecError, match="not in the registry"):
        groups.own_group(999, seed, fed.registry, 3)
