"""The measurements of `foltr bench`: training, evaluation, parsing, aggregators and secure sums.

Aggregators get synthetic updates: one round of the thesis's size for each, and Krum over many large updates. The best
of several tries counts, since other programs share the machine. Memory is what the aggregator takes beyond its input,
as Python's own accounting sees it (NumPy reports its arrays there).
"""

import resource
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

from foltr import registry
from foltr.lab.bench.parsing import measure_parse
from foltr.lab.bench.processes import measure_client_path, measure_compiling, measure_plain_loops
from foltr.lab.bench.secagg import SIZES, measure_secagg
from foltr.lab.bench.training import SHAPES, SMOKE, interleaved, measure_training, timed
from foltr.lab.bench.two_servers import measure_two_servers
from foltr.lab.data import synthetic
from foltr.lab.simulation import compiled
from foltr.lab.simulation.evaluation import offline_quality
from foltr.lab.simulation.rounds import compiled_aggregator
from foltr.rankers import Linear
from foltr.rng import stream
from foltr.types import Array, Dataset

_TRIES = 12
_PROCESSES = 8
_CALLS = 200  # of an aggregator in a try


def measure(*, smoke: bool = False, large: bool = False, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Everything, as `foltr bench --json` prints it; `large`: also a secure sum of 10,000 clients, some minutes."""
    say("parsing")
    parse = measure_parse(10 if smoke else 100)  # first: afterwards the peak memory of the process hides it
    say("compiling")
    compiled.warm_up()
    out: dict[str, Any] = {"data": "synthetic", "client_path": measure_client_path(2 if smoke else _PROCESSES)}
    if not smoke:
        out["compile"] = measure_compiling()
    tries = 2 if smoke else _TRIES
    for shape in SMOKE if smoke else SHAPES:
        say(f"training at the {shape.name} and its NumPy reference: {tries} times {shape.interactions:,} interactions")
        data = synthetic.generate(shape.source, queries=shape.queries, seed=1)
        for kind, figures in measure_training(shape, data, tries).items():
            out.setdefault(kind, {})[shape.name] = figures
        if not smoke:
            say(f"training at the {shape.name} with FOLTR_SIMD=0")
            out.setdefault("plain_loops", {})[shape.name] = measure_plain_loops(shape, data, tries)
        if shape.name == "mslr-shape":
            say("evaluation")
            out["evaluate"] = {
                shape.name: {"ms_per_ranker": _evaluate(data, shape.grades, 200 if smoke else 2000, tries)}
            }
    out["bandwidth_gb_s"] = out["scoring"]["mslr-shape"]["1"]["gb_s"]
    out["parse"] = parse
    say("aggregators")
    out["aggregators"] = measure_aggregators(smoke=smoke)
    say("secure aggregation")
    out["secagg"] = measure_secagg(smoke=smoke, sizes=SIZES if large else None)
    out["two_servers"] = measure_two_servers(smoke=smoke, sizes=SIZES if large else None)
    out["peak_mb"] = _peak_mb()
    out["smoke"] = smoke
    return out


def _evaluate(data: Dataset, grades: int, queries: int, tries: int) -> float:
    """Milliseconds a ranker, evaluated in blocks of 32."""
    last = data.offsets[queries]
    test = Dataset(data.features[:last], data.labels[:last], data.offsets[: queries + 1], data.queries[:queries])
    rankers = stream(3, purpose="start").normal(32 * data.features.shape[1]).reshape(32, -1)
    return 1000 * float(interleaved([partial(offline_quality, Linear(), rankers, test, grades)], tries).min()) / 32


def _peak_mb() -> float:
    """Peak memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def report_lines(measured: dict[str, Any]) -> str:
    """The measurements as text for a terminal."""
    lines = [f"memory        {measured['bandwidth_gb_s']:.1f} GB/s scoring lists on one thread (synthetic data)"]
    for name, threads in measured["train"].items():
        for count, figures in threads.items():
            speed, share = figures["interactions_per_s"], figures["bandwidth_share"]
            scaled = "" if count == "1" else f" (x {figures['times_one_thread']:.2f})"
            words = f"interactions/s on {count}{scaled}: {100 * share:.0f} % of only scoring"
            lines.append(f"{name:<13} {speed:>11,.0f} {words}")
        if plain := measured.get("plain_loops", {}).get(name):
            words = f"interactions/s on 1 with FOLTR_SIMD=0: {plain['times_default']:.2f} times the default"
            lines.append(f"{name:<13} {plain['interactions_per_s']:>11,.0f} {words}")
        slow, ratio = (
            measured["numpy_reference"][name]["interactions_per_s"],
            measured["speedup_over_numpy_reference"][name],
        )
        lines.append(f"{name:<13} {slow:>11,.0f} interactions/s by the NumPy reference, {ratio:.0f} times slower")
    parse = measured["parse"]
    lines.append(f"evaluation    {measured['evaluate']['mslr-shape']['ms_per_ranker']:.2f} ms a ranker")
    lines.append(f"parsing       {parse['mb_per_s']:.0f} MB/s, memory {parse['peak_over_arrays']:.2f} x the arrays")
    for name, figures in measured["aggregators"].items():
        if name != "micro":
            lines.append(f"{name.replace('_', ' '):<13} {figures['seconds']:.2f} s, {figures['peak_mb']:.0f} MB")
    slowest = max(measured["aggregators"]["micro"].values())
    lines.append(f"aggregators   {slowest:.0f} microseconds at most for 10 updates of 46 parameters")
    for name, figures in measured["secagg"].items():
        size, sent = name.removeprefix("secagg_"), figures["up_kb"] + figures["down_kb"]
        words = f"{figures['seconds']:.1f} s ({figures['cpu_seconds']:.1f} of CPU), {sent:.0f} kB a client"
        lines.append(f"secure sum    {size}, a tenth drops out: {words}")
    for name, figures in measured["two_servers"].items():
        size = name.removeprefix("two_servers_")
        words = f"{figures['seconds']:.2f} s ({figures['cpu_seconds']:.2f} of CPU), {figures['up_kb']:.1f} kB a client"
        lines.append(f"two servers   {size}, a tenth sends nothing: {words}")
    lines.append("client path   {seconds:.2f} s to import, {peak_mb:.0f} MB".format(**measured["client_path"]))
    if "compile" in measured:
        lines.append(f"compiling     {measured['compile']['cpu_seconds']:.1f} s of CPU, once after an installation")
    lines.append(f"peak memory   {measured['peak_mb']:.0f} MB")
    return "\n".join(lines)


# --- aggregators ----------------------------------------------------------------------------------------------------


def measure_aggregators(*, smoke: bool = False) -> dict[str, Any]:
    """Seconds and memory of Krum over 1,000 updates of 10,000 parameters; microseconds of each at 10 x 46."""
    clients, parameters = (200, 1000) if smoke else (1000, 10_000)
    return {
        f"krum_{clients}x{parameters}": _large_krum(clients, parameters, tries=2),
        "micro": {name: _microseconds(name, tries=2 if smoke else 10) for name in registry.names("aggregator")},
    }


def _large_krum(clients: int, parameters: int, tries: int) -> dict[str, float]:
    work = _round("krum", clients, parameters, num_byzantine=clients // 5)
    seconds = min(timed(work) for _ in range(tries))
    tracemalloc.start()
    try:
        work()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return {"seconds": seconds, "peak_mb": peak / 2**20}


def _microseconds(name: str, tries: int) -> float:
    work = _round(name, 10, 46, num_byzantine=1)
    work()  # compiles

    def many() -> None:
        for _ in range(_CALLS):
            work()

    return min(timed(many) for _ in range(tries)) / _CALLS * 1e6


def _round(name: str, clients: int, parameters: int, num_byzantine: int) -> Callable[[], Array]:
    draws = stream(1, purpose="choice")
    deltas = draws.skip(parameters).normal(clients * parameters).reshape(clients, parameters)
    weights = draws.integers(5, clients) + 1
    return partial(compiled_aggregator(name), deltas, weights, num_byzantine=num_byzantine)
