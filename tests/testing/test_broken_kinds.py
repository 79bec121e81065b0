"""The contract suites for rankers, learners and mechanisms name the law that is broken."""

import itertools

import numpy as np
import pytest
from breaking import broken, counted, overwriting, refused

from foltr.learners.foltr_es import FoltrEs
from foltr.learners.pdgd import Pdgd, PdgdState
from foltr.privacy.events import Event, noise_by_servers
from foltr.privacy.mechanisms import Gaussian, NoPrivacy, RandomizedResponse
from foltr.rankers import Linear
from foltr.testing import check_learner, check_mechanism, check_ranker

# --- rankers ---------------------------------------------------------------------------------------------------------


def score(self, parameters, features):
    return np.asarray(features, float) @ parameters


def gradient(self, parameters, features, weights):
    return weights @ np.asarray(features, float)


def batch_normalised(self, parameters, features):
    scores = score(self, parameters, features)
    return scores - scores.mean()


def test_the_right_ranker_passes():
    check_ranker(broken(Linear(), score=score, gradient=gradient))


START = np.zeros(5)


@pytest.mark.parametrize(
    ("changed", "law"),
    [
        ({"size": lambda self, d: 0}, r"size\(1\) = 0 is no positive int"),
        ({"size": lambda self, d: d / 1}, "is no positive int"),
        ({"init": lambda self, d, seed: np.zeros(d + 1)}, r"init has the shape \(2,\), not \(1,\)"),
        ({"init": lambda self, d, seed: np.full(d, np.nan)}, "init is not finite"),
        ({"init": counted(lambda self, d, seed, n: np.full(d, float(n)))}, "two results from one seed"),
        ({"init": lambda self, d, seed: START[:d]}, "returns the same array twice"),
        ({"score": lambda self, p, x: np.float64(score(self, p, x).sum())}, r"score has the shape \(\), not \(1,\)"),
        ({"score": batch_normalised}, "not those that they have among all"),
        ({"score": counted(lambda self, p, x, n: score(self, p, x) + n)}, "the same input gives two scores"),
        ({"score": overwriting(0, score)}, "score changes the parameters"),
        ({"gradient": lambda self, p, x, w: 2 * gradient(self, p, x, w)}, "not the slope"),
        ({"gradient": lambda self, p, x, w: gradient(self, p, x, np.abs(w))}, "not the slope"),
        ({"gradient": lambda self, p, x, w: gradient(self, p, x, w)[:-1]}, "gradient has the shape"),
        ({"gradient": overwriting(2, gradient)}, "gradient changes the weights"),
        ({"gradient": lambda self, p, x, w: np.zeros(len(p))}, "not the slope"),
        ({"score": lambda self, p, x: score(self, p**2, x),
          "gradient": lambda self, p, x, w: 2 * p * gradient(self, p, x, w)}, "declare flat_start = True"),
        ({"score_many": lambda self, p, x: 1.01 * score(self, p, x)}, "score_many is not score"),
    ],
)  # fmt: skip
def test_a_broken_law_of_rankers_is_named(changed, law):
    refused(check_ranker, broken(Linear(), **{"score": score, "gradient": gradient, **changed}), law)


# --- learners --------------------------------------------------------------------------------------------------------


def init(self, model, *, client, interactions):
    return PdgdState(model.parameters, model.parameters)


def in_place(self, state, interaction, *, ranker, mechanism, noise):
    state.parameters[:] += ranker.gradient(state.parameters, interaction.features, interaction.scores)
    return state


def without_projection(self, state, interaction, *, ranker, mechanism, noise):
    return Pdgd().client_step(state, interaction, ranker=ranker, mechanism=NoPrivacy(), noise=noise)


def drifting(self, state, interaction, *, ranker, mechanism, noise):
    return state._replace(parameters=state.parameters + 1e-3 * next(CALLS))


CALLS = itertools.count(1)


def honest_outcomes(self, state, interaction, *, ranker, mechanism, noise):
    return FoltrEs().client_step(state, interaction, ranker=ranker, mechanism=NoPrivacy(), noise=noise)


def repeated(self, state, features, k, draws, *, ranker):
    return np.zeros(min(k, len(features)), int), ranker.score(state.parameters, features)


def too_long(self, state, features, k, draws, *, ranker):
    return np.arange(len(features)), ranker.score(state.parameters, features)


def short_scores(self, state, features, k, draws, *, ranker):
    ranking, scores = Pdgd().rank(state, features, k, draws, ranker=ranker)
    return ranking, scores[ranking][: max(0, len(features) - 1)]


