"""Speed in one run: training, evaluation, parsing, memory; against a NumPy twin and against memory itself.

`bandwidth_share`: bytes of features a second while training, over those of a pass that only scores the same lists in
the same random order on as many threads (a plain dot product for each document). Every speed is the best of several
tries, taken in turns, because other programs share the machine.
"""

import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from foltr.clicks.models import Users, behaviour
from foltr.data import synthetic
from foltr.data.dataset import Dataset
from foltr.data.letor_speed import measure_parse
from foltr.engines import compiled
from foltr.experiments import twin
from foltr.experiments.evaluation import offline_quality
from foltr.experiments.rule_speed import measure_rules
from foltr.experiments.secagg_speed import SIZES, measure_secagg
from foltr.federation.rounds import Federated, Task
from foltr.kernel import kernel
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import NoPrivacy
from foltr.rankers import Linear
from foltr.rng import stream
from foltr.types import Array

THREADS = (1, 2)
USERS = Users("informational")  # who click most: nearly every interaction makes an update
_TRIES = 5


class Shape(NamedTuple):
    name: str
    source: str
    queries: int
    grades: int
    interactions: int  # of one timed try
    twin_interactions: int


SHAPES = (
    Shape("mq2007-shape", "synthetic-mq2007", 1015, 3, 200_000, 600),
    Shape("mslr-shape", "synthetic-mslr", 6000, 5, 60_000, 400),
)
SMOKE = (
    Shape("mq2007-shape", "synthetic-mq2007", 200, 3, 8_000, 20),
    Shape("mslr-shape", "synthetic-mslr", 200, 5, 4_000, 5),
)


