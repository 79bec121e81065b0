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
    done = plan("1e9")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert 0 < json.loads(done.stdout)["recommended"]["multiplier"] < 1e-3


@pytest.mark.parametrize("epsilon", ["inf", "nan", "0", "-1"])
def test_what_is_no_epsilon_is_refused(epsilon):
    done = plan(epsilon)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "epsilon" in done.stderr
