"""The one client: what it sends is arithmetic on its interactions, protected by noise that it draws itself."""

import math
from functools import partial

import numpy as np
import pytest
from by_hand import ragged, updates_of
from scipy.stats import chi2, kstest, laplace

from foltr.clicks import Users, click_model, clicks_on
from foltr.client import Searches, local_update
from foltr.federation.round import Release
from foltr.lab.simulation import compiled, plain
from foltr.lab.simulation.task import Federated, Task, protection_in
from foltr.learners.foltr_es import FoltrEs
from foltr.learners.pdgd import Pdgd
from foltr.privacy.calibration import split_multiplier
from foltr.privacy.mechanisms import Fpdgd, Gaussian, Laplace, NoPrivacy, RandomizedResponse, ReleaseContext
from foltr.privacy.noise import SystemStream, gamma_share, gaussian_share
from foltr.rankers import Linear, Mlp
from foltr.rankers.plackett_luce import DRAWS
from foltr.rng import stream
from foltr.types import Interaction, Model

FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0], [9.0, 9.0]])
FIRST = Interaction(FEATURES, np.array([2, 0, 1]), np.array([False, True, False]), np.zeros(4), 0)
SECOND = Interaction(FEATURES, np.array([3, 1]), np.array([True, False]), np.zeros(4), 0)
# all scores were 0 when the lists were shown: rho = 1/2 and sigma'(0) = 1/4, so every pair weighs 1/8
FIRST_GRADIENT = (2 * FEATURES[0] - FEATURES[2] - FEATURES[1]) / 8
SECOND_GRADIENT = (FEATURES[3] - FEATURES[1]) / 8


def addressed(purpose, *, seed=3, round=1, client=0):
    return stream(seed, round=round, client=client, purpose=purpose)


def no_noise(purpose):
    raise AssertionError(f"nobody may ask for {purpose}")


def sent(interactions, learner=None, mechanism=None, *, start=(0.0, 0.0), event=None, noise=addressed):
    model = Model(np.array(start), 7, Linear(), k=10, mechanism_state=(mechanism or NoPrivacy()).init_state())
    return local_update(
        model, interactions, learner=learner or Pdgd(0.5), mechanism=mechanism or NoPrivacy(), noise=noise, event=event
    )


def test_one_step_of_pdgd_by_hand():
    update = sent([FIRST], noise=no_noise)
    assert update.values == pytest.approx(0.5 * FIRST_GRADIENT)
    assert update[1:] == (1.0, 0, 7, None)  # one interaction of client 0, from version 7, and nothing protects it


def test_the_update_is_relative_to_the_model_that_was_sent():
    """Pair weights use the scores as shown, so for a linear ranker the start does not matter."""
    assert sent([FIRST, SECOND], start=(5.0, -3.0)).values == pytest.approx(sent([FIRST, SECOND]).values)


def test_without_interactions_nothing_changes():
    update = sent([])
    assert update.values.tolist() == [0.0, 0.0]
    assert update.weight == 0.0


def test_fedprox_by_hand():
    update = sent([FIRST, SECOND], Pdgd(0.5, prox_mu=0.2))
    first = 0.5 * FIRST_GRADIENT  # at the start there is nothing to pull back
    assert update.values == pytest.approx(first + 0.5 * (SECOND_GRADIENT - 0.2 * first))


def test_scores_as_shown_and_current_scores_weigh_a_pair_differently():
    """Shown by a model of zeros: 1/8. Now the scores are log 3 and log 1: rho = 1/4 and sigma' = 3/16."""
    stale = Interaction(np.eye(2), np.array([0, 1]), np.array([False, True]), np.zeros(2), 0)
    start = (math.log(3), 0.0)
    direction = np.array([-1.0, 1.0])
    assert sent([stale], Pdgd(1.0), start=start).values == pytest.approx(direction / 8)
    current = sent([stale], Pdgd(1.0, pair_scores="current"), start=start)
    assert current.values == pytest.approx(direction * (1 / 4) * (3 / 16))


