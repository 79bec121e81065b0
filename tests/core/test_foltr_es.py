"""FOLtR-ES: the gradient estimate, Adam, and which random numbers a client reads."""

import math
from functools import partial

import numpy as np
import pytest
from by_hand import far, standard_errors, updates_of

from foltr.clicks import ClickTable, Users, click_model, clicks_on
from foltr.federation import server
from foltr.lab.simulation import compiled, plain
from foltr.lab.simulation.rounds import run
from foltr.lab.simulation.task import Federated, Task
from foltr.learners.foltr_es import FoltrEs, outcome_of, outcomes, perturbation_stream
from foltr.privacy.mechanisms import NoPrivacy, RandomizedResponse
from foltr.rankers import Linear
from foltr.rng import stream
from foltr.types import Dataset, Model, Updates

THETA = np.array([0.5, -1.0, 2.0, 0.0])
CURVE = np.array([2.0, -1.0, 0.5, 3.0])
SLOPE = np.array([1.0, 0.0, -2.0, 0.25])


def hill(points):
    """A quadratic function of points [n, 4]; its gradient is SLOPE + CURVE * theta."""
    return points @ SLOPE + (CURVE * points**2).sum(axis=1) / 2


def measured(values, *, sigma, antithetic=True, seed=51):
    """What the server makes of these values [n, 2] of clients 0 .. n - 1: estimates of the gradient [n, 4]."""
    people = len(values)
    updates = Updates(values, np.ones(people), np.arange(people), np.zeros(people, np.int64))
    return FoltrEs(sigma=sigma, antithetic=antithetic).decode(updates, seed=seed, parameters=4)


def perturbations(people, seed):
    """[n, 4] N(0, I) of the first round."""
    return np.stack([perturbation_stream(seed, 1, client).normal(4) for client in range(people)])


@pytest.mark.parametrize("sigma", [0.01, 0.3])
def test_the_antithetic_estimate_is_the_gradient(sigma):
    people = 20_000
    steps = perturbations(people, seed=51)
    values = np.stack([hill(THETA + sigma * steps), hill(THETA - sigma * steps)], axis=1)
    estimate = measured(values, sigma=sigma).mean(axis=0)
    gradient = SLOPE + CURVE * THETA
    # of a quadratic the estimate is the mean of e (e . gradient): unbiased, with variance (|g|^2 + g_i^2) / n
    error = np.sqrt((gradient @ gradient + gradient**2) / people)
    assert (np.abs(estimate - gradient) < far(1e-3, looks=4) * error).all()  # false alarm 1 in 1,000


def test_the_one_sided_estimate_is_the_gradient():
    people, sigma = 20_000, 0.3
    steps = perturbations(people, seed=52)
    values = np.stack([hill(THETA + sigma * steps), np.full(people, np.nan)], axis=1)  # the other half is not read
    single = measured(values, sigma=sigma, antithetic=False, seed=52)
    assert (standard_errors(single, SLOPE + CURVE * THETA) < far(1e-3, looks=4)).all()  # false alarm 1 in 1,000


def test_estimates_of_two_clients_by_hand():
    # steps are sigma e; the estimate is 1 / (2 sigma^2 n) * sum of sigma e (f+ - f-)
    steps, sigma = perturbations(2, seed=51), 0.1
    values = np.array([[0.7, 0.2], [0.1, 0.4]])
    expected = (sigma * steps[0] * 0.5 + sigma * steps[1] * -0.3) / (2 * sigma**2 * 2)
    assert measured(values, sigma=sigma).mean(axis=0) == pytest.approx(expected)
    expected = (sigma * steps[0] * 0.7 + sigma * steps[1] * 0.1) / (sigma**2 * 2)
    assert measured(values, sigma=sigma, antithetic=False).mean(axis=0) == pytest.approx(expected)


def test_server_and_client_make_the_same_perturbation_of_a_seed():
    learner = FoltrEs(sigma=0.25)
    sent = Model(np.zeros(5), version=6, ranker=Linear(), seed=1)
    state = learner.client_init(sent, client=3, interactions=4)
    public = stream(1, round=7, client=3, purpose="perturbation").normal(5)
    assert np.array_equal(state.change, 0.25 * public)
    updates = Updates(np.array([[0.5, 0.0]]), np.ones(1), np.array([3]), np.array([6]))
    assert learner.decode(updates, seed=1, parameters=5)[0] == pytest.approx(0.5 / (2 * 0.25) * public)


