"""The counting rules over the ranges of real federations, up to 1,000 clients and beyond; exact tails."""

from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest
from arcs import Circle, by_certificate, by_neighbours, placed, told_apart

from foltr.errors import SpecError
from foltr.secagg import rules
from foltr.secagg.certificate import needed, samples
from foltr.secagg.graph import COMPLETE, degree_for
from foltr.secagg.guarantee import guarantee
from scale import both_tails, crowded, cut, exponent, fewest, fewest_that_open_both, forged, opens_both, tail

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
            assert shape.degree == members - 1
            assert not any(opens_both(shape.degree, shape.threshold, c) for c in range(sizes.colluders + 1))
            signers = fewest(rules.enough_signers, needed(sizes), registered)
            for colluders in range(sizes.colluders + 1):  # no two claims, whatever members they name
                assert 2 * (signers - colluders) > sizes.cohort - colluders
            assert all(samples(named, sizes, failure=FAILURE) == signers for named in (signers, members))  # all of it
            assert signers <= sizes.min_clients  # those who remain can sign
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
        if shape.degree == members - 1:
            continue
        assert fewest_that_open_both(shape) == 2 * shape.threshold - shape.degree
        assert exponent(crowded(members, sizes.colluders, shape)) <= -81
        assert exponent(cut(members, sizes.colluders, shape)) <= -81


@pytest.mark.parametrize("registered", [101, 130, 200, 350, 500, 700, 1000, 1500, 2000])
def test_a_claim_of_a_minority_has_a_certificate_with_probability_2_to_the_minus_80(registered):
    """For each try, with every number of signers from the fewest to all; the sample is no larger than it must be."""
    sizes = guarantee(registered, dropouts=0.1, corrupt=0.1)
    valid = needed(sizes) - 1
    for colluders in range(0, sizes.colluders + 1, max(1, sizes.colluders // 5)):
        assert 2 * (valid + 1 - colluders) > sizes.cohort - colluders  # no two claims
    for signers in np.linspace(sizes.cohort, valid + 1, 4).astype(int).tolist():
        number = samples(signers, sizes, failure=FAILURE)
        if number <= valid:
            assert forged(signers, valid, number) <= FAILURE < forged(signers, valid, number - 1)
        else:
            assert number == valid + 1 <= signers  # more than can be valid


def test_the_tails_by_hand():
    assert tail(5, 2, 2, 2) == Fraction(1, 10)
    assert both_tails(4, 2, 1, 1) == Fraction(1, 6)  # both marked ones at the two given places of four
    assert opens_both(4, 2, 1)
    assert not opens_both(4, 3, 1)
    assert forged(4, 2, 1) == Fraction(1, 2) + Fraction(1, 2) / 256
    assert forged(4, 2, 2) == Fraction(1, 6) + Fraction(2, 3) / 256 + Fraction(1, 6) / 256**2


def test_one_threshold_lower_is_seen():
    """The rule model catches what the small model catches."""
    sizes = guarantee(1000, dropouts=0.1, corrupt=0.1)
    shape = degree_for(1000, sizes)
    assert exponent(crowded(1000, 100, shape._replace(threshold=shape.threshold - 8))) > -80
    assert exponent(cut(1000, 100, shape._replace(threshold=shape.threshold - 8))) > -80


# --- two arcs that are told different survivors ---------------------------------------------------------------------


def worst(circle, convinced):
    choices = product(range(60, 130, 6), (3.7, 4, 5, 6))
    tries = [told_apart(circle, 900, convinced, margin, step) for margin, step in choices]
    return min((one.in_sum for one in tries if not one.covered), default=None)


def test_two_arcs_told_apart_open_less_than_promised_if_neighbours_sign():
    """The mutant without a certificate: 24 colluders around both borders, as about one of 2^16 graphs has (one of
    60,000 sampled); a server that tries 1,900 graphs a second finds it within a minute."""
    sizes = guarantee(1000, dropouts=0.1, corrupt=0.1)
    shape = degree_for(1000, sizes)
    found = worst(Circle(shape, placed(1000, 100, 24, shape.degree)), by_neighbours)
    assert found is not None
    assert found < sizes.honest
    assert exponent(both_tails(1000, 100, shape.degree + 1, 24)) > -25  # for one pair of places; there are 2^17 such


@pytest.mark.parametrize("near_borders", [24, 40, 50])
def test_two_arcs_told_apart_open_nothing_with_a_certificate(near_borders):
    """450 honest clients at most in each, and 100 colluders: one signer less than a certificate needs."""
    sizes = guarantee(1000, dropouts=0.1, corrupt=0.1)
    shape = degree_for(1000, sizes)
    circle, convinced = Circle(shape, placed(1000, 100, near_borders, shape.degree)), partial(by_certificate, sizes)
    assert worst(circle, convinced) is None
    assert told_apart(circle, 900, convinced, 100, 4).in_sum == 0
    everybody = np.ones(1000, bool)
    assert by_certificate(sizes, circle, everybody).all()