def test_fpdgd_projects_after_every_step_and_adds_one_share():
    mechanism = Fpdgd(epsilon=1.2, sensitivity=0.5)
    event = mechanism.event(ReleaseContext(4, 1, 2))
    update = sent([FIRST, SECOND], Pdgd(2.0), mechanism, start=(0.3, 0.0), event=event)
    first = mechanism.project(np.array([0.3, 0.0]) + 2.0 * FIRST_GRADIENT)
    second = mechanism.project(first + 2.0 * SECOND_GRADIENT)
    assert np.linalg.norm(first) == pytest.approx(0.5)  # both steps left the ball
    assert np.linalg.norm(second) == pytest.approx(0.5)
    share = gamma_share(addressed("noise"), 2, scale=0.5 / 1.2, noise_contributors=4)
    assert update.values == pytest.approx(second - np.array([0.3, 0.0]) + share, abs=1e-12)
    assert update.event == event


@pytest.mark.parametrize("clip", [0.01, 100.0], ids=["clipped", "within"])
def test_gaussian_clips_in_l2_and_adds_a_share_of_the_noise(clip):
    mechanism = Gaussian(epsilon=1.0, clip=clip)
    event = mechanism.event(ReleaseContext(4, 3, 2))
    update = sent([FIRST], Pdgd(2.0), mechanism, event=event)
    delta = 2.0 * FIRST_GRADIENT
    share = event.noise / 2 * addressed("noise").normal(2)  # a quarter of the variance
    assert update.values == pytest.approx(delta * min(1, clip / np.linalg.norm(delta)) + share, abs=1e-12)


def test_laplace_clips_in_l1_and_adds_a_share_of_the_noise():
    mechanism = Laplace(epsilon=1.0, clip=0.01)
    event = mechanism.event(ReleaseContext(4, 3, 2))
    update = sent([FIRST], Pdgd(2.0), mechanism, event=event)
    share = gamma_share(addressed("noise"), 2, scale=3 * 0.01 / 1.0, noise_contributors=4)  # three releases
    assert update.values == pytest.approx(0.01 * FIRST_GRADIENT / np.abs(FIRST_GRADIENT).sum() + share, abs=1e-12)


@pytest.mark.parametrize(("clip", "bit"), [(0.01, -0.5), (100.0, 0.5)], ids=["clipped", "within"])
def test_an_adaptive_clip_appends_a_noisy_bit_that_says_whether_the_delta_was_within(clip, bit):
    mechanism = Gaussian(epsilon=1.0, clip=clip, adaptive=0.5)
    event = mechanism.event(ReleaseContext(4, 3, 2))
    update = sent([FIRST], Pdgd(2.0), mechanism, event=event)
    assert len(update.values) == 3
    multiplier, bits = split_multiplier(event.noise / event.bound, event.present)
    assert update.values[2] == pytest.approx(bit + bits / 2 * addressed("noise").skip(2).normal(1)[0])
    delta = 2.0 * FIRST_GRADIENT
    clipped = delta * min(1, clip / np.linalg.norm(delta))
    assert update.values[:2] == pytest.approx(clipped + multiplier * clip / 2 * addressed("noise").normal(2))


@pytest.mark.parametrize("mechanism", [Gaussian(), Laplace()], ids=["gaussian", "laplace"])
def test_a_client_whose_training_diverged_sends_noise_only(mechanism):
    event = mechanism.event(ReleaseContext(4, 3, 2))
    with np.errstate(invalid="ignore"):
        broken = FIRST._replace(features=FEATURES * np.inf)
        update = sent([broken], mechanism=mechanism, event=event)
    assert np.array_equal(update.values, sent([], mechanism=mechanism, event=event).values)
    assert np.isfinite(update.values).all()


PEOPLE = 9
DATA = ragged([3, 12, 25, 9, 41, 1, 17], width=6, grades=3)


def simulated(learner, privacy, ranker=None):
    users = (click_model(Users("informational", k=4), grades=3),)
    return Task(DATA, 3, users, ranker or Linear(), learner, Federated(PEOPLE, 5, 3), privacy, seed=3)


