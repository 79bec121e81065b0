"""`foltr privacy plan` with targets at the ends of the range: a plan or one clear sentence, never a traceback."""

import json
import os
import subprocess
import sys

import pytest


def plan(epsilon):
    words = ["privacy", "plan", "--epsilon", epsilon, "--clients", "20", "--weeks", "1", "--searches", "2", "--json"]
    return subprocess.run(
        [sys.executable, "-m", "foltr", *words], capture_output=True, text=True, env=os.environ | {"COLUMNS": "80"}
    )


def test_a_target_that_needs_hardly_any_noise_is_planned():
    done = plan("1000")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert 0 < json.loads(done.stdout)["recommended"]["multiplier"] < 0.1


@pytest.mark.parametrize("epsilon", ["1e9", "inf", "nan", "0", "-1"])
def test_an_epsilon_that_protects_nobody_is_refused_with_the_range(epsilon):
    done = plan(epsilon)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert f"epsilon = {float(epsilon):g}: use a number above 0 and up to 1,000" in " ".join(done.stderr.split())
