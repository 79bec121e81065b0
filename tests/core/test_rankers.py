"""Scoring functions: scores and gradients by hand, by numerical differentiation, and as compiled."""

import math

import numpy as np
import pytest
from by_hand import read_only, workspace_with
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import kstest

from foltr._kernels.lists import best_list, top_list
from foltr._kernels.pdgd import scale_back
from foltr._kernels.rankers import add_gradient, hidden_units, ranker_record, score_list
from foltr._kernels.simd.elementary import exp_of_nonpositive, sigmoid
from foltr._kernels.workspace import workspace_for
from foltr.rankers import Linear, Mlp
from foltr.rng import stream

RANKERS = [Linear(), Mlp(1), Mlp(5), Mlp(20), Mlp(4, "relu"), Mlp(3, "relu"), Mlp(33, "relu")]


def example(ranker, seed, documents=6, width=4):
    """Parameters in [-1.5, 1.5), features in [0, 1) and weights in [-1, 1), from a seed."""
    size = ranker.size(width)
    numbers = stream(seed, purpose="data").uniform(size + documents * (width + 1))
    parameters = 3 * numbers[:size] - 1.5
    features = numbers[size : size + documents * width].reshape(documents, width).astype(np.float32)
    return parameters, features, 2 * numbers[-documents:] - 1


def test_linear_scores_by_hand():
    assert Linear().score(np.array([2.0, -1.0]), np.array([[1.0, 1.0], [0.5, 3.0]])).tolist() == [1.0, -2.0]
    assert Linear().gradient(np.zeros(2), np.eye(2), np.array([3.0, -4.0])).tolist() == [3.0, -4.0]


@pytest.mark.parametrize(("activation", "squash"), [("sigmoid", lambda x: 1 / (1 + math.exp(-x))), ("relu", abs)])
def test_mlp_scores_by_hand(activation, squash):
    # two units on two features: weights row by row, then biases, then the output weights
    parameters = np.array([1.0, 2.0, -1.0, 4.0, 0.5, 0.25, 10.0, 100.0])
    score = Mlp(2, activation).score(parameters, np.array([[1.0, 3.0]]))
    first, second = 1 * 1 + 2 * 3 + 0.5, -1 * 1 + 4 * 3 + 0.25  # both above zero
    assert score[0] == pytest.approx(10 * squash(first) + 100 * squash(second))


def test_a_relu_below_zero_is_silent():
    assert Mlp(1, "relu").score(np.array([1.0, -5.0, 7.0]), np.array([[4.0], [5.0], [6.0]])).tolist() == [0, 0, 7]


