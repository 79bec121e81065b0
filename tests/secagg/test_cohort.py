"""Cohorts: halves by turns, and by lot where halves are too small."""

import hashlib
from collections import Counter
from fractions import Fraction
from itertools import product
from math import comb

import pytest
from small_rounds import public

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg import crypto
from foltr.secagg.cohort import (
    Draw,
    close,
    commit,
    may_reveal,
    needs_lot,
    new_value,
    repeated,
    settle,
    sizes_by_lot,
)
from foltr.secagg.guarantee import guarantee
from foltr.secagg.messages import cohort_of, registry


def known(clients):
    """A registry of so many; keys need not be real for an order."""
    return registry(b"s" * 32, {k: hashlib.sha256(str(k).encode()).digest() for k in range(clients)})


@pytest.mark.parametrize("clients", [1001, 1200, 2001])
def test_halves_take_turns_and_nobody_waits_long(clients):
    one, sizes = known(clients), guarantee(clients, dropouts=0.1, corrupt=0.1)
    turns = [cohort_of(one, sizes, round) for round in range(5)]
    assert {len(turn) for turn in turns} == {clients // 2}
    assert not turns[0] & turns[1]
    assert Counter(client for turn in turns[:3] for client in turn).keys() == set(range(clients))
    assert turns[0] != set(range(clients // 2))  # the order is a hash


def test_a_small_registry_is_its_own_cohort():
    one = known(1000)
    assert cohort_of(one, guarantee(1000, dropouts=0.1, corrupt=0.1), 7) == frozenset(range(1000))


def test_every_colluder_is_counted_into_the_half():
    assert guarantee(2000, dropouts=0.1, corrupt=0.1) == (1000, 900, 200, 700)


@pytest.mark.parametrize(
    ("registered", "colluders", "by_lot"), [(1000, 600, False), (6000, 999, False), (6000, 1001, True)]
)
def test_a_lot_only_where_halves_are_smaller_than_three_times_the_colluders(registered, colluders, by_lot):
    assert needs_lot(registered, colluders) is by_lot


DRAW = Draw(b"c" * 32, 0, tuple(range(8)))


def draw_of(values, draw=DRAW, size=3):
    commitments = {client: commit(draw, client, value) for client, value in values.items()}
    return commitments, settle(draw, commitments, values, size=size)


def test_a_draw_that_all_open_gives_a_cohort():
    values = {client: new_value() for client in DRAW.clients}
    _, outcome = draw_of(values)
    assert len(outcome.cohort) == 3
    assert not outcome.struck


def test_every_client_is_drawn_as_often():  # chi-square of 8 cells, 800 draws of 3: 32 is once in 23,000
    counts = Counter()
    for k in range(800):
        values = {c: hashlib.sha256(f"{k} {c}".encode()).digest() for c in DRAW.clients}
        counts.update(draw_of(values)[1].cohort)
    expected = 800 * 3 / 8
    assert sum((counts[c] - expected) ** 2 / expected for c in DRAW.clients) < 32


def test_whoever_does_not_open_is_struck_and_the_draw_repeated():
    values = {client: new_value() for client in DRAW.clients}
    commitments = {client: commit(DRAW, client, value) for client, value in values.items()}
    silent = {client: value for client, value in values.items() if client != 5}
    for opened in (silent, {**values, 5: new_value()}, {**values, 5: b""}):
        outcome = settle(DRAW, commitments, opened, size=3)
        assert outcome == ((), (5,))
        following = repeated(DRAW, outcome, colluders=2)
        assert following.clients == (0, 1, 2, 3, 4, 6, 7)
        assert commit(following, 0, values[0]) != commitments[0]  # old values cannot be used again


def test_colluders_have_as_many_tries_as_there_are_of_them_and_one_more():
    draw, tries = DRAW, 1
    for colluder in (0, 1):
        draw = repeated(draw, settle(draw, *without(draw, colluder), size=3), colluders=2)
        tries += 1
    assert tries == 3
    with pytest.raises(SecureAggregationError, match="3 draws failed with 2 colluders"):
        repeated(draw, settle(draw, *without(draw, 2), size=3), colluders=2)


def without(draw, silent):
    values = {client: new_value() for client in draw.clients}
    commitments = {client: commit(draw, client, value) for client, value in values.items()}
    return commitments, {client: value for client, value in values.items() if client != silent}


def test_going_on_without_the_silent_would_let_three_colluders_choose_among_eight():
    """Why the draw is repeated: the same values with any subset of the last three, hashed without strikes."""
    values = {client: new_value() for client in DRAW.clients}
    found = set()
    for kept in product([True, False], repeat=3):
        opened = [values[c] for c in range(5)] + [values[5 + k] for k in range(3) if kept[k]]
        found.add(hashlib.sha256(b"".join(opened)).digest())
    assert len(found) == 8
    commitments, _ = draw_of(values)
    for kept in product([True, False], repeat=3):
        opened = {c: v for c, v in values.items() if c < 5 or kept[c - 5]}
        assert bool(settle(DRAW, commitments, opened, size=3).cohort) is all(kept)


def test_a_client_reveals_only_into_a_closed_list_that_has_its_commitment():
    values = {client: new_value() for client in DRAW.clients}
    commitments, _ = draw_of(values)
    assert may_reveal(DRAW, commitments, (3, values[3]), signed=8)
    assert not may_reveal(DRAW, commitments, (3, values[3]), signed=7)
    assert not may_reveal(DRAW, commitments, (3, values[4]), signed=8)
    assert not may_reveal(DRAW._replace(attempt=1), commitments, (3, values[3]), signed=8)
    with pytest.raises(SecureAggregationError, match=r"\[3\]"):
        close(DRAW, {client: one for client, one in commitments.items() if client != 3})
    assert close(DRAW, commitments) != close(DRAW, {**commitments, 3: bytes(32)})
    with pytest.raises(SpecError, match="31 bytes"):
        commit(DRAW, 0, bytes(31))


@pytest.mark.parametrize(("registered", "colluders", "cohort"), [(6000, 1500, 1000), (100, 20, 30)])
def test_the_tail_is_below_the_odds_over_all_tries(registered, colluders, cohort):
    sizes = sizes_by_lot(registered, colluders, cohort=cohort, dropouts=0.05) if cohort == 1000 else None
    within = sizes.colluders if sizes else 20
    tail = sum(
        Fraction(comb(colluders, k) * comb(registered - colluders, cohort - k), comb(registered, cohort))
        for k in range(within + 1, min(colluders, cohort) + 1)
    )
    assert (colluders + 1) * tail <= Fraction(1, 2**100)
    if sizes:
        assert sizes.min_clients == 950
        assert 250 < sizes.colluders < 475
        assert sizes.honest == 950 - sizes.colluders


def test_a_cohort_without_enough_honest_is_refused():
    with pytest.raises(SpecError, match="larger cohort"):
        sizes_by_lot(2000, 900, cohort=100, dropouts=0.1)


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
