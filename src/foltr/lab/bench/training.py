"""Speed of training at the shapes of two collections, against a NumPy reference and against memory bandwidth.

`bandwidth_share`: the time of a pass that only scores the same lists in the same random order on as many threads (one
dot product a document), over the time of training. Measurements are interleaved, because other programs share the
machine: a speed is the best of all repetitions, a ratio the median of the ratios within each.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from foltr._kernels.rankers import dot_products
from foltr.clicks import Users, click_model
from foltr.federation.schedule import Members
from foltr.lab.bench import numpy_reference
from foltr.lab.simulation import compiled
from foltr.lab.simulation.task import Federated, Task
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import NoPrivacy
from foltr.rankers import Linear
from foltr.rng import stream
from foltr.types import Array, Dataset

THREADS = (1, 2)
_CLIENTS = 1000
USERS = Users("informational")  # they click most often: nearly every interaction gives an update


class BenchShape(NamedTuple):
    name: str
    source: str
    queries: int
    grades: int
    interactions: int  # of one timed try
    reference_interactions: int


SHAPES = (
    BenchShape("mq2007-shape", "synthetic-mq2007", 1015, 3, 400_000, 600),
    BenchShape("mslr-shape", "synthetic-mslr", 6000, 5, 80_000, 400),
)
SMOKE = (
    BenchShape("mq2007-shape", "synthetic-mq2007", 200, 3, 8_000, 20),
    BenchShape("mslr-shape", "synthetic-mslr", 200, 5, 4_000, 5),
)


def measure_training(shape: BenchShape, data: Dataset, repetitions: int) -> dict[str, Any]:
    """One shape of `foltr bench`: `train`, `scoring`, `numpy_reference` and `speedup_over_numpy_reference`."""
    theta = trained(shape, data)
    count = shape.interactions
    order = stream(1, purpose="queries").integers(len(data.offsets) - 1, count)
    works: list[Callable[[], Any]] = [_reference(shape, data, theta)]
    for threads in THREADS:
        works.append(training_pass(shape, data, theta, threads))
        works.append(partial(_score, data, order, theta, threads))
    slow, *others = interleaved(works, repetitions)
    training, scoring = others[::2], others[1::2]
    list_bytes = data.features.nbytes / (len(data.offsets) - 1)
    return {
        "train": {
            str(threads): {
                "interactions_per_s": count / took.min(),
                "bandwidth_share": float(np.median(scored / took)),
                "times_one_thread": float(np.median(training[0] / took)),
            }
            for threads, took, scored in zip(THREADS, training, scoring, strict=True)
        },
        "scoring": {
            str(threads): {"lists_per_s": count / scored.min(), "gb_s": count * list_bytes / scored.min() / 1e9}
            for threads, scored in zip(THREADS, scoring, strict=True)
        },
        "numpy_reference": {"interactions_per_s": shape.reference_interactions / slow.min()},
        "speedup_over_numpy_reference": float(np.median(slow / training[0])) * count / shape.reference_interactions,
    }


def training_pass(shape: BenchShape, data: Dataset, theta: Array, threads: int) -> Callable[[], Any]:
    """One timed repetition: a thousand clients with an equal part of the interactions."""
    engine = compiled.engine(bench_task(shape, data), threads)
    cohort = engine.prepare(Members(np.arange(_CLIENTS), np.full(_CLIENTS, shape.interactions // _CLIENTS)))
    return partial(engine.train, theta, cohort, round=1)


def bench_task(shape: BenchShape, data: Dataset) -> Task:
    users = click_model(USERS, grades=shape.grades)
    return Task(data, shape.grades, (users,), Linear(), Pdgd(), Federated(_CLIENTS, 1, 1), NoPrivacy(), 1)


def trained(shape: BenchShape, data: Dataset) -> Array:
    """A trained ranker to start from, so that lists are as concentrated as they are in use."""
    start, engine = np.zeros(data.features.shape[1]), compiled.engine(bench_task(shape, data))
    cohort = engine.prepare(Members(np.arange(1), np.array([3000])))
    parameters: Array = engine.train(start, cohort, round=1)[0][0]
    return parameters


def _reference(shape: BenchShape, data: Dataset, theta: Array) -> Callable[[], Any]:
    """Training in NumPy: from the same ranker, with the same users."""
    users, draws = click_model(USERS, grades=shape.grades), stream(1, purpose="choice")
    return partial(numpy_reference.train, data, users, theta, shape.reference_interactions, 0.1, draws)


def _score(data: Dataset, order: Array, theta: Array, threads: int) -> None:
    """A pass that only scores the lists of these queries."""
    workspaces = [np.empty(int(np.diff(data.offsets).max())) for _ in range(threads)]
    parts = np.array_split(order, threads)
    with ThreadPoolExecutor(threads) as pool:
        work = partial(dot_products, data.features, data.offsets)
        jobs = [pool.submit(work, part, theta, scores) for part, scores in zip(parts, workspaces, strict=True)]
    for job in jobs:
        job.result()


def timed(work: Callable[[], Any]) -> float:
    """Seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def interleaved(works: Sequence[Callable[[], Any]], repetitions: int) -> Array:
    """[works, repetitions] seconds; one uncounted repetition first compiles and warms the caches."""
    return np.array([[timed(work) for work in works] for _ in range(repetitions + 1)][1:]).T
