"""Small federations under every lie of a server with its colluders: one sum of the promised size, or nothing."""

import pytest
from mutants import SINGLE, applied
from sampled import circle_world, sample
from search import search, world

# clients, dropouts, corrupt, rankers: profiles in which somebody may open, views with all deliveries, views with a sum
EXHAUSTIVE = {
    (3, 0.0, 0.1, 2): (1, 1, 1),
    (4, 0.0, 0.1, 2): (10, 4, 1),
    (5, 0.0, 0.1, 2): (17, 11, 5),
    (5, 0.2, 0.1, 1): (135, 603, 373),
    (5, 0.2, 0.1, 2): (279, 603, 373),
    (5, 0.1, 0.3, 2): (10, 4, 1),
    (6, 0.0, 0.1, 1): (45, 162, 6),
    (6, 0.1, 0.1, 1): (11234, 152673, 1958),
    (6, 0.1, 0.3, 1): (229, 737, 437),
}
SPARSE = [(8, 4, 1, 1), (9, 4, 1, 2), (10, 6, 2, 1), (12, 6, 2, 2)]  # clients, degree, colluders, dropouts


@pytest.mark.parametrize("setting", EXHAUSTIVE, ids=str)
def test_no_lie_opens_less_than_promised(setting):
    clients, dropouts, corrupt, rankers = setting
    federation = world(clients, dropouts=dropouts, corrupt=corrupt, roots=clients, rankers=rankers)
    found = search(federation)
    assert found.leak is None
    assert found[:3] == EXHAUSTIVE[setting]  # the documentation has these numbers


@pytest.mark.parametrize("setting", SPARSE, ids=str)
def test_no_sampled_lie_on_a_circle_opens_less_than_promised(setting):
    clients, degree, colluders, dropouts = setting
    for seed in range(5):
        found = sample(circle_world(clients, degree, colluders, dropouts, seed), 1_000, seed)
        assert not found.leaks
        assert found.opened > 100  # of 1,000: the proposals reach rounds that end well


@pytest.mark.parametrize("setting", SPARSE, ids=str)
def test_sampled_lies_find_a_mutant(setting):
    """The sampling has power: without the check of the number of survivors it finds leaks in every federation."""
    clients, degree, colluders, dropouts = setting
    with applied(SINGLE["survivors"]):
        found = sample(circle_world(clients, degree, colluders, dropouts, seed=0), 1_500, seed=1)
    assert found.leaks
