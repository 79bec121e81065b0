"""Noise of answers: its law, its sensitivity, its event, and whether trials can refute the stated epsilon."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest
from scipy.stats import laplace as law
from silos import FAMILY, seeded, sketches

from foltr.errors import SpecError
from foltr.lab.audit.epsilon import Trials, lower_bound
from foltr.privacy.accounting import epsilon, pure_epsilon
from foltr.silo.noise import VARIANTS, check_noise, event_of, from_system, laplace, paper_draws, perturb_sketch
from foltr.silo.sketches import Sketch, family, hash_terms

TRIALS, SMALL = 10_000, family(bytes(32), rows=4, columns=5)
STATED = 2.0


def test_draws_follow_laplace():  # false alarm 1 in 1,000, seed fixed
    assert kstest(laplace((5000,), 2.0, seeded(3)), law(scale=2.0).cdf).pvalue > 1e-3


def test_numbers_of_the_system_are_uniform_and_new_every_time():  # false alarm 1 in a million
    one, other = from_system(5000), from_system(5000)
    assert kstest(one, "uniform").pvalue > 1e-6
    assert not np.any(one == other)


def test_the_papers_draw_is_one_for_a_document_and_a_question_and_stays():
    columns, other = np.arange(30), np.arange(30)[::-1]
    draws = paper_draws(4000, "count", columns, 0.5, bytes(32))
    assert kstest(draws, law(scale=2.0).cdf).pvalue > 1e-3  # false alarm 1 in 1,000, seed fixed
    assert np.array_equal(draws, paper_draws(4000, "count", columns, 0.5, bytes(32)))
    assert np.array_equal(draws[:9], paper_draws(9, "count", columns, 0.5, bytes(32)))
    for what, asked, secret in (
        ("top", columns, bytes(32)),
        ("count", other, bytes(32)),
        ("count", columns, b"x" * 32),
    ):
        assert not np.any(draws == paper_draws(4000, what, asked, 0.5, secret))


@given(
    text=st.lists(st.sampled_from("abcdef"), max_size=8),
    word=st.sampled_from("abcdef"),
    other=st.sampled_from("abcdef"),
    asked=st.sampled_from("abcdef"),
)
def test_a_word_more_changes_an_answer_by_at_most_z_and_another_word_by_at_most_twice_that(text, word, other, asked):
    base, more, instead = (sketches([" ".join([*text, "x", extra])], SMALL).cells[0] for extra in ("", word, other))
    columns = hash_terms([asked], SMALL).columns[0]
    rows = np.arange(SMALL.rows)
    assert np.abs(more - base).sum() == SMALL.rows
    assert np.abs(more - base)[rows, columns].sum() <= SMALL.rows
    assert np.abs(more - instead).sum() <= 2 * SMALL.rows


def neighbouring_datasets():
    """Cells [z, w] of a document with and without one occurrence of a word, and the sign of the change."""
    having, lacking = (sketches([text], SMALL).cells[0] for text in ("fever cough cough", "cough cough"))
    return having, lacking


def likelihoods(reported, having, lacking):
    """How much rather a release [trials, ...] comes from the first dataset: the optimal statistic."""
    rather = np.abs(reported - lacking) - np.abs(reported - having)
    return rather.reshape(len(reported), -1).sum(axis=1)


def released(stated, uniforms):
    """10,000 released sketches of each of both datasets."""
    many = [
        Sketch("count", sketches(["x"], SMALL).shape, np.tile(dataset, (TRIALS, 1, 1)))
        for dataset in neighbouring_datasets()
    ]
    return [perturb_sketch(one, stated, uniforms).cells for one in many]


def test_trials_refute_noise_that_is_not_sized_for_all_rows():
    """Independent draws of the paper's scale 1 / epsilon in each of four cells: epsilon is four times the stated."""
    reported = released(STATED * SMALL.rows, seeded(3))
    trials = Trials(*(likelihoods(one, *neighbouring_datasets()) for one in reported))
    assert STATED < lower_bound(trials, confidence=1 - 1e-4) <= STATED * SMALL.rows


@pytest.mark.parametrize("seed", [1, 2])
def test_trials_cannot_refute_a_sketch_of_one_shot_noise(seed):
    """All cells are looked at, so all answers together. The bound is right but for 1 in 10,000; it is above half of
    epsilon, so the trials see most there is to see."""
    trials = Trials(*(likelihoods(one, *neighbouring_datasets()) for one in released(STATED, seeded(seed))))
    assert STATED / 2 < lower_bound(trials, confidence=1 - 1e-4) <= STATED


def test_trials_refute_the_papers_epsilon():
    """One difference of two cells settles it: epsilon is beyond all that 10,000 trials can show."""
    columns = hash_terms(["fever"], SMALL).columns[0]
    having, lacking = (dataset[np.arange(SMALL.rows), columns] for dataset in neighbouring_datasets())
    draws = [paper_draws(TRIALS, "count", columns, STATED, secret)[:, None] for secret in (b"a" * 32, b"b" * 32)]
    reported = [np.tile(cells, (TRIALS, 1)) + drawn for cells, drawn in zip((having, lacking), draws, strict=True)]
    place = np.flatnonzero(np.diff(having) != np.diff(lacking))[0]
    trials = Trials(*(np.round(one[:, place + 1] - one[:, place]) for one in reported))
    best_possible = math.log(TRIALS / 2 / 10)
    assert lower_bound(trials, confidence=1 - 1e-4) > best_possible > 3 * STATED


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_event_says_what_holds(variant):
    event = event_of(variant, 30, STATED)
    assert (event.unit, event.adjacency, event.norm, event.clipped, event.bound) == ("word", "zero-out", "l1", "l1", 30)
    figure = epsilon({event: 1}, 1e-9).epsilon
    if variant in ("none", "paper"):
        assert figure == math.inf
    else:
        assert figure == pytest.approx(STATED, rel=0.01)
        assert pure_epsilon(event) == pytest.approx(STATED)


def test_a_noised_sketch_is_of_the_same_kind_and_whole():
    clean = sketches()
    noisy = perturb_sketch(clean, STATED, seeded(5))
    assert (noisy.kind, noisy.shape, noisy.cells.dtype) == (clean.kind, clean.shape, clean.cells.dtype)
    spread = np.abs(noisy.cells - clean.cells).mean()  # the mean size of Laplace noise is its scale
    assert spread == pytest.approx(FAMILY.rows / STATED, rel=0.05)


def test_one_sketch_alone_gets_noise_too():
    one = sketches()._replace(cells=sketches().cells[0])
    assert perturb_sketch(one, STATED, seeded(6)).cells.shape == one.cells.shape


@pytest.mark.parametrize(
    ("variant", "stated"), [("some", 1.0), ("one_shot", 0.0), ("one_shot", -1.0), ("paper", math.inf)]
)
def test_impossible_noise_is_refused(variant, stated):
    with pytest.raises(SpecError, match=r"there are none, paper, one_shot|use a number above 0"):
        check_noise(variant, stated)


def test_fresh_noise_is_gone_and_says_why():
    with pytest.raises(SpecError, match="averaged away by asking again; use one_shot"):
        check_noise("per_query", 1.0)
