"""Habits of opening: counts of a log; the urn against brute force, and what it says of people with preferences."""

from itertools import pairwise, product
from math import lgamma

import numpy as np
import pytest

from foltr.node.learning.habits import (
    CONCENTRATIONS,
    NO_HABITS,
    count_openings,
    document_lift,
    folder_lift,
    folder_opened,
    habits,
    log_gamma,
    opened,
    weighed,
)
from foltr.node.learning.memory import DAY
from foltr.rng import stream

NOON = 20_000 * DAY + DAY / 2


def test_log_gamma_is_that_of_the_standard_library():
    values = np.array([1e-5, 0.01, 0.5, 1.0, 2.0, 7.3, 150.0, 1e6])
    np.testing.assert_allclose(log_gamma(values), [lgamma(one) for one in values], rtol=1e-9, atol=1e-9)


def drawn_one_after_the_other(sequence, folder_of, concentration, *, level):
    """The probability of a sequence of documents, by the two formulas of the module."""
    counts, chance = {}, 1.0
    sizes = np.bincount(folder_of)
    for number, document in enumerate(sequence):
        folder = folder_of[document]
        in_folder = sum(counts.get(one, 0) for one in range(len(folder_of)) if folder_of[one] == folder)
        if level == "folder":
            chance *= (in_folder + concentration * sizes[folder] / len(folder_of)) / (number + concentration)
        else:
            chance *= (counts.get(document, 0) + concentration / sizes[folder]) / (in_folder + concentration)
        counts[document] = counts.get(document, 0) + 1
    return chance


@pytest.mark.parametrize("sequence", [(0,), (0, 0, 0), (0, 1, 2, 3, 4), (4, 4, 0, 4, 1)])
def test_concentrations_are_weighed_by_the_probability_of_the_sequence(sequence):
    folder_of = np.array([0, 0, 0, 1, 1])
    documents, counts = np.unique(sequence, return_counts=True)
    folders, place = np.unique(folder_of[documents], return_inverse=True)
    found = habits(counts.astype(float), place, np.bincount(folder_of)[folders], 5)
    for level, values in (("folder", found.folders), ("document", found.documents)):
        chances = np.array([drawn_one_after_the_other(sequence, folder_of, one, level=level) for one in CONCENTRATIONS])
        np.testing.assert_allclose(values, chances / chances.sum(), rtol=1e-6)


def test_lifts_are_probabilities_over_chance():
    counts, sizes = np.array([3.0, 0.0, 1.0, 0.0]), np.array([2.0, 2.0, 2.0, 2.0])
    in_folder = np.array([3.0, 3.0, 1.0, 1.0])
    known = habits(np.array([3.0, 1.0]), np.array([0, 1]), np.array([2, 2]), 4)
    both = folder_lift(known, in_folder, sizes / 4, 4.0) * document_lift(known, counts, in_folder, sizes)
    assert (both / 4).sum() == pytest.approx(1)
    assert both.argmax() == 0


def test_before_the_first_opening_every_document_is_alike():
    none = np.zeros(3)
    assert np.allclose(folder_lift(NO_HABITS, none, np.array([0.1, 0.5, 0.4]), 0.0), 1)
    assert np.allclose(document_lift(NO_HABITS, none, none, np.array([1.0, 5.0, 4.0])), 1)


def most_opened(targets):
    """The logarithm of the lift of the most opened document, in an index of 15 folders of 20 documents."""
    documents, counts = np.unique(targets, return_counts=True)
    folders, place = np.unique(documents // 20, return_inverse=True)
    known = habits(counts.astype(float), place, np.full(len(folders), 20), 300)
    top = int(counts.argmax())
    in_folder = np.bincount(place, counts)[place[top], None]
    size, count = np.array([20.0]), counts[top, None].astype(float)
    lift = folder_lift(known, in_folder, size / 300, 50.0) * document_lift(known, count, in_folder, size)
    return float(np.log(lift[0]))


def test_openings_say_more_of_people_who_return_than_of_people_who_do_not():
    for seed in range(5):
        draws = stream(seed, purpose="queries")
        anywhere = draws.integers(300, 50)
        returning = draws.integers(12, 50)  # twelve documents of one folder
        assert most_opened(anywhere) < 1 < most_opened(returning)


def test_more_openings_of_a_document_are_never_worth_less():
    counts = np.arange(5.0)
    for openings, size in product((5.0, 50.0), (5.0, 500.0)):
        values = document_lift(NO_HABITS, counts, np.full(5, openings), np.full(5, size))
        assert all(later > earlier for earlier, later in pairwise(values))


# ---- counts of a log


def test_openings_are_counted_by_document_and_folder():
    uses = [("p", "/x/a", NOON), ("q", "/x/a", NOON - 2 * DAY), ("p", "/x/b", NOON), (None, "/y/c", NOON)]
    counted = count_openings([*uses, (None, "/y/c", NOON)], NOON)
    assert counted.documents == pytest.approx({"/x/a": 1 + 0.975**2, "/x/b": 1, "/y/c": 2})
    assert counted.folders == pytest.approx({"/x": 2 + 0.975**2, "/y": 2})
    assert counted.total == pytest.approx(4 + 0.975**2)


def test_the_same_words_and_document_count_once_as_of_the_newest_opening():
    uses = [("p", "/x/a", NOON), ("p", "/x/a", NOON - 3 * DAY), ("p", "/x/a", NOON - DAY)]
    assert count_openings(uses, NOON).documents == {"/x/a": 1}


def test_folders_are_weighed_against_their_sizes():
    uses = [(None, f"/large/{n}", NOON) for n in range(8)] + [(None, f"/small/{n}", NOON) for n in range(8)]
    counted = weighed(count_openings(uses, NOON), {"/large": 900, "/small": 10}, 1000)
    large, small, never = folder_opened(counted, ["/large/new", "/small/new", "/never/x"])
    assert large < 0 < small  # half of the openings are few for nine tenths of the documents, many for a hundredth
    assert never < 0


def test_documents_that_are_gone_from_the_index_still_count():
    counted = weighed(count_openings([("p", "/x/a", NOON), ("q", "/x/b", NOON)], NOON), {"/x": 0}, 0)
    assert counted.sizes == {"/x": 2}
    assert counted.indexed == 2
    assert np.isfinite(opened(counted, ["/x/a", "/y/c"])).all()


def test_nothing_opened_counts_nothing():
    counted = count_openings([], NOON)
    assert not opened(counted, ["/a"]).any()
    assert not folder_opened(counted, ["/a"]).any()