def by_chance(self, state, features, k, draws, *, ranker):
    return Pdgd().rank(state, features, k, draws.skip(100 * next(CALLS)), ranker=ranker)


@pytest.mark.parametrize("learner", [Pdgd(), FoltrEs()])
def test_the_right_learner_passes(learner):
    check_learner(broken(learner))


@pytest.mark.parametrize(
    ("changed", "law"),
    [
        ({"message": "gradient"}, "message = 'gradient'; use one of delta, objective"),
        ({"server_optimizer": "sgd"}, "server_optimizer = 'sgd'"),
        ({"server_optimizer": "adam", "learning_rate": None}, "needs a learning_rate"),
        ({"message": "objective"}, "needs an objective: one of max_rr, dcg"),
        ({"rank": repeated}, "must be 2 different documents"),
        ({"rank": too_long}, "must be 4 different documents"),
        ({"rank": short_scores}, "the scores of a list has the shape"),
        ({"rank": by_chance}, "the same draws give two lists"),
        ({"client_init": init, "client_step": in_place}, "changes the start it is given"),
        ({"client_step": drifting}, "the same random streams give two updates"),
        ({"client_step": without_projection}, "apply mechanism.project after every step"),
        ({"client_final": lambda self, state: (state.parameters - state.start)[1:]}, "delta of a client has the shape"),
        ({"client_final": lambda self, state: state.start / 0.0}, "delta of a client is not finite"),
        ({"client_final": lambda self, state: state.start}, "a view of the model"),
        ({"client_final": lambda self, state: state.parameters.copy()}, "without interactions must send zeros"),
        ({"decode": lambda self, updates, *, seed, parameters: updates.values.mean(axis=0)}, "decode has the shape"),
        ({"decode": lambda self, u, *, seed, parameters: u.values - u.values.mean(axis=0)}, "alone than among others"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_a_broken_law_of_learners_is_named(changed, law):
    refused(check_learner, broken(Pdgd(), **changed), law)


def test_a_learner_that_needs_more_than_a_log_is_named():
    """It counts the lists that it drew itself."""
    drawn = []

    def rank(self, state, features, k, draws, *, ranker):
        drawn.append(k)
        return Pdgd().rank(state, features, k, draws, ranker=ranker)

    def step(self, state, interaction, *, ranker, mechanism, noise):
        moved = Pdgd().client_step(state, interaction, ranker=ranker, mechanism=mechanism, noise=noise)
        factor = 2.0 if drawn else 1.0
        drawn.clear()
        return state._replace(parameters=state.parameters + factor * (moved.parameters - state.parameters))

    refused(check_learner, broken(Pdgd(), rank=rank, client_step=step), "a log of the same interactions")


def test_an_objective_that_bypasses_the_mechanism_is_named():
    refused(check_learner, broken(FoltrEs(), client_step=honest_outcomes), "call mechanism.protect on outcomes")


# --- mechanisms ------------------------------------------------------------------------------------------------------

GAUSSIAN = Gaussian(epsilon=2.0)
L2 = Event("gaussian", "l2", 1.0, "l2", 1.0)


def protect(self, values, state, event, draws):
    return values + draws.normal(len(values))


def sometimes_longer(self, values, state, event, draws):
    return np.append(values, values[:5] if len(values) > 5 else []) + 0.0


def with_numpy_positions(self, values, state, event, draws):
    return values + draws.normal(len(values)) + 0.0 * draws.position


@pytest.mark.parametrize("mechanism", [GAUSSIAN, Gaussian(adaptive=0.5), RandomizedResponse(), NoPrivacy()])
def test_the_right_mechanism_passes(mechanism):
    check_mechanism(broken(mechanism))


class Forgetful:
    """A state that changes when it is asked for the next one."""

    def __init__(self):
        self.clip = 1.0


def next_of_forgetful(self, state, extra, context):
    state.clip /= 2
    return state


@pytest.mark.parametrize(
    ("changed", "law"),
    [
        ({"acts_on": "updates"}, "acts_on = 'updates'; use one of delta, outcome, nothing"),
        ({"event": lambda self, context: 1.0}, "event returns 1.0, no Event"),
        ({"event": counted(lambda self, context, n: Event("gaussian", "l2", 1.0, "l2", 1.0 + n))}, "two results for"),
        ({"event": lambda self, context: Event("gaussian", "l2", 1.0, "l1", 1.0)}, "event cannot be accounted for"),
        ({"event": lambda self, context: Event("mine", "l2", 1.0, "l2", 1.0)}, "event cannot be accounted for: mine"),
        ({"project": lambda self, p: p[:-1]}, "project has the shape"),
        ({"project": lambda self, p: p / 0.0}, "project is not finite"),
        ({"project": overwriting(0, lambda self, p: p + 1.0)}, "project changes the values"),
        ({"project": counted(lambda self, p, n: p + n)}, "project gives two results"),
        ({"protect": lambda self, v, state, event, draws: v[:-1]}, "keep the 1 values and append"),
        ({"protect": lambda self, v, state, event, draws: v.sum()}, "keep the 1 values and append"),
        ({"protect": lambda self, v, state, event, draws: v / 0.0}, "protect is not finite"),
        ({"protect": overwriting(0, protect)}, "protect changes the values"),
        ({"protect": counted(lambda self, v, state, event, draws, n: v + n)}, "the same draws give two results"),
        ({"protect": lambda self, v, state, event, draws: v + 0.0}, "other draws give the same values"),
        ({"protect": sometimes_longer, "event": lambda self, context: None}, "appends 0 values to a delta of 5 and 5"),
        ({"protect": with_numpy_positions}, "must work with SystemStream: AttributeError"),
        ({"init_state": lambda self: Forgetful(), "next_state": next_of_forgetful,
          "protect": lambda self, v, state, event, draws: v * state.clip + draws.normal(len(v))},
         "next_state changes the state"),
        ({"init_state": lambda self: 1.0, "next_state": counted(lambda self, state, extra, context, n: n + 0.5),
          "protect": lambda self, v, state, event, draws: v * state + draws.normal(len(v))},
         "next_state gives two results"),
        ({"init_state": lambda self: 0, "next_state": lambda self, state, extra, context: 1,
          "protect": lambda self, v, state, event, draws: np.append(protect(self, v, 0, event, draws), [0.0] * state)},
         "another shape under the next state"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_a_broken_law_of_mechanisms_is_named(changed, law):
    changed = {"event": lambda self, context: L2, "protect": protect, **changed}
    refused(check_mechanism, broken(GAUSSIAN, **changed), law)


def two_servers_get(message):
    """Noise where clients add it; where servers do, what `message` makes of the values."""

    def sent(self, values, state, event, draws):
        return message(values) if event.noise_by == "servers" else protect(self, values, state, event, draws)

    return sent


def for_two_servers(self, context):
    return noise_by_servers(L2) if context.secagg_mode == "two-servers" else L2


@pytest.mark.parametrize(
    ("changed", "law"),
    [
        ({"secagg_modes": ("three-servers",)}, "secagg_modes = .*; use some of one-server, two-servers"),
        ({"event": lambda self, context: L2}, '"Broken" states an event that does not fit secagg.mode = "two-servers"'),
        ({"event": lambda self, context: None}, 'does not fit secagg.mode = "two-servers"'),
        ({"event": lambda self, context: noise_by_servers(L2)}, 'does not fit secagg.mode = "one-server"'),
        ({"event": for_two_servers}, "two servers add the noise, but other draws give other values"),
        ({"event": for_two_servers, "protect": two_servers_get(lambda v: v + 0.0)},
         "two servers add noise for a bound of 1, but protected values have an L2 norm of"),
        ({"event": for_two_servers, "protect": two_servers_get(lambda v: np.append(0.0 * v, 1.0))},
         "two servers add noise to the update alone, but protect appends 1"),
    ],
)  # fmt: skip
def test_a_mechanism_that_declares_a_mode_and_does_not_keep_to_it_is_named(changed, law):
    refused(check_mechanism, broken(GAUSSIAN, **{"protect": protect, **changed}), law)


def needing_positions(self, outcome, outcomes, event, draws):
    return (outcome + draws.position) % outcomes


@pytest.mark.parametrize(
    ("answer", "law"),
    [
        (lambda self, outcome, outcomes, event, draws: outcome + 1, "protect gives 2, no outcome below 2"),
        (lambda self, outcome, outcomes, event, draws: outcome / 2, "protect gives 0.0, no outcome"),
        (counted(lambda self, outcome, outcomes, event, draws, n: n % outcomes), "the same draws give two results"),
        (needing_positions, "must work with SystemStream"),
    ],
)
def test_a_broken_law_of_randomised_outcomes_is_named(answer, law):
    refused(check_mechanism, broken(RandomizedResponse(), protect=answer), law)


def test_what_is_said_names_the_input():
    with pytest.raises(AssertionError) as said:
        check_ranker(broken(Linear(), score=batch_normalised, gradient=gradient))
    first, *given = str(said.value).splitlines()
    assert first.startswith("Broken: the scores of some documents")
    assert {line.split(" = ")[0] for line in given} == {"among_some", "among_all", "parameters", "features", "weights"}
