"""The benchmark compares like with like: its NumPy twin takes the same steps, and its answer has the promised shape."""

import json
import subprocess
import sys

import numpy as np
import pytest

from foltr.lab.bench import numpy_reference as twin
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
