"""Every mutant of the protocol is caught by the model, and its report names the attack."""

import pytest
from mutants import PAIRS, SINGLE, STAGED, Mutant, always, applied, sums_of_three, with_threshold
from search import judged, search

from foltr.secagg import rules

MUTANTS = SINGLE | PAIRS


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name):
    with applied(MUTANTS[name]) as weakened:
        found = search(weakened)
    assert found.leak is not None, f"not caught: {MUTANTS[name].removed}"
    assert found.leak.clients, MUTANTS[name].attack


@pytest.mark.parametrize("name", MUTANTS)
def test_the_protocol_is_not(name):
    """In the same federation, with all checks in place."""
    assert search(MUTANTS[name].world).leak is None


@pytest.mark.parametrize("name", STAGED)
def test_a_staged_attack_works_on_the_mutant_only(name):
    mutant, paths = STAGED[name]
    with applied(mutant) as weakened:
        _, leak = judged(weakened, paths())
    assert leak is not None
    assert leak.clients == ((5,),)
    assert judged(mutant.world, paths()) == (False, None)


@pytest.mark.parametrize("only", [0, 1])
def test_of_a_pair_each_stops_the_attack(only):
    with applied(PAIRS["proofs"], only) as weakened:
        assert search(weakened).leak is None


@pytest.mark.parametrize("name", ["enough_members", "survives", "enough_surviving_neighbours"])
@pytest.mark.parametrize("federation", ["survivors", "agree twice", "sizes"])
def test_checks_that_another_one_covers_where_all_are_neighbours(name, federation):
    mutant = Mutant(name, "none", ((rules, name, always),), MUTANTS[federation].world)
    with applied(mutant) as weakened:
        assert search(weakened).leak is None


def test_one_claim_covers_a_lower_threshold_and_a_smaller_sum_where_all_are_neighbours():
    """Honest clients that open shares of one claim open the same secret; three of six cannot sign for a majority."""
    five, six = MUTANTS["threshold"].world, MUTANTS["sizes"].world
    assert five.shapes[5].threshold == 3
    assert search(with_threshold(five, 2)).leak is None
    assert search(sums_of_three(six)).leak is None


@pytest.mark.parametrize("name", ["proofs", "both shares", "wrong share", "mask twice", "agree twice", "round twice"])
def test_the_worst_of_them_show_a_single_vector(name):
    with applied(MUTANTS[name]) as weakened:
        leak = search(weakened).leak
    assert min(len(clients) for clients in leak.clients) == 1
