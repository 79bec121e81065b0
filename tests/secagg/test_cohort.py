"""Cohorts: halves by turns, and by lot where halves are too small."""

import hashlib
from collections import Counter
from fractions import Fraction
from math import comb

import msgspec
import pytest
from small_rounds import public

from foltr.errors import SpecError
from foltr.secagg import crypto
from foltr.secagg.guarantee import guarantee
from foltr.secagg.lot.sizes import draw_sizes, needs_lot, sizes_by_lot
from foltr.secagg.terms import Terms, cohort_of, guaranteed, new_federation, registry

TERMS = Terms(new_federation(), 2)
changed = msgspec.structs.replace


def known(clients):
    """A registry of so many; keys need not be real for an order."""
    return registry(b"s" * 32, {k: hashlib.sha256(str(k).encode()).digest() for k in range(clients)})


@pytest.mark.parametrize("clients", [1001, 1200, 2001])
def test_halves_take_turns_and_nobody_waits_long(clients):
    one = known(clients)
    turns = [cohort_of(TERMS, one, round) for round in range(5)]
    assert {len(turn) for turn in turns} == {clients // 2}
    assert not turns[0] & turns[1]
    assert Counter(client for turn in turns[:3] for client in turn).keys() == set(range(clients))
    assert turns[0] != set(range(clients // 2))  # the order is a hash


def test_a_small_registry_is_its_own_cohort():
    one = known(1000)
    assert cohort_of(TERMS, one, 7) == frozenset(range(1000))


def test_every_colluder_is_counted_into_the_half():
    assert guarantee(2000, dropouts=0.1, corrupt=0.1) == (1000, 900, 200, 700)


@pytest.mark.parametrize(
    ("registered", "colluders", "cohort", "by_lot"),
    [
        (6000, 600, 0, False),
        (6000, 600, 1800, False),
        (6000, 600, 1799, True),
        (6000, 2500, 0, False),
        (50, 20, 50, False),
    ],
)
def test_a_lot_only_where_a_cohort_is_smaller_than_three_times_the_colluders(registered, colluders, cohort, by_lot):
    assert needs_lot(registered, colluders, cohort) is by_lot


def test_a_smaller_cohort_by_turns_has_all_colluders_in_it():
    one, terms = known(2000), Terms(new_federation(), 2, cohort=700)
    assert guaranteed(terms, one) == (700, 630, 200, 430)
    turns = [cohort_of(terms, one, round) for round in range(3)]
    assert {len(turn) for turn in turns} == {700}
    assert len(turns[0] | turns[1] | turns[2]) == 2000
    assert guaranteed(changed(terms, cohort=5000), one).cohort == 2000  # more than there are: all


@pytest.mark.parametrize(
    ("registered", "cohort", "corrupt"), [(6000, 1000, 0.1), (10_000, 1000, 0.1), (6000, 900, 0.15)]
)
def test_the_tail_is_below_the_odds_over_all_tries_among_the_fewest_that_may_draw(registered, cohort, corrupt):
    """The server decides who seems to be absent, a tenth at the beginning and 30 or 50 at the end, and it chooses among
    eight attempts and all sets of values that may be missing."""
    sizes = sizes_by_lot(registered, cohort=cohort, dropouts=0.1, corrupt=corrupt)
    colluders, missing = int(corrupt * registered), {6000: 30, 10_000: 50}[registered]
    present, choices = registered * 9 // 10 - missing, 8 * sum(comb(registered, k) for k in range(missing + 1))

    def tail(above):
        ways = sum(comb(colluders, k) * comb(present - colluders, cohort - k) for k in range(above + 1, cohort + 1))
        return Fraction(choices * ways, comb(present, cohort))

    assert tail(sizes.colluders) <= Fraction(1, 2**100) < tail(sizes.colluders - 1)
    assert sizes.min_clients == cohort * 9 // 10
    assert sizes.honest == sizes.min_clients - sizes.colluders
    every = comb(registered, cohort)
    ways = sum(
        comb(colluders, k) * comb(registered - colluders, cohort - k) for k in range(sizes.colluders, cohort + 1)
    )
    assert Fraction(choices * ways, every) < Fraction(1, 2**100)  # of the whole registry fewer would do


def test_a_cohort_without_enough_honest_is_refused():
    with pytest.raises(SpecError, match="cohort by lot, 800 of 2000 corrupt"):
        sizes_by_lot(2000, cohort=100, dropouts=0.1, corrupt=0.4)
    with pytest.raises(SpecError, match="draw 3 to 1790"):
        sizes_by_lot(2000, cohort=1900, dropouts=0.1, corrupt=0.1)
    with pytest.raises(SpecError, match="draw nothing fairly"):
        draw_sizes(10, dropouts=0.5, corrupt=0.4)
    with pytest.raises(SpecError, match="115 clients, of whom 118 may work for the server"):
        sizes_by_lot(1000, cohort=3, dropouts=0.88, corrupt=0.118)  # 120 commit, 5 of them open nothing
    with pytest.raises(SpecError, match="at least 3"):
        Terms(new_federation(), 2, cohort=2)


def test_a_hash_of_the_registry_alone_can_be_ground():
    """An adversary that chooses its last key puts twice its share into a cohort of ten, in 300 offline tries.

    10 of 50 registered are its own, 2 are expected in ten; the odds of 4 or more are 1 in 10 for each try.
    """
    keys = {k: public(crypto.new_identity()) for k in range(49)}
    best = 0
    for _ in range(300):  # a miss has odds of 6 in 10^14
        tried = registry(b"s" * 32, {**keys, 49: public(crypto.new_identity())})
        order = sorted(tried.clients, key=lambda c: hashlib.sha256(tried.digest + bytes([c])).digest())
        best = max(best, sum(client >= 40 for client in order[:10]))
    assert best >= 4
