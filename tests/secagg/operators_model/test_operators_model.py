"""No action of an adversary over up to three rounds breaks a promise of two operators; without a check, one does."""

import pytest
from operator_machine import Operator, Rules, World, begin, successors
from operator_search import search, smallest_support

NOISY = World(honest=3, colluders=1, founders=3, dropouts=1, noise=True, rounds=2, rankers=2)
NOISY_GROWING = World(honest=3, colluders=1, founders=2, dropouts=1, noise=True, rounds=2, rankers=1)
THREE_ROUNDS = World(honest=2, colluders=1, founders=2, dropouts=0, noise=True, rounds=3, rankers=2)
CIRCLE = World(honest=3, colluders=1, founders=3, dropouts=0, noise=False, rounds=3, rankers=2)
CIRCLE_GROWING = World(honest=3, colluders=1, founders=2, dropouts=0, noise=False, rounds=2, rankers=2)
STEADY = World(honest=3, colluders=1, founders=3, dropouts=1, noise=False, rounds=2, rankers=2, steady=True)
OUTSIDER = World(
    honest=3, colluders=0, founders=3, dropouts=1, noise=True, rounds=3, rankers=1, honest_coordinator=True
)

WORLDS = {
    "noisy": NOISY,
    "noisy, growing": NOISY_GROWING,
    "three rounds": THREE_ROUNDS,
    "circle": CIRCLE,
    "circle, growing": CIRCLE_GROWING,
    "steady": STEADY,
    "outsider": OUTSIDER,
}

# check that is left out -> (world, promise that breaks)
MUTANTS = {
    "newer_round": (NOISY, "charged twice"),
    "node_witness": (NOISY, "charged twice"),
    "signature_first": (OUTSIDER, "refuses every later round"),
    "asks_open": (OUTSIDER, "closed round"),
    "client_signature": (CIRCLE, "fewer clients in a sum"),
    "covers_ranker": (CIRCLE, "two rankers"),
    "covers_registry": (CIRCLE_GROWING, "fewer clients in a sum"),
    "enough_clients": (STEADY._replace(rules=Rules(closed_circle=False)), "fewer clients in a sum"),
    "one_half": (NOISY, "more sums than it was charged for"),
    "operator_witness": (NOISY, "thief"),
    "adds_noise": (NOISY, "without the noise"),
    "closed_circle": (STEADY, "combination of fewer"),
    "one_sum_of_a_ranker": (CIRCLE_GROWING, "combination of fewer"),
    "keys_of_rounds": (NOISY, "thief"),
    "erases_keys": (NOISY, "thief"),
}


@pytest.mark.parametrize("name", WORLDS)
def test_no_adversary_breaks_a_promise(name):
    result = search(WORLDS[name])
    assert (result.broken, result.trace) == ("", ())
    assert result.sums > 10  # sums do come out: the promise is not kept by silence


def test_every_check_has_a_mutant():
    assert MUTANTS.keys() == set(Rules._fields)


@pytest.mark.parametrize("name", MUTANTS)
def test_without_a_check_a_promise_breaks(name):
    world, promise = MUTANTS[name]
    result = search(world._replace(rules=world.rules._replace(**{name: False})))
    assert promise in result.broken, (result, name)
    assert result.trace


def test_a_restored_operator_whose_keys_are_erased_opens_no_second_half():
    """It has forgotten what it opened; without the key there is nothing to open."""
    operator = Operator(opened=frozenset({1}), erased=frozenset({1}))
    state = begin(NOISY)._replace(operator=operator._replace(opened=frozenset()))
    assert not any(action.startswith("close Context(round=1") for action, _ in successors(NOISY, state))


def test_two_sums_that_differ_by_one_client_show_its_vector():
    assert smallest_support(frozenset([frozenset([(0, 0), (1, 0), (2, 0)]), frozenset([(0, 0), (1, 0)])])) == 1
    assert smallest_support(frozenset([frozenset([(0, 0), (1, 0), (2, 0)]), frozenset([(0, 1), (1, 1)])])) == 2


@pytest.mark.parametrize("members", [5, 10])
def test_the_sums_of_a_circle_that_changes_by_one_determine_that_member_where_nobody_learned(members):
    """By elimination over the rationals: which combinations of updates are determined."""
    everybody = frozenset((client, 0) for client in range(members))
    without = [everybody - {(client, 0)} for client in range(3)]
    assert smallest_support(frozenset([everybody])) == members
    assert smallest_support(frozenset([everybody, without[0]])) == 1
    assert smallest_support(frozenset([without[1], without[0]])) == 2  # one leaves, another one comes
    assert smallest_support(frozenset([everybody, without[0] & without[1]])) == 2  # two come together
    other_ranker = frozenset((client, 1) for client in range(1, members))
    assert smallest_support(frozenset([everybody, other_ranker])) == members - 1  # updates that have nothing in common
