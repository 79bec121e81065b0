"""Maximum a posteriori weights from clicks: the minimum is the right one, and the client contract holds."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, brentq, minimize

from foltr.client import local_update
from foltr.errors import SpecError
from foltr.federation.server import init_state, server_optimizer
from foltr.learners import softmax
from foltr.learners.softmax import SoftmaxMap, compare, fit, minimise
from foltr.privacy.mechanisms import NoPrivacy
from foltr.rankers import Linear
from foltr.rng import stream
from foltr.types import Interaction, Model

WIDTH = 6


def interaction(number, *, candidates=30, k=10, clicked=None, weights=None):
    draws = stream(5, round=number, purpose="data")
    features = draws.uniform(candidates * WIDTH).reshape(candidates, WIDTH).astype(np.float32)
    scores = features @ (np.ones(WIDTH) if weights is None else weights)
    clicks = np.zeros(min(k, candidates), dtype=bool)
    clicks[clicked if clicked is not None else draws.skip(10**6).integers(len(clicks), 1)] = True
    return Interaction(features, np.argsort(-scores, kind="stable")[:k], clicks, scores, 0)


LOG = [interaction(number) for number in range(40)]
START = stream(2, purpose="start").normal(WIDTH)
PRIOR = np.array([0.5, 1.0, 2.0, 2.0, 5.0, 20.0])


def loss_by_hand(weights, log=LOG, start=START, prior=PRIOR):
    """Every candidate that was not clicked is a rival of weight 1."""
    total = 0.5 * (prior * (weights - start) ** 2).sum()
    for one in log:
        scores = one.features.astype(float) @ weights
        for clicked in one.ranking[one.clicks]:
            rivals = np.setdiff1d(np.arange(len(scores)), one.ranking[one.clicks])
            total += np.log(1 + np.exp(scores[rivals] - scores[clicked]).sum())
    return total


def problem(unshown=1000):
    every = [compare(one, stream(0, round=i, purpose="choice"), unshown) for i, one in enumerate(LOG)]
    return softmax._stacked([one for some in every for one in some], START, PRIOR)


def test_the_fit_is_the_minimum_that_scipy_finds_from_anywhere():
    fitted, factor = fit(LOG, START, PRIOR, unshown=1000), sharpness_of(LOG, START)
    for seed in range(3):
        begin = 3 * stream(seed, purpose="start").normal(WIDTH)
        found = minimize(loss_by_hand, begin, args=(LOG, factor * START), method="BFGS", options={"gtol": 1e-8}).x
        assert np.allclose(factor * fitted, found, atol=1e-5)


def test_a_guess_saves_steps_and_does_not_change_the_fit(monkeypatch):
    every = [one for i, log in enumerate(LOG) for one in compare(log, stream(0, round=i, purpose="choice"), 1000)]
    cold = softmax.posterior_mode(every, START, PRIOR)
    for seed in range(3):
        guess = 3 * stream(seed, purpose="start").normal(WIDTH)
        assert np.allclose(softmax.posterior_mode(every, START, PRIOR, guess=guess), cold, atol=1e-10)
    assert np.array_equal(softmax.posterior_mode(every, START, PRIOR, guess=np.full(WIDTH, np.nan)), cold)
    minimum, steps, derivatives = minimise(every, START, PRIOR), [], softmax.derivatives
    monkeypatch.setattr(softmax, "derivatives", lambda *given: steps.append(1) or derivatives(*given))
    minimise(every, START, PRIOR)
    cold_steps = len(steps)
    minimise(every, START, PRIOR, guess=minimum)
    assert len(steps) - cold_steps == 1 < cold_steps


def sharpness_of(log, start):
    every = [compare(one, stream(0, round=i, purpose="choice"), 1000) for i, one in enumerate(log)]
    return softmax.sharpness([one for some in every for one in some], start)


def test_random_clicks_flatten_and_clicks_on_the_first_sharpen_the_start():
    good = np.full(WIDTH, 2.0)
    first = [interaction(number, clicked=0, weights=good) for number in range(60)]
    assert sharpness_of(first, good) > 1 > sharpness_of([interaction(n, weights=good) for n in range(60)], good)
    assert 0.2 <= sharpness_of(LOG, -100 * good) <= sharpness_of(first, 1e-3 * good) <= 3.0


def test_a_factor_of_the_start_changes_no_order_where_nothing_else_is_learned():
    """With a prior that fixes the direction, the weights of noisy clicks are the start's."""
    assert np.allclose(fit(LOG, START, 1e12), START)


