"""What the tests of forgetting share: a small collection, tasks on it, and the slow way to learn from a log."""

import numpy as np

from foltr.clicks import Users, behaviour
from foltr.federation.round import Federated, Task
from foltr.learners import pdgd
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import NoPrivacy
from foltr.rankers import Linear
from foltr.rng import stream
from foltr.types import Dataset, Interaction

COUNTS = [3, 12, 25, 9, 41, 1, 17]
WIDTH = 6


def collection(counts=COUNTS, width=WIDTH, seed=5):
    """Relevance follows the first feature, so that there is something to learn."""
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    features = stream(seed, purpose="data").uniform(int(offsets[-1]) * width).reshape(-1, width)
    labels = np.minimum((features[:, 0] * 3).astype(np.int8), 2)
    return Dataset(features.astype(np.float32), labels, offsets, np.arange(len(counts)))


MIXED = (Users("informational"), Users("perfect"))


def small(federation=None, *, ranker=None, losers="one-below-last-click", users=MIXED, seed=3):
    """A task of a few clients and rounds."""
    behaviours = tuple(behaviour(each, grades=3) for each in users)
    federation = federation or Federated(5, 4, 9)
    return Task(collection(), 3, behaviours, ranker or Linear(), Pdgd(negatives=losers), federation, NoPrivacy(), seed)


def last(rounds):
    *_, done = rounds
    return done.parameters


def learnt_slowly(task, log, leavers=()):
    """Federated PDGD on what the others logged, search by search in plain Python."""
    parameters = task.ranker.init(WIDTH, task.seed)
    for round in sorted(set(log.rounds.tolist())):
        total, searches = np.zeros_like(parameters), 0
        for client in sorted(set(log.clients.tolist()) - set(leavers)):
            rows = np.flatnonzero((log.rounds == round) & (log.clients == client))
            model = parameters.copy()
            for row in rows:
                session = session_of(task, log, row, model)
                model = model + task.learner.learning_rate * pdgd.gradient(
                    session, task.ranker, model, task.learner.negatives
                )
            total, searches = total + len(rows) * model, searches + len(rows)
        parameters = total / searches if searches else parameters
    return parameters


def session_of(task, log, row, model):
    """A logged search as a model sees it now."""
    query = log.queries[row]
    features = task.train.features[task.train.offsets[query] : task.train.offsets[query + 1]]
    shown = log.rankings[row] >= 0
    ranking, clicks = log.rankings[row][shown].astype(int), log.clicks[row][shown]
    return Interaction(features, ranking, clicks, task.ranker.score(model, features), int(log.rounds[row]))
