"""Small federations under every lie of a server with its colluders: one sum of the promised size, or nothing."""

import pytest
from sampled import circle_world, sample
from search import search, world

# clients, dropouts, corrupt, rankers: profiles in which somebody may open, views with all deliveries, views with a sum
EXHAUSTIVE = {
    (3, 0.0, 0.1, 1): None,
    (3, 0.0, 0.1, 2): None,
    (4, 0.0, 0.1, 2): None,
    (5, 0.0, 0.1, 2): None,
    (5, 0.2, 0.1, 1): None,
    (5, 0.2, 0.1, 2): None,
    (5, 0.1, 0.3, 2): None,
    (6, 0.0, 0.1, 1): None,
    (6, 0.1, 0.1, 1): None,
    (6, 0.1, 0.3, 1): None,
}
SPARSE = [(8, 4, 1, 1), (9, 4, 1, 2), (10, 6, 2, 1), (12, 6, 2, 2)]  # clients, degree, colluders, dropouts


@pytest.mark.parametrize("setting", EXHAUSTIVE, ids=str)
def test_no_lie_opens_less_than_promised(setting):
    clients, dropouts, corrupt, rankers = setting
    federation = world(clients, dropouts=dropouts, corrupt=corrupt, roots=clients, rankers=rankers)
    found = search(federation)
    print(setting, found[:3])
    assert found.leak is None
    assert found.sums > 0  # the search reaches rounds that end well


@pytest.mark.parametrize("setting", SPARSE, ids=str)
def test_no_sampled_lie_on_a_circle_opens_less_than_promised(setting):
    clients, degree, colluders, dropouts = setting
    for seed in range(5):
        found = sample(circle_world(clients, degree, colluders, dropouts, seed), 1_000, seed)
        print(setting, seed, found[:2])
        assert not found.leaks
        assert found.opened > 100
