"""What learners of simulated people compare a click with, and what goes wrong with unsafe ones."""

import numpy as np

from foltr.clicks import Users, click_model, clicks_on
from foltr.client import local_update
from foltr.lab.people.learners import RIVALS, Compared, TemperedPdgd
from foltr.learners.softmax import SoftmaxMap
from foltr.privacy.mechanisms import NoPrivacy
from foltr.rankers import Linear
from foltr.rng import stream
from foltr.types import Interaction, Model


def model(*parameters):
    return Model(np.array(parameters), 0, Linear())


def test_a_low_temperature_shows_nearly_the_best_list():
    features, draws = np.array([[3.0], [2.0], [1.0], [0.0]]), stream(1, purpose="ranking")
    learner = TemperedPdgd(1.0, 1e-3)
    state = learner.client_init(model(1.0), client=0, interactions=1)
    ranking, scores = learner.rank(state, features, 4, draws, ranker=Linear())
    assert ranking.tolist() == [0, 1, 2, 3]
    assert scores.tolist() == [3000.0, 2000.0, 1000.0, 0.0]


def test_what_a_click_is_compared_with():
    """A click at the third of four shown documents, of five candidates; feature 0 is their number."""
    features = np.arange(5.0)[:, None]
    seen = Interaction(features, np.array([4, 3, 2, 1]), np.array([False, False, True, False]), np.zeros(5), 0)

    def rivals(kind):
        found = RIVALS[kind](seen, stream(1, purpose="choice"), 0)
        return [sorted((one.differences[:, 0] + 2.0).tolist()) for one in found]

    assert rivals("skip-above") == [[4.0], [3.0]]
    assert rivals("inverse-propensity") == [[0.0, 1.0, 3.0, 4.0]] * 3
    assert rivals("top-of-bm25") == [[0.0, 1.0, 3.0, 4.0]]


START = np.array([0.4, 0.4])


def good_lists(seed, searches=100):
    """Lists of a ranker whose two features both tell relevant documents, with navigational clicks."""
    users, found = click_model(Users("navigational"), grades=2), []
    for step in range(searches):
        draws = stream(seed, round=step, purpose="data")
        grades = (draws.uniform(60) < 0.1).astype(np.int8)
        features = 4 * grades[:, None] + 10 * draws.skip(60).uniform(120).reshape(60, 2)
        scores = features @ START
        ranking = np.argsort(-scores)[:10]
        uniforms = stream(seed, round=step, purpose="clicks").uniform(20)
        found.append(Interaction(features, ranking, clicks_on(grades[ranking], users, uniforms), scores, 0))
    return found


def learned(seed, learner):
    """[2] the weights after a log of good lists, in units of the start."""
    update = local_update(
        Model(START, 0, Linear()), good_lists(seed), learner=learner, mechanism=NoPrivacy(), noise=lambda purpose: None
    )
    return 1 + update.values / START


def test_pairs_with_skipped_documents_reverse_a_good_list():
    """Whatever is clicked has a lower score than what was skipped above it: the weights turn negative, every time."""
    assert all(learned(seed, Compared("skip-above")).sum() < 0 for seed in range(5))
    assert all((learned(seed, SoftmaxMap(prior=2.0)) > 0.5).all() for seed in range(5))


def test_negatives_from_the_top_of_one_feature_teach_against_it():
    """Both features are equally right. Compared with the top of the first only, it gets less of the weight than with
    MAP softmax in at least nine of ten logs; if the negatives did not matter, that would have odds of 11 in 1024."""

    def share(seed, learner):
        first, second = learned(seed, learner)
        return first / (first + second)

    lower = [share(seed, Compared("top-of-bm25", 0)) < share(seed, SoftmaxMap(prior=2.0)) for seed in range(10)]
    assert sum(lower) >= 9
