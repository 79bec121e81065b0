"""Made-up lists for the log, and what its files contain."""

import numpy as np

from foltr.node.learning import teaching
from foltr.node.learning.impressions import Impression
from foltr.rng import stream

NAMES = ("bm25:range", "cov_title:none", "opened:saturating")
NOW = 1_800_000_000.0


def keys(number, k=5):
    return [f"/home/ann/papers/{number}-{place}.pdf" for place in range(k)]


def impression(number=0, *, query=None, k=5, candidates=12, names=NAMES, **changed):
    draws = stream(3, round=number, purpose="data")
    features = draws.uniform(candidates * len(names)).reshape(candidates, len(names))
    scores = -np.sort(-draws.skip(10**6).uniform(candidates))
    text = query if query is not None else f"query {number}"
    return Impression(text, NOW + number, keys(number, k), np.ones(k), scores, features, names, 0)._replace(**changed)


def chosen(log, number=0, place=0, *, time=None, **more):
    """A list is stored and one of its documents opened; the number of the list."""
    one = impression(number, **more)
    stored = log.record(one)
    log.choose(stored, one.documents[place], one.time + 1 if time is None else time)
    return stored


def taught(log, names=NAMES):
    """The lists of a log that teach, as a learner gets them."""
    return teaching.interactions(log, names, teaching.lessons(log))


def bytes_of(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