def test_two_steps_of_adam_by_hand():
    state = server.init_state(np.array([1.0, 1.0]))
    first, second = np.array([0.5, -2.0]), np.array([1.0, 3.0])
    step = server.adam(0.001)
    state = step(state, first)
    # after one step the corrected moments are the gradient and its square: a step of the learning rate, uphill
    assert state.parameters == pytest.approx([1 + 0.001, 1 - 0.001], abs=1e-10)
    state = step(state, second)
    for i in range(2):
        mean = (0.9 * 0.1 * first[i] + 0.1 * second[i]) / (1 - 0.9**2)
        square = (0.999 * 0.001 * first[i] ** 2 + 0.001 * second[i] ** 2) / (1 - 0.999**2)
        before = 1 + 0.001 * first[i] / (abs(first[i]) + 1e-8)
        assert state.parameters[i] == pytest.approx(before + 0.001 * mean / (math.sqrt(square) + 1e-8), abs=1e-15)
    assert state.version == 2


def test_a_gradient_of_zero_does_not_move_adam():
    assert server.adam(0.001)(server.init_state(THETA), np.zeros(4)).parameters.tolist() == THETA.tolist()


# ten queries of ten documents; only document q of query q is good. All features are zero, so every ranker shows them in
# their order, and nDCG = 1 / log2(q + 2) tells which query was asked.
TEN = Dataset(np.zeros((100, 3), np.float32), np.eye(10, dtype=np.int8).ravel(), np.arange(0, 101, 10), np.arange(10))
USERS = click_model(Users(ClickTable((0.3, 0.8), (0.1, 0.5))), grades=2)
PEOPLE, STEPS = 60, 3


def reported_by(make_engine, streams, antithetic=False, privacy=None):
    """Values [n, 2], perturbations [n, 3], queries [n, steps] and reciprocal ranks [n, steps] of a fourth round."""
    learner = FoltrEs(antithetic=antithetic, streams=streams)
    task = Task(TEN, 2, (USERS,), Linear(), learner, Federated(), privacy or NoPrivacy(), seed=61)
    engine = make_engine(task)
    updates, online = updates_of(engine, np.zeros(3), np.arange(PEOPLE), np.full(PEOPLE, STEPS), round=4)
    decode = getattr(engine, "decode", None) or partial(learner.decode, seed=61, parameters=3)
    estimates = decode(updates._replace(values=np.tile([2 * learner.sigma, 0.0], (PEOPLE, 1))))
    steps = estimates if antithetic else estimates / 2  # such values weigh 1, and twice that without a second half
    queries = np.rint(2 ** (1 / online.ndcg)).astype(int) - 2
    return updates.values, steps, queries.reshape(PEOPLE, STEPS), online.max_rr.reshape(PEOPLE, STEPS)


def answer(query, clicks, privatise, p):
    """The true value of an interaction, and the reported one."""
    grades = TEN.labels[10 * query : 10 * query + 10]
    clicked = clicks_on(grades, USERS, clicks.uniform(20))
    truth = outcome_of(clicked, "max_rr")
    possible = outcomes("max_rr", 10)
    return possible[truth], possible[RandomizedResponse(p).protect(truth, 11, None, privatise)]


@pytest.mark.parametrize("make_engine", [plain.engine, compiled.engine], ids=["plain", "compiled"])
def test_shared_streams_read_the_numbers_of_the_perturbation_from_its_beginning(make_engine):
    values, steps, queries, max_rr = reported_by(make_engine, "shared_rng", privacy=RandomizedResponse(0.5))
    for client in range(PEOPLE):
        public, privatise = (stream(61, round=4, client=client, purpose=use) for use in ("perturbation", "privatise"))
        assert steps[client] == pytest.approx(public.normal(3), abs=1e-14)
        reported = []
        for step in range(STEPS):
            # one number for the query, two a rank for the clicks; the answer is randomised from a stream of its own
            numbers = public.skip(step * (1 + 20))
            assert queries[client, step] == math.floor(numbers.uniform(1)[0] * 10)
            truth, report = answer(queries[client, step], numbers.skip(1), privatise.skip(2 * step), 0.5)
            assert max_rr[client, step] == truth
            reported.append(report)
        assert values[client, 0] == pytest.approx(np.mean(reported))


