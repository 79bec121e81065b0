"""FPDGD among organisations: each is a client whose people search with their own queries and click.

A list of candidates is what `crossing` makes for training: own documents with exact features, and documents of others
that were found by questions, with features that sketches tell. People click by the true grades, which no party ever
learns. Without noise: among a handful of parties no noise that means anything leaves a ranker.

Sources: S0 Algorithm 2 on the features of S3 section VI-A.

Differs from the paper: neither has this.
"""

from collections.abc import Sequence

import numpy as np

from foltr.clicks import Users, click_model
from foltr.lab.simulation.compiled import engine
from foltr.lab.simulation.rounds import run
from foltr.lab.simulation.task import ClientPools, Federated, Task
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import NoPrivacy
from foltr.rankers import Linear
from foltr.text.corpus import Corpus, grade_of
from foltr.text.features import Labelled, dataset, join
from foltr.types import Array

ROUNDS, INTERACTIONS = 200, 10  # of each party in a round
_GRADES = (2, 3, 5)  # for which there are click tables


def from_clicks(corpus: Corpus, lists: Sequence[Labelled], *, seed: int, users: str = "navigational") -> Array:
    """[parties, d] the one ranker that clicks on the parties' lists have trained, once for every party."""
    known = [_graded(corpus, one) for one in lists]
    data = dataset(join(*known))
    pools = [np.searchsorted(data.queries, np.unique(one.pairs.queries)) for one in known]
    stop = np.cumsum([len(pool) for pool in pools])
    held = ClientPools(np.concatenate(pools), stop - [len(pool) for pool in pools], stop, np.zeros(len(lists), int))
    top = int(corpus.judgments[:, 2].max())
    grades = next((count for count in _GRADES if count > top), _GRADES[-1])
    federation = Federated(len(lists), INTERACTIONS, ROUNDS)
    people = (click_model(Users(users), grades=grades),)
    task = Task(data, grades, people, Linear(), Pdgd(), federation, NoPrivacy(), seed, held)
    *_, last = run(task, engine(task))
    return np.tile(last.parameters, (len(lists), 1))


def _graded(corpus: Corpus, lists: Labelled) -> Labelled:
    """The same lists with the grades that people have in mind."""
    pairs = lists.pairs
    grades = grade_of(corpus, pairs.queries, pairs.documents)
    return lists._replace(pairs=pairs._replace(grades=np.minimum(grades, _GRADES[-1] - 1).astype(np.int8)))