def measure(*, smoke: bool = False, large: bool = False, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Everything, as `foltr bench --json` prints it; `large`: also a secure sum of 10,000 clients, some minutes."""
    say("parsing")
    parse = measure_parse(10 if smoke else 100)  # first: later its memory would vanish below what the rest has used
    say("compiling")
    compiled.warm_up()
    out: dict[str, Any] = {
        "data": "synthetic",
        "train": {},
        "scoring": {},
        "numpy_twin": {},
        "speedup_over_numpy_twin": {},
    }
    tries = 2 if smoke else _TRIES
    for shape in SMOKE if smoke else SHAPES:
        say(f"training at the {shape.name}: {shape.interactions:,} interactions, {tries} tries")
        data = synthetic.generate(shape.source, queries=shape.queries, seed=1)
        theta = _trained(shape, data)
        trained, scored = _train(shape, data, theta, tries)
        out["train"][shape.name], out["scoring"][shape.name] = trained, scored
        say(f"the NumPy twin at the {shape.name}")
        slow = _twin(shape, data, theta, tries)
        out["numpy_twin"][shape.name] = {"interactions_per_s": slow}
        out["speedup_over_numpy_twin"][shape.name] = trained["1"]["interactions_per_s"] / slow
        if shape.name == "mslr-shape":
            say("evaluation")
            out["evaluate"] = {
                shape.name: {"ms_per_ranker": _evaluate(data, shape.grades, 200 if smoke else 2000, tries)}
            }
    out["bandwidth_gb_s"] = out["scoring"]["mslr-shape"]["1"]["gb_s"]
    out["parse"] = parse
    say("rules")
    out["rules"] = measure_rules(smoke=smoke)
    say("secure aggregation")
    out["secagg"] = measure_secagg(smoke=smoke, sizes=SIZES if large else None)
    out["peak_mb"] = _peak_mb()
    out["smoke"] = smoke
    return out


def _task(shape: Shape, data: Dataset) -> Task:
    users = behaviour(USERS, grades=shape.grades)
    return Task(data, shape.grades, (users,), Linear(), Pdgd(), Federated(1000, 1, 1), NoPrivacy(), 1)


def _trained(shape: Shape, data: Dataset) -> Array:
    """A trained ranker to start from, so that lists are as concentrated as they are in use."""
    start = np.zeros(data.features.shape[1])
    parameters: Array = compiled.engine(_task(shape, data)).train(start, np.arange(1), np.array([3000]), round=1)[0][0]
    return parameters


def _train(shape: Shape, data: Dataset, theta: Array, tries: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Training and scoring in turns, for each number of threads."""
    clients, steps = np.arange(1000), np.full(1000, max(1, shape.interactions // 1000))
    task = _task(shape, data)
    order = stream(1, purpose="queries").integers(len(data.offsets) - 1, int(steps.sum()))
    list_bytes = data.features.nbytes / (len(data.offsets) - 1)
    trained, scored = {}, {}
    for threads in THREADS:
        engine = compiled.engine(task, threads)
        training = partial(engine.train, theta, clients, steps, round=1)
        scoring = partial(_score, data, order, theta, threads)
        best = _best_in_turns([training, scoring], tries)
        rates = [int(steps.sum()) / seconds for seconds in best]
        trained[str(threads)] = {"interactions_per_s": rates[0], "bandwidth_share": rates[0] / rates[1]}
        scored[str(threads)] = {"lists_per_s": rates[1], "gb_s": rates[1] * list_bytes / 1e9}
    return trained, scored


def _best_in_turns(works: list[Callable[[], Any]], tries: int) -> list[float]:
    """Seconds of each at its best; the first turn compiles and warms the caches and does not count."""
    turns = [[_timed(work) for work in works] for _ in range(tries + 1)]
    return [min(times) for times in zip(*turns[1:], strict=True)]


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _score(data: Dataset, order: Array, theta: Array, threads: int) -> None:
    """A pass that only scores the lists of these queries."""
    room = [np.empty(int(np.diff(data.offsets).max())) for _ in range(threads)]
    parts = np.array_split(order, threads)
    with ThreadPoolExecutor(threads) as pool:
        work = partial(_dot_products, data.features, data.offsets)
        jobs = [pool.submit(work, part, theta, scores) for part, scores in zip(parts, room, strict=True)]
    for job in jobs:
        job.result()


@kernel
def _dot_products(features: Array, offsets: Array, order: Array, theta: Array, scores: Array) -> float:
    total = 0.0
    for k in range(order.size):
        first = offsets[order[k]]
        count = offsets[order[k] + 1] - first
        for document in range(count):
            row = features[first + document]
            score = 0.0
            for j in range(row.size):
                score += np.float64(row[j]) * theta[j]
            scores[document] = score
        total += scores[0]
    return total


def _twin(shape: Shape, data: Dataset, theta: Array, tries: int) -> float:
    """Interactions a second of the same work: from the same ranker, with the same users."""
    users, draws = behaviour(USERS, grades=shape.grades), stream(1, purpose="choice")
    work = partial(twin.train, data, users, theta, shape.twin_interactions, 0.1, draws)
    return shape.twin_interactions / _best_in_turns([work], tries)[0]


def _evaluate(data: Dataset, grades: int, queries: int, tries: int) -> float:
    """Milliseconds a ranker, evaluated in blocks of 32."""
    last = data.offsets[queries]
    test = Dataset(data.features[:last], data.labels[:last], data.offsets[: queries + 1], data.queries[:queries])
    rankers = stream(3, purpose="start").normal(32 * data.features.shape[1]).reshape(32, -1)
    return 1000 * _best_in_turns([partial(offline_quality, Linear(), rankers, test, grades)], tries)[0] / 32


def _peak_mb() -> float:
    """Most memory that this process ever held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def shown(measured: dict[str, Any]) -> str:
    """For the terminal."""
    lines = [f"memory        {measured['bandwidth_gb_s']:.1f} GB/s scoring lists on one thread (synthetic data)"]
    for name, threads in measured["train"].items():
        for count, figures in threads.items():
            speed, share = figures["interactions_per_s"], figures["bandwidth_share"]
            lines.append(f"{name:<13} {speed:>11,.0f} interactions/s on {count}: {100 * share:.0f} % of only scoring")
        slow, ratio = measured["numpy_twin"][name]["interactions_per_s"], measured["speedup_over_numpy_twin"][name]
        lines.append(f"{name:<13} {slow:>11,.0f} interactions/s by the NumPy twin, {ratio:.0f} times slower")
    parse = measured["parse"]
    lines.append(f"evaluation    {measured['evaluate']['mslr-shape']['ms_per_ranker']:.2f} ms a ranker")
    lines.append(f"parsing       {parse['mb_per_s']:.0f} MB/s, memory {parse['peak_over_arrays']:.2f} x the arrays")
    for name, figures in measured["rules"].items():
        if name != "micro":
            lines.append(f"{name.replace('_', ' '):<13} {figures['seconds']:.2f} s, {figures['peak_mb']:.0f} MB")
    slowest = max(measured["rules"]["micro"].values())
    lines.append(f"rules         {slowest:.0f} microseconds at most for 10 updates of 46 parameters")
    for name, figures in measured["secagg"].items():
        size, sent = name.removeprefix("secagg_"), figures["up_kb"] + figures["down_kb"]
        words = f"{figures['seconds']:.1f} s ({figures['cpu_seconds']:.1f} of CPU), {sent:.0f} kB a client"
        lines.append(f"secure sum    {size}, a tenth drops out: {words}")
    lines.append(f"peak memory   {measured['peak_mb']:.0f} MB")
    return "\n".join(lines)
