"""The algebra of views on forms whose answer is seen by eye, and against a search over all combinations."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from view_algebra import PRIME, Form, determined, parities


def form(**signs):
    """Symbols: vectors x0 x1 x2, then masks a b c d."""
    names = ["x0", "x1", "x2", "a", "b", "c", "d"]
    bits = {sign: sum(1 << names.index(name) for name, value in signs.items() if value == sign) for sign in (1, -1)}
    return Form(bits[1], bits[-1])


def test_a_mask_that_two_share_cancels_in_their_sum():
    found = determined([form(x0=1, a=1), form(x1=1, a=-1), form(x2=1, b=1)], 3)
    assert found.parity == (0b011,)
    assert found.rational == (((0, 1), (1, 1)),)
    assert found.same_rank


def test_masks_that_stay_determine_nothing():
    found = determined([form(x0=1, a=1, b=1), form(x1=1, a=-1, c=1)], 3)
    assert (found.parity, found.rational) == ((), ())


def test_two_sums_determine_their_difference():
    found = determined([form(x0=1, a=1), form(x1=1, a=-1), form(x1=1, b=1), form(x2=1, b=-1)], 3)
    assert len(found.parity) == len(found.rational) == 2


def test_a_vector_that_only_the_rationals_see():
    """(x + a) + (x - a) = 2 x: nothing modulo 2, the vector but for its first bit in the ring."""
    found = determined([form(x0=1, a=1), form(x0=1, a=-1)], 3)
    assert found.parity == ()
    assert found.rational == (((0, 1),),)


def test_a_vector_of_which_only_a_parity_leaks_shows_in_the_ranks():
    """x0 + a + b, x1 + a - b: the masks of the sum are 2 a, which is zero modulo 2 only."""
    found = determined([form(x0=1, a=1, b=1), form(x1=1, a=1, b=-1)], 3)
    assert found.parity == (0b011,)
    assert found.rational == ()
    assert not found.same_rank


signs = st.dictionaries(st.sampled_from(["x0", "x1", "x2", "a", "b", "c", "d"]), st.sampled_from([1, -1]))


@given(st.lists(signs, max_size=6))
def test_both_fields_agree_with_a_search_over_all_combinations(rows):
    forms = [form(**row) for row in rows]
    found = determined(forms, 3)
    matrix = np.array([[_value(one, symbol) for symbol in range(7)] for one in forms], int).reshape(-1, 7)
    pure = [total[:3] for total in _combinations(matrix, 2) if not total[3:].any()]
    assert {tuple(row) for row in pure} == _span(found.parity)
    assert len(found.rational) == _rank(matrix) - _rank(matrix[:, 3:])
    assert found.same_rank == (_parity_rank(matrix[:, 3:]) == _rank(matrix[:, 3:]))
    assert tuple(parities([one.plus | one.minus for one in forms], 3)) == found.parity


@pytest.mark.parametrize("value", [1, 2, 12345])
def test_the_prime_has_inverses(value):
    assert value * pow(value, -1, PRIME) % PRIME == 1


def _value(one, symbol):
    return (one.plus >> symbol & 1) - (one.minus >> symbol & 1)


def _combinations(matrix, field):
    for factors in product(range(field), repeat=len(matrix)):
        yield (np.array(factors, int) @ matrix) % field if len(matrix) else np.zeros(7, int)


def _span(basis):
    found = {0}
    for row in basis:
        found |= {row ^ other for other in found}
    return {tuple(number >> symbol & 1 for symbol in range(3)) for number in found}


def _rank(matrix):
    return int(np.linalg.matrix_rank(matrix)) if matrix.size else 0


def _parity_rank(matrix):
    count = len({tuple(row) for row in _combinations(np.pad(matrix, ((0, 0), (0, 7 - matrix.shape[1]))), 2)})
    return count.bit_length() - 1
