"""What the tests of unlearning share: a small collection, tasks on it, and the slow way to learn from a log."""

import numpy as np

from foltr.clicks import Users, click_model
from foltr.lab.runs.unlearning import federation_of
from foltr.lab.simulation import compiled
from foltr.lab.simulation.click_logs import log_engine, log_of, recorder
from foltr.lab.simulation.task import Federated, Task, init_parameters
from foltr.learners import pdgd
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import NoPrivacy
from foltr.rankers import Linear
from foltr.rng import stream
from foltr.types import Dataset, Interaction
from foltr.unlearning.logs import learn
from foltr.unlearning.replay import federate

COUNTS = [3, 12, 25, 9, 41, 1, 17]
WIDTH = 6


def collection(counts=COUNTS, width=WIDTH, seed=5):
    """Relevance follows the first feature, so that there is something to learn."""
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    features = stream(seed, purpose="data").uniform(int(offsets[-1]) * width).reshape(-1, width)
    labels = np.minimum((features[:, 0] * 3).astype(np.int8), 2)
    return Dataset(features.astype(np.float32), labels, offsets, np.arange(len(counts)))


MIXED = (Users("informational"), Users("perfect"))


def small(federation=None, *, ranker=None, negatives="one-below-last-click", users=MIXED, seed=3):
    """A task of a few clients and rounds."""
    models = tuple(click_model(each, grades=3) for each in users)
    federation = federation or Federated(5, 4, 9)
    return Task(collection(), 3, models, ranker or Linear(), Pdgd(negatives=negatives), federation, NoPrivacy(), seed)


def federation(task, engine=None):
    """What unlearning works on; compiled, if no engine is given."""
    return federation_of(task, engine or compiled.engine(task))


def last(rounds):
    *_, done = rounds
    return done.parameters


def recorded(task, **options):
    """Parameters after a federation, and what its clients logged."""
    engine = recorder(task)
    parameters = last(federate(federation(task, engine), **options))
    return parameters, log_of(engine)


def learnt(task, log):
    """Parameters after learning from a log."""
    return last(learn(init_parameters(task), log, log_engine(task, log)))


def learnt_slowly(task, log, forget_clients=()):
    """Federated PDGD on what the others logged, search by search in plain Python."""
    parameters = task.ranker.init(WIDTH, task.seed)
    for round in sorted(set(log.rounds.tolist())):
        total, searches = np.zeros_like(parameters), 0
        for client in sorted(set(log.clients.tolist()) - set(forget_clients)):
            rows = np.flatnonzero((log.rounds == round) & (log.clients == client))
            model = parameters.copy()
            for row in rows:
                interaction = interaction_of(task, log, row, model)
                model = model + task.learner.learning_rate * pdgd.gradient(
                    interaction, task.ranker, model, task.learner.negatives
                )
            total, searches = total + len(rows) * model, searches + len(rows)
        parameters = total / searches if searches else parameters
    return parameters


def interaction_of(task, log, row, model):
    """A logged search as a model sees it now."""
    query = log.queries[row]
    features = task.train.features[task.train.offsets[query] : task.train.offsets[query + 1]]
    displayed = log.rankings[row] >= 0
    ranking, clicks = log.rankings[row][displayed].astype(int), log.clicks[row][displayed]
    return Interaction(features, ranking, clicks, task.ranker.score(model, features), int(log.rounds[row]))
