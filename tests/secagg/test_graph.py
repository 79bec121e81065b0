"""The neighbour graph: its odds by enumeration, its shape by looking."""

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foltr.errors import SpecError
from foltr.secagg import graph
from foltr.secagg.guarantee import Guarantee, guarantee


@given(population=st.integers(2, 9), data=st.data())
def test_the_tail_is_that_of_all_ways_to_draw(population, data):
    marked, drawn = data.draw(st.integers(0, population)), data.draw(st.integers(0, population))
    odds = Fraction(data.draw(st.integers(0, 100)), 100)
    ways = [sum(one < marked for one in way) for way in combinations(range(population), drawn)]
    most = graph.most_drawn(population, marked, drawn, odds)

    def exceeding(number):
        return Fraction(sum(found > number for found in ways), len(ways))

    assert exceeding(most) <= odds
    assert most == 0 or exceeding(most - 1) > odds


SHARES = [(0.0, 0.0), (0.1, 0.1), (0.05, 0.3), (0.2, 0.2)]


LARGER = [300, 999, 1000, 1001, 2000, 10_000]


@pytest.mark.parametrize(
    ("registered", "dropouts", "corrupt"),
    [(n, *shares) for shares in SHARES for n in range(3, 201)] + [(n, 0.1, 0.1) for n in LARGER],
)
def test_graph_and_guarantee_agree_at_every_size(registered, dropouts, corrupt):
    """A graph exists for every number of members that clients accept, and it stands dropouts and colluders."""
    try:
        sizes = guarantee(registered, dropouts=dropouts, corrupt=corrupt)
    except SpecError:
        assert 2 * dropouts + corrupt > 0.3  # the usual shares fit every size
        return
    assert sizes.colluders >= max(1, corrupt * registered - 1e-6)  # of the whole registry
    for members in {sizes.min_clients, (sizes.min_clients + sizes.cohort) // 2, sizes.cohort}:
        degree, threshold, most_corrupt = graph.degree_for(members, sizes)
        assert 2 * threshold > degree + most_corrupt
        if degree == members - 1:
            assert most_corrupt == min(sizes.colluders, degree)
            assert threshold <= sizes.min_clients - 1
        else:
            gone = graph.most_drawn(members - 1, sizes.cohort - sizes.min_clients, degree, Fraction(2**-20) / members)
            assert degree % 2 == 0
            assert threshold <= degree - gone


@pytest.mark.parametrize("clients", [3, 4])
def test_so_few_that_all_are_needed(clients):
    assert guarantee(clients, dropouts=0.1, corrupt=0.1).min_clients == clients


def test_no_two_runs_of_a_circle_hold_as_many_colluders_as_a_cut_needs():
    """Every circle of 16 with 3 colluders, by enumeration: the odds that were promised hold for all pairs of runs."""
    members, colluders, degree, odds = 16, 3, 4, Fraction(1, 4)
    most = graph.most_drawn(members, colluders, degree + 2, odds / members**2)
    run, found, ways = degree // 2 + 1, 0, list(combinations(range(members), colluders))
    for way in ways:
        per_run = [sum((start + k) % members in way for k in range(run)) for start in range(members)]
        apart = [(a, b) for a, b in combinations(range(members), 2) if run <= b - a <= members - run]
        found += any(per_run[a] + per_run[b] > most for a, b in apart)
    assert Fraction(found, len(ways)) <= odds


def test_better_odds_ask_for_more_neighbours():
    sizes = guarantee(1000, dropouts=0.1, corrupt=0.1)
    degrees = [graph.degree_for(1000, sizes, failure=2.0**-k).degree for k in (10, 20, 40, 80)]
    assert degrees == sorted(degrees)
    assert degrees[0] < degrees[-1] < 150


def test_among_few_everybody_is_a_neighbour():
    # 9 neighbours, 1 corrupt: 2 t > 9 + 1
    assert graph.degree_for(10, guarantee(10, dropouts=0.1, corrupt=0.1)) == (9, 6, 1)
    assert graph.degree_for(3, guarantee(3, dropouts=0.0, corrupt=0.0)) == (2, 2, 1)


@pytest.mark.parametrize(
    ("clients", "shares", "says"),
    [
        (2, {"dropouts": 0, "corrupt": 0}, "at least 3"),
        (10, {"dropouts": 0.4, "corrupt": 0.3}, "cannot tolerate 4 dropouts and 3 corrupt"),
        (10, {"dropouts": 1.0, "corrupt": 0.0}, "dropouts=1.0"),
        (10, {"dropouts": 0.0, "corrupt": -0.1}, "corrupt=-0.1"),
    ],
)
def test_what_cannot_be_stood_is_refused(clients, shares, says):
    with pytest.raises(SpecError, match=says):
        guarantee(clients, **shares)


def test_fewer_members_than_demanded_have_no_graph():
    with pytest.raises(SpecError, match="demands 900"):
        graph.degree_for(899, guarantee(1000, dropouts=0.1, corrupt=0.1))
    with pytest.raises(SpecError, match="must survive"):
        graph.degree_for(10, Guarantee(10, 5, 1, 4))


@pytest.mark.parametrize(("clients", "degree"), [(101, 10), (120, 32), (7, 6), (8, 4)])
def test_neighbours_are_mutual_and_as_many_as_said(clients, degree):
    around = [graph.neighbours(b"seed", clients, degree, client) for client in range(clients)]
    for client, near in enumerate(around):
        assert len(set(near)) == degree
        assert client not in near
        assert all(client in around[other] for other in near)


def test_another_seed_gives_another_circle():
    assert graph.neighbours(b"one", 200, 20, 0) != graph.neighbours(b"two", 200, 20, 0)


@pytest.mark.parametrize("count", range(1, 18))
def test_every_place_in_a_tree_has_its_proof_and_no_other(count):
    leaves = [graph.merkle_leaf(bytes([k])) for k in range(count)]
    levels = graph.merkle_levels(leaves)
    for place in range(count):
        path = graph.merkle_path(levels, place)
        assert graph.merkle_root(leaves[place], place, count, path) == levels[-1][0]
        assert graph.merkle_root(graph.merkle_leaf(b"other"), place, count, path) != levels[-1][0]
        assert graph.merkle_root(leaves[place], place, count, path + bytes(32)) != levels[-1][0]
        assert not path or graph.merkle_root(leaves[place], place, count, path[:-1]) != levels[-1][0]
