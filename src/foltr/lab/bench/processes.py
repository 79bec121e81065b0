"""Measurements that need a new process: weight of the client path, time to compile kernels, speed of plain loops.

Memory is the high-water mark of the process itself. `ru_maxrss` is used only where there is no /proc: on Linux a child
starts with the mark of its parent.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO

import numpy as np

from foltr.lab.bench.training import BenchShape, interleaved, trained, training_pass
from foltr.lab.data import synthetic
from foltr.types import Array, Dataset

CLIENT_PATH = (
    "foltr.client", "foltr.learners.pdgd", "foltr.privacy.mechanisms", "foltr.rankers", "foltr.secagg.client",
)  # fmt: skip
_IMPORT = f"""
import time
began = time.perf_counter()
import {", ".join(CLIENT_PATH)}
seconds = time.perf_counter() - began
import json, resource, sys
from pathlib import Path
if Path("/proc/self/status").exists():
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps({{"seconds": seconds, "peak_mb": peak}}, allow_nan=False))
"""
_COMPILE = """
import json, time
from foltr.lab.simulation.compiled import warm_up
began = time.process_time()
warm_up()
print(json.dumps({"cpu_seconds": time.process_time() - began}, allow_nan=False))
"""


def measure_client_path(processes: int) -> dict[str, float]:
    """Seconds to import what a client runs, after the interpreter's start, and its peak memory: the best of all."""
    measured = [_asked(_IMPORT) for _ in range(processes)]
    return {name: min(one[name] for one in measured) for name in ("seconds", "peak_mb")}


def measure_compiling() -> dict[str, float]:
    """CPU seconds of `warm_up` where no machine code is stored: what the first run after an installation spends."""
    with tempfile.TemporaryDirectory(prefix="foltr-") as empty:
        environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
        return _asked(_COMPILE, environment | {"FOLTR_CACHE": empty})


def measure_plain_loops(shape: BenchShape, data: Dataset, repetitions: int) -> dict[str, float]:
    """Training on one thread with FOLTR_SIMD=0 in a process of its own, interleaved with training as it is here."""
    theta = trained(shape, data)
    with _plain_loops(shape, theta) as (questions, answers):

        def ask() -> None:
            print(file=questions, flush=True)
            if not answers.readline():
                raise RuntimeError("the process with FOLTR_SIMD=0 ended early")

        here, plain = interleaved([training_pass(shape, data, theta, threads=1), ask], repetitions)
    return {
        "interactions_per_s": shape.interactions / float(plain.min()),
        "times_default": float(np.median(here / plain)),
    }


@contextmanager
def _plain_loops(shape: BenchShape, theta: Array) -> Iterator[tuple[IO[str], IO[str]]]:
    """A process that trains once for every line that it reads, and answers with a line."""
    command = [sys.executable, "-m", "foltr.lab.bench.processes"]
    environment = os.environ | {"FOLTR_SIMD": "0"}
    child = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(json.dumps([*shape, theta.tolist()], allow_nan=False) + "\n")
        yield child.stdin, child.stdout
    finally:
        with suppress(BrokenPipeError):  # it ended before
            child.stdin.close()
        child.stdout.close()
        child.wait()


def _train_when_asked() -> None:
    *fields, theta = json.loads(sys.stdin.readline())
    shape = BenchShape(*fields)
    data = synthetic.generate(shape.source, queries=shape.queries, seed=1)
    work = training_pass(shape, data, np.array(theta), threads=1)
    for _ in sys.stdin:
        work()
        sys.stdout.write("\n")
        sys.stdout.flush()


def _asked(program: str, environment: Mapping[str, str] | None = None) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


if __name__ == "__main__":
    _train_when_asked()