def test_the_objective_is_the_sum_written_out():
    for seed in range(3):
        weights = stream(seed, purpose="start").normal(WIDTH)
        assert softmax.objective(problem(), weights) == pytest.approx(loss_by_hand(weights), rel=1e-12)


def test_derivatives_are_those_of_finite_differences():
    weights = stream(4, purpose="start").normal(WIDTH)
    gradient, hessian = softmax.derivatives(problem(), weights)
    assert np.allclose(gradient, approx_fprime(weights, lambda w: softmax.objective(problem(), w), 1e-7), atol=1e-3)
    slopes = approx_fprime(weights, lambda w: softmax.derivatives(problem(), w)[0], 1e-6)
    assert np.allclose(hessian, slopes, atol=1e-3)


def test_the_hessian_is_at_least_the_prior():
    """Strict convexity: one minimum."""
    for seed in range(5):
        weights = 10 * stream(seed, purpose="start").normal(WIDTH)
        _, hessian = softmax.derivatives(problem(), weights)
        assert np.linalg.eigvalsh(hessian - np.diag(PRIOR)).min() > -1e-9


def test_one_click_against_one_rival_by_hand():
    """lambda w = sigma(-2 w): the clicked document has feature 2, the rival 0."""
    one = Interaction(np.array([[2.0], [0.0]]), np.array([1, 0]), np.array([False, True]), np.zeros(2), 0)
    by_hand = brentq(lambda w: 4 * w - 2 / (1 + np.exp(2 * w)), -5, 5, xtol=1e-14)
    assert fit([one], np.zeros(1), 4.0) == pytest.approx([by_hand], rel=1e-9)


def test_sampled_rivals_stand_for_all():
    one = interaction(3, candidates=1000)
    exact = compare(one, stream(0, purpose="choice"), 1000)[0]
    total = np.exp(exact.differences @ START + exact.offsets).sum()
    sums = []
    for seed in range(200):
        sampled = compare(one, stream(seed, purpose="choice"), 50)[0]
        assert len(sampled.offsets) == 9 + 50
        sums.append(np.exp(sampled.differences @ START + sampled.offsets).sum())
    assert abs(np.mean(sums) - total) < 4 * np.std(sums) / np.sqrt(len(sums))  # false alarm 1 in 10,000, seeds fixed


def test_sampled_rivals_are_different_and_were_not_shown():
    ranking = np.array([3, 7, 11])
    chosen, weight = softmax.sample_unshown(40, ranking, stream(1, purpose="choice"), 10)
    assert len(set(chosen.tolist())) == 10
    assert not set(chosen.tolist()) & set(ranking.tolist())
    assert weight == 37 / 10
    everything, one = softmax.sample_unshown(40, ranking, stream(1, purpose="choice"), 37)
    assert (len(everything), one) == (37, 1.0)
    assert len(softmax.sample_unshown(40, ranking, stream(1, purpose="choice"), 0)[0]) == 0


def test_nothing_is_learned_without_a_rival_or_a_click():
    silent = interaction(1)._replace(clicks=np.zeros(10, dtype=bool))
    single = interaction(1, candidates=1, k=1, clicked=0)
    everything = interaction(1, candidates=4, k=4, clicked=[0, 1, 2, 3])
    assert np.array_equal(fit([silent, single, everything], START, 1.0), START)
    assert np.array_equal(fit([], START, 1.0), START)


def test_several_clicks_of_a_list_are_compared_one_by_one_and_never_with_each_other():
    found = compare(interaction(1, clicked=[2, 5]), stream(0, purpose="choice"), 1000)
    assert [len(one.offsets) for one in found] == [28, 28]


def test_a_strong_prior_stays_and_a_weak_one_moves():
    weak = fit(LOG, START, np.array([1e9] * 5 + [1e-3])) - START
    assert np.abs(weak[:5]).max() < 1e-6
    assert abs(weak[5]) > 0.1