@pytest.mark.parametrize("privacy", [Gaussian(clip=0.05), Gaussian(adaptive=0.5), Laplace(), Fpdgd(1.2, 0.1)], ids=str)
@pytest.mark.parametrize("make_engine", [plain.engine, compiled.engine], ids=["plain", "compiled"])
def test_engines_add_the_noise_that_each_client_would_draw(privacy, make_engine):
    """Nobody clicks, so that nothing but noise leaves: the batch has what every client protects by itself."""
    task = simulated(Pdgd(), privacy)
    never = task.click_models[0]._replace(click=np.zeros((4, 3)))
    task = task._replace(click_models=(never,))
    event, state = protection_in(task).event, privacy.init_state()
    clients = np.array([0, 3, 8])
    updates, _ = updates_of(
        make_engine(task), np.zeros(6), clients, np.full(3, 2), round=4, release=Release(state, event)
    )
    for row, client in zip(updates.values, clients.tolist(), strict=True):
        draws = addressed("noise", round=4, client=client)
        assert row == pytest.approx(privacy.protect(np.zeros(6), state, event, draws), abs=1e-12)


def people(task, client, round, interactions, asked):
    """Simulated people, written down once more: a query, the list of the local model, clicks."""

    def search(step, rank):
        at = partial(addressed, seed=task.seed, round=round, client=client)
        query = int(at("queries").skip(step).uniform(1)[0] * (len(DATA.offsets) - 1))
        rows = slice(DATA.offsets[query], DATA.offsets[query + 1])
        ranking, scores = rank(DATA.features[rows], 4, at("ranking").skip(step * DRAWS))
        uniforms = at("clicks").skip(2 * 4 * step).uniform(2 * len(ranking))
        clicks = clicks_on(DATA.labels[rows][ranking], task.click_models[0], uniforms)
        interaction = Interaction(DATA.features[rows], ranking, clicks, scores, round - 1)
        asked.append((step, interaction))
        return interaction

    return Searches(interactions, search)


LEARNERS = {"pdgd": Pdgd(0.5), "fedprox": Pdgd(0.5, prox_mu=0.3), "foltr-es": FoltrEs(sigma=0.5)}


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
@pytest.mark.parametrize("ranker", [Linear(), Mlp(4)], ids=["linear", "mlp"])
def test_a_client_with_people_who_search_sends_what_the_plain_engine_says(learner, ranker):
    task = simulated(learner, NoPrivacy(), ranker)
    start = 0.3 * stream(5, purpose="start").normal(ranker.size(6))
    updates, _ = updates_of(plain.engine(task), start, np.arange(PEOPLE), np.full(PEOPLE, 5), round=2)
    for client in range(PEOPLE):
        asked = []
        update = local_update(
            Model(start, 1, ranker, 4, task.seed), people(task, client, 2, 5, asked), learner=learner,
            mechanism=NoPrivacy(), noise=no_noise, client=client,
        )  # fmt: skip
        assert np.array_equal(update.values, updates.values[client])
        assert [step for step, _ in asked] == [0, 1, 2, 3, 4]
        assert update[1:4] == (5.0, client, 1)


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_a_log_of_what_people_did_gives_the_same_update(learner):
    """Lists from a log, and lists that are made as it goes: for the same interactions the same update."""
    task, asked, start = simulated(learner, NoPrivacy()), [], np.linspace(-1, 1, 6)
    update = partial(
        local_update, Model(start, 1, Linear(), 4, 3), learner=learner, mechanism=NoPrivacy(), noise=no_noise, client=2
    )
    live = update(people(task, 2, 2, 5, asked))
    logged = update([interaction for _, interaction in asked])
    assert np.array_equal(live.values, logged.values)
    assert any(interaction.clicks.any() for _, interaction in asked)


def test_people_are_shown_the_list_of_the_local_model_after_the_steps_before():
    task, asked, start = simulated(Pdgd(0.5), NoPrivacy()), [], np.linspace(-1, 1, 6)
    update = partial(
        local_update, Model(start, 1, Linear(), 4, 3), learner=Pdgd(0.5), mechanism=NoPrivacy(), noise=no_noise
    )
    update(people(task, 0, 2, 5, asked))
    for step, interaction in asked:
        so_far = start + update([before for _, before in asked[:step]]).values
        assert interaction.scores == pytest.approx(Linear().score(so_far, interaction.features), abs=1e-12)


def clicked(*ranks):
    """An interaction with a list of four; only its clicks matter to FOLtR-ES."""
    return Interaction(np.zeros((4, 2)), np.arange(4), np.isin(np.arange(1, 5), ranks), np.zeros(4), 0)


LOG = [clicked(2), clicked(), clicked(1, 3), clicked(4), clicked(3)]


