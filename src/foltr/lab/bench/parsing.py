"""Speed and memory of the LETOR reader, on synthetic text in the shape of MSLR.

One core, the file in the page cache, machine code compiled before the clock starts. It runs in its own process,
since the peak memory of a process is known only over its whole life.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from foltr.lab.data import letor, synthetic

_QUERIES = 40  # of text that is generated once and repeated under other query ids


def measure_parse(megabytes: int = 100) -> dict[str, float]:
    """Megabytes of text a second, and the highest memory use over the size of the arrays that come out."""
    command = [sys.executable, "-m", "foltr.lab.bench.parsing", str(megabytes)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def write_text(path: Path, size: int) -> None:
    """At least `size` bytes: 136 features a line, counts and six-digit fractions in turn, many zeros."""
    data = synthetic.generate("synthetic-mslr", queries=_QUERIES, seed=0)
    tails = [" ".join(f"{i + 1}:{_number(i, v)}" for i, v in enumerate(row)) for row in data.features.tolist()]
    query = data.offsets.searchsorted(range(len(tails)), side="right") - 1
    lines = [(f"{label} qid:", q, f" {tail} \n") for label, q, tail in zip(data.labels, query, tails, strict=True)]
    repeat = 0
    with path.open("w") as file:
        while file.tell() < size:
            file.write("".join(f"{head}{repeat * _QUERIES + q}{tail}" for head, q, tail in lines))
            repeat += 1
        file.flush()
        os.fsync(file.fileno())  # so that the disk is at rest when the clock starts


def _number(feature: int, value: float) -> str:
    if value == 0.0:
        return "0"
    return str(int(1000 * value)) if feature % 2 else f"{40 * value:.6f}"


def _measure(megabytes: int) -> dict[str, float]:
    import resource  # only where there is one: not on Windows

    unit = 1 if sys.platform == "darwin" else 1024
    with tempfile.TemporaryDirectory(prefix="foltr-") as folder:
        path = Path(folder) / "text.txt"
        write_text(path, 1)
        letor.read(str(path), width=136)  # compiles
        write_text(path, megabytes * 10**6)
        size, before = path.stat().st_size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.perf_counter()
        data = letor.read(str(path), width=136)
        seconds = time.perf_counter() - start
    arrays = sum(array.nbytes for array in data)
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit
    return {"mb_per_s": size / 1e6 / seconds, "peak_over_arrays": peak / arrays}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measure(int(sys.argv[1])), allow_nan=False))