def in_doubles(ranker, parameters, features):
    """Scores with all digits."""
    inputs = features.astype(float)
    if isinstance(ranker, Linear):
        return inputs @ parameters
    layer = parameters[: -2 * ranker.hidden].reshape(ranker.hidden, -1)
    sums = inputs @ layer.T + parameters[-2 * ranker.hidden : -ranker.hidden]
    units = np.maximum(sums, 0) if ranker.activation == "relu" else 1 / (1 + np.exp(-sums))
    return units @ parameters[-ranker.hidden :]


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
@given(seed=st.integers(0, 10**6))
def test_backward_is_the_slope_of_score(ranker, seed):
    parameters, features, weights = example(ranker, seed)
    if isinstance(ranker, Mlp) and ranker.activation == "relu":
        layer, biases = parameters[: ranker.hidden * 4].reshape(-1, 4), parameters[-2 * ranker.hidden : -ranker.hidden]
        assume(np.abs(features.astype(float) @ layer.T + biases).min() > 1e-4)  # a kink has no slope
    assert ranker.score(parameters, features) == pytest.approx(in_doubles(ranker, parameters, features), abs=1e-5)
    for number, slope in enumerate(ranker.gradient(parameters, features, weights)):
        up, down = parameters.copy(), parameters.copy()
        up[number] += 1e-5
        down[number] -= 1e-5
        rise = weights @ (in_doubles(ranker, up, features) - in_doubles(ranker, down, features))
        # the slope is off by step^2 from the curve and 1e-16 / step from rounding, and by the digits of a single
        assert slope == pytest.approx(rise / 2e-5, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
@given(seed=st.integers(0, 10**6))
def test_compiled_scores_are_those_of_the_ranker(ranker, seed):
    parameters, features, _ = example(ranker, seed)
    record = ranker_record(ranker, 4)
    workspace = workspace_with(np.zeros(4), 4, hidden=hidden_units(record), size=len(parameters))
    score_list(read_only(features), 2, 4, parameters, record, workspace)  # documents 2 .. 5 of six
    assert workspace.scores == pytest.approx(ranker.score(parameters, features[2:]), abs=1e-12)
    if isinstance(ranker, Mlp):
        assert ranker.score_many(parameters, features[2:]) == pytest.approx(workspace.scores, abs=1e-4)


@pytest.mark.parametrize("width", [1, 15, 16, 17, 32, 46, 136, 700])
def test_linear_scores_have_the_digits_of_singles_and_both_forms_the_same(width):
    parameters, features, _ = example(Linear(), width, documents=50, width=width)
    workspace = workspace_with(np.zeros(50), 10, size=width)
    score_list(read_only(features), 0, 50, parameters, ranker_record(Linear(), width), workspace)
    assert workspace.scores == pytest.approx(Linear().score(parameters, features), abs=1e-14 * width)
    assert workspace.scores == pytest.approx(features.astype(float) @ parameters, abs=3e-7 * math.sqrt(width))


def test_linear_scores_beyond_the_singles_are_no_numbers_and_no_trouble():
    assert Linear().score(np.array([1e300, 1.0]), np.array([[1.0, 1.0], [0.0, 2.0]])).tolist()[0] == math.inf


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("ranker", RANKERS, ids=str)
@given(seed=st.integers(0, 10**6))
def test_compiled_gradients_are_those_of_the_ranker(ranker, in_place, seed):
    parameters, features, weights = example(ranker, seed)
    record = ranker_record(ranker, 4)
    workspace = workspace_with(np.zeros(5), 3, hidden=hidden_units(record), size=len(parameters))
    workspace.ranking[:], workspace.steps[:] = [4, 0, 2], 0.1 * weights[:3]
    workspace.rows[:] = (1 + workspace.ranking) * 4
    workspace.change[:] = np.nan  # left by an earlier list
    out = parameters.copy() if in_place else np.ones(len(parameters))
    before = out.copy()
    theta = out if in_place else parameters
    score_list(read_only(features), 1, 5, theta, record, workspace)
    add_gradient(read_only(features), 3, theta, record, workspace, out)
    displayed = features[1:][[4, 0, 2]]
    assert out - before == pytest.approx(0.1 * ranker.gradient(parameters, displayed, weights[:3]), abs=1e-12)


def test_relu_units_that_are_all_zero_have_no_slope():
    """Why a ranker of such units, which starts at zero, can be moved by perturbations but not by gradients."""
    ranker = Mlp(3, "relu")
    assert not ranker.gradient(np.zeros(ranker.size(2)), np.ones((4, 2)), np.array([1.0, -1.0, 2.0, -3.0])).any()


def test_rankers_start_as_the_papers_do():
    assert Linear().init(46, seed=1).tolist() == [0.0] * 46
    assert Mlp(10, "relu").init(46, seed=1).tolist() == [0.0] * (46 * 10 + 10 + 10)
    sigmoid_units = Mlp(64).init(46, seed=1)
    assert len(sigmoid_units) == 46 * 64 + 64 + 64
    # ~ N(0, 1 / fan_in^2): 46 inputs of the hidden layer (biases too), 64 of the output; false alarm 1 in 1,000 each
    assert kstest(sigmoid_units[:-64] * 46, "norm").pvalue > 1e-3
    assert kstest(sigmoid_units[-64:] * 64, "norm").pvalue > 1e-3
    assert not np.array_equal(sigmoid_units, Mlp(64).init(46, seed=2))


@given(st.lists(st.floats(-3, 3) | st.sampled_from([0.0, 1.0]), min_size=1, max_size=30), st.integers(1, 12))
def test_the_best_documents_come_first_and_ties_keep_their_order(scores, k):
    length = min(k, len(scores))
    ranking = np.full(k, -1)
    top_list(np.array(scores), len(scores), length, ranking)
    assert ranking[:length].tolist() == sorted(range(len(scores)), key=lambda i: -scores[i])[:length]


NEAR = st.builds(lambda base, steps: base + steps * 2.0**-50, st.sampled_from([0.0, 1.0, -0.5]), st.integers(0, 40))
SCORES = st.floats(-3, 3) | NEAR | st.sampled_from([0.0, -0.0, 1.0, 5e-324, -1e300, 1e300, -np.inf])


@given(st.lists(SCORES, min_size=1, max_size=150), st.integers(1, 25))
def test_the_best_found_without_branches_are_the_best(scores, k):
    """Also where scores differ by less than a key can tell, and where some are out of all bounds."""
    count, workspace = len(scores), workspace_for(150, k, 0, 1)
    length = min(k, count)
    workspace.scores[:count] = scores
    best_list(count, length, workspace)
    assert workspace.ranking[:length].tolist() == sorted(range(count), key=lambda i: -scores[i])[:length]


@pytest.mark.parametrize("count", [1, 9, 10, 11, 63, 64, 65, 120])
def test_scores_that_are_no_numbers_are_listed_last_or_not_at_all(count):
    workspace = workspace_for(150, 10, 0, 1)
    for wrong in (0, count // 2, count - 1):
        workspace.scores[:count] = np.arange(count)
        workspace.scores[wrong] = np.nan
        best_list(count, min(10, count), workspace)
        ranking = workspace.ranking[: min(10, count)].tolist()
        assert len(set(ranking)) == len(ranking)
        assert max(ranking) < count
        assert wrong not in ranking or count <= 10


@given(st.floats(-708, 0))
def test_the_exponential_is_right_to_the_last_digits(x):
    assert exp_of_nonpositive(x) == pytest.approx(math.exp(x), rel=1e-14)


def test_the_exponential_stays_positive_however_low():
    assert 0 < exp_of_nonpositive(-1e300) == exp_of_nonpositive(-708.0)
    assert exp_of_nonpositive(0.0) == 1.0


@given(st.floats(-1e4, 1e4))
def test_sigmoid_is_right_and_never_overflows(x):
    exact = 1 / (1 + math.exp(-x)) if x > -700 else 0.0
    assert sigmoid(x) == pytest.approx(exact, rel=1e-13, abs=1e-300)


def test_scaling_back_keeps_the_direction_and_leaves_the_short_alone():
    long, short = np.array([3.0, -4.0]), np.array([0.3, -0.4])
    scale_back(long, 1.0)
    scale_back(short, 1.0)
    assert long == pytest.approx([0.6, -0.8])
    assert short.tolist() == [0.3, -0.4]