def objectives(learner, mechanism=None, noise=no_noise, log=LOG):
    model = Model(np.zeros(2), 6, Linear(), k=4, seed=1)
    return local_update(model, log, learner=learner, mechanism=mechanism or NoPrivacy(), noise=noise, client=5).values


def test_foltr_es_sends_the_mean_objective_of_each_half():
    assert objectives(FoltrEs()) == pytest.approx([(1 / 2 + 0 + 1) / 3, (1 / 4 + 1 / 3) / 2])
    assert objectives(FoltrEs(antithetic=False)) == pytest.approx([(1 / 2 + 0 + 1 + 1 / 4 + 1 / 3) / 5, 0])
    gains = 1 / np.log2([2, 3, 4, 5])
    dcg = [(gains[1] + gains[0] + gains[2]) / 3, (gains[3] + gains[2]) / 2]
    assert objectives(FoltrEs(objective="dcg")) == pytest.approx(dcg)


def test_randomised_response_replaces_outcomes_before_they_enter_the_objective():
    """Outcomes of a list of four: no click, or the first at rank 1 .. 4; two uniforms an interaction decide."""
    values = [0.0, 1.0, 1 / 2, 1 / 3, 1 / 4]
    truths = [2, 0, 1, 4, 3]
    reported, lies = [], 0
    for step, truth in enumerate(truths):
        honest, which = addressed("privatise", client=5).skip(2 * step).uniform(2)
        others = [outcome for outcome in range(5) if outcome != truth]
        reported.append(values[truth if honest < 0.4 else others[int(which * 4)]])
        lies += honest >= 0.4
    assert 0 < lies < 5  # both happened from this seed
    found = objectives(FoltrEs(), RandomizedResponse(0.4), partial(addressed, client=5))
    assert found == pytest.approx([np.mean(reported[:3]), np.mean(reported[3:])])
    assert not np.allclose(found, objectives(FoltrEs()))


def test_noise_of_the_operating_system_has_the_same_size_and_never_repeats():
    """20,000 coordinates of pure noise; the seed is not ours, so each test is a false alarm once in 10^9."""
    size = 20_000
    for mechanism in (Gaussian(), Laplace(), Fpdgd()):
        event = mechanism.event(ReleaseContext(1, 1, size))
        one, other = (
            sent([], mechanism=mechanism, start=np.zeros(size), event=event, noise=lambda _: SystemStream()).values
            for _ in range(2)
        )
        assert not np.isin(one[one != 0], other).any()
        if isinstance(mechanism, Gaussian):
            below = chi2(size).cdf(np.square(one / event.noise).sum())
            assert 5e-10 < below < 1 - 5e-10
        else:
            assert kstest(one, laplace(scale=event.noise).cdf).pvalue > 1e-9


def test_answers_randomised_by_the_operating_system_are_outcomes_and_vary():
    log = [clicked(1)] * 200
    found = {
        objectives(FoltrEs(), RandomizedResponse(0.5), lambda _: SystemStream(), log).tobytes() for _ in range(5)
    }  # all five agree less than once in 10^9
    assert len(found) > 1


def test_an_adaptive_clip_draws_its_bit_from_the_operating_system_too():
    mechanism = Gaussian(adaptive=0.5)
    event = mechanism.event(ReleaseContext(4, 3, 2))
    one, other = (sent([FIRST], mechanism=mechanism, event=event, noise=lambda _: SystemStream()) for _ in range(2))
    assert len(one.values) == 3
    assert (one.values != other.values).all()


def test_shares_of_the_addressed_stream_are_those_of_the_client_and_round():
    event = Gaussian().event(ReleaseContext(4, 3, 2))
    share = gaussian_share(addressed("noise", client=2, round=9), 2, stddev=event.noise, noise_contributors=4)
    noise = partial(addressed, client=2, round=9)
    assert sent([], mechanism=Gaussian(), event=event, noise=noise).values == pytest.approx(share)


def test_a_weight_that_would_tell_how_often_somebody_searched_is_not_sent():
    mechanism = Gaussian()
    event = mechanism.event(ReleaseContext(4, 3, 2))
    assert sent([FIRST, FIRST], mechanism=mechanism, event=event).weight == 1.0
    assert sent([FIRST, FIRST]).weight == 2.0