@pytest.mark.parametrize("make_engine", [plain.engine, compiled.engine], ids=["plain", "compiled"])
def test_independent_streams_do_not_touch_the_perturbation(make_engine):
    values, steps, queries, max_rr = reported_by(make_engine, "independent", privacy=RandomizedResponse(0.5))
    as_if_shared = 0
    for client in range(PEOPLE):
        public, ask, click, privatise = (
            stream(61, round=4, client=client, purpose=use)
            for use in ("perturbation", "queries", "clicks", "privatise")
        )
        assert steps[client] == pytest.approx(public.normal(3), abs=1e-14)
        assert queries[client].tolist() == ask.integers(10, STEPS).tolist()
        as_if_shared += queries[client, 0] == math.floor(public.uniform(1)[0] * 10)
        answers = [
            answer(query, click.skip(20 * step), privatise.skip(2 * step), 0.5)
            for step, query in enumerate(queries[client])
        ]
        assert max_rr[client].tolist() == [truth for truth, _ in answers]
        assert values[client, 0] == pytest.approx(np.mean([report for _, report in answers]))
    # one in ten agrees by chance; 60 clients, more than 16 of them less than once in 1,000
    assert as_if_shared <= 16


@pytest.mark.parametrize("make_engine", [plain.engine, compiled.engine], ids=["plain", "compiled"])
@pytest.mark.parametrize("streams", ["independent", "shared_rng"])
def test_the_first_half_of_the_interactions_is_up_and_the_second_down(make_engine, streams):
    values, _, _, max_rr = reported_by(make_engine, streams, antithetic=True)
    assert values[:, 0] == pytest.approx(max_rr[:, :2].mean(axis=1))  # of three, the odd one is with the first half
    assert values[:, 1] == pytest.approx(max_rr[:, 2])
    values, _, _, max_rr = reported_by(make_engine, streams, antithetic=False)
    assert values[:, 0] == pytest.approx(max_rr.mean(axis=1))


def test_each_half_ranks_with_its_own_side_of_the_perturbation():
    """One query of two documents, the second one good: a perfect user's reciprocal rank tells which came first."""
    data = Dataset(np.array([[1.0], [0.0]], np.float32), np.array([0, 1], np.int8), np.array([0, 2]), np.arange(1))
    users = click_model(Users("perfect", k=2), grades=2)
    task = Task(data, 2, (users,), Linear(), FoltrEs(), Federated(), NoPrivacy(), seed=1)
    updates, _ = updates_of(compiled.engine(task), np.zeros(1), np.arange(40), np.full(40, 4))
    values = updates.values
    steps = np.array([perturbation_stream(1, 1, client).normal(1) for client in range(40)])
    up_shows_the_bad_one_first = steps[:, 0] > 0
    assert values[:, 0].tolist() == np.where(up_shows_the_bad_one_first, 1 / 2, 1).tolist()
    assert values[:, 1].tolist() == np.where(up_shows_the_bad_one_first, 1, 1 / 2).tolist()


def test_the_ranker_climbs():
    """The same data over 30 rounds: the weight of the feature that marks bad documents falls by about the rate a round.

    Adam's steps are at most about the rate long; 100 clients agree on the direction from the start.
    """
    data = Dataset(np.array([[1.0], [0.0]], np.float32), np.array([0, 1], np.int8), np.array([0, 2]), np.arange(1))
    users = click_model(Users("perfect", k=2), grades=2)
    task = Task(data, 2, (users,), Linear(), FoltrEs(), Federated(100, 2, 30), NoPrivacy(), seed=1)
    path = np.array([step.parameters[0] for step in run(task, compiled.engine(task))])
    assert (np.diff(path) < 0).all()
    assert path[0] == pytest.approx(-0.001, rel=1e-5)  # the first step of Adam is the rate itself
