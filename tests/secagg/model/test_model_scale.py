"""The counting rules over the ranges of real federations, up to 1,000 clients and beyond; exact tails."""

from fractions import Fraction
from hashlib import sha256

import numpy as np
import pytest
from arcs import Circle, drawn, placed, told_apart

from foltr.errors import SpecError
from foltr.secagg import rules
from foltr.secagg.graph import COMPLETE, degree_for
from foltr.secagg.guarantee import guarantee
from foltr.secagg.witnesses import Quorum, draw, quorum_for, split
from scale import both_tails, crowded, cut, exponent, fewest, fewest_that_open_both, opens_both, tail

FAILURE = 2**-80
SHARES = [(dropouts, corrupt) for dropouts in (0.0, 0.05, 0.1, 0.2) for corrupt in (0.0, 0.05, 0.1, 0.2, 0.3)]


def test_a_thousand_clients_promise_eight_hundred():
    assert guarantee(1000, dropouts=0.1, corrupt=0.1) == (1000, 900, 100, 800)


@pytest.mark.parametrize(("dropouts", "corrupt"), SHARES)
def test_where_all_are_neighbours_no_choice_opens_both_secrets_or_two_sums(dropouts, corrupt):
    """Every registry up to 100 clients, every number of members that the client accepts, all colluders among them."""
    seen = 0
    for registered in range(3, COMPLETE + 1):
        try:
            sizes = guarantee(registered, dropouts=dropouts, corrupt=corrupt)
        except SpecError:
            continue
        for members in range(fewest(rules.enough_members, sizes.min_clients, registered), registered + 1):
            shape = degree_for(members, sizes)
            threshold = fewest(rules.enough_signatures, shape.threshold, shape.degree)
            assert shape.degree == members - 1
            assert not any(opens_both(shape.degree, shape.threshold, c) for c in range(sizes.colluders + 1))
            honest = members - sizes.colluders
            signers = threshold + 1 - sizes.colluders  # honest ones behind an opened share, the opener among them
            assert 2 * signers > honest  # no two claims
            survivors = fewest(rules.enough_survivors, sizes.min_clients, members)
            assert survivors - sizes.colluders >= sizes.honest
            assert shape.threshold <= sizes.min_clients - 1  # those who remain can open
            seen += 1
    assert seen > 50


@pytest.mark.parametrize("registered", [101, 130, 200, 350, 500, 700, 1000, 1500, 2000, 10_000])
def test_on_a_circle_each_way_to_open_less_has_probability_2_to_the_minus_80(registered):
    sizes = guarantee(registered, dropouts=0.1, corrupt=0.1)
    for members in np.linspace(sizes.cohort, sizes.min_clients, 5 if registered < 10_000 else 1).astype(int).tolist():
        shape = degree_for(members, sizes)
        witnesses = quorum_for(members, sizes, shape, failure=FAILURE)
        if shape.degree == members - 1:
            continue
        assert fewest_that_open_both(shape) == 2 * shape.threshold - shape.degree
        assert exponent(crowded(members, sizes.colluders, shape)) <= -81
        assert exponent(cut(members, sizes.colluders, shape)) <= -81
        assert split(members, sizes.colluders, shape, witnesses) <= -81 or witnesses.number == members - 1
        assert witnesses.signatures <= witnesses.number


def test_the_tails_by_hand():
    assert tail(5, 2, 2, 2) == Fraction(1, 10)
    assert both_tails(4, 2, 1, 1) == Fraction(1, 6)  # both marked ones at the two given places of four
    assert opens_both(4, 2, 1)
    assert not opens_both(4, 3, 1)


def test_one_threshold_lower_is_seen():
    """The rule model catches what the small model catches."""
    sizes = guarantee(1000, dropouts=0.1, corrupt=0.1)
    shape = degree_for(1000, sizes)
    assert exponent(crowded(1000, 100, shape._replace(threshold=shape.threshold - 8))) > -80
    assert exponent(cut(1000, 100, shape._replace(threshold=shape.threshold - 8))) > -80


# --- two arcs that are told different survivors ---------------------------------------------------------------------


def worst(circle, needed):
    tries = [told_apart(circle, 900, needed, margin, step) for margin in range(60, 130, 6) for step in (3.7, 4, 5, 6)]
    return min((one.in_sum for one in tries if not one.covered), default=None)


def test_two_arcs_told_apart_open_less_than_promised_if_neighbours_sign():
    """The mutant without witnesses: 24 colluders around both borders, as about one of 2^16 graphs has (one of 60,000
    sampled); a server that tries 1,900 graphs a second finds it within a minute."""
    sizes = guarantee(1000, dropouts=0.1, corrupt=0.1)
    shape = degree_for(1000, sizes)
    corrupt = placed(1000, 100, 24, shape.degree)
    found = worst(Circle(shape, corrupt, None), shape.threshold)
    assert found is not None
    assert found < sizes.honest
    assert exponent(both_tails(1000, 100, shape.degree + 1, 24)) > -25  # for one pair of places; there are 2^17 such


@pytest.mark.parametrize("near_borders", [26, 40, 50])
def test_two_arcs_told_apart_open_nothing_with_witnesses(near_borders):
    sizes = guarantee(1000, dropouts=0.1, corrupt=0.1)
    shape = degree_for(1000, sizes)
    number = quorum_for(1000, sizes, shape, failure=FAILURE)
    circle = Circle(shape, placed(1000, 100, near_borders, shape.degree), drawn(1000, number, bytes(32)))
    assert worst(circle, number.signatures) is None
    assert told_apart(circle, 900, number.signatures, 100, 4).in_sum == 0


# --- the draw of witnesses ------------------------------------------------------------------------------------------


def test_witnesses_are_drawn_evenly_and_never_oneself():
    """Each of 60 members is drawn by 59 others with probability 1/2 in 40 graphs: 6 standard deviations allowed."""
    times = np.zeros(60)
    for graph in range(40):
        for member in range(60):
            chosen = draw(sha256(bytes([graph])).digest(), 60, 30, member)
            assert member not in chosen
            assert len(set(chosen)) == 30
            times[chosen] += 1
    mean = 40 * 59 * 30 / 59
    assert np.abs(times - mean).max() < 6 * np.sqrt(40 * 59 * (30 / 59) * (29 / 59))


def test_few_witnesses_are_refused_by_the_bound():
    sizes = guarantee(1000, dropouts=0.1, corrupt=0.1)
    shape = degree_for(1000, sizes)
    assert split(1000, 100, shape, Quorum(shape.degree, shape.threshold)) > -80