def test_the_order_of_the_log_and_of_its_candidates_does_not_matter():
    shuffled = []
    for number, one in enumerate(reversed(LOG)):
        order = stream(number, purpose="data").permutation(len(one.scores))
        places = np.argsort(order)
        shuffled.append(
            one._replace(features=one.features[order], ranking=places[one.ranking], scores=one.scores[order])
        )
    assert np.allclose(fit(LOG, START, PRIOR, unshown=1000), fit(shuffled, START, PRIOR, unshown=1000), atol=1e-9)


def test_a_good_list_is_not_reversed():
    """Clicks at the first place of lists of the start weights; pairs with skipped documents would have no say here."""
    start = np.ones(WIDTH)
    log = [interaction(number, clicked=0, weights=start) for number in range(100)]
    fitted = fit(log, start, 20.0)
    assert (fitted > 0.9).all()
    later = [interaction(1000 + number, clicked=9, weights=start) for number in range(100)]
    assert (fit(later, start, 20.0) > 0).all()  # also where people look for what stands last


@pytest.mark.parametrize("broken", [np.inf, -np.inf, np.nan])
def test_a_list_with_features_that_are_no_numbers_is_left_out(broken):
    features = LOG[0].features.copy()
    features[LOG[0].ranking[0], 2] = broken
    wrong = LOG[0]._replace(features=features)
    assert np.array_equal(fit([*LOG[1:], wrong], START, PRIOR), fit(LOG[1:], START, PRIOR))


def test_huge_features_and_starts_end_in_finite_weights():
    huge = [one._replace(features=one.features * np.float32(1e30)) for one in LOG]
    assert np.isfinite(fit(huge, START, PRIOR)).all()
    assert np.isfinite(fit(LOG, START * 1e6, PRIOR)).all()


def update(learner, log=LOG, start=START):
    return local_update(
        Model(start, 3, Linear()), log, learner=learner, mechanism=NoPrivacy(), noise=lambda purpose: None
    ).values


def test_a_client_sends_the_difference_of_the_fit():
    learner = SoftmaxMap(prior=3.0, history_prior=0.5, history=(1, 4), unshown=1000)
    prior = np.array([3.0, 0.5, 3.0, 3.0, 0.5, 3.0])
    assert np.allclose(update(learner), fit(LOG, START, prior, unshown=1000) - START, atol=1e-12)


def test_when_it_refits_on_the_way_does_not_change_what_is_sent():
    sent = [update(SoftmaxMap(prior=1.0, refit_every=every)) for every in (1, 7, 1000)]
    assert np.array_equal(sent[0], sent[1])
    assert np.array_equal(sent[0], sent[2])


def test_people_see_the_lists_of_the_last_refit():
    learner, shown = SoftmaxMap(prior=0.1, refit_every=3), []
    state = learner.client_init(Model(START, 0, Linear()), client=0, interactions=100)
    for one in LOG[:7]:
        shown.append(state.parameters)
        state = learner.client_step(state, one, ranker=Linear(), mechanism=NoPrivacy(), noise=None)
    changed = [not np.array_equal(a, b) for a, b in zip(shown, [*shown[1:], state.parameters], strict=True)]
    assert changed == [False, False, True, False, False, True, False]


def test_nothing_is_learned_from_too_few_clicks():
    assert not update(SoftmaxMap(min_clicks=41)).any()
    assert update(SoftmaxMap(min_clicks=40)).any()


def test_updates_are_clipped():
    free, clipped = update(SoftmaxMap(prior=1.0)), update(SoftmaxMap(prior=1.0, clip=0.1))
    assert np.linalg.norm(free) > 0.1
    assert np.linalg.norm(clipped) == pytest.approx(0.1)
    assert np.allclose(clipped / 0.1, free / np.linalg.norm(free))


def test_the_server_learning_rate_scales_the_step():
    delta = np.arange(3.0)
    for learner, expected in ((SoftmaxMap(), delta), (SoftmaxMap(server_learning_rate=2.0), 2 * delta)):
        after = server_optimizer(learner)(init_state(np.ones(3)), delta)
        assert np.array_equal(after.parameters, 1 + expected)
        assert after.version == 1


def test_history_beyond_the_parameters_is_refused():
    with pytest.raises(SpecError, match="history names parameter 6; there are 0 to 5"):
        update(SoftmaxMap(history=(6,)))


def test_minimise_ends_where_no_step_is_possible():
    assert np.isnan(minimise(compare(LOG[0], stream(0, purpose="choice"), 5), np.full(WIDTH, np.nan), 1.0)).all()
