"""The benchmark compares like with like: its NumPy twin takes the same steps, and its answer has the promised shape."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from foltr.lab.bench import numpy_reference as twin
from foltr.lab.bench.bench import report_lines
from foltr.lab.bench.processes import measure_client_path, measure_compiling, measure_plain_loops
from foltr.lab.bench.training import SMOKE
from foltr.lab.data import synthetic
from foltr.lab.simulation import compiled
from foltr.learners.pdgd import gradient
from foltr.rankers import Linear, plackett_luce
from foltr.rng import stream
from foltr.types import Interaction


@pytest.mark.parametrize("seed", range(20))
def test_the_numpy_reference_takes_the_same_step(seed: int) -> None:
    draws = stream(seed, purpose="data")
    features = draws.uniform(60).reshape(12, 5)
    parameters = 3 * draws.skip(60).normal(5)
    scores = features @ parameters
    ranking = plackett_luce.sample(scores, 8, draws.skip(70))
    clicks = draws.skip(200).uniform(8) < 0.4
    ours = gradient(Interaction(features, ranking, clicks, scores, 1), Linear(), parameters)
    np.testing.assert_allclose(twin.gradient(features, scores, ranking, clicks), ours, atol=1e-12)


def test_the_numpy_reference_sees_what_users_saw() -> None:
    # one relevant document of grade 2, shown second of three: (2^2 - 1) / log2(3) over (2^2 - 1) / log2(2)
    assert twin.ndcg(np.array([0, 2, 0]), np.array([0, 2, 0])) == pytest.approx(1 / np.log2(3))


@pytest.mark.slow
def test_bench_prints_one_json_object_of_the_promised_shape() -> None:
    command = [sys.executable, "-m", "foltr.cli.main", "bench", "--smoke", "--json"]
    said = subprocess.run(command, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    answer = json.loads(said.stdout)
    for shape in ("mq2007-shape", "mslr-shape"):
        for threads in ("1", "2"):
            assert answer["train"][shape][threads]["interactions_per_s"] > 0
            assert answer["train"][shape][threads]["bandwidth_share"] > 0
        assert answer["train"][shape]["1"]["times_one_thread"] == 1
        assert answer["train"][shape]["2"]["times_one_thread"] > 0
        assert answer["speedup_over_numpy_reference"][shape] > 1
        assert answer["numpy_reference"][shape]["interactions_per_s"] > 0
    assert answer["evaluate"]["mslr-shape"]["ms_per_ranker"] > 0
    assert answer["bandwidth_gb_s"] > 0
    assert answer["parse"]["mb_per_s"] > 0
    assert answer["peak_mb"] > 0
    assert answer["secagg"]["secagg_50x136"]["up_kb"] > 0
    assert 0 < answer["client_path"]["seconds"] < 60
    assert not {"compile", "plain_loops"} & answer.keys()  # they take minutes


def test_the_client_path_is_measured_in_a_process_of_its_own() -> None:
    """This process has numba and more in memory; what is measured does not."""
    measured = measure_client_path(2)
    assert measured["seconds"] > 0
    assert 10 < measured["peak_mb"] < 60  # 60 is the aim


@pytest.mark.slow
def test_compiling_is_measured_though_machine_code_is_stored() -> None:
    compiled.warm_up()
    assert measure_compiling()["cpu_seconds"] > 1  # read from a cache it takes a tenth of that


@pytest.mark.slow
def test_plain_loops_train_beside_the_default() -> None:
    shape = SMOKE[0]
    data = synthetic.generate(shape.source, queries=shape.queries, seed=1)
    measured = measure_plain_loops(shape, data, 2)
    assert measured["interactions_per_s"] > 1000
    assert 0.05 < measured["times_default"] < 5


def test_every_measurement_has_its_line() -> None:
    speed = {"interactions_per_s": 1e6, "bandwidth_share": 0.5, "times_one_thread": 1.9}
    measured: dict[str, Any] = {
        "bandwidth_gb_s": 8.0,
        "train": {"mslr-shape": {"1": speed, "2": speed}},
        "plain_loops": {"mslr-shape": {"interactions_per_s": 765_432.1, "times_default": 0.77}},
        "numpy_reference": {"mslr-shape": {"interactions_per_s": 2000.0}},
        "speedup_over_numpy_reference": {"mslr-shape": 500.0},
        "evaluate": {"mslr-shape": {"ms_per_ranker": 1.2}},
        "parse": {"mb_per_s": 170.0, "peak_over_arrays": 1.5},
        "aggregators": {"micro": {"krum": 30.0}},
        "secagg": {},
        "two_servers": {"two_servers_1000x136": {"seconds": 0.6, "cpu_seconds": 0.55, "up_kb": 0.8}},
        "client_path": {"seconds": 0.21, "peak_mb": 45.6},
        "compile": {"cpu_seconds": 11.4},
        "peak_mb": 400.0,
    }
    lines = report_lines(measured).splitlines()
    assert "mslr-shape        765,432 interactions/s on 1 with FOLTR_SIMD=0: 0.77 times the default" in lines
    assert "two servers   1000x136, a tenth sends nothing: 0.60 s (0.55 of CPU), 0.8 kB a client" in lines
    assert "client path   0.21 s to import, 46 MB" in lines
    assert "compiling     11.4 s of CPU, once after an installation" in lines
    del measured["plain_loops"], measured["compile"]  # as in smoke form
    assert len(report_lines(measured).splitlines()) == len(lines) - 2
