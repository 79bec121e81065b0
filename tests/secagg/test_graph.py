"""The neighbour graph: its odds by enumeration, its shape by looking."""

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foltr.errors import SpecError
from foltr.secagg import graph


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


@given(clients=st.integers(1, 8), data=st.data())
def test_the_odds_of_a_cut_are_those_of_all_placements(clients, data):
    marked, length = data.draw(st.integers(0, clients)), data.draw(st.integers(0, clients))
    ways = list(combinations(range(clients), marked))  # who is marked; the cut is at the first places
    full = sum(set(range(length)) <= set(way) for way in ways)
    assert graph._all_marked(clients, marked, length) == Fraction(full, len(ways))


@pytest.mark.parametrize("clients", [101, 300, 1000])
@pytest.mark.parametrize(("dropouts", "corrupt"), [(0.0, 0.0), (0.1, 0.1), (0.05, 0.3)])
def test_the_threshold_stands_the_dropouts_and_the_corrupt(clients, dropouts, corrupt):
    degree, threshold, most_corrupt = graph.degree_for(clients, dropouts=dropouts, corrupt=corrupt)
    gone = graph.most_drawn(clients - 1, int(dropouts * clients), degree, Fraction(2**-20) / clients)
    assert 2 * threshold > degree + most_corrupt
    assert threshold <= degree - min(gone, degree)
    assert degree == clients - 1 or degree % 2 == 0


def test_better_odds_ask_for_more_neighbours():
    degrees = [graph.degree_for(2000, dropouts=0.1, corrupt=0.1, failure=2.0**-k).degree for k in (10, 20, 40, 60)]
    assert degrees == sorted(degrees)
    assert degrees[0] < degrees[-1] < 1999


def test_among_few_everybody_is_a_neighbour():
    # 9 neighbours, 1 corrupt: 2 t > 9 + 1
    assert graph.degree_for(10, dropouts=0.1, corrupt=0.1) == (9, 6, 1)
    assert graph.degree_for(3, dropouts=0.0, corrupt=0.0) == (2, 2, 0)


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
        graph.degree_for(clients, **shares)


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
